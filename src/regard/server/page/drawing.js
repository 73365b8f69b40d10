// @ts-check
// Figures that the page makes itself, drawn by the same <regard-figure> as those that Python makes.
import { h } from "./dom.js";
import { packedBits } from "./numbers.js";

export const COLORS = { query: "#1f4e9c", key: "#c65d00", value: "#1b7f4b", image: "#7c3aed", ink: "#1c2733", faint: "#5c6773", rule: "#d4d9df", mark: "#d4007f" };
export const HEAD_COLORS = [COLORS.query, COLORS.key, COLORS.value, COLORS.image, "#b3123f", "#0e8fa0", "#9a7b00", COLORS.faint];

/** @type {Record<string, string[]>} */
let ramps = {};
/** @param {Record<string, string[]>} found @param {string} css */
export function setLook(found, css) {
  ramps = found;
  /** @type {any} */ (customElements.get("regard-figure")).css = css;
}

const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
/** @param {string} text @param {number} size */
export function width(text, size) {
  pen.font = `${size}px Helvetica, Arial, sans-serif`;
  return pen.measureText(text).width;
}

/** @param {string} text */
export const escaped = (text) => text.replace(/[&<>"]/g, (one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[one] ?? one);

/** @param {number} x @param {number} y @param {string} said @param {{size?: number, color?: string, anchor?: string, bold?: boolean, rotated?: boolean, title?: string}} [look] */
export function text(x, y, said, { size = 9, color = COLORS.ink, anchor = "start", bold = false, rotated = false, title = "" } = {}) {
  const turned = rotated ? ` transform="rotate(-90 ${x} ${y})"` : "";
  return `<text x="${x}" y="${y}" font-size="${size}" fill="${color}" text-anchor="${anchor}" dominant-baseline="central"${bold ? ' font-weight="700"' : ""}${turned}>${title ? `<title>${escaped(title)}</title>` : ""}${escaped(said)}</text>`;
}

/** @typedef {{x: number, y: number, cell: [number, number], values: ArrayLike<number>, rows: string[], columns: string[], ramp?: string, low?: number, high?: number,
 *   digits?: number | null, masked?: boolean[] | null, outlined?: boolean[] | null, name: string, labels?: [boolean, boolean], colors?: [string, string]}} Block */

/** A matrix with its labels; gives what to draw and how large it is. @param {Block} block */
export function labelled({ x, y, cell, values, rows, columns, ramp = "query", low = 0, high = 1, digits = null, masked = null, outlined = null, name, labels = [true, true], colors = [COLORS.query, COLORS.key] }) {
  const size = Math.max(4.5, Math.min(10, cell[1] * 0.75)), sideways = columns.some((one) => width(one, size) > cell[0] - 2);
  const across = Math.max(4.5, Math.min(10, cell[0] * 0.75));
  const left = labels[0] ? Math.max(0, ...rows.map((one) => width(one, size))) + 6 : 0;
  const top = labels[1] ? (sideways ? Math.max(0, ...columns.map((one) => width(one, across))) + 6 : 14) : 0;
  let above = "";
  const everyRow = Math.ceil(6 / cell[1]), everyColumn = Math.ceil(6 / cell[0]); // of tiny cells some labels
  if (labels[0]) rows.forEach((one, at) => { if (at % everyRow === 0) above += text(x + left - 4, y + top + (at + 0.5) * cell[1], one, { size, color: colors[0], anchor: "end" }); });
  if (labels[1]) columns.forEach((one, at) => {
    if (at % everyColumn) return;
    const middle = x + left + (at + 0.5) * cell[0];
    above += sideways ? text(middle, y + top - 4, one, { size: across, color: colors[1], rotated: true }) : text(middle, y + top - 7, one, { size, color: colors[1], anchor: "middle" });
  });
  const matrix = {
    box: [x + left, y + top, cell[0] * columns.length, cell[1] * rows.length], shape: [rows.length, columns.length], pooled: 1,
    numbers: values instanceof Float32Array ? values : Float32Array.from(values), exact: rows.length * columns.length <= 2500,
    masked: masked ? packedBits(masked) : null, outlined: outlined ? packedBits(outlined) : null, rows, columns, ramp, low, high, digits, name,
  };
  return { above, matrix, left, top, width: left + cell[0] * columns.length, height: top + cell[1] * rows.length };
}

/** Lines from queries to keys, thick where the weight is large; at most 400.
 * @param {number} x @param {number} y @param {number} row @param {string[]} queries @param {string[]} keys @param {ArrayLike<number>} weights */
export function ribbons(x, y, row, queries, keys, weights, apart = 130) {
  const size = Math.max(4.5, Math.min(10, row * 0.75)), left = x + Math.max(...queries.map((one) => width(one, size))) + 8, right = left + apart;
  const found = [];
  for (let at = 0; at < weights.length; at++) if (weights[at] >= 0.02) found.push(at);
  found.sort((one, other) => weights[other] - weights[one]);
  const lines = found.slice(0, 400).reverse().map((at) => {
    const from = y + (Math.floor(at / keys.length) + 0.5) * row, to = y + ((at % keys.length) + 0.5) * row, middle = (left + right) / 2;
    return `<path d="M${left} ${from.toFixed(1)}C${middle} ${from.toFixed(1)} ${middle} ${to.toFixed(1)} ${right} ${to.toFixed(1)}" fill="none" stroke="${COLORS.query}" stroke-width="${(0.4 + 3 * weights[at]).toFixed(2)}" opacity="${Math.min(1, 0.08 + weights[at]).toFixed(2)}"/>`;
  });
  const every = Math.ceil(6 / row);
  const names = queries.map((one, at) => (at % every ? "" : text(left - 4, y + (at + 0.5) * row, one, { size, color: COLORS.query, anchor: "end" })));
  names.push(...keys.map((one, at) => (at % every ? "" : text(right + 4, y + (at + 0.5) * row, one, { size, color: COLORS.key }))));
  return { below: lines.join(""), above: names.join(""), width: right - x + 8 + Math.max(...keys.map((one) => width(one, size))), height: row * Math.max(queries.length, keys.length) };
}

/** @param {{name: string, title: string, caption?: string, width: number, height: number, below?: string, above?: string, matrices: any[]}} given */
export function frame({ name, title, caption = "", width: wide, height, below = "", above = "", matrices }) {
  const svg = (/** @type {string} */ inside) => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${wide} ${height}" width="${wide}" height="${height}" font-family="Helvetica, Arial, sans-serif" role="img"><title>${escaped(title)}</title><desc>${escaped(caption)}</desc>${inside}</svg>`;
  const heading = (title ? text(8, 12, title, { size: 11, bold: true }) : "") + (caption ? text(8, 26, caption, { size: 8, color: COLORS.faint }) : "");
  return { name, title, caption, width: wide, height, svg: svg(below), above: svg(heading + above), matrices };
}

/** @param {any} data of a figure, as Python's figure_data makes it @returns {any} */
export function figure(data) {
  /** @type {any} */
  const made = document.createElement("regard-figure");
  made.data = { ramps, choice: "", chosen: 0, ...data };
  return made;
}

/** @param {any[]} frames @param {string} [choice] @param {number} [chosen] */
export const figureOf = (frames, choice = "", chosen = 0) => figure({ frames, choice, chosen });

/** The weight that is drawn darkest, as in Python. @param {ArrayLike<number>} weights @param {number} keys */
export function topOf(weights, keys) {
  let most = 0;
  for (let at = 0; at < weights.length; at++) if (weights[at] > most) most = weights[at];
  return Math.max(most, Math.min(1, 4 / keys));
}

/** A color of a ramp, as CSS has it. @param {string} name @param {number} share */
export function shade(name, share) {
  const ramp = ramps[name].map((one) => [1, 3, 5].map((at) => parseInt(one.slice(at, at + 2), 16)));
  const place = Math.min(Math.max(share, 0), 1) * (ramp.length - 1), at = Math.min(Math.floor(place), ramp.length - 2), part = place - at;
  return ramp[at].map((from, one) => Math.round(from * (1 - part) + ramp[at + 1][one] * part));
}

/** Black or white, whichever has more contrast. @param {number[]} color */
export function inkOn(color) {
  const [red, green, blue] = color.map((one) => { const share = one / 255; return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.179 ? "#fff" : "#000";
}

/** Tokens in a line; one lights up everywhere, is chosen with a click, and is as dark as its weight.
 * @param {string[]} tokens @param {{label: string, ramp?: string, choose?: (at: number) => void, hover?: (at: number | null) => void}} given */
export function strip(tokens, { label, ramp = "key", choose, hover }) {
  const key = tokens.join("\u0001");
  const light = (/** @type {any} */ point) => document.dispatchEvent(new CustomEvent("regard-light", { detail: point }));
  const cells = tokens.map((token, at) => h(choose ? "button.token" : "span.token", {
    ...(choose ? { type: "button", "aria-pressed": "false", tabIndex: at ? -1 : 0, onclick: () => choose(at) } : {}),
    onpointerenter: () => { light({ label: token, key, index: at }); hover?.(at); },
    onpointerleave: () => { light(null); hover?.(null); },
    onfocus: () => { light({ label: token, key, index: at }); hover?.(at); },
    onblur: () => { light(null); hover?.(null); },
  }, token));
  const root = h("div.strip", { role: "group", "aria-label": label, onkeydown: (/** @type {KeyboardEvent} */ event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = cells.indexOf(/** @type {any} */ (document.activeElement));
    if (!move || at < 0 || !choose) return;
    event.preventDefault();
    const next = cells[Math.min(cells.length - 1, Math.max(0, at + move))];
    for (const one of cells) one.tabIndex = one === next ? 0 : -1;
    next.focus();
  } }, cells);
  const lighting = (/** @type {any} */ event) => {
    if (!root.isConnected) return void document.removeEventListener("regard-light", lighting);
    const one = event.detail, row = one?.row ?? one;
    cells.forEach((cell, at) => cell.classList.toggle("lit", !!one && (one.key === key ? one.index === at : row.key === key ? row.index === at : one.label === tokens[at])));
  };
  queueMicrotask(() => document.addEventListener("regard-light", lighting));
  return { root, cells,
    /** @param {number} at */ press(at) { cells.forEach((cell, place) => cell.setAttribute("aria-pressed", String(place === at))); },
    /** @param {ArrayLike<number> | null} weights */ shade(weights) {
      const most = weights ? topOf(weights, tokens.length) : 1;
      cells.forEach((cell, at) => {
        if (!weights) { cell.style.background = cell.style.color = ""; cell.title = ""; return; }
        const color = shade(ramp, weights[at] / most);
        cell.style.background = `rgb(${color})`;
        cell.style.color = inkOn(color);
        cell.title = `${tokens[at]}: ${weights[at].toPrecision(4)}`;
      });
    } };
}
