// @ts-check
// The worked example: every step of attention as a sheet whose cells one may change, or has to fill in.
import { TraceValues, post } from "../api.js";
import { button, field, h, message, press, say, select, slider } from "../dom.js";
import { inkOn, shade } from "../drawing.js";
import { request } from "../input.js";
import { shown, typed } from "../numbers.js";
import { close, computed, mistake, presets } from "../sheet_math.js";

/** @typedef {import("../sheet_math.js").Sheet} Sheet */
/** @typedef {"scores" | "scaled" | "weights" | "output"} Step */
const MOST = 14; // tokens of a model's own sheet
/** @type {Record<string, string>} */
const SAYS = {
  Q: "a row is what a token looks for", K: "a row is what a token is found by", scores: "q · k of every query and key", scaled: "so that softmax does not saturate",
  masked: "click a cell to hide it: −∞", weights: "each row sums to 1", V: "a row is what a token hands on", output: "the values, each times its weight", v: "of the small network that scores",
};

/** The model's own numbers at a layer and a head. @param {any} context @param {string} path @param {number} head @returns {Promise<Sheet>} */
async function modelSheet(context, path, head) {
  const steps = ["queries", "keys", "values", "scores", "scaled_scores", "masked_scores", "weights"].map((one) => (path ? `${path}.${one}` : one));
  const info = await post("/api/page/trace", await request(context, { taps: steps }), context.signal);
  const of = info.attentions.find((/** @type {any} */ one) => one.path === path);
  const queries = (of.queries !== of.keys && info.axes[of.queries].next_tokens.length ? info.axes[of.queries].next_tokens : info.axes[of.queries].tokens), keys = info.axes[of.keys].tokens;
  if (Math.max(queries.length, keys.length) > MOST) throw new Error(`the sheet has room for ${MOST} tokens, this input has ${Math.max(queries.length, keys.length)}; give a shorter text, or see the view qkv`);
  const found = await new TraceValues(info.id).get(steps, head);
  const matrix = (/** @type {number} */ at) => { const { shape, data } = found[steps[at]]; return Array.from({ length: shape[0] }, (_, row) => Array.from(data.subarray(row * shape[1], (row + 1) * shape[1]))); };
  const [Q, K, V, scores, scaled, masked] = [0, 1, 2, 3, 4, 5].map(matrix);
  const hidden = masked.map((row) => row.map((one) => one === -Infinity));
  // Scaled scores may have a bias by position; then the sheet starts at them, with a scale of 1.
  const [row, column] = largest(scores), scale = scores[row][column] / scaled[row][column];
  const plain = Math.abs(scores[row][column]) > 1e-6 && scores.every((line, query) => line.every((one, key) => Math.abs(one / scale - scaled[query][key]) < 1e-3 * (1 + Math.abs(scaled[query][key]))));
  return { similarity: plain && Math.abs(scale - 1) > 1e-3 ? "scaled" : "dot", scale: plain ? scale : 1, causal: false, given: "scores", words: queries, keys, Q, K, V, scores: plain ? scores : scaled, v: [], hidden };
}

/** Where the largest number stands. @param {number[][]} matrix */
function largest(matrix) {
  let found = [0, 0];
  matrix.forEach((line, row) => line.forEach((one, column) => { if (Math.abs(one) > Math.abs(matrix[found[0]][found[1]])) found = [row, column]; }));
  return found;
}

