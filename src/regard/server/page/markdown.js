// @ts-check
// The Markdown of lessons: headings, paragraphs, lists, tables, code, bold, emphasis and links within the page. No HTML.
import { h } from "./dom.js";

/** @param {string} text @returns {(Node | string)[]} */
export function inline(text) {
  const found = [], pattern = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*|\[([^\]]+)\]\(([^)\s]+)\)/g;
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    found.push(text.slice(from, match.index));
    const [whole, code, bold, slanted, name, address] = match;
    if (code) found.push(h("code", null, code));
    else if (bold) found.push(h("strong", null, ...inline(bold)));
    else if (slanted) found.push(h("em", null, ...inline(slanted)));
    else found.push(/^#\//.test(address) ? h("a", { href: address }, name) : name); // a lesson leads nowhere else
    from = match.index + whole.length;
  }
  found.push(text.slice(from));
  return found.filter((one) => one !== "");
}

/** @param {string} text @returns {HTMLElement[]} */
export function blocks(text) {
  const found = [];
  for (const block of text.trim().split(/\n\s*\n/)) {
    const lines = block.split("\n");
    if (/^```/.test(lines[0])) found.push(h("pre", { tabIndex: 0 }, lines.slice(1, /^```/.test(lines[lines.length - 1]) ? -1 : undefined).join("\n")));
    else if (/^#{2,4} /.test(block)) found.push(h("h4", null, ...inline(block.replace(/^#+ /, ""))));
    else if (lines.every((line) => /^[-*] /.test(line))) found.push(h("ul", null, lines.map((line) => h("li", null, ...inline(line.slice(2))))));
    else if (lines.every((line) => /^\d+\. /.test(line))) found.push(h("ol", null, lines.map((line) => h("li", null, ...inline(line.replace(/^\d+\. /, ""))))));
    else if (lines.length > 1 && /^\|/.test(lines[0]) && /^[|\s:-]+$/.test(lines[1])) found.push(table(lines));
    else if (/^> /.test(block)) found.push(h("blockquote", null, ...inline(lines.map((line) => line.replace(/^> ?/, "")).join(" "))));
    else if (block.trim()) found.push(h("p", null, ...inline(lines.join(" "))));
  }
  return found;
}

/** @param {string[]} lines */
function table(lines) {
  const cells = (/** @type {string} */ line) => line.replace(/^\||\|$/g, "").split("|").map((one) => one.trim());
  const [head, , ...rows] = lines;
  return h("table.plain", null, h("thead", null, h("tr", null, cells(head).map((one) => h("th", { scope: "col" }, ...inline(one))))),
    h("tbody", null, rows.map((row) => h("tr", null, cells(row).map((one) => h("td", null, ...inline(one)))))));
}
