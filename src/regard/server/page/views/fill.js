// @ts-check
// Fill in: click a word to hide it behind [MASK]; the model says what it expects there.
import { postPacked } from "../api.js";
import { bars } from "../charts.js";
import { h } from "../dom.js";
import { exportBar } from "../exporting.js";
import { request } from "../input.js";
import { softmax } from "../numbers.js";

/** @type {import("./index.js").View} */
export default {
  id: "fill",
  title: "Fill in",
  group: "Play",
  hint: "Click a word to hide it; click an answer to put it there. This is what BERT was trained to do.",
  takesModel: true, takesInput: true,
  text: (model) => (model.task === "masked-lm" ? "the animal did not cross the [MASK] because it was too tired ." : undefined),
  applies: (model) => (!model ? "it needs a BERT that fills in words, and none is open" : model.task === "masked-lm" ? true : `a model for ${model.task.replaceAll("-", " ")} does not fill in words; open a BERT: regard train bert -o runs/bert`),
  async render(root, context) {
    const { params, signal } = context, text = params.text || "[MASK]", words = /** @type {string[]} */ (text.split(/\s+/).filter(Boolean));
    const change = (/** @type {number} */ at, /** @type {string} */ word) => { const next = words.map((one, place) => (place === at ? word : one)).join(" "); context.nested ? (context.params.text = next, root.replaceChildren(), this.render(root, context)) : context.go("fill", { ...params, text: next }); };
    const line = h("div.strip.large", { role: "group", "aria-label": "words; choose one to hide it" }, words.map((word, at) => {
      const masked = /\[MASK\]/.test(word);
      return h(`button.token${masked ? ".masked" : ""}`, { type: "button", "aria-label": masked ? "hidden word" : `hide ${word}`, onclick: () => change(at, "[MASK]") }, word);
    }));
    root.append(line);
    if (!/\[MASK\]/.test(text)) return void root.append(h("p.message.note", null, "No word is hidden. Click one."));
    const body = await request(context), { arrays, more } = await postPacked("/api/page/predict", body, signal), { data, shape } = arrays.logits;
    const places = words.map((word, at) => (/\[MASK\]/.test(word) ? at : -1)).filter((at) => at >= 0);
    root.append(h("div.columns", null, more.candidates.map((/** @type {any[]} */ found, /** @type {number} */ row) => {
      const all = softmax(data.subarray(row * shape[1], (row + 1) * shape[1]));
      return h("section.panel", null, h("h3", null, places.length > 1 ? `hidden word ${row + 1}` : "the hidden word"), bars(found.slice(0, 10).map((one) => ({ label: one.label, value: all[one.id], choose: () => change(places[row] ?? places[0], one.label.replace(/^·/, "")) })), { label: `the most probable words at place ${more.positions[row]}`, digits: 4 }));
    })), exportBar(() => ({ ...body, view: "next" })));
  },
};
