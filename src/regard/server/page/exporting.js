// @ts-check
// Take a view away: as PNG, SVG or HTML, and as the command or the Python that makes it.
import { postForBlob } from "./api.js";
import { button, h, message, say } from "./dom.js";

/** @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const anchor = h("a", { href: address, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** @param {string} text @param {string} what */
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`copied ${what}`);
    return true;
  } catch {
    say("the clipboard is closed to this page; the text stands below");
    return false;
  }
}

/** A word as a shell takes it. @param {string} word */
export const quoted = (word) => (/^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** @param {any} word */
const python = (word) => (typeof word === "string" ? JSON.stringify(word) : String(word));

const OPTIONS = ["attention", "layer", "head", "token", "temperature", "top_k", "top_p", "limit", "max_new_tokens", "target"];

/** What was asked of /api/page/figure, as a command. @param {any} asked */
export function asCommand(asked) {
  if (asked.example) return `regard show --example ${asked.example} -o ${asked.example}.png`;
  const words = ["regard", "show", asked.trace ? "trace.safetensors" : asked.model];
  if (asked.image) words.push("picture.png");
  words.push(...(asked.texts ?? []));
  if (asked.view) words.push("--view", asked.view);
  for (const name of OPTIONS) if (asked[name] !== undefined && asked[name] !== null) words.push(`--${name.replaceAll("_", "-")}`, String(asked[name]));
  for (const one of asked.off ?? []) words.push("--off", one);
  return [...words, "-o", `${asked.view ?? "figure"}.png`].map(quoted).join(" ");
}

/** The same as Python. @param {any} asked */
export function asPython(asked) {
  if (asked.example) return `from regard.inspection.examples import draw_example\n\ndraw_example(${python(asked.example)}).save(${python(`${asked.example}.png`)})\n`;
  const file = python(`${asked.view ?? "figure"}.png`);
  if (asked.trace) return `from pathlib import Path\n\nfrom regard.inspection.trace import Trace\nfrom regard.inspection.views.base import Choices\nfrom regard.tasks.show import show_trace\n\ntrace = Trace.open(Path("trace.safetensors"))\nshow_trace(trace, ${python(asked.view ?? null)}, Choices()).save(${file})\n`;
  const inputs = [...(asked.image ? ["picture.png"] : []), ...(asked.texts ?? [])].map(python);
  const options = OPTIONS.filter((name) => asked[name] !== undefined && asked[name] !== null && name !== "target").map((name) => `${name}=${python(asked[name])}`);
  if (asked.view) options.unshift(`view=${python(asked.view)}`);
  const off = asked.off?.length ? asked.off : [], indent = off.length ? "    " : "";
  const show = `${indent}model.show(${[...inputs, ...options].join(", ")}).save(${file})\n`;
  const head = `import regard\n${off.length ? "from regard.inspection.interventions import intervene, parse_switches\n" : ""}\nmodel = regard.load(${python(asked.model)})\n`;
  return off.length ? `${head}with intervene(model.model, parse_switches(${JSON.stringify(off)}, model.model)):\n${show}` : head + show;
}

/** The bar of a view. `asked` is what was asked of /api/page/figure; `frame` the frame that is seen.
 * @param {() => any} asked @param {() => number | undefined} [frame] */
export function exportBar(asked, frame = () => undefined) {
  const shown = h("pre.copied", { hidden: true, tabIndex: 0, "aria-label": "command" }), wrong = h("div");
  const save = (/** @type {string} */ format) => async () => {
    wrong.replaceChildren();
    try {
      const given = asked();
      download(await postForBlob("/api/page/figure", { ...given, format, frame: frame() }), `${given.example ?? given.view ?? "figure"}.${format}`);
      say(`saved as ${format.toUpperCase()}`);
    } catch (error) {
      wrong.replaceChildren(message(String(/** @type {Error} */ (error).message)));
    }
  };
  const give = (/** @type {(asked: any) => string} */ write, /** @type {string} */ what) => async () => {
    shown.textContent = write(asked());
    shown.hidden = false;
    await copy(shown.textContent ?? "", what);
  };
  const address = async () => { shown.textContent = location.href; shown.hidden = false; await copy(location.href, "the address"); };
  return h("div.export", null,
    h("div.buttons", { role: "group", "aria-label": "take it away" },
      button("PNG", save("png")), button("SVG", save("svg")), button("HTML", save("html")),
      button("copy as command", give(asCommand, "the command")), button("copy as Python", give(asPython, "the Python")), button("copy link", address)),
    shown, wrong);
}
