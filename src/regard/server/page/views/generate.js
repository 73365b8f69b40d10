// @ts-check
// Generate step by step: the KV cache as it grows, the time of each step with and without it, and its memory.
import { postLines } from "../api.js";
import { lines } from "../charts.js";
import { button, field, h, message, say } from "../dom.js";
import { COLORS } from "../drawing.js";
import { exportBar } from "../exporting.js";
import { request } from "../input.js";
import { bytesShown } from "../numbers.js";

const STEPS = 32;
/** Published settings: layers, key heads, width of a head. @type {Record<string, [number, number, number]>} */
const KNOWN = { "GPT-2 small": [12, 12, 64], "GPT-2 XL": [48, 25, 64], "Transformer base (decoder)": [6, 8, 64], "Llama 2 7B": [32, 32, 128], "Llama 3 8B (8 key heads)": [32, 8, 128] };

/** The bytes of a KV cache, as `regard cost` counts them. @param {{layers: number, heads: number, width: number, positions: number, texts: number, bytes: number}} of */
export const cacheBytes = ({ layers, heads, width, positions, texts, bytes }) => 2 * layers * heads * width * positions * texts * bytes;

/** The memory of a cache of any size. @param {any} cache */
function calculator(cache) {
  const given = { layers: cache?.layers ?? 12, heads: cache?.kv_heads ?? 12, width: cache?.head_width ?? 64, positions: cache?.context ?? 1024, texts: 1, bytes: 4 };
  const result = h("p.answer", { "aria-live": "polite" }), inputs = /** @type {Record<string, any>} */ ({});
  const draw = () => {
    result.replaceChildren(h("span", null, "KV cache"), h("strong", null, bytesShown(cacheBytes(given))), h("span", null, `  = 2 × ${given.layers} layers × ${given.heads} key heads × ${given.width} × ${given.positions.toLocaleString("en")} positions × ${given.texts} texts × ${given.bytes} bytes`));
  };
  const number = (/** @type {keyof typeof given} */ name, /** @type {string} */ label, max = 1e6) => field(label, inputs[name] = h("input", { type: "number", min: 1, max, value: given[name], oninput: () => { if (inputs[name].valueAsNumber >= 1) { given[name] = inputs[name].valueAsNumber; draw(); } } }));
  const known = h("select", { onchange: () => { const [layers, heads, width] = KNOWN[known.value] ?? []; if (layers) { Object.assign(given, { layers, heads, width }); for (const name of /** @type {const} */ (["layers", "heads", "width"])) inputs[name].value = String(given[name]); draw(); } } }, new Option(cache ? "this model" : "a setting", ""), Object.keys(KNOWN).map((name) => new Option(name, name)));
  const made = h("section.panel", null, h("h3", null, "Memory of the cache, for any setting"), h("div.bar", null, field("of", known), number("layers", "layers", 1000), number("heads", "key heads", 1000), number("width", "width of a head", 10_000), number("positions", "positions"), number("texts", "texts"), number("bytes", "bytes of a number", 8)), result);
  draw();
  return made;
}

/** The cache as cells: a column a position; the new one is dark. @param {number} positions @param {number} layers */
const cells = (positions, layers) => h("div.cachecells", { role: "img", "aria-label": `the cache has ${positions} positions in ${layers} layers` }, Array.from({ length: Math.min(layers, 12) }, () => h("div", null, Array.from({ length: Math.min(positions, 120) }, (_, at) => h(`i${at === positions - 1 ? ".new" : ""}`)))));

/** @type {import("./index.js").View} */
export default {
  id: "generate",
  title: "Generate",
  group: "Play",
  hint: "Token by token, with the keys and values kept or read again at every step; the times are measured as you watch.",
  takesModel: true, takesInput: true,
  applies: () => true,
  async render(root, context) {
    const { model, signal, params } = context;
    if (!model || !["causal_lm", "seq2seq", "captioner"].includes(model.interface)) {
      root.append(h("p.message.note", null, model ? `A model for ${model.task.replaceAll("-", " ")} does not generate; here is the memory of a cache.` : "No model that generates is open; here is the memory of a cache."), calculator(null));
      return;
    }
    const count = h("input", { type: "number", min: 1, max: 200, value: params.steps ?? STEPS });
    const stage = h("div"), chart = h("div"), memory = h("div"), done = h("p.sofar", { "aria-live": "off" });
    /** @type {Record<string, any[]>} */
    const lanes = { with: [], without: [] };
    let stopped = new AbortController();
    signal.addEventListener("abort", () => stopped.abort());
    const drawChart = () => {
      const curve = (/** @type {string} */ name, /** @type {string} */ color, /** @type {string} */ said) => ({ name: `${said}: ${lanes[name].reduce((sum, one) => sum + one.milliseconds, 0).toFixed(1)} ms in all`, color, points: /** @type {[number, number][]} */ (lanes[name].slice(1).map((one) => [one.positions, one.milliseconds])) });
      const shown = [curve("with", COLORS.query, "with the cache"), curve("without", COLORS.key, "without")].filter((one) => one.points.length > 1);
      if (shown.length) chart.replaceChildren(lines(shown, { label: "milliseconds of a step", x: "positions so far", y: "ms a token", zero: true }));
    };
    const run = async (/** @type {boolean} */ cached) => {
      const name = cached ? "with" : "without";
      lanes[name] = [];
      let cache = null;
      for await (const line of postLines("/api/page/decode", { ...(await request(context)), cached, max_new_tokens: Math.min(200, Math.max(1, count.valueAsNumber || STEPS)) }, stopped.signal)) {
        if ("cache" in line) { cache = line.cache; continue; }
        lanes[name].push(line);
        done.replaceChildren(h("span.hint", null, `${cached ? "with" : "without"} the cache · step ${line.step}: “${line.label}” (${line.probability.toFixed(2)}), ${line.read} token${line.read > 1 ? "s" : ""} read, ${line.milliseconds.toFixed(1)} ms`), h("strong", null, line.text));
        if (cached && cache) stage.replaceChildren(h("p.hint", null, `${line.positions} positions in the cache: ${bytesShown(cache.bytes * line.positions)}`), cells(line.positions, cache.layers));
        drawChart();
      }
      return cache;
    };
    const go = button("generate both ways", async () => {
      go.disabled = true;
      stopped = new AbortController();
      try {
        const cache = await run(true);
        if (cache) memory.replaceChildren(calculator(cache));
        else stage.replaceChildren(h("p.hint", null, "This model has no KV cache: its decoder has no self-attention. Its state has one size, whatever the length."));
        await run(false);
        const [fast, slow] = [lanes.with, lanes.without].map((one) => one.reduce((sum, step) => sum + step.milliseconds, 0));
        const alike = lanes.with.at(-1)?.text === lanes.without.at(-1)?.text;
        done.append(h("p.hint", null, `With the cache ${(slow / fast).toFixed(1)} times as fast; the text is ${alike ? "the same" : "not the same"}.`));
        say(`done: with the cache ${(slow / fast).toFixed(1)} times as fast`);
      } catch (error) {
        if (!stopped.signal.aborted) stage.replaceChildren(message(String(/** @type {Error} */ (error).message)));
      } finally {
        go.disabled = false;
        root.dataset.done = "1";
      }
    }, { className: "primary" });
    root.append(h("div.bar", null, go, button("stop", () => stopped.abort()), field("at most", count), h("span.hint", null, "tokens")), done, stage, chart, memory, exportBar(() => ({ model: model.id, texts: [params.text ?? ""], view: "cache" })));
    memory.append(calculator(null));
  },
};
