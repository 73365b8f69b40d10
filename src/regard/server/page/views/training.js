// @ts-check
// Training: the loss of a run in progress, by watching its folder; and how its attention came to be.
import { get } from "../api.js";
import { lines } from "../charts.js";
import { button, field, h, select } from "../dom.js";
import { COLORS } from "../drawing.js";
import { serverFigure } from "./show.js";

const EVERY = 2000; // milliseconds

/** A column of the metrics as points. @param {any[]} rows @param {string} name @returns {[number, number][]} */
export const column = (rows, name) => rows.filter((one) => typeof one[name] === "number").map((one) => [one.step, one[name]]);

/** @type {import("./index.js").View} */
export default {
  id: "training",
  title: "Training",
  group: "Measure",
  hint: "The loss of a run while it trains, read from its folder, and the attention of its checkpoints.",
  takesModel: false, takesInput: false,
  applies: (_, start) => (start.watched.some((/** @type {any} */ one) => one.kind === "run") ? true : "it watches the folder of a run; none was named: regard page runs/in-progress"),
  async render(root, context) {
    const { params, start, signal } = context, runs = start.watched.filter((/** @type {any} */ one) => one.kind === "run");
    const name = runs.find((/** @type {any} */ one) => one.name === params.run)?.name ?? runs[0].name;
    const curves = h("div.columns"), facts = h("p.hint", { "aria-live": "off" }), attention = h("div");
    const draw = async () => {
      const { metrics, checkpoints } = await get(`/api/page/watched/${encodeURIComponent(name)}`, signal);
      const loss = [{ name: "training loss", color: COLORS.query, points: column(metrics, "loss") }, { name: "validation loss", color: COLORS.key, points: column(metrics, "validation_loss"), dots: true }].filter((one) => one.points.length);
      const scores = [...new Set(metrics.flatMap((/** @type {any} */ one) => Object.keys(one)))].filter((/** @type {any} */ one) => /^validation_/.test(one) && one !== "validation_loss").slice(0, 4);
      const palette = [COLORS.value, COLORS.image, COLORS.key, COLORS.query];
      curves.replaceChildren(h("section.panel", null, h("h3", null, "loss"), lines(loss, { label: "loss", x: "step", y: "loss" })), ...(scores.length ? [h("section.panel", null, h("h3", null, "validation"), lines(scores.map((/** @type {any} */ one, at) => ({ name: one.replace("validation_", "").replaceAll("_", " "), color: palette[at], points: column(metrics, one), dots: true })), { label: "scores", x: "step", y: "score", zero: true }))] : []));
      const last = metrics.filter((/** @type {any} */ one) => one.tokens_per_second).at(-1);
      facts.textContent = `${metrics.length ? `step ${metrics.at(-1).step.toLocaleString("en")}` : "no step yet"}${last ? ` · ${Math.round(last.tokens_per_second).toLocaleString("en")} tokens/s · learning rate ${Number(last.learning_rate?.toPrecision(3))}` : ""} · checkpoints: ${checkpoints.map((/** @type {string} */ one) => one.replace("step-", "")).join(", ") || "none yet"}`;
      return checkpoints.length;
    };
    const text = h("input", { type: "text", value: params.text ?? "we are eating bread" });
    const look = button("attention of its checkpoints", async () => {
      attention.replaceChildren(h("p.wait", null, "computing …"));
      try { await serverFigure(attention, { watched: name, texts: [text.value], view: "checkpoints" }, signal); } catch (error) { attention.replaceChildren(h("p.message.error", null, String(/** @type {Error} */ (error).message))); }
    });
    root.append(h("div.bar", null, field("run", select(runs.map((/** @type {any} */ one) => [one.name, one.name]), name, (run) => context.go("training", { run }))), facts), curves, h("div.bar", null, h("label.field.wide", null, h("span", null, "text"), text), look), attention);
    await draw();
    const timer = setInterval(() => draw().catch(() => clearInterval(timer)), EVERY);
    signal.addEventListener("abort", () => clearInterval(timer));
  },
};
