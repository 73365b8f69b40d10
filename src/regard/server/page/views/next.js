// @ts-check
// The next token: its probabilities under temperature, top-k and top-p; choose one and go on.
import { postPacked } from "../api.js";
import { bars } from "../charts.js";
import { button, h, slider } from "../dom.js";
import { exportBar } from "../exporting.js";
import { request } from "../input.js";
import { softmax } from "../numbers.js";

const SHOWN = 14;

/** What sampling keeps, as in Python: the k most probable, then of these the fewest whose sum reaches p.
 * @param {number[]} sorted probabilities, the largest first @param {number} topK @param {number} topP */
export function keptCount(sorted, topK, topP) {
  const most = topK ? Math.min(topK, sorted.length) : sorted.length;
  if (topP >= 1) return most;
  const total = sorted.slice(0, most).reduce((sum, one) => sum + one, 0);
  let before = 0;
  for (let at = 0; at < most; at++) {
    if (before / total >= topP) return at;
    before += sorted[at];
  }
  return most;
}

/** @type {import("./index.js").View} */
export default {
  id: "next",
  title: "Next token",
  group: "Play",
  hint: "The probabilities of the next token. Choose one and go on; temperature, top-k and top-p change what sampling keeps.",
  takesModel: true, takesInput: true,
  applies: (model) => (!model ? "it needs a model that generates, and none is open" : ["causal_lm", "seq2seq", "captioner"].includes(model.interface) ? true : `a model for ${model.task.replaceAll("-", " ")} does not generate text; open a translator or a language model`),
  async render(root, context) {
    const { params, model, signal } = context, isText = model.interface === "causal_lm";
    const body = await request(context, isText ? {} : { target: params.target ?? "" });
    const { arrays, more } = await postPacked("/api/page/predict", body, signal);
    const logits = arrays.logits.data, candidates = more.candidates[0];
    const look = { temperature: Number(params.temperature) || 1, topK: Number(params.top_k) || 0, topP: Number(params.top_p) || 1 };
    const again = (/** @type {any} */ changes) => context.nested ? (Object.assign(context.params, changes), this.render(root, context)) : context.go("next", { ...context.params, ...changes });
    const choose = (/** @type {any} */ one) => { if (!one.end) again(isText ? { text: one.text } : { target: one.text }); };
    const list = h("div"), said = h("p.hint");
    const draw = () => {
      const all = softmax(logits, look.temperature), order = candidates.map((/** @type {any} */ one) => all[one.id]);
      const sorted = [...all].sort((one, other) => other - one), kept = keptCount(sorted, look.topK, look.topP), sum = order.slice(0, SHOWN).reduce((/** @type {number} */ one, /** @type {number} */ other) => one + other, 0);
      list.replaceChildren(bars(candidates.slice(0, SHOWN).map((/** @type {any} */ one, /** @type {number} */ at) => ({ label: one.end ? `${one.label}  (end)` : one.label, value: order[at], note: at >= kept ? " cut" : "", faint: at >= kept, choose: () => choose(one) })), { label: "the most probable next tokens", digits: 4 }));
      said.textContent = `Sampling keeps ${kept.toLocaleString("en")} of ${all.length.toLocaleString("en")} tokens; those not shown have ${(100 * Math.max(0, 1 - sum)).toFixed(2)} % together.`;
      context.keep({ temperature: look.temperature === 1 ? null : look.temperature, top_k: look.topK || null, top_p: look.topP === 1 ? null : look.topP });
    };
    const sample = () => {
      const all = softmax(logits, look.temperature), ids = Array.from(all.keys()).sort((one, other) => all[other] - all[one]);
      const kept = ids.slice(0, keptCount(ids.map((id) => all[id]), look.topK, look.topP)), total = kept.reduce((sum, id) => sum + all[id], 0);
      let left = Math.random() * total;
      const id = kept.find((one) => (left -= all[one]) <= 0) ?? kept[0];
      const one = candidates.find((/** @type {any} */ other) => other.id === id);
      if (one) choose(one); // of those that are named; the others are very improbable
      else choose(candidates[0]);
    };
    const so = isText ? params.text ?? "" : params.target ?? "";
    root.replaceChildren(
      h("p.sofar", null, h("span.hint", null, isText ? "text so far" : model.interface === "seq2seq" ? "translation so far" : "caption so far"), h("strong", null, so || "—")),
      h("div.bar", null,
        slider({ label: "temperature", min: 0.1, max: 3, step: 0.05, value: look.temperature, shown: (one) => one.toFixed(2), then: (value) => { look.temperature = value; draw(); } }),
        slider({ label: "top-k", min: 0, max: 50, step: 1, value: look.topK, shown: (one) => (one ? String(one) : "all"), then: (value) => { look.topK = value; draw(); } }),
        slider({ label: "top-p", min: 0.05, max: 1, step: 0.05, value: look.topP, shown: (one) => one.toFixed(2), then: (value) => { look.topP = value; draw(); } }),
        button("draw one", sample), button("the most probable", () => choose(candidates[0])), button("back", () => history.back(), { disabled: context.nested })),
      list, said, exportBar(() => ({ ...body, view: "next", temperature: look.temperature, ...(look.topK ? { top_k: look.topK } : {}), ...(look.topP < 1 ? { top_p: look.topP } : {}) })));
    draw();
  },
};
