// @ts-check
// Make elements, and say things to a screen reader.

/** An element: its tag with classes ("div.card"), its properties and listeners, its children.
 * @param {string} tag
 * @param {Record<string, any> | null} [props]
 * @param {...any} children
 * @returns {any} */
export function h(tag, props, ...children) {
  const [name, ...classes] = tag.split(".");
  /** @type {any} */
  const made = document.createElement(name);
  if (classes.length) made.className = classes.join(" ");
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "style") Object.assign(made.style, value);
    else if (key === "data") Object.assign(made.dataset, value);
    else if (key.includes("-") || key === "role" || key === "for") { if (value !== false) made.setAttribute(key, value === true ? "" : String(value)); }
    else made[key] = value;
  }
  made.append(...children.flat().filter((/** @type {any} */ one) => one !== null && one !== undefined && one !== false));
  return made;
}

/** Read out by a screen reader, politely. @param {string} text */
export function say(text) {
  const region = document.getElementById("said");
  if (region) region.textContent = text;
}

/** A labelled control. @param {string} text @param {any} control @param {string} [hint] */
export function field(text, control, hint) {
  return h("label.field", { title: hint }, h("span", null, text), control);
}

/** @param {string} label @param {(event: any) => void} onclick @param {Record<string, any>} [props] */
export function button(label, onclick, props) {
  return h("button", { type: "button", onclick, ...props }, label);
}

/** @param {[string, string][]} options value and name @param {string} chosen @param {(value: string) => void} then */
export function select(options, chosen, then) {
  const made = h("select", { onchange: () => then(made.value) }, options.map(([value, name]) => new Option(name, value, false, value === chosen)));
  return made;
}

/** A slider with its value beside it.
 * @param {{label: string, min: number, max: number, step: number, value: number, shown?: (value: number) => string, then: (value: number) => void}} given */
export function slider({ label, min, max, step, value, shown, then }) {
  const text = shown ?? String, output = h("output", null, text(value));
  const input = h("input", { type: "range", min, max, step, value, "aria-label": label, oninput: () => { output.textContent = text(input.valueAsNumber); then(input.valueAsNumber); } });
  input.value = String(value);
  return h("label.field.slide", null, h("span", null, label), input, output);
}

/** A message where a view would be. @param {string} text @param {string} [kind] */
export function message(text, kind = "error") {
  say(text);
  return h(`p.message.${kind}`, { role: kind === "error" ? "alert" : "note" }, text);
}

/** Switches one of several buttons on. @param {Element} root @param {Element} chosen */
export function press(root, chosen) {
  for (const one of root.querySelectorAll("[aria-pressed]")) one.setAttribute("aria-pressed", String(one === chosen));
}

/** What may be wider than the page: it scrolls by itself, also with the keyboard. @param {string} label @param {...any} children */
export const scrolling = (label, ...children) => h("div.scrolling", { tabIndex: 0, role: "region", "aria-label": label }, ...children);
