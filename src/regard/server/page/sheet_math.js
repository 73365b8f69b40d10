// @ts-check
// The worked example as numbers: each step of attention from the one before, and what a wrong number was made of.
import { product, shown, softmax, transposed } from "./numbers.js";

/** @typedef {{similarity: "scaled" | "dot" | "additive", scale: number, causal: boolean, given: "vectors" | "scores", words: string[], keys: string[],
 *   Q: number[][], K: number[][], V: number[][], scores: number[][], v: number[], hidden: boolean[][]}} Sheet */

/** Every step. @param {Sheet} sheet */
export function computed(sheet) {
  const { Q, K, V, hidden, similarity } = sheet;
  let scores = sheet.scores;
  if (sheet.given === "vectors") scores = similarity === "additive" ? Q.map((query) => K.map((key) => query.reduce((sum, one, at) => sum + sheet.v[at] * Math.tanh(one + key[at]), 0))) : product(Q, transposed(K));
  const scale = similarity === "scaled" ? sheet.scale : 1;
  const scaled = scores.map((row) => row.map((one) => one / scale));
  const masked = scaled.map((row, query) => row.map((one, key) => (hidden[query][key] ? -Infinity : one)));
  const weights = masked.map((row) => softmax(row));
  return { scores, scaled, masked, weights, output: product(weights, V) };
}

/** @param {number} one @param {number} other */
export const close = (one, other) => one === other || Math.abs(one - other) <= Math.max(0.0051, 0.011 * Math.abs(other));

/** Why a number of a student is wrong, if it is one of the usual mistakes; "" if nobody knows.
 * @param {Sheet} sheet @param {"scores" | "scaled" | "weights" | "output"} step @param {number} row @param {number} column @param {number} said */
export function mistake(sheet, step, row, column, said) {
  const right = computed(sheet), wide = sheet.scale ** 2;
  const is = (/** @type {number} */ one) => Number.isFinite(one) && close(said, one);
  if (Number.isNaN(said)) return "that is not a number; write 0.88 or −1.5";
  const swapped = right[step][column]?.[row];
  if (step === "scores") {
    if (is(-right.scores[row][column])) return "the sign is wrong";
    if (swapped !== undefined && is(swapped)) return "row and column are swapped: the row is the query, the column the key";
    return "multiply the numbers of the query and of the key one by one, and add the products up";
  }
  if (step === "scaled") {
    if (is(right.scores[row][column])) return `that is the score itself: divide it by √${shown(wide, 0)} = ${shown(sheet.scale)}`;
    if (is(right.scores[row][column] / wide)) return `divided by ${shown(wide, 0)}, the width: divide by its root, ${shown(sheet.scale)}`;
    if (is(right.scores[row][column] * sheet.scale)) return "multiplied by the root: divide by it";
    return `divide the score ${shown(right.scores[row][column])} by ${shown(sheet.scale)}`;
  }
  if (step === "weights") {
    const line = right.masked[row], seen = line.filter((one) => one !== -Infinity);
    const sum = seen.reduce((one, other) => one + other, 0);
    if (line[column] === -Infinity) return "a masked key has the weight 0: exp(−∞) = 0";
    if (is(line[column] / sum)) return `${shown(line[column])} divided by the sum ${shown(sum)}: softmax takes exp of each number first`;
    if (is(Math.exp(line[column]))) return "that is exp of the score: divide it by the sum of the row";
    if (is(softmax(right.scores[row])[column]) && sheet.similarity === "scaled") return "that is softmax of the scores before they were divided by √d";
    if (is(softmax(right.scaled[row])[column])) return "the masked keys took a share: leave them out of the sum";
    if (is(1 / line.length) || is(1 / seen.length)) return "that is the same share for every key: the scores were not used";
    if (is(softmax(right.masked.map((one) => one[column]))[row])) return "the sum was taken down the column: softmax goes along the row of a query";
    const other = right.weights[row].findIndex((one, at) => at !== column && is(one));
    if (other >= 0) return `that is the weight of ${sheet.keys[other]}`;
    return "exp of this number, divided by the sum of exp over the row";
  }
  const mean = sheet.V.reduce((sum, value) => sum + value[column], 0) / sheet.V.length;
  if (is(mean)) return "that is the plain mean of the values: weigh each by its weight";
  const most = right.weights[row].indexOf(Math.max(...right.weights[row]));
  if (is(sheet.V[most][column])) return "that is the value with the largest weight: add the others, each times its weight";
  if (is(sheet.V.reduce((sum, value) => sum + value[column], 0))) return "that is the sum of the values without their weights";
  if (is(right.scaled[row].reduce((sum, one, at) => sum + one * sheet.V[at][column], 0))) return "weighed by the scores: take the weights after softmax";
  return "add the values, each times its weight";
}

