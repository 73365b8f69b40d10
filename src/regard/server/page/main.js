// @ts-check
// The shell: what is chosen stands in the address; a view is drawn from it.
import { get, setAskForKey, upload } from "./api.js";
import { button, field, h, message, say, select } from "./dom.js";
import { setLook } from "./drawing.js";
import { inputBar, startingParams } from "./input.js";
import { takeLesson } from "./lesson_text.js";
import { takePicture } from "./picture_file.js";
import { current, go, link } from "./state.js";
import { VIEWS, find } from "./views/index.js";

/** @typedef {{id: string, kind: string, task: string, interface: string, parameters: number, context: number | null, takes_images: boolean, labels: string[],
 *   views: {name: string, summary: string, takes: string[], of_a_run: boolean}[]}} Model */
/** @typedef {{examples: Record<string, string>, lessons: string[], needs_boxes: string[], watched: {name: string, kind: string}[], ramps: Record<string, string[]>, version: string, is_loading: boolean}} Start */
/** @typedef {{params: Record<string, string>, model: Model | null, models: Model[], start: Start, signal: AbortSignal, nested: boolean,
 *   keep: (changes: Record<string, any>) => void, go: (view: string, params?: Record<string, any>) => void, draw: (root: HTMLElement, view: string, params: Record<string, string>) => Promise<void>}} Context */

const POLL = 300; // milliseconds, while the models are opened

/** @type {Model[]} */
let models = [];
/** @type {Start} */
let start;
let drawing = new AbortController();

/** The model of a view: the one that was named, or the first that the view is for. @param {any} view @param {Record<string, string>} params */
function modelFor(view, params) {
  const named = models.find((one) => one.id === params.model);
  if (named || params.trace) return named ?? null;
  return models.find((one) => view.applies(one, start) === true) ?? models[0] ?? null;
}

/** Draw a view into an element; a lesson draws others inside itself.
 * @param {HTMLElement} root @param {string} name @param {Record<string, string>} params @param {AbortSignal} signal @param {boolean} nested */
async function drawView(root, name, params, signal, nested) {
  const view = find(name);
  if (!view) return void root.replaceChildren(message(`there is no view “${name}”; choose one on the left`));
  const model = view.takesModel ? modelFor(view, params) : null;
  const given = model && view.takesInput ? { ...startingParams(model, view), ...params } : { ...params };
  const body = h("div.body");
  const title = nested ? null : h("h2", { id: "title" }, view.title);
  root.replaceChildren(...[title, title && h("p.hint", null, view.hint)].filter(Boolean));
  const reason = params.trace && view.takesTrace ? true : view.applies(model, start);
  if (reason !== true) {
    root.append(message(reason, "note"), h("p.hint", null, "Open other models with ", h("code", null, "regard page runs/…"), "; lessons and lecture figures need none."));
    return;
  }
  /** @type {Context} */
  const context = {
    params: given, model, models, start, signal, nested, go,
    keep: (changes) => { Object.assign(given, changes); if (!nested) history.replaceState(null, "", link(name, given)); },
    draw: (inner, other, others) => drawView(inner, other, others, signal, true),
  };
  if (view.takesInput && (model || params.trace)) root.append(await inputBar(context, view, (changes) => nested ? void drawView(root, name, { ...given, ...changes }, signal, true) : go(name, { ...given, ...changes })));
  root.append(body);
  body.setAttribute("aria-busy", "true");
  try {
    await view.render(body, context);
  } catch (error) {
    if (signal.aborted) return;
    body.replaceChildren(message(String(/** @type {Error} */ (error).message ?? error)));
    if (!(error instanceof Error) || error.constructor.name !== "ServerError") console.error(error);
  } finally {
    body.removeAttribute("aria-busy");
  }
}

async function draw() {
  drawing.abort();
  drawing = new AbortController();
  const { view, params } = current();
  const name = view || home();
  const main = /** @type {HTMLElement} */ (document.getElementById("view"));
  document.title = `${find(name)?.title ?? "regard"} · regard`;
  drawNavigation(name, params);
  drawTop(name, params);
  main.dataset.view = name;
  await drawView(main, name, params, drawing.signal, false);
  main.dataset.drawn = location.hash;
  if (!drawing.signal.aborted) say(`${find(name)?.title ?? ""} is shown`);
}

/** What a fresh page opens: where the first model looks, or without models the first lesson. */
const home = () => (models.length ? "heads" : "lessons");

/** @param {string} name @param {Record<string, string>} params */
function drawNavigation(name, params) {
  const nav = /** @type {HTMLElement} */ (document.getElementById("views"));
  const groups = [...new Set(VIEWS.map((one) => one.group))];
  const kept = (/** @type {any} */ one) => (one.takesModel && params.model ? { model: params.model, ...(one.takesInput ? { text: params.text, scene: params.scene } : {}) } : {});
  nav.replaceChildren(...groups.map((group) => h("section", null, h("h2", null, group), h("ul", null, VIEWS.filter((one) => one.group === group).map((one) => {
    const model = models.find((other) => other.id === params.model) ?? null;
    const reason = one.applies(one.takesModel ? model ?? modelFor(one, {}) : null, start);
    return h("li", null, h("a", { href: link(one.id, kept(one)), title: reason === true ? one.hint : reason, className: reason === true ? "" : "away", "aria-current": one.id === name ? "page" : null }, one.title));
  })))));
}

