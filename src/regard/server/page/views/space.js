// @ts-check
// Space: the embeddings as a map, and one word in two sentences.
import { h } from "../dom.js";
import { request } from "../input.js";
import { link } from "../state.js";
import { serverFigure } from "./show.js";

/** @type {import("./index.js").View} */
export default {
  id: "space",
  title: "Space",
  group: "Measure",
  hint: "Words as points: near each other where the model uses them alike. The words of your text are blue.",
  takesModel: true, takesInput: true,
  applies: (model) => (!model ? "it needs a model, and none is open" : model.views.some((/** @type {any} */ one) => one.name === "map") ? true : `this ${model.kind} has no embeddings to draw`),
  async render(root, context) {
    const drawn = h("div"), { model } = context;
    root.append(drawn, h("p.hint", null, "Contextual vectors: ", model.views.some((/** @type {any} */ one) => one.name === "words") ? h("a", { href: link("show", { model: model.id, of: "words" }) }, "one word in two sentences") : "this model has none", "."));
    await serverFigure(drawn, { ...(await request(context, { view: "map" })), off: undefined, target: undefined }, context.signal);
  },
};
