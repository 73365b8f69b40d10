// @ts-check
// Alignment: which source token each generated token looks at, built token by token; two models beside each other.
import { button, field, h, select, slider } from "../dom.js";
import { figureOf, frame, labelled } from "../drawing.js";
import { exportBar } from "../exporting.js";
import { request } from "../input.js";
import { answerLine, queryLabels, traceOf } from "./heads.js";

/** The mean over heads and layers, or one head. @param {any} info @param {any} values @param {any[]} across @param {string} which */
async function weightsOf(info, values, across, which) {
  const [path, head] = which.split(":");
  const chosen = which === "mean" ? across : across.filter((one) => one.path === path);
  const found = await Promise.all(chosen.map((one) => values.get([`${one.path}.weights`]).then((/** @type {any} */ all) => all[`${one.path}.weights`])));
  const [, rows, columns] = found[0].shape, size = rows * columns, mean = new Float32Array(size);
  for (const { shape, data } of found) {
    const heads = which === "mean" ? Array.from({ length: shape[0] }, (_, at) => at) : [Number(head)];
    for (const one of heads) for (let at = 0; at < size; at++) mean[at] += data[one * size + at] / (heads.length * found.length);
  }
  return { mean, rows, columns };
}

/** One model's board: the matrix up to a token. @param {any} context */
async function lane(context) {
  const { info, values } = await traceOf(context), across = info.attentions.filter((/** @type {any} */ one) => one.queries !== one.keys && one.shape);
  if (!across.length) return { root: h("div", null, answerLine(info), h("p.message.note", null, `${context.model.id} has no attention from the target to the source: one vector has to carry the sentence.`)), length: info.axes.target?.tokens.length ?? 0, show: () => {}, body: null };
  const queries = queryLabels(info, across[0]), keys = info.axes[across[0].keys].tokens;
  const options = /** @type {[string, string][]} */ ([["mean", "mean of all heads"], ...across.flatMap((/** @type {any} */ one) => Array.from({ length: one.shape[0] }, (_, head) => [`${one.path}:${head}`, `layer ${one.layer}, head ${head}`]))]);
  let which = options.some(([id]) => id === context.params.which) ? context.params.which : "mean", upTo = queries.length;
  const box = h("div"), line = h("p.sofar");
  const draw = async () => {
    const { mean, rows, columns } = await weightsOf(info, values, across, which), few = rows <= 24 && columns <= 24;
    const hidden = Array.from({ length: rows * columns }, (_, at) => Math.floor(at / columns) >= upTo);
    const block = labelled({ x: 8, y: 34, cell: few ? [34, 22] : [14, 12], values: mean.map((one, at) => (hidden[at] ? 0 : one)), rows: queries.map((/** @type {string} */ one, /** @type {number} */ at) => (at < upTo ? one : "…")), columns: keys, digits: few ? 2 : null, masked: upTo < rows ? hidden : null, name: `attention of ${context.model?.id ?? "the trace"}` });
    box.replaceChildren(figureOf([frame({ name: which, title: `alignment: ${options.find(([id]) => id === which)?.[1]}`, caption: "Each row is one generated token, and sums to 1.", width: Math.max(300, block.width + 20), height: block.height + 44, above: block.above, matrices: [block.matrix] })]));
    line.replaceChildren(h("span.hint", null, context.model?.id ?? "trace"), h("strong", null, queries.slice(0, upTo).join(" ")));
  };
  const [path, head] = which.split(":"), body = await request(context, which === "mean" ? { view: "alignment" } : { view: "alignment", attention: path, head: Number(head) });
  await draw();
  return { root: h("div", null, line, field("attention", select(options, which, (id) => { which = id; context.keep({ which: id }); draw(); })), box), length: queries.length, show: (/** @type {number} */ at) => { upTo = Math.min(at, queries.length); return draw(); }, body };
}

/** @type {import("./index.js").View} */
export default {
  id: "alignment",
  title: "Alignment",
  group: "Look inside",
  hint: "Source across, target down, one row a token: build it token by token, and set two models beside each other.",
  takesModel: true, takesInput: true, takesTrace: true,
  applies: (model) => (!model ? "it needs a translator, and none is open" : model.interface === "seq2seq" ? true : `a ${model.kind} has no source text; open a translator: regard demo`),
  async render(root, context) {
    const { params, models, model } = context, others = models.filter((/** @type {any} */ one) => one.interface === "seq2seq" && one.id !== model?.id);
    const beside = others.find((/** @type {any} */ one) => one.id === params.beside);
    const lanes = [await lane(context)];
    if (beside) lanes.push(await lane({ ...context, model: beside, params: { ...params, model: beside.id, which: "mean" }, keep: () => {} }));
    const longest = Math.max(...lanes.map((one) => one.length), 1);
    let timer = 0;
    const place = slider({ label: "tokens so far", min: 0, max: longest, step: 1, value: longest, then: (at) => lanes.forEach((one) => one.show(at)) }), input = place.querySelector("input");
    const play = button("build it token by token", () => {
      clearInterval(timer);
      let at = 0;
      const step = () => { input.value = String(at); input.dispatchEvent(new Event("input")); if (at++ >= longest) clearInterval(timer); };
      step();
      timer = setInterval(step, matchMedia("(prefers-reduced-motion: reduce)").matches ? 1500 : 700);
    }, { className: "primary" });
    context.signal.addEventListener("abort", () => clearInterval(timer));
    const choose = others.length ? field("beside", select([["", "nothing"], ...others.map((/** @type {any} */ one) => /** @type {[string, string]} */ ([one.id, `${one.id} · ${one.kind}`]))], params.beside ?? "", (id) => context.go("alignment", { ...params, beside: id }))) : h("span.hint", null, "open a second translator to set it beside this one");
    root.append(h("div.bar", null, play, place, context.nested ? null : choose), h("div.columns", null, lanes.map((one) => one.root)), lanes[0].body ? exportBar(() => lanes[0].body) : h("span"));
  },
};