/** @param {Sheet} sheet */
function board(sheet) {
  const root = h("div.sheet");
  const blank = new Map(); // "weights 0 1" -> what the student wrote
  let student = "", marked = false;
  /** @type {Record<string, HTMLTableElement>} */
  const tables = {};

  const tint = (/** @type {string} */ name, /** @type {number} */ value, /** @type {number} */ most) => {
    const ramp = { Q: "query", K: "key", V: "value", output: "value", v: "grey" }[name] ?? "query";
    if (!Number.isFinite(value)) return null;
    return name === "weights" ? shade(ramp, value) : shade(ramp, Math.min(0.62, (0.62 * Math.abs(value)) / (most || 1)));
  };

  /** One matrix as a table. @param {string} name @param {string} title @param {number[][]} values @param {string[]} rows @param {string[]} columns @param {((row: number, column: number, value: number) => void) | null} edit */
  const table = (name, title, values, rows, columns, edit) => {
    const most = Math.max(...values.flat().filter(Number.isFinite).map(Math.abs), 1e-9), digits = values.flat().every((one) => !Number.isFinite(one) || Number.isInteger(one)) ? 0 : 2;
    const made = h("table", { data: { step: name } }, h("caption", null, h("strong", null, title), h("span", null, SAYS[name] ?? "")),
      h("thead", null, h("tr", null, h("td"), columns.map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", null, values.map((line, row) => h("tr", null, h("th", { scope: "row" }, rows[row]), line.map((value, column) => {
        const says = `${title}, ${rows[row]}, ${columns[column] || column + 1}`, cell = h("td"), color = tint(name, value, most);
        if (student === name) return blankCell(name, row, column, says);
        if (color) { cell.style.background = `rgb(${color})`; cell.style.color = inkOn(color); }
        if (name === "masked") { cell.append(h(`button.cell${value === -Infinity ? ".hidden" : ""}`, { type: "button", "aria-pressed": String(value === -Infinity), "aria-label": `${says}: ${shown(value)}; ${value === -Infinity ? "hidden" : "seen"}`, onclick: () => { sheet.hidden[row][column] = !sheet.hidden[row][column]; draw(`[data-step=masked] tbody tr:nth-child(${row + 1}) td:nth-of-type(${column + 1}) button`); } }, shown(value, digits))); return cell; }
        if (!edit) { cell.textContent = shown(value, digits); cell.title = String(value); return cell; }
        const input = h("input.cell", { type: "text", inputMode: "decimal", value: shown(value, digits), "aria-label": says, onchange: () => {
          const given = typed(input.value);
          if (Number.isNaN(given) || !Number.isFinite(given)) { input.setAttribute("aria-invalid", "true"); say(`${input.value} is not a number`); return; }
          edit(row, column, given);
          draw(`[data-step=${name}] tbody tr:nth-child(${row + 1}) td:nth-of-type(${column + 1}) input`);
        } });
        if (color) input.style.color = inkOn(color);
        cell.append(input);
        return cell;
      })))));
    tables[name] = made;
    return made;
  };

  const blankCell = (/** @type {string} */ name, /** @type {number} */ row, /** @type {number} */ column, /** @type {string} */ says) => {
    const at = `${name} ${row} ${column}`, step = /** @type {Step} */ (name), right = computed(sheet)[step][row][column], given = blank.get(at);
    const input = h("input.cell", { type: "text", inputMode: "decimal", value: given ?? "", placeholder: "?", "aria-label": `${says}: fill in`, data: { blank: at }, onchange: () => { blank.set(at, input.value); } });
    const cell = h("td.blank", null, input);
    if (marked) {
      const good = given !== undefined && close(typed(given), right);
      cell.classList.add(good ? "right" : "wrong");
      input.setAttribute("aria-invalid", String(!good));
      cell.append(h("span.mark", { "aria-hidden": "true" }, good ? "✓" : "✗"));
    }
    return cell;
  };

  const hints = () => {
    if (!student || !marked) return null;
    const right = computed(sheet)[/** @type {Step} */ (student)];
    /** @type {any[]} */
    const said = [];
    let good = 0, all = 0;
    right.forEach((line, row) => line.forEach((value, column) => {
      all++;
      const given = blank.get(`${student} ${row} ${column}`), number = given === undefined || given === "" ? NaN : typed(given);
      if (close(number, value)) return void good++;
      const where = `${sheet.words[row]}, ${student === "output" ? `number ${column + 1}` : sheet.keys[column]}`;
      said.push(h("li", null, h("strong", null, `${where}: `), given === undefined || given === "" ? "still empty" : mistake(sheet, /** @type {Step} */ (student), row, column, number)));
    }));
    say(`${good} of ${all} right`);
    return h(`div.message.${good === all ? "good" : "error"}`, null, h("strong", null, `${good} of ${all} right.`), said.length ? h("ul", null, said) : h("span", null, " Well done."));
  };

  /** @param {string} [focus] what had the focus */
  function draw(focus) {
    const { scores, scaled, masked, weights, output } = computed(sheet);
    const numbers = (/** @type {number} */ count) => Array.from({ length: count }, () => "");
    const sign = (/** @type {string} */ one) => h("span.sign", { "aria-hidden": "true" }, one);
    const set = (/** @type {number[][]} */ matrix) => (/** @type {number} */ row, /** @type {number} */ column, /** @type {number} */ value) => { matrix[row][column] = value; };
    const vectors = sheet.given === "vectors", wide = sheet.K[0]?.length ?? 0;
    const first = [];
    if (vectors) {
      first.push(table("Q", "Q", sheet.Q, sheet.words, numbers(wide), set(sheet.Q)), sign(sheet.similarity === "additive" ? "+" : "×"), table("K", sheet.similarity === "additive" ? "K" : "Kᵀ, by rows", sheet.K, sheet.keys, numbers(wide), set(sheet.K)));
      if (sheet.similarity === "additive") first.push(sign("·"), table("v", "v", [sheet.v], ["v"], numbers(wide), (_, column, value) => { sheet.v[column] = value; }));
      first.push(sign("="));
    } else if (sheet.Q.length) first.push(table("Q", "Q", sheet.Q, sheet.words, numbers(sheet.Q[0].length), null), sign("×"), table("K", "Kᵀ, by rows", sheet.K, sheet.keys, numbers(wide), null), sign("="));
    first.push(table("scores", sheet.similarity === "additive" ? "scores v · tanh(q + k)" : "scores", scores, sheet.words, sheet.keys, vectors ? null : set(sheet.scores)));
    const second = [];
    if (sheet.similarity === "scaled") second.push(table("scaled", `÷ √${shown(sheet.scale ** 2, 0)} = ÷ ${shown(sheet.scale)}`, scaled, sheet.words, sheet.keys, null), sign("→"));
    second.push(table("masked", "mask", masked, sheet.words, sheet.keys, null), sign("→"), table("weights", "softmax: the weights", weights, sheet.words, sheet.keys, null));
    const third = [table("V", "V", sheet.V, sheet.keys, numbers(sheet.V[0].length), set(sheet.V)), sign("→"), table("output", "Z = weights × V", output, sheet.words, numbers(sheet.V[0].length), null)];
    const wrong = hints();
    root.replaceChildren(...(wrong ? [wrong] : []), h("div.line", null, first), h("div.line", null, second), h("div.line", null, third));
    if (focus) /** @type {any} */ (root.querySelector(focus))?.focus();
  }
  draw();
  return { root, draw, tables, sheet,
    /** @param {string} step */ ask(step) { student = step; marked = false; blank.clear(); draw(); },
    mark() { for (const one of root.querySelectorAll("input[data-blank]")) blank.set(/** @type {any} */ (one).dataset.blank, /** @type {any} */ (one).value); marked = true; draw(); } };
}

