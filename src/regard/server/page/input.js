// @ts-check
// What a model is given: a text, a pair, or a picture and a text; and how it starts on a fresh page.
import { get } from "./api.js";
import { button, field, h } from "./dom.js";
import { pictureOf, takePicture } from "./picture_file.js";

const SENTENCE = "the animal did not cross the street because it was too tired .";
/** @type {Record<string, string>} */
const TEXTS = { seq2seq: "we are eating bread", causal_lm: "Once upon a time there was a", encoder: SENTENCE };

/** @type {Map<string, any>} */
const scenes = new Map();
/** @param {string} number */
export async function sceneOf(number) {
  if (!scenes.has(number)) scenes.set(number, await get(`/api/page/scene/${number}`));
  return scenes.get(number);
}

/** The input of a model that nobody gave one. @param {import("./main.js").Model} model @param {any} view @returns {Record<string, string>} */
export function startingParams(model, view) {
  /** @type {Record<string, string>} */
  const found = { model: model.id };
  if (model.takes_images) found.scene = "0";
  else {
    const text = view.text?.(model) ?? TEXTS[model.interface] ?? SENTENCE, isTiny = model.context && model.context < 48;
    found.text = !isTiny ? text : /\[MASK\]/.test(text) ? "it [MASK] on" : "it was";
  }
  return found;
}

/** The request that /api/show and /api/page take. @param {import("./main.js").Context} context @param {Record<string, any>} [more] */
export async function request(context, more = {}) {
  const { params, model } = context;
  if (params.trace) return { trace: params.trace, ...more };
  /** @type {Record<string, any>} */
  const found = { model: model?.id, texts: [], ...more };
  if (model?.takes_images) {
    const picture = pictureOf(params.picture), scene = await sceneOf(params.scene ?? "0");
    if (params.picture && !picture) throw new Error("the picture was in another tab; drop it here again");
    found.image = picture?.base64 ?? scene.image;
    if (context.start.needs_boxes.includes(model.id)) found.boxes = picture ? ninths(scene.side) : scene.boxes;
    if (model.interface === "vision_language") found.texts = [params.text || question(model, scene)];
  } else {
    found.texts = [params.text ?? "", ...(params.second ? [params.second] : [])];
  }
  if (params.target) found.target = params.target;
  if (params.off) found.off = params.off.split(",");
  return found;
}

/** Nine regions of a picture in which nobody marked any. @param {number} side */
const ninths = (side) => [0, 1, 2].flatMap((row) => [0, 1, 2].map((column) => [column, row, column + 1, row + 1].map((one) => Math.round((one * side) / 3))));

/** A text to start with about a scene. @param {import("./main.js").Model} model @param {any} scene @returns {string} */
export function question(model, scene) {
  if (/question/.test(model.task)) return scene.questions[0].text;
  return scene.captions[0];
}

/** @param {import("./main.js").Context} context @param {any} view @param {(changes: Record<string, any>) => void} change */
export async function inputBar(context, view, change) {
  const { params, model } = context;
  if (params.trace) return h("p.hint", null, "A trace file: its input is in it. ", h("a", { href: "#/heads" }, "back to the models"));
  if (!model) return h("span");
  const parts = [];
  const scene = model.takes_images ? await sceneOf(params.scene ?? "0") : null;
  const text = h("input", { type: "text", value: params.text ?? (scene && model.interface === "vision_language" ? question(model, scene) : ""), spellcheck: false, autocomplete: "off" });
  if (scene) {
    const picture = pictureOf(params.picture), source = picture ? `data:image/png;base64,${picture.base64}` : `data:image/png;base64,${scene.image}`;
    parts.push(h("img.given", { src: source, alt: picture ? picture.name : `drawn scene ${params.scene ?? 0}: ${scene.captions[0]}`, width: 56, height: 56 }));
    parts.push(button("another scene", () => change({ scene: Number(params.scene ?? 0) + 1, picture: null, text: null, target: null })));
    parts.push(h("label.button", null, "a picture of yours", h("input.unseen", { type: "file", accept: "image/png,image/jpeg", "aria-label": "a picture of yours", onchange: async (/** @type {any} */ event) => change({ picture: await takePicture(event.target.files[0]), scene: null }) })));
  }
  const asksText = !scene || model.interface === "vision_language";
  if (asksText) parts.push(h("label.field.wide", null, h("span", null, scene ? "text about the picture" : model.interface === "seq2seq" ? "sentence to translate" : "text"), text));
  const second = h("input", { type: "text", value: params.second ?? "", placeholder: "none", spellcheck: false });
  if (model.interface === "encoder" && view.takesPair) parts.push(field("second text", second));
  if (asksText) parts.push(h("button", { type: "submit" }, "look"));
  return h("form.input", { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); change({ text: text.value, second: second.value || null, target: null }); } }, parts);
}
