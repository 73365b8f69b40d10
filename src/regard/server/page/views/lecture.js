// @ts-check
// The figures of the lectures, from their own numbers: no model is needed.
import { field, h, select } from "../dom.js";
import { serverFigure } from "./show.js";

/** @type {import("./index.js").View} */
export default {
  id: "lecture",
  title: "Lecture figures",
  group: "Learn",
  hint: "The numbers and drawings of the slides, computed by the package.",
  takesModel: false, takesInput: false,
  applies: () => true,
  async render(root, context) {
    const { start, params } = context, names = Object.keys(start.examples);
    const chosen = names.includes(params.example) ? params.example : names[0];
    const drawn = h("div");
    if (!context.nested) root.append(h("div.bar", null, field("figure", select(names.map((name) => [name, name]), chosen, (example) => context.go("lecture", { example })))), h("p.hint", null, start.examples[chosen]));
    root.append(drawn);
    await serverFigure(drawn, { example: chosen }, context.signal);
  },
};
