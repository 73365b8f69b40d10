// @ts-check
// Bars and lines of the page's own views, as elements that a screen reader can read.
import { h } from "./dom.js";
import { COLORS, escaped } from "./drawing.js";

/** Probabilities as bars. @param {{label: string, value: number, note?: string, faint?: boolean, choose?: () => void, pressed?: boolean}[]} rows @param {{label: string, most?: number, digits?: number, color?: string}} look */
export function bars(rows, { label, most, digits = 3, color = "query" }) {
  const top = most ?? Math.max(...rows.map((one) => one.value), 1e-9);
  return h("ul.bars", { "aria-label": label }, rows.map((row) => {
    const bar = h(`span.bar.${color}${row.faint ? ".faint" : ""}`, { "aria-hidden": "true", style: { width: `${Math.max(0.3, (100 * Math.max(0, row.value)) / top)}%` } });
    const inside = [h("span.name", null, row.label), h("span.track", null, bar), h("span.value", null, `${row.value.toFixed(digits)}${row.note ?? ""}`)];
    return h("li", null, row.choose ? h("button.row", { type: "button", onclick: row.choose, "aria-pressed": row.pressed === undefined ? null : String(row.pressed) }, inside) : h("div.row", null, inside));
  }));
}

/** Curves over one axis. @param {{name: string, color: string, points: [number, number][], dots?: boolean}[]} curves
 * @param {{label: string, x: string, y: string, width?: number, height?: number, zero?: boolean}} look */
export function lines(curves, { label, x, y, width = 640, height = 260, zero = false }) {
  const all = curves.flatMap((one) => one.points), left = 58, bottom = 34, top = 18;
  if (!all.length) return h("p.hint", null, "nothing to draw yet");
  const [x0, x1] = [Math.min(...all.map((one) => one[0])), Math.max(...all.map((one) => one[0]))];
  const y0 = zero ? 0 : Math.min(...all.map((one) => one[1])), y1 = Math.max(...all.map((one) => one[1]));
  const across = (/** @type {number} */ at) => left + ((at - x0) / (x1 - x0 || 1)) * (width - left - 12), down = (/** @type {number} */ at) => height - bottom - ((at - y0) / (y1 - y0 || 1)) * (height - bottom - top);
  const tick = (/** @type {number} */ value) => Number(value.toPrecision(3)).toLocaleString("en");
  const drawn = curves.map((one) => `<polyline fill="none" stroke="${one.color}" stroke-width="2" points="${one.points.map(([a, b]) => `${across(a).toFixed(1)},${down(b).toFixed(1)}`).join(" ")}"/>${one.dots ? one.points.map(([a, b]) => `<circle cx="${across(a).toFixed(1)}" cy="${down(b).toFixed(1)}" r="3" fill="${one.color}"><title>${escaped(one.name)}: ${tick(a)}, ${tick(b)}</title></circle>`).join("") : ""}`).join("");
  const text = (/** @type {number} */ a, /** @type {number} */ b, /** @type {string} */ said, anchor = "middle") => `<text x="${a}" y="${b}" font-size="12" text-anchor="${anchor}" class="axis">${escaped(said)}</text>`;
  const grid = [0, 0.5, 1].map((share) => { const at = y0 + share * (y1 - y0); return `<line x1="${left}" x2="${width - 12}" y1="${down(at)}" y2="${down(at)}" class="rule"/>${text(left - 6, down(at) + 4, tick(at), "end")}`; }).join("");
  const made = h("div.chart", { role: "img", "aria-label": `${label}: ${curves.map((one) => `${one.name} from ${tick(one.points[0]?.[1] ?? 0)} to ${tick(one.points[one.points.length - 1]?.[1] ?? 0)}`).join("; ")}` });
  made.innerHTML = `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" aria-hidden="true">${grid}${drawn}${text(left, height - 16, tick(x0))}${text(width - 12, height - 16, tick(x1), "end")}${text((left + width) / 2, height - 4, x)}${text(left + 6, 10, y, "start")}</svg>`;
  return h("figure.lines", null, h("div.legend", null, curves.map((one) => h("span", null, h("i", { style: { background: one.color } }), one.name))), made);
}

export { COLORS };