/** @type {import("./index.js").View} */
export default {
  id: "sheet",
  title: "Worked example",
  group: "Learn",
  hint: "Scores, ÷ √d, mask, softmax, weighted sum: change any white cell, or fill the cells in and let them be marked.",
  takesModel: false, takesInput: false,
  applies: () => true,
  async render(root, context) {
    const { params, models } = context, made = presets();
    const able = models.filter((/** @type {any} */ one) => one.views.some((/** @type {any} */ view) => view.name === "qkv"));
    const preset = params.preset ?? "lecture";
    /** @type {Sheet} */
    let sheet;
    const bar = h("div.bar"), about = h("p.hint");
    if (preset === "model") {
      const model = models.find((/** @type {any} */ one) => one.id === params.model) ?? able[0];
      if (!model) throw new Error("no model with queries and keys is open; start regard page runs/…");
      const { startingParams } = await import("../input.js");
      const inner = { ...context, model, params: { ...startingParams(model, { text: () => model.interface === "encoder" ? "it was tired" : undefined }), ...params } };
      const info = await (await fetch(`/api/models/${model.id}`)).json(), paths = info.info.attentions.map((/** @type {any} */ one) => one.path);
      const path = paths.includes(params.attention) ? params.attention : paths[0], head = Number(params.head) || 0;
      sheet = await modelSheet(inner, path, head);
      const again = (/** @type {any} */ more) => context.go("sheet", { ...inner.params, preset, model: model.id, attention: path, head, ...more });
      const text = h("input", { type: "text", value: inner.params.text ?? "", onchange: () => again({ text: text.value }) });
      bar.append(field("model", select(able.map((/** @type {any} */ one) => [one.id, one.id]), model.id, (id) => again({ model: id, attention: null, text: null }))), field("attention", select(paths.map((/** @type {string} */ one) => [one, one]), path, (one) => again({ attention: one }))), field("head", h("input", { type: "number", min: 0, max: 63, value: head, onchange: (/** @type {any} */ event) => again({ head: event.target.valueAsNumber }) })), ...(inner.params.scene ? [] : [field("text", text)]));
      about.textContent = `The numbers of ${model.id}: ${path}, head ${head}. Change a score and see what its softmax would have been.`;
    } else {
      const chosen = made[preset] ?? made.lecture;
      sheet = chosen.sheet;
      about.textContent = chosen.about;
    }
    const shown = board(sheet);
    const asking = h("div.buttons", { role: "group", "aria-label": "student" }, h("span.hint", null, "fill in:"));
    const check = button("mark it", () => shown.mark(), { className: "primary", hidden: true });
    for (const [step, name] of [["", "nothing"], ["scores", "scores"], ["scaled", "÷ √d"], ["weights", "softmax"], ["output", "Z"]]) {
      if ((step === "scaled" && sheet.similarity !== "scaled") || (step === "scores" && sheet.given === "scores")) continue;
      const one = button(name, () => { press(asking, one); check.hidden = !step; shown.ask(step); context.keep({ ask: step || null }); }, { "aria-pressed": String((params.ask ?? "") === step) });
      asking.append(one);
    }
    asking.append(check);
    const choose = select([...Object.entries(made).map(([id, one]) => /** @type {[string, string]} */ ([id, one.name])), ...(able.length ? [/** @type {[string, string]} */ (["model", "the model’s own numbers"])] : [])], preset, (id) => context.go("sheet", { preset: id }));
    const scale = sheet.given === "scores" && sheet.similarity === "scaled" ? slider({ label: "width d of a key", min: 1, max: 256, step: 1, value: Math.round(sheet.scale ** 2), then: (value) => { sheet.scale = Math.sqrt(value); shown.draw(); } }) : h("span");
    if (!context.nested) root.append(h("div.bar", null, field("example", choose), scale));
    root.append(bar, about, asking, shown.root);
    if (params.ask) { shown.ask(params.ask); check.hidden = false; }
    if (sheet.words.length > 8) root.append(message("wide sheets scroll sideways", "note"));
  },
};
