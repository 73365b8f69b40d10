// @ts-check
// Every view of `regard show`, for every model: the same figures, drawn here.
import { post } from "../api.js";
import { button, field, h, select } from "../dom.js";
import { figure } from "../drawing.js";
import { exportBar } from "../exporting.js";
import { request } from "../input.js";
import { link } from "../state.js";

const NUMBERS = ["layer", "head", "temperature", "top_k", "top_p", "limit"];
/** @type {Record<string, string>} */
const HINTS = { attention: "a pattern of paths: decoder.*.cross_attention", layer: "from 0", head: "from 0", token: "a token, a word, or its number", temperature: "1 leaves the probabilities as they are", top_k: "keep the k most probable", top_p: "keep this much probability", limit: "rows that are shown" };
const SEVERAL = ["words", "masks"]; // they take several texts, with | between them
const PAIR = { encoder: ["he sat on the bank of the river | she took her money to the bank", "bank"], other: ["we are eating bread | they are eating apples", "eating"] };
const TAKEN = Object.keys(HINTS);

/** @param {import("../main.js").Context} context @param {string} [view] */
export async function asked(context, view) {
  const { params } = context;
  /** @type {Record<string, any>} */
  const found = await request(context, { view: view ?? params.of });
  for (const name of TAKEN) if (params[name]) found[name] = NUMBERS.includes(name) ? Number(params[name]) : params[name];
  const of = found.view;
  if (SEVERAL.includes(of) && found.texts?.[0]?.includes("|")) found.texts = found.texts[0].split("|").map((/** @type {string} */ one) => one.trim());
  if (of === "token" && !found.token) found.token = context.model?.interface === "encoder" && /\bit\b/.test(found.texts.join(" ")) ? "it" : "0";
  const masked = ["masked-lm", "image-text-pretraining"].includes(context.model?.task ?? "");
  if (of === "next" && masked && !found.token && (context.model?.takes_images || !/\[MASK\]/.test(found.texts?.[0] ?? ""))) found.token = "1";
  if (params.max_new_tokens) found.max_new_tokens = Number(params.max_new_tokens);
  return found;
}

/** A figure of the server with its bar, for any module. @param {HTMLElement} root @param {any} body @param {AbortSignal} signal */
export async function serverFigure(root, body, signal) {
  const data = await post("/api/page/figure", body, signal);
  const drawn = figure(data);
  root.replaceChildren(drawn, ...(data.notes ?? []).map((/** @type {string} */ note) => h("p.hint", null, note)), exportBar(() => body, () => drawn.current));
  return drawn;
}

/** @type {import("./index.js").View} */
export default {
  id: "show",
  title: "All views",
  group: "Look inside",
  hint: "Every view of regard show, with its choices.",
  takesModel: true, takesInput: true, takesTrace: true, takesPair: true,
  applies: (model) => (model ? true : "it looks at a model, and none is open"),
  async render(root, context) {
    const { params, model, signal } = context;
    const views = (model?.views ?? []).filter((/** @type {any} */ one) => !one.of_a_run);
    const names = params.trace ? (await (await fetch(`/api/page/trace/${params.trace}`)).json()).views : views;
    const chosen = names.find((/** @type {any} */ one) => one.name === params.of) ?? names[0];
    const about = h("p.hint", null, chosen.summary), drawn = h("div");
    const again = (/** @type {Record<string, any>} */ changes) => context.nested ? (Object.assign(context.params, changes), draw()) : context.go("show", { ...context.params, ...changes });
    const draw = () => asked(context, chosen.name).then((body) => serverFigure(drawn, body, signal));
    const choices = h("form.choices", { onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      again(Object.fromEntries([...choices.querySelectorAll("input")].map((one) => [one.name, one.value || null])));
    } }, TAKEN.filter((name) => chosen.takes.includes(name)).map((name) => field(name.replaceAll("_", " "), h("input", { name, type: NUMBERS.includes(name) ? "number" : "text", step: "any", min: 0, value: params[name] ?? "", placeholder: HINTS[name] }), HINTS[name])));
    if (["causal_lm"].includes(model?.interface)) choices.append(field("new tokens", h("input", { name: "max_new_tokens", type: "number", min: 1, max: 256, value: params.max_new_tokens ?? "", placeholder: "none" })));
    if (choices.children.length) choices.append(button("draw", () => choices.requestSubmit()));
    if (!context.nested) root.append(h("div.bar", null, field("view", select(names.map((/** @type {any} */ one) => [one.name, one.name]), chosen.name, (name) => again({ of: name, layer: null, head: null, token: null, attention: null })))), about, choices);
    root.append(drawn);
    drawn.append(h("p.wait", null, "computing …"));
    if (chosen.name === "words" && !(params.token && params.text?.includes("|"))) {
      const [text, token] = model?.interface === "encoder" ? PAIR.encoder : PAIR.other;
      return void drawn.replaceChildren(h("p.message.note", null, "This view compares one word in several sentences: write them with | between them, and the word above. ", h("a", { href: link("show", { ...params, of: "words", text, token }) }, "For example")));
    }
    await draw();
  },
};
