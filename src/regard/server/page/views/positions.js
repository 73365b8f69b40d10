// @ts-check
// Positions: shuffle the words with and without them; binary codes beside sinusoids.
import { button, h, slider } from "../dom.js";
import { COLORS, figureOf, frame, labelled } from "../drawing.js";
import { exportBar } from "../exporting.js";
import { product, softmax, transposed } from "../numbers.js";

/** Word vectors, set by hand. @type {Record<string, number[]>} */
const VECTORS = { dog: [2, 0, 0.5, 0], bites: [0, 1.5, 0, 1], man: [1.8, 0.2, 0, 0.6] };
const WORDS = Object.keys(VECTORS), WIDTH = 4;

/** The sinusoidal code of a position (Vaswani 2017). @param {number} position @param {number} width */
export const sinusoid = (position, width) => Array.from({ length: width }, (_, at) => { const angle = position / 10000 ** (2 * Math.floor(at / 2) / width); return at % 2 ? Math.cos(angle) : Math.sin(angle); });

/** softmax(X Xᵀ / √d) X, with or without positions. @param {number[]} order @param {boolean} positions */
export function attendedWords(order, positions) {
  const inputs = order.map((word, at) => VECTORS[WORDS[word]].map((one, place) => one + (positions ? sinusoid(at, WIDTH)[place] : 0)));
  return product(product(inputs, transposed(inputs)).map((row) => softmax(row.map((one) => one / 2))), inputs);
}

/** @type {import("./index.js").View} */
export default {
  id: "positions",
  title: "Positions",
  group: "Play",
  hint: "Attention does not see order: shuffle the words and watch what each of them gets, with and without positions.",
  takesModel: false, takesInput: false,
  applies: () => true,
  render(root, context) {
    const { params } = context, order = /** @type {number[]} */ ((params.order ?? "0,1,2").split(",").map(Number)), many = Number(params.many) || 16;
    const again = (/** @type {any} */ changes) => context.nested ? (Object.assign(context.params, changes), root.replaceChildren(), this.render(root, context)) : context.go("positions", { ...params, ...changes });
    const table = (/** @type {boolean} */ positions) => {
      const first = attendedWords([0, 1, 2], positions), now = attendedWords(order, positions), byWord = WORDS.map((_, word) => now[order.indexOf(word)]);
      const change = Math.max(...first.flatMap((row, word) => row.map((one, at) => Math.abs(one - byWord[word][at]))));
      const matrix = (/** @type {string} */ name, /** @type {number[][]} */ values) => labelled({ x: 8, y: 34, cell: [46, 24], values: values.flat(), rows: WORDS, columns: ["1", "2", "3", "4"], ramp: "value", low: -1, high: 3, digits: 2, name, colors: [COLORS.value, COLORS.faint] });
      const block = matrix(positions ? "outputs with positions" : "outputs without positions", byWord);
      return h("section.panel", null, h("h3", null, positions ? "with positions" : "without positions"),
        figureOf([frame({ name: "outputs", title: `outputs of “${order.map((at) => WORDS[at]).join(" ")}”`, width: Math.max(260, block.width + 16), height: block.height + 44, above: block.above, matrices: [block.matrix] })]),
        h(`p.message.${order.join() === "0,1,2" ? "note" : change > 1e-9 ? "good" : "error"}`, null, order.join() === "0,1,2" ? "This is the first order; shuffle the words." : change > 1e-9 ? `The outputs changed by up to ${change.toFixed(2)}: the model can tell who bites whom.` : "Every word has the very same output as before: without positions “dog bites man” is “man bites dog”."));
    };
    const codes = (/** @type {boolean} */ binary) => {
      const width = binary ? Math.max(4, Math.ceil(Math.log2(many))) : 16, values = Array.from({ length: many }, (_, at) => binary ? Array.from({ length: width }, (_, bit) => (at >> (width - 1 - bit)) & 1) : sinusoid(at, width));
      const steps = values.slice(1).map((row, at) => Math.hypot(...row.map((one, place) => one - values[at][place])));
      const block = labelled({ x: 8, y: 34, cell: [binary ? 24 : 18, Math.min(18, 400 / many)], values: values.flat(), rows: values.map((_, at) => String(at)), columns: Array.from({ length: width }, (_, at) => String(at)), ramp: binary ? "grey" : "diverging", low: binary ? 0 : -1, high: 1, name: binary ? "binary codes" : "sinusoids", colors: [COLORS.ink, COLORS.faint] });
      return h("section.panel", null, h("h3", null, binary ? "binary" : "sinusoids"), figureOf([frame({ name: "codes", title: binary ? "one bit a column" : "fast waves left, slow waves right", width: Math.max(300, block.width + 16), height: block.height + 44, above: block.above, matrices: [block.matrix] })]),
        h("p.hint", null, `Neighbors are ${Math.min(...steps).toFixed(2)} to ${Math.max(...steps).toFixed(2)} apart.`, binary ? " From 7 to 8 all bits flip: neighbors are not always near." : " Every step has the same length, and codes near each other are of positions near each other."));
    };
    const all = [[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1], [1, 2, 0], [2, 0, 1]], next = () => all[(all.findIndex((one) => one.join() === order.join()) + 1) % all.length];
    root.append(h("div.bar", null, h("p.sofar", null, h("strong", null, order.map((at) => WORDS[at]).join(" "))), button("shuffle the words", () => again({ order: next().join() }), { className: "primary" }), button("first order", () => again({ order: null }))),
      h("div.columns", null, table(false), table(true)), h("div.bar", null, slider({ label: "positions", min: 4, max: 64, step: 4, value: many, then: () => {} })), h("div.columns", null, codes(true), codes(false)), exportBar(() => ({ example: "binary-positions" })));
    root.querySelector("input[type=range]")?.addEventListener("change", (/** @type {any} */ event) => again({ many: event.target.value }));
  },
};
