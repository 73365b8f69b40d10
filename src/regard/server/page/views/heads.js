// @ts-check
// Where the model looks: the atlas of all heads, one head as a matrix and as ribbons, and the sentence shaded by a token.
import { TraceValues, get, post } from "../api.js";
import { button, field, h, say, select } from "../dom.js";
import { figureOf, frame, labelled, ribbons, shade, strip, topOf, width } from "../drawing.js";
import { exportBar } from "../exporting.js";
import { request } from "../input.js";

const MOST_RIBBONS = 64; // tokens; more are a matrix alone
const TAPS = ["*.weights"];

/** @param {any} context @returns {Promise<any>} what the trace says, and its values */
export async function traceOf(context, taps = TAPS) {
  const { params, signal } = context;
  const info = params.trace ? await get(`/api/page/trace/${params.trace}`, signal) : await post("/api/page/trace", await request(context, { taps, ...(params.max_new_tokens ? { max_new_tokens: Number(params.max_new_tokens) } : {}) }), signal);
  return { info, values: new TraceValues(info.id) };
}

/** Labels of the queries of an attention: in attention to a source, the tokens that were chosen. @param {any} info @param {any} one */
export const queryLabels = (info, one) => (one.queries !== one.keys && info.axes[one.queries].next_tokens.length ? info.axes[one.queries].next_tokens : info.axes[one.queries].tokens);

/** The kinds of attention of a model: "source to source", "target to source" … @param {any} info */
export function kindsOf(info) {
  /** @type {Map<string, any[]>} */
  const found = new Map();
  for (const one of info.attentions) if (one.shape) {
    const kind = one.queries === one.keys ? `${one.queries} to itself` : `${one.queries} to ${one.keys}`;
    found.set(kind, [...(found.get(kind) ?? []), one]);
  }
  return found;
}

/** One head: matrix and ribbons in one figure. @param {any} info @param {any} one @param {number} head @param {Float32Array} weights */
export function headFigure(info, one, head, weights) {
  const queries = queryLabels(info, one), keys = info.axes[one.keys].tokens;
  const few = queries.length * keys.length <= 600 && keys.length <= 24;
  const names = Math.max(...queries.map((/** @type {string} */ token) => width(token, 10)), ...keys.map((/** @type {string} */ token) => width(token, 10)));
  const side = few ? Math.min(30, Math.max(19, (720 - 190 - 3 * names) / keys.length)) : Math.max(640 / Math.max(queries.length, keys.length), 0.6);
  /** @type {[number, number]} */
  const cell = few ? [side, 18] : [side, side];
  const name = `${one.path}, head ${head}`, high = few ? 1 : topOf(weights, keys.length);
  const matrix = labelled({ x: 8, y: 34, cell, values: weights, rows: queries, columns: keys, high, digits: few ? 2 : null, name });
  let wide = matrix.width + 16, above = matrix.above, below = "", height = 34 + matrix.height + 10;
  if (Math.max(queries.length, keys.length) <= MOST_RIBBONS) {
    const lines = ribbons(matrix.width + 44, 34 + matrix.top, cell[1], queries, keys, weights);
    [wide, above, below] = [matrix.width + 44 + lines.width + 8, above + lines.above, lines.below];
    height = Math.max(height, 34 + matrix.top + lines.height + 10);
  }
  const caption = "Queries (blue) attend to keys (orange); each row sums to 1.";
  return frame({ name, title: name, caption, width: Math.max(wide, 330), height, below, above, matrices: [matrix.matrix] });
}

/** Every head as a small canvas. @param {HTMLCanvasElement} canvas @param {Float32Array} cells @param {number} rows @param {number} columns */
function paintSmall(canvas, cells, rows, columns) {
  canvas.width = columns;
  canvas.height = rows;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")), pixels = pen.createImageData(columns, rows), top = topOf(cells, columns);
  const palette = Array.from({ length: 65 }, (_, at) => shade("query", at / 64));
  for (let at = 0; at < cells.length; at++) {
    const [red, green, blue] = palette[Math.round(Math.min(cells[at] / top, 1) * 64)];
    pixels.data[4 * at] = red; pixels.data[4 * at + 1] = green; pixels.data[4 * at + 2] = blue; pixels.data[4 * at + 3] = 255;
  }
  pen.putImageData(pixels, 0, 0);
}