/** @param {string} name @param {Record<string, string>} params */
function drawTop(name, params) {
  const top = /** @type {HTMLElement} */ (document.getElementById("top")), view = find(name);
  const chosen = view ? modelFor(view, params)?.id ?? "" : "";
  const theme = document.documentElement.dataset.theme === "dark";
  top.replaceChildren(
    h("h1", null, h("a", { href: "#/" }, h("img", { src: "/page/icon.svg", alt: "", width: 24, height: 24 }), "regard")),
    button("☰", () => document.body.classList.toggle("menu"), { className: "menu", "aria-label": "views" }),
    models.length && view?.takesModel ? field("model", select(models.map((one) => [one.id, `${one.id} · ${one.kind}`]), chosen, (id) => go(name, { model: id })))
      : h("span.hint", null, models.length ? "" : "no model is open: the lectures’ own numbers"),
    h("span.grow"),
    h("label.button", { title: "a trace (.safetensors), a lesson (.md) or a picture; or drop it anywhere" }, "open a file", h("input.unseen", { type: "file", accept: ".safetensors,.md,.png,.jpg,.jpeg", "aria-label": "open a trace, a lesson or a picture", onchange: (/** @type {any} */ event) => open(event.target.files) })),
    button(theme ? "light" : "dark", () => { setTheme(theme ? "light" : "dark"); drawTop(name, params); }, { "aria-label": theme ? "light theme" : "dark theme" }),
    button("?", help, { "aria-label": "help and keys" }),
  );
}

/** @param {string} theme */
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("regard-theme", theme); } catch { /* storage may be switched off */ }
}

function help() {
  const dialog = h("dialog", { "aria-label": "help" }, h("h2", null, "Keys"), h("table.plain", null, h("tbody", null, [
    ["Tab, Shift+Tab", "from control to control"], ["arrow keys", "cells of a matrix, heads of the atlas, tokens of a line"], ["Enter", "choose"],
    ["← →", "cards of a lesson"], ["/", "to the text"], ["?", "this help"], ["Esc", "close"],
  ].map(([key, what]) => h("tr", null, h("th", { scope: "row" }, key), h("td", null, what))))),
  h("p", null, "Drop a trace file, a lesson or a picture on the page to open it. The address has the whole state: copy it to come back. Nothing leaves this machine."),
  h("form", { method: "dialog" }, h("button", { type: "submit" }, "close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** @returns {Promise<string>} */
function askForKey() {
  return new Promise((give) => {
    const given = h("input", { type: "password", autocomplete: "off" });
    const dialog = h("dialog", { "aria-label": "API key" }, h("form", { method: "dialog" }, h("p", null, "This server asks for its API key."), field("API key", given), h("button", { type: "submit" }, "go on")));
    dialog.addEventListener("close", () => { dialog.remove(); give(given.value); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** @param {FileList | File[] | null | undefined} files */
async function open(files) {
  const file = files?.[0], main = /** @type {HTMLElement} */ (document.getElementById("view"));
  if (!file) return;
  try {
    if (/\.safetensors$/i.test(file.name)) {
      const trace = await upload("/api/page/open", file);
      go("heads", { trace: trace.id });
    } else if (/\.md$/i.test(file.name)) {
      go("lessons", { lesson: takeLesson(file.name, await file.text()) });
    } else {
      const picture = await takePicture(file), model = models.find((one) => one.takes_images);
      const { view, params } = current();
      const here = find(view)?.takesInput && models.find((one) => one.id === params.model)?.takes_images;
      go(here ? view : "picture", { ...(here ? params : { model: model?.id }), picture, scene: null });
    }
  } catch (error) {
    main.prepend(message(`${file.name}: ${/** @type {Error} */ (error).message}`));
  }
}

function listen() {
  addEventListener("hashchange", draw);
  addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    open(event.dataTransfer?.files);
  });
  addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") help();
    if (event.key === "/") { event.preventDefault(); /** @type {any} */ (document.querySelector("#view input[type=text], #view textarea"))?.focus(); }
  });
  document.getElementById("views")?.addEventListener("click", () => document.body.classList.remove("menu"));
}

/** What the page opens with; a page that is opened before the models are waits for them. @returns {Promise<Start>} */
async function whenModelsAreOpen() {
  const main = /** @type {HTMLElement} */ (document.getElementById("view"));
  for (;;) {
    const found = await get("/api/page/start");
    if (!found.is_loading) return found;
    if (!main.querySelector(".message")) main.replaceChildren(message("the models are being opened …", "note"));
    await new Promise((goOn) => setTimeout(goOn, POLL));
  }
}

async function begin() {
  setAskForKey(askForKey);
  try {
    const started = await whenModelsAreOpen();
    const [found, css] = await Promise.all([get("/api/models"), fetch("/page/figure/figure.css").then((one) => one.text()), customElements.whenDefined("regard-figure")]);
    models = found;
    start = started;
    setLook(start.ramps, css);
  } catch (error) {
    document.getElementById("view")?.replaceChildren(message(String(/** @type {Error} */ (error).message)));
    return;
  }
  listen();
  await draw();
  performance.mark("regard-drawn");
}

begin();
