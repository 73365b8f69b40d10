// @ts-check
// Switches: turn heads off and see the answer change. Attention is not importance.
import { post } from "../api.js";
import { bars } from "../charts.js";
import { button, h, say } from "../dom.js";
import { request } from "../input.js";
import { serverFigure } from "./show.js";

/** What a model answered, in one line and as bars where it gave probabilities. @param {any} answer */
export function answered(answer) {
  const one = Array.isArray(answer) ? answer[0] : answer;
  if (one === null || one === undefined) return { text: "", rows: /** @type {{label: string, value: number}[]} */ ([]) };
  if (typeof one === "string") return { text: one, rows: [] };
  const probabilities = one.probabilities ?? one.scores ?? null;
  const rows = probabilities && !Array.isArray(probabilities) ? Object.entries(probabilities).map(([label, value]) => ({ label, value: Number(value) })) : Array.isArray(probabilities) ? probabilities.map((/** @type {any} */ pair) => (Array.isArray(pair) ? { label: String(pair[0]), value: Number(pair[1]) } : { label: String(pair.label ?? pair.answer ?? pair.token), value: Number(pair.probability ?? pair.score) })) : [];
  const masks = one.masks ?? one.fills;
  const text = one.text ?? one.answer ?? one.label ?? (masks ? JSON.stringify(masks[0]?.[0] ?? masks[0]) : one.tags ? JSON.stringify(one.tags) : one.score !== undefined ? `score ${Number(one.score).toFixed(4)}` : one.probability !== undefined ? `probability ${Number(one.probability).toFixed(4)}` : JSON.stringify(one).slice(0, 300));
  return { text: String(text), rows: rows.filter((row) => Number.isFinite(row.value)).sort((a, b) => b.value - a.value).slice(0, 8) };
}

/** @type {import("./index.js").View} */
export default {
  id: "switches",
  title: "Switches",
  group: "Play",
  hint: "Turn heads off and see the answer change. A head may have large weights and no effect.",
  takesModel: true, takesInput: true, takesPair: true,
  text: (model) => (model.task === "masked-lm" ? "the animal did not cross the [MASK] because it was too tired ." : undefined),
  applies: (model) => (!model ? "it needs a model with attention, and none is open" : model.views.some((/** @type {any} */ one) => one.name === "switches") ? true : `this ${model.kind} has no heads to switch off`),
  async render(root, context) {
    const { params, model, signal } = context, off = new Set((params.off ?? "").split(",").filter(Boolean));
    const more = model.interface === "causal_lm" ? { max_new_tokens: 12 } : {};
    const ask = async (/** @type {string[]} */ heads) => answered((await post("/api/page/answer", { ...(await request(context, more)), off: heads }, signal)).answer);
    const { attentions } = await post("/api/page/trace", await request(context, { taps: ["*.weights"], off: [] }), signal);
    const change = (/** @type {Set<string>} */ next) => context.nested ? (context.params.off = [...next].join(","), root.replaceChildren(), this.render(root, context)) : context.go("switches", { ...params, off: [...next].join(",") || null });
    const rows = attentions.filter((/** @type {any} */ one) => one.shape).map((/** @type {any} */ one) => h("div.layer", null, h("span.switchname", null, one.path), Array.from({ length: one.shape[0] }, (_, head) => {
      const name = `${one.path}:${head}`;
      return button(String(head), () => { const next = new Set(off); if (next.has(name)) next.delete(name); else next.add(name); change(next); }, { className: "switch", "aria-pressed": String(!off.has(name)), "aria-label": `${name}, ${off.has(name) ? "off" : "on"}`, title: one.patterns[head] });
    }), button("all", () => { const next = new Set(off), all = Array.from({ length: one.shape[0] }, (_, head) => `${one.path}:${head}`), on = all.every((name) => next.has(name)); for (const name of all) if (on) next.delete(name); else next.add(name); change(next); }, { className: "plain" })));
    const before = await ask([]), after = off.size ? await ask([...off]) : before;
    const side = (/** @type {string} */ name, /** @type {any} */ one) => h("section.panel", null, h("h3", null, name), h("p.sofar", null, h("strong", null, one.text || "—")), one.rows.length ? bars(one.rows, { label: name, most: 1 }) : null);
    const effects = h("div");
    root.append(h("div.columns", null, side("all heads on", before), side(off.size ? `${off.size} head${off.size > 1 ? "s" : ""} off` : "now", after)),
      off.size ? h(`p.message.${before.text === after.text ? "note" : "good"}`, null, before.text === after.text ? "The answer is the same." : "The answer changed.") : h("p.hint", null, "Press a number to switch that head off."),
      h("div.switches", { role: "group", "aria-label": "heads; pressed is on" }, rows),
      h("div.bar", null, button("all on again", () => change(new Set()), { disabled: !off.size }), button("which heads matter? (switch off each in turn)", async () => { effects.replaceChildren(h("p.wait", null, "computing …")); try { await serverFigure(effects, { ...(await request(context)), off: undefined, view: "switches" }, signal); } catch (error) { effects.replaceChildren(h("p.message.error", null, String(/** @type {Error} */ (error).message))); } })), effects);
    if (off.size) say(before.text === after.text ? "the answer is the same" : "the answer changed");
  },
};
