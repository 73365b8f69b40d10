// @ts-check
// Ask a picture: a caption with where each word looks, or a question with its answers; hide a part and see the answer change.
import { TraceValues, post } from "../api.js";
import { bars } from "../charts.js";
import { button, h, say } from "../dom.js";
import { strip } from "../drawing.js";
import { exportBar } from "../exporting.js";
import { request, sceneOf } from "../input.js";
import { keepPicture, pictureOf } from "../picture_file.js";
import { answered } from "./switches.js";

const SIDE = 380;

/** The picture with places shaded violet. @param {ImageData} pixels @param {string} label */
function board(pixels, label) {
  const scale = SIDE / Math.max(pixels.width, pixels.height), canvas = h("canvas.board", { width: Math.round(pixels.width * scale), height: Math.round(pixels.height * scale), role: "img", "aria-label": label });
  const pen = canvas.getContext("2d"), small = new OffscreenCanvas(pixels.width, pixels.height);
  small.getContext("2d")?.putImageData(pixels, 0, 0);
  const clear = () => { pen.imageSmoothingEnabled = false; pen.globalAlpha = 1; pen.drawImage(small, 0, 0, canvas.width, canvas.height); };
  clear();
  return { canvas, clear,
    /** @param {number[][]} boxes as shares of the picture @param {ArrayLike<number>} weights */
    shade(boxes, weights) {
      clear();
      const most = Math.max(...Array.from(weights), 1e-9);
      pen.fillStyle = "#fff";
      pen.globalAlpha = 0.55;
      pen.fillRect(0, 0, canvas.width, canvas.height);
      boxes.forEach(([left, top, right, bottom], at) => {
        const share = weights[at] / most, [x, y, wide, high] = [left * canvas.width, top * canvas.height, (right - left) * canvas.width, (bottom - top) * canvas.height];
        if (boxes.length > 24 || share > 0.05) {
          pen.globalAlpha = share;
          pen.drawImage(small, left * pixels.width, top * pixels.height, (right - left) * pixels.width, (bottom - top) * pixels.height, x, y, wide, high);
          pen.globalAlpha = 0.5 * share;
          pen.fillStyle = "#7c3aed";
          pen.fillRect(x, y, wide, high);
        }
        if (boxes.length <= 24) { pen.globalAlpha = 0.25 + 0.75 * share; pen.strokeStyle = "#7c3aed"; pen.lineWidth = 1 + 3 * share; pen.strokeRect(x + 1, y + 1, wide - 2, high - 2); }
      });
      pen.globalAlpha = 1;
    } };
}

/** Cells of a grid as boxes. @param {[number, number]} grid */
const gridBoxes = ([rows, columns]) => Array.from({ length: rows * columns }, (_, at) => { const row = Math.floor(at / columns), column = at % columns; return [column / columns, row / rows, (column + 1) / columns, (row + 1) / rows]; });

/** The mean over heads of weights (heads, queries, keys). @param {import("../api.js").Value} value */
function meanOf({ shape: [heads, queries, keys], data }) {
  const found = new Float32Array(queries * keys);
  for (let head = 0; head < heads; head++) for (let at = 0; at < found.length; at++) found[at] += data[head * found.length + at] / heads;
  return { data: found, keys };
}

