// @ts-check
// Map: the block diagram of the model, with shapes and numbers of parameters; a click on an attention opens it.
import { get } from "../api.js";
import { h, scrolling } from "../dom.js";
import { request } from "../input.js";
import { serverFigure } from "./show.js";

/** @type {import("./index.js").View} */
export default {
  id: "map",
  title: "Map",
  group: "Look inside",
  hint: "The lecture's block diagram, drawn from this model. Choose a part below, or click it, to open it.",
  takesModel: true, takesInput: true,
  applies: (model) => (!model ? "it draws a model, and none is open" : model.views.some((/** @type {any} */ one) => one.name === "architecture") ? true : `this ${model.kind} has no diagram`),
  async render(root, context) {
    const { model, params, signal } = context, drawn = h("div");
    root.append(drawn);
    const [figure, { info }] = await Promise.all([request(context, { view: "architecture" }).then((body) => serverFigure(drawn, { ...body, off: undefined, target: undefined }, signal)), get(`/api/models/${model.id}`, signal)]);
    const open = (/** @type {string} */ path) => context.go("heads", { model: model.id, text: params.text, scene: params.scene, attention: path });
    figure.shadowRoot.querySelector(".stage").addEventListener("click", (/** @type {MouseEvent} */ event) => {
      const titled = /** @type {any} */ (event.composedPath().find((one) => one instanceof Element && one.querySelector(":scope > title")));
      const path = titled?.querySelector("title").textContent.split(":")[0].trim();
      const one = path && info.attentions.find((/** @type {any} */ other) => other.path === path || other.path.startsWith(`${path}.`));
      if (one) open(one.path);
    });
    const total = info.modules.find((/** @type {any} */ one) => one.path === "")?.parameters ?? model.parameters;
    const parts = info.modules.filter((/** @type {any} */ one) => one.path && one.path.split(".").length <= 3 && one.parameters);
    root.append(h("h3", null, "Attention of this model"), h("div.buttons", null, info.attentions.map((/** @type {any} */ one) => h("button", { type: "button", onclick: () => open(one.path) }, one.path || "the model itself", h("span.hint", null, ` ${one.queries} → ${one.keys}`)))),
      h("details", null, h("summary", null, `parts and parameters: ${total.toLocaleString("en")} in all`), scrolling("parts and parameters", h("table.plain", null, h("thead", null, h("tr", null, ["part", "kind", "weight", "parameters"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", null, parts.map((/** @type {any} */ one) => h("tr", null, h("th", { scope: "row" }, one.path), h("td", null, one.kind), h("td", null, one.shape.join(" × ")), h("td.number", null, one.parameters.toLocaleString("en")))))))));
  },
};