/** The head a fresh view opens with: the one whose "it", or else whose tokens, look most at another word. @param {any} info @param {any[]} attentions @param {any} cells @returns {[any, number]} */
function mostTelling(info, attentions, cells) {
  const queries = queryLabels(info, attentions[0]), keys = info.axes[attentions[0].keys].tokens, it = queries.indexOf("it"), same = attentions[0].queries === attentions[0].keys;
  const special = keys.map((/** @type {string} */ one) => /^[[<].*[\]>]$/.test(one));
  /** @type {[any, number]} */
  let best = [attentions[0], 0], most = -1;
  for (const one of attentions) {
    const { shape: [heads, rows, columns], data } = cells[one.path];
    if (rows !== queries.length || columns !== keys.length) return best; // pooled: labels and cells are not the same
    for (let head = 0; head < heads; head++) {
      let sum = 0;
      for (const row of it >= 0 ? [it] : queries.keys()) {
        let top = 0;
        for (let key = 0; key < columns; key++) if (!special[key] && !(same && Math.abs(key - row) < 2)) top = Math.max(top, data[(head * rows + row) * columns + key]);
        sum += top;
      }
      if (sum > most) [best, most] = [[one, head], sum];
    }
  }
  return best;
}

const ORDER = ["previous", "next", "diagonal", "first", "separator", "focused", "broad"];

/** The atlas of one kind of attention. @param {any} state @param {any[]} attentions @param {any} cells */
function atlas(state, attentions, cells) {
  const rows = attentions.map((one) => {
    const { shape, data } = cells[one.path], size = shape[1] * shape[2];
    const order = one.patterns.map((/** @type {string} */ _, /** @type {number} */ head) => head).sort((/** @type {number} */ a, /** @type {number} */ b) => ORDER.indexOf(one.patterns[a]) - ORDER.indexOf(one.patterns[b]) || a - b);
    return h("div.layer", { role: "row" }, h("span.layername", { role: "rowheader" }, `layer ${one.layer}`), order.map((/** @type {number} */ head) => {
      const canvas = h("canvas", { "aria-hidden": "true" }), off = state.off.has(`${one.path}:${head}`);
      paintSmall(canvas, data.subarray(head * size, (head + 1) * size), shape[1], shape[2]);
      const pressed = state.one.path === one.path && state.head === head;
      return h("div", { role: "gridcell" }, h(`button.head${off ? ".off" : ""}`, { type: "button", "aria-pressed": String(pressed), tabIndex: pressed ? 0 : -1, data: { path: one.path, head }, "aria-label": `layer ${one.layer}, head ${head}: ${one.patterns[head]}${off ? ", switched off" : ""}`, onclick: () => state.choose(one, head) }, canvas, h("span", null, `${head} ${one.patterns[head]}`)));
    }));
  });
  const grid = h("div.atlas", { role: "grid", "aria-label": "all heads", onkeydown: (/** @type {KeyboardEvent} */ event) => {
    const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!move) return;
    event.preventDefault();
    const lines = rows.map((row) => [...row.querySelectorAll("button")]), row = lines.findIndex((line) => line.includes(/** @type {any} */ (document.activeElement)));
    if (row < 0) return;
    const line = lines[Math.min(lines.length - 1, Math.max(0, row + move[0]))], column = lines[row].indexOf(/** @type {any} */ (document.activeElement)) + move[1];
    const next = line[Math.min(line.length - 1, Math.max(0, column))];
    next.focus();
    next.click();
  } }, rows);
  return grid;
}