const none = (/** @type {number} */ rows, /** @type {number} */ columns) => Array.from({ length: rows }, () => Array(columns).fill(false));

/** The lectures' own sheets. @returns {Record<string, {name: string, about: string, sheet: Sheet}>} */
export function presets() {
  /** @type {number[][]} */
  const words = [[1, 0, 2, 1], [0, 2, 1, 1]];
  const of = (/** @type {number[][]} */ weights) => product(words, weights);
  const base = { v: [], scores: [], causal: false };
  return {
    lecture: { name: "112, 96, 16, 8", about: "The lecture's scores of one query, with keys of width 64. Change a score and see the weights move.",
      sheet: { ...base, similarity: "scaled", scale: 8, given: "scores", words: ["q₁"], keys: ["k₁", "k₂", "k₃", "k₄"], Q: [], K: [], scores: [[112, 96, 16, 8]], V: [[1, 0], [0, 1], [1, 1], [-1, 0]], hidden: none(1, 4) } },
    thinking: { name: "Thinking Machines", about: "Two words with queries, keys and values of width 3, small enough to follow by hand.",
      sheet: { ...base, similarity: "scaled", scale: Math.sqrt(3), given: "vectors", words: ["Thinking", "Machines"], keys: ["Thinking", "Machines"],
        Q: of([[1, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1]]), K: of([[1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]), V: of([[0, 2, 0], [1, 0, 0], [0, 1, 1], [1, 0, 2]]), hidden: none(2, 2) } },
    xxt: { name: "softmax(X Xᵀ) X", about: "Attention without parameters: a word is its own query, key and value. Related words move towards each other.",
      sheet: { ...base, similarity: "dot", scale: Math.sqrt(3), given: "vectors", words: ["animal", "dog", "street", "road", "tired"], keys: ["animal", "dog", "street", "road", "tired"],
        ...same([[2, 0, 0.5], [2, 0, 1], [0, 2, 0], [0, 1.8, 0.2], [0.8, 0, 1.5]]), hidden: none(5, 5) } },
    additive: { name: "additive (Bahdanau)", about: "The score is v · tanh(q + k): a small network instead of a product, as in the RNN translator of 2015.",
      sheet: { ...base, similarity: "additive", scale: 1, given: "vectors", words: ["s₀", "s₁"], keys: ["we", "are", "eating"], v: [1, -1, 2], Q: [[0.5, -1, 1], [1, 0, -0.5]], K: [[1, 0, 0.5], [0, 1, 0], [-0.5, 0.5, 1.5]], V: [[1, 0], [0, 1], [1, 1]], hidden: none(2, 3) } },
    masked: { name: "a causal mask", about: "Three tokens that may not see the future. Click a masked cell to let it leak.",
      sheet: { ...base, similarity: "scaled", scale: Math.sqrt(2), causal: true, given: "vectors", words: ["the", "cat", "sat"], keys: ["the", "cat", "sat"], Q: [[1, 0], [0, 2], [1, 1]], K: [[1, 0], [1, 1], [0, 2]], V: [[1, 0], [0, 1], [2, 2]], hidden: [[false, true, true], [false, false, true], [false, false, false]] } },
  };
}

/** @param {number[][]} vectors */
function same(vectors) {
  const copy = () => vectors.map((row) => [...row]);
  return { Q: copy(), K: copy(), V: copy() };
}
