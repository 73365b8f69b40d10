// @ts-check
// Masks: what a token may see, what leaks where the mask is missing, and two ways to mask wrongly.
import { field, h, scrolling, select } from "../dom.js";
import { COLORS, figureOf, frame, labelled } from "../drawing.js";
import { softmax } from "../numbers.js";
import { exportBar } from "../exporting.js";

const WORDS = ["the", "cat", "sat", "on", "the", "mat", "<pad>", "<pad>"];
const SCORES = [[2.1, 0.3, -0.4, 1.2, 0.9, -0.2, 0.5, 0.1], [0.8, 1.9, 1.1, -0.6, 0.2, 1.4, -0.3, 0.4], [0.1, 2.2, 1.3, 0.7, -0.5, 1.6, 0.2, -0.1], [1.0, 0.2, 1.7, 0.9, 0.6, 1.9, 0.3, 0.0], [1.5, -0.3, 0.4, 1.1, 1.2, 2.4, -0.2, 0.6], [0.3, 1.6, 1.0, 1.3, 1.8, 1.1, 0.1, 0.2], [0.2, 0.1, 0.3, -0.1, 0.4, 0.2, 0.6, 0.5], [0.0, 0.3, 0.2, 0.1, -0.2, 0.1, 0.4, 0.7]];
/** @type {Record<string, {name: string, about: string, hides: (query: number, key: number) => boolean}>} */
const KINDS = {
  causal: { name: "causal and padding", about: "A decoder: no token sees a later one, and nobody sees padding.", hides: (query, key) => key > query || key > 5 },
  future: { name: "causal alone", about: "No token sees a later one. Padding after the text is hidden too, from every real token.", hides: (query, key) => key > query },
  padding: { name: "padding alone", about: "An encoder: every token sees all real tokens, nobody sees padding.", hides: (_, key) => key > 5 },
  window: { name: "window of 3", about: "A token sees itself and the two before it: cost grows with n, not n².", hides: (query, key) => key > query || key < query - 2 },
  none: { name: "no mask", about: "Every token sees every other: of a model that predicts the next token, the answer leaks.", hides: () => false },
};
/** @type {Record<string, string>} */
const WAYS = { right: "−∞ before softmax (right)", zero: "0 before softmax", after: "× 0 after softmax" };

/** @type {import("./index.js").View} */
export default {
  id: "masks",
  title: "Masks",
  group: "Play",
  hint: "What a token may see, what leaks when the mask is missing, and what two wrong ways of masking do.",
  takesModel: false, takesInput: false,
  applies: () => true,
  render(root, context) {
    const { params } = context, kind = KINDS[params.kind] ? params.kind : "causal", way = WAYS[params.way] ? params.way : "right", { about, hides } = KINDS[kind];
    const hidden = SCORES.flatMap((row, query) => row.map((_, key) => hides(query, key)));
    const scores = SCORES.map((row, query) => row.map((one, key) => (hides(query, key) && way !== "after" ? (way === "right" ? -Infinity : 0) : one)));
    const weights = scores.map((row, query) => softmax(row).map((one, key) => (way === "after" && hides(query, key) ? 0 : one)));
    /** @type {[number, number]} */
    const cell = [40, 24];
    const block = (/** @type {number} */ x, /** @type {number[][]} */ values, /** @type {any} */ look) => labelled({ x, y: 52, cell, values: values.flat(), rows: WORDS, columns: WORDS, digits: 2, ...look });
    const one = block(8, scores.map((row) => row.map((value) => (value === -Infinity ? -Infinity : value))), { ramp: "diverging", low: -2.5, high: 2.5, masked: way === "right" ? hidden : null, name: "scores before softmax" });
    const other = block(one.width + 50, weights, { masked: way === "right" ? hidden : null, name: "weights after softmax" });
    const heads = `<text x="8" y="44" font-size="9" font-weight="700" fill="${COLORS.ink}">scores before softmax</text><text x="${one.width + 50}" y="44" font-size="9" font-weight="700" fill="${COLORS.ink}">weights after softmax</text>`;
    const drawn = figureOf([frame({ name: "mask", title: `${KINDS[kind].name}: ${WAYS[way]}`, caption: about, width: one.width + other.width + 66, height: 60 + one.height, above: heads + one.above + other.above, matrices: [one.matrix, other.matrix] })]);
    const real = [0, 1, 2, 3, 4, 5], sums = real.map((query) => weights[query].reduce((sum, value) => sum + value, 0)), next = real.slice(0, 5).map((query) => weights[query][query + 1]), future = real.map((query) => weights[query].reduce((sum, value, key) => sum + (key > query && key < 6 ? value : 0), 0)), padding = real.map((query) => weights[query][6] + weights[query][7]);
    const mean = (/** @type {number[]} */ values) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const again = (/** @type {any} */ changes) => context.nested ? (Object.assign(context.params, changes), root.replaceChildren(), this.render(root, context)) : context.go("masks", { ...params, ...changes });
    const rows = [["weight on the future, a row's mean", mean(future), "0: else a model that predicts the next token can copy it"], ["weight on the very next token", mean(next), "0: this is the answer"], ["weight on padding", mean(padding), "0: padding means nothing"], ["sum of a row", mean(sums), "1: the output is a weighted mean"]];
    const bad = (/** @type {number} */ at, /** @type {number} */ value) => (at === 3 ? Math.abs(value - 1) > 1e-6 : value > 1e-6);
    root.append(h("div.bar", null, field("mask", select(Object.entries(KINDS).map(([id, { name }]) => [id, name]), kind, (id) => again({ kind: id }))), field("how it is applied", select(Object.entries(WAYS), way, (id) => again({ way: id })))), drawn,
      scrolling("what leaks", h("table.plain", null, h("thead", null, h("tr", null, ["", "here", "wanted"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", null, rows.map(([name, value, wanted], at) => h("tr", null, h("th", { scope: "row" }, name), h(`td.number${bad(at, Number(value)) ? ".leak" : ""}`, null, Number(value).toFixed(3)), h("td", null, wanted)))))),
      exportBar(() => ({ example: "mask" })));
  },
};