/** @type {import("./index.js").View} */
export default {
  id: "heads",
  title: "Where it looks",
  group: "Look inside",
  hint: "Choose a token to see where it looks; choose a head to see it as a matrix and as lines.",
  takesModel: true, takesInput: true, takesTrace: true, takesPair: true,
  applies: (model) => (!model ? "it looks at a model, and none is open" : model.views.some((/** @type {any} */ one) => one.name === "heads") ? true : `this ${model.kind} has no attention`),
  async render(root, context) {
    const { params } = context;
    root.append(h("p.wait", null, "computing …"));
    const { info, values } = await traceOf(context), cells = await values.atlas();
    const kinds = kindsOf(info);
    if (!kinds.size) throw new Error("this trace has no attention weights");
    const wanted = params.attention, first = [...kinds.values()].flat();
    const named = first.find((one) => one.path === wanted) ?? (info.interface === "seq2seq" || info.interface === "captioner" || info.interface === "vision_language" ? [...kinds.entries()].find(([name]) => !name.endsWith("itself"))?.[1][0] : null) ?? first[Math.min(first.length - 1, Math.floor(first.length / 2))];
    const [telling, tellingHead] = wanted ? [named, 0] : mostTelling(info, /** @type {any[]} */ ([...kinds.values()].find((all) => all.includes(named))), cells);
    const state = { one: telling, head: Math.min(params.head === undefined ? tellingHead : Number(params.head) || 0, telling.shape[0] - 1), token: params.token ? Number(params.token) : -1, off: new Set((params.off ?? "").split(",").filter(Boolean)), choose: /** @type {any} */ (null) };
    const board = h("div.board"), matrixbox = h("div.matrixbox"), stripbox = h("div.strips"), atlasbox = h("div.atlasbox"), sayings = h("p.hint", { "aria-live": "polite" });
    const kindOf = (/** @type {any} */ one) => [...kinds.entries()].find(([, all]) => all.includes(one))?.[0] ?? "";
    const picker = select([...kinds.keys()].map((name) => [name, name]), kindOf(state.one), (name) => { state.one = /** @type {any} */ (kinds.get(name))[0]; state.token = -1; drawAtlas(); state.choose(state.one, 0); });
    const asBody = async () => request(context, { view: "head", attention: state.one.path, head: state.head });
    /** @type {any} */
    let body = await asBody();

    const drawAtlas = () => atlasbox.replaceChildren(atlas(state, /** @type {any[]} */ (kinds.get(kindOf(state.one))), cells));
    state.choose = async (/** @type {any} */ one, /** @type {number} */ head) => {
      [state.one, state.head] = [one, head];
      const began = performance.now();
      const path = `${one.path}.weights`, found = (await values.get([path], head))[path];
      if (state.one !== one || state.head !== head) return;
      for (const other of atlasbox.querySelectorAll("button.head")) { const it = other.dataset.path === one.path && Number(other.dataset.head) === head; other.setAttribute("aria-pressed", String(it)); other.tabIndex = it ? 0 : -1; }
      const drawn = figureOf([headFigure(info, one, head, found.data)]);
      drawn.addEventListener("regard-choose", (/** @type {any} */ event) => lookFrom(event.detail.row));
      matrixbox.replaceChildren(drawn);
      drawStrips(found.data);
      body = await asBody();
      context.keep({ attention: one.path, head, ...(state.token >= 0 ? { token: state.token } : {}) });
      root.dataset.switched = String(Math.round(performance.now() - began));
    };
    /** @type {any} */
    let queryStrip;
    /** @type {any} */
    let keyStrip;
    let weights = /** @type {Float32Array} */ (new Float32Array());
    const drawStrips = (/** @type {Float32Array} */ found) => {
      weights = found;
      const queries = queryLabels(info, state.one), keys = info.axes[state.one.keys].tokens, same = state.one.queries === state.one.keys;
      queryStrip = strip(queries, { label: `${state.one.queries}: choose the token that looks`, choose: lookFrom, hover: (at) => shadeFrom(at ?? state.token) });
      keyStrip = same ? queryStrip : strip(keys, { label: `${state.one.keys}: what it looks at` });
      stripbox.replaceChildren(...[h("span.role", null, same ? "the token that looks, and what it looks at" : "the token that looks"), queryStrip.root, ...(same ? [] : [h("span.role", null, "what it looks at"), keyStrip.root])]);
      if (state.token < 0 && info.axes[state.one.queries].tokens.length) { const it = queries.findIndex((/** @type {string} */ one) => one === "it"); state.token = it >= 0 ? it : Math.min(queries.length - 1, same ? queries.length - 1 : 1); }
      lookFrom(Math.min(state.token, queries.length - 1));
    };
    const shadeFrom = (/** @type {number} */ at) => {
      if (at < 0) return;
      const wide = info.axes[state.one.keys].tokens.length;
      keyStrip.shade(weights.subarray(at * wide, (at + 1) * wide));
    };
    const lookFrom = (/** @type {number} */ at) => {
      state.token = at;
      queryStrip.press(at);
      shadeFrom(at);
      const keys = info.axes[state.one.keys].tokens, row = weights.subarray(at * keys.length, (at + 1) * keys.length);
      const order = Array.from(row.keys()).sort((a, b) => row[b] - row[a]).slice(0, 3);
      const text = `“${queryLabels(info, state.one)[at]}” looks at ${order.map((key) => `${keys[key]} (${row[key].toFixed(2)})`).join(", ")} — layer ${state.one.layer}, head ${state.head}`;
      sayings.textContent = text;
      context.keep({ token: at });
    };
    const flip = button("switch this head off", async () => {
      const name = `${state.one.path}:${state.head}`;
      if (state.off.has(name)) state.off.delete(name); else state.off.add(name);
      say(state.off.has(name) ? "switched off" : "switched on");
      context.go("switches", { ...params, off: [...state.off].join(",") });
    }, { hidden: !!params.trace });
    drawAtlas();
    board.append(h("div.left", null, h("div.bar", null, kinds.size > 1 ? field("attention", picker) : h("span.hint", null, [...kinds.keys()][0]), flip), atlasbox), h("div.right", null, matrixbox));
    root.replaceChildren(answerLine(info), stripbox, sayings, board, exportBar(() => body));
    await state.choose(state.one, state.head);
  },
};

/** What the model answered, above the view. @param {any} info */
export function answerLine(info) {
  const answer = info.answer;
  if (!answer) return h("span");
  const text = typeof answer === "string" ? answer : answer.text ?? answer.answer ?? "";
  return text ? h("p.answer", null, h("span", null, info.interface === "seq2seq" ? "translation" : info.interface === "captioner" ? "caption" : "answer"), h("strong", null, text)) : h("span");
}