/** Drag a rectangle over the canvas to hide that part; the keyboard hides a quarter. @param {any} root @param {HTMLCanvasElement} canvas @param {(box: number[]) => void} hide */
function hiding(root, canvas, hide) {
  /** @type {[number, number] | null} */
  let from = null;
  const at = (/** @type {PointerEvent} */ event) => { const box = canvas.getBoundingClientRect(); return /** @type {[number, number]} */ ([(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height]); };
  canvas.addEventListener("pointerdown", (event) => { from = at(event); canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", (event) => {
    if (!from) return;
    const [x, y] = at(event), box = [Math.min(x, from[0]), Math.min(y, from[1]), Math.max(x, from[0]), Math.max(y, from[1])].map((one) => Math.min(1, Math.max(0, one)));
    from = null;
    if ((box[2] - box[0]) * (box[3] - box[1]) > 0.002) hide(box);
  });
  const quarter = (/** @type {string} */ name, /** @type {number[]} */ box) => button(name, () => hide(box));
  root.append(h("p.hint", null, "Drag over the picture to hide a part, or hide "), h("div.buttons", null, quarter("top left", [0, 0, 0.5, 0.5]), quarter("top right", [0.5, 0, 1, 0.5]), quarter("bottom left", [0, 0.5, 0.5, 1]), quarter("bottom right", [0.5, 0.5, 1, 1])));
}

/** The picture with a part painted grey, as a new picture of the user's. @param {string} base64 @param {number[]} box */
async function hidden(base64, [left, top, right, bottom]) {
  const image = new Image();
  image.src = `data:image/png;base64,${base64}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.drawImage(image, 0, 0);
  pen.fillStyle = "#808080";
  pen.fillRect(left * canvas.width, top * canvas.height, (right - left) * canvas.width, (bottom - top) * canvas.height);
  return keepPicture("with a part hidden", canvas.toDataURL("image/png").split(",")[1]);
}

/** @type {import("./index.js").View} */
export default {
  id: "picture",
  title: "Picture",
  group: "Play",
  hint: "A caption, and where each word looks; a question, and its answers. Drop a picture of your own, or hide a part of it.",
  takesModel: true, takesInput: true,
  applies: (model) => (!model ? "it needs a model that takes pictures, and none is open" : model.takes_images ? true : `a ${model.kind} reads texts alone; open a captioner or a ViLBERT: regard train captioner -o runs/captioner`),
  async render(root, context) {
    const { params, model, signal } = context, body = await request(context), captions = model.interface === "captioner";
    const info = await post("/api/page/trace", { ...body, taps: ["*.weights"] }, signal), values = new TraceValues(info.id);
    const scene = await sceneOf(params.scene ?? "0"), given = pictureOf(params.picture)?.base64 ?? scene.image;
    const { image } = await values.get(["image"]), [high, wide] = image.shape, pixels = new ImageData(wide, high);
    for (let at = 0; at < high * wide; at++) { pixels.data.set(image.data.subarray(3 * at, 3 * at + 3), 4 * at); pixels.data[4 * at + 3] = 255; }
    const shown = board(pixels, captions ? "the picture as the model takes it, shaded where the chosen word looks" : "the picture, shaded where the chosen word looks");
    const [queries, keys] = captions ? ["target", "image"] : ["text", "regions"];
    const looking = info.attentions.filter((/** @type {any} */ one) => one.queries === queries && one.keys === keys && one.shape);
    const boxes = captions ? gridBoxes(info.axes.image.grid) : info.axes.regions.boxes;
    const means = await Promise.all(looking.map(async (/** @type {any} */ one) => meanOf((await values.get([`${one.path}.weights`]))[`${one.path}.weights`])));
    const words = captions ? info.axes.target.next_tokens : info.axes.text.tokens, said = h("p.hint", { "aria-live": "polite" });
    const look = (/** @type {number} */ at) => {
      if (!means.length) return;
      const count = means[0].keys, weights = new Float32Array(count);
      for (const mean of means) for (let key = 0; key < count; key++) weights[key] += mean.data[at * count + key] / means.length;
      shown.shade(boxes, weights);
      line.press(at);
      const most = weights.indexOf(Math.max(...weights));
      said.textContent = `“${words[at]}” looks most at ${info.axes[keys].tokens[most]} (${weights[most].toFixed(2)}), the mean of all heads`;
      context.keep({ word: at });
    };
    const line = strip(words, { label: captions ? "the caption: choose a word" : "the text: choose a word", ramp: "image", choose: look });
    const answer = answered(captions ? info.answer : (await post("/api/page/answer", body, signal)).answer), result = h("section.panel", null, h("h3", null, captions ? "caption" : "answer"), h("p.sofar", null, h("strong", null, answer.text)), answer.rows.length ? bars(answer.rows, { label: "answers", most: 1, color: "image" }) : null);
    const changed = h("div"), asks = !captions && scene.questions ? h("div.buttons", null, scene.questions.map((/** @type {any} */ one) => button(one.text, () => context.go("picture", { ...params, text: one.text, word: null })))) : null;
    const side = h("div", null, result, changed);
    const hide = async (/** @type {number[]} */ box) => {
      const picture = await hidden(given, box), inner = { ...body, image: pictureOf(picture)?.base64 };
      const next = answered(captions ? (await post("/api/page/trace", { ...inner, taps: ["*.weights"] }, signal)).answer : (await post("/api/page/answer", inner, signal)).answer);
      changed.replaceChildren(h("section.panel", null, h("h3", null, "with that part hidden"), h("div.with", null, h("img.sharp", { src: `data:image/png;base64,${inner.image}`, alt: "the picture with a part hidden", width: 96, height: 96 }), h("p.sofar", null, h("strong", null, next.text))), next.rows.length ? bars(next.rows, { label: "answers with that part hidden", most: 1, color: "image" }) : null, h("p.hint", null, next.text === answer.text ? "The answer is the same." : "The answer changed.")), button("look at this picture", () => context.go("picture", { ...params, picture, scene: params.scene ?? 0, word: null })));
      say(next.text === answer.text ? "the answer is the same" : `the answer is now ${next.text}`);
    };
    const left = h("div", null, shown.canvas);
    root.append(line.root, said, h("div.picture", null, left, side), ...(asks && !params.picture && /question/.test(model.task) ? [h("p.hint", null, "ask another question:"), asks] : []), exportBar(() => ({ ...body, view: captions ? "image" : "coattention" })));
    hiding(left, shown.canvas, (box) => hide(box).catch((error) => changed.replaceChildren(h("p.message.error", null, error.message))));
    // A fresh view opens on the word that looks at one place most of all.
    const peak = (/** @type {number} */ at) => means.reduce((sum, mean) => sum + Math.max(...mean.data.subarray(at * mean.keys, (at + 1) * mean.keys)), 0);
    const most = [...words.keys()].reduce((best, at) => (peak(at) > peak(best) && !/^[[<]/.test(words[at]) ? at : best), captions ? 0 : Math.min(1, words.length - 1));
    if (words.length) look(Math.min(Number(params.word ?? most), words.length - 1));
  },
};
