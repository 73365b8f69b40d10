// @ts-check
// Compare: what recurrence, convolution and attention cost over the length; the models that are open; reports of `regard compare`.
import { get } from "../api.js";
import { lines } from "../charts.js";
import { h, scrolling, slider } from "../dom.js";
import { COLORS } from "../drawing.js";

/** Multiply-adds of a layer, its sequential steps and the longest path between two tokens (Vaswani 2017, table 1).
 * @type {Record<string, {color: string, cost: (n: number, d: number) => number, steps: (n: number) => number, path: (n: number) => number, formula: string}>} */
export const LAYERS = {
  "self-attention": { color: COLORS.query, cost: (n, d) => n * n * d, steps: () => 1, path: () => 1, formula: "n² d" },
  recurrence: { color: COLORS.key, cost: (n, d) => n * d * d, steps: (n) => n, path: (n) => n, formula: "n d²" },
  "convolution (k = 3)": { color: COLORS.value, cost: (n, d) => 3 * n * d * d, steps: () => 1, path: (n) => Math.ceil(Math.log(n) / Math.log(3)), formula: "k n d²" },
};

/** @type {import("./index.js").View} */
export default {
  id: "compare",
  title: "Compare",
  group: "Measure",
  hint: "What each kind of layer costs, the models that are open, and reports of regard compare.",
  takesModel: false, takesInput: false,
  applies: () => true,
  async render(root, context) {
    const { models, start, params, signal } = context, given = { n: Number(params.n) || 512, d: Number(params.d) || 256 };
    const chart = h("div"), table = h("div");
    const draw = () => {
      const lengths = Array.from({ length: 24 }, (_, at) => Math.max(1, Math.round(((at + 1) * given.n) / 24)));
      chart.replaceChildren(lines(Object.entries(LAYERS).map(([name, { color, cost }]) => ({ name, color, points: lengths.map((n) => /** @type {[number, number]} */ ([n, cost(n, given.d) / 1e6])) })), { label: "million multiply-adds of a layer", x: "length n", y: "million multiply-adds", zero: true }));
      table.replaceChildren(scrolling("layers", h("table.plain", null, h("thead", null, h("tr", null, ["layer", "formula", `multiply-adds at n = ${given.n}, d = ${given.d}`, "steps one after another", "longest path"].map((one) => h("th", { scope: "col" }, one)))), h("tbody", null, Object.entries(LAYERS).map(([name, one]) => h("tr", null, h("th", { scope: "row" }, name), h("td", null, one.formula), h("td.number", null, one.cost(given.n, given.d).toLocaleString("en")), h("td.number", null, one.steps(given.n).toLocaleString("en")), h("td.number", null, one.path(given.n).toLocaleString("en"))))))), h("p.hint", null, `Attention is cheaper than recurrence where n < d: here below ${given.d}. What it really takes on this machine: regard cost -o cost.png`));
      context.keep(given);
    };
    root.append(h("section.panel", null, h("h3", null, "A layer of each kind"), h("div.bar", null, slider({ label: "length n", min: 16, max: 4096, step: 16, value: given.n, then: (value) => { given.n = value; draw(); } }), slider({ label: "width d", min: 16, max: 2048, step: 16, value: given.d, then: (value) => { given.d = value; draw(); } })), chart, table));
    draw();
    if (context.nested) return;
    if (models.length) root.append(h("section.panel", null, h("h3", null, "Models that are open"), scrolling("models", h("table.plain", null, h("thead", null, h("tr", null, ["model", "kind", "task", "parameters", "context"].map((one) => h("th", { scope: "col" }, one)))), h("tbody", null, models.map((/** @type {any} */ one) => h("tr", null, h("th", { scope: "row" }, h("a", { href: `#/map?model=${encodeURIComponent(one.id)}` }, one.id)), h("td", null, one.kind), h("td", null, one.task), h("td.number", null, one.parameters.toLocaleString("en")), h("td.number", null, one.context ?? "—"))))))));
    for (const { name, kind } of start.watched) if (kind === "report") {
      const report = await get(`/api/page/watched/${encodeURIComponent(name)}`, signal);
      const columns = [["bleu", "BLEU"], ["perplexity", "perplexity"], ["exact_match", "exact"], ["alignment_error_rate", "align. error"], ["tokens_per_second", "tokens/s"]];
      root.append(h("section.panel", null, h("h3", null, name), h("p.hint", null, report.command), scrolling("translators", h("table.plain", null, h("thead", null, h("tr", null, ["rung", ...columns.map(([, one]) => one), "parameters"].map((one) => h("th", { scope: "col" }, one)))), h("tbody", null, report.standings.map((/** @type {any} */ one) => h("tr", null, h("th", { scope: "row" }, one.rung), columns.map(([id]) => h("td.number", null, typeof one.scores[id] === "number" ? one.scores[id].toFixed(id === "tokens_per_second" ? 0 : 2) : "—")), h("td.number", null, one.parameters.toLocaleString("en")))))))));
    }
    if (!start.watched.some((/** @type {any} */ one) => one.kind === "report")) root.append(h("p.hint", null, "A report of the five translators: regard compare -o ladder, then regard page ladder."));
  },
};
