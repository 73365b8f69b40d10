// @ts-check
// Lessons: one a deck, short cards, and beside each card the view that it is about.
import { postForBlob } from "../api.js";
import { button, h, message, say } from "../dom.js";
import { escaped } from "../drawing.js";
import { download } from "../exporting.js";
import { lessonOf } from "../lesson_text.js";
import { blocks } from "../markdown.js";
import { find } from "./index.js";

/** The first view of a card that the open models can show. @param {any} card @param {any} context */
function showable(card, context) {
  for (const one of card.views) {
    const view = find(one.view);
    if (!view) continue;
    if (!view.takesModel) return one;
    const named = context.models.find((/** @type {any} */ other) => other.id === one.params.model);
    const model = named ?? context.models.find((/** @type {any} */ other) => view.applies(other, context.start) === true && suits(one, other));
    if (model && view.applies(model, context.start) === true) return { ...one, params: { ...one.params, model: model.id } };
  }
  return null;
}

/** Whether a model has the view of "All views" that a card asks for. @param {any} one @param {any} model */
const suits = (one, model) => (!one.params.of || model.views.some((/** @type {any} */ view) => view.name === one.params.of)) && (!one.params.task || model.task === one.params.task) && (!one.params.interface || model.interface === one.params.interface);

/** @param {any} context */
async function chooser(context) {
  const found = await Promise.all(context.start.lessons.map(async (/** @type {string} */ name) => ({ name, ...(await lessonOf(name)) })));
  return h("div.lessons", null, found.map(({ name, title, deck, cards }) => h("a.lesson", { href: `#/lessons?lesson=${name}&card=1` }, h("strong", null, title), h("span", null, `${deck ? `deck ${deck} · ` : ""}${cards.length} cards`))),
    h("p.hint", null, "A lesson of your own is a Markdown file: “# title”, then “## ” before each card, and a line “view: lecture?example=scores” for what stands beside it. Drop it on the page."));
}

/** @type {import("./index.js").View} */
export default {
  id: "lessons",
  title: "Lessons",
  group: "Learn",
  hint: "Short cards, one lesson a deck, that drive the views.",
  takesModel: false, takesInput: false,
  applies: () => true,
  async render(root, context) {
    const { params } = context, name = params.lesson ?? (context.models.length || params.all ? null : context.start.lessons[0]);
    if (!name) return void root.append(await chooser(context));
    const lesson = await lessonOf(name), count = lesson.cards.length;
    const number = Math.min(count, Math.max(1, Number(params.card) || 1)), card = lesson.cards[number - 1];
    const move = (/** @type {number} */ to) => { if (to >= 1 && to <= count) context.go("lessons", { lesson: name, card: to }); };
    const stage = h("section.stagebox", { "aria-label": "the view of this card" });
    const back = button("← back", () => move(number - 1), { disabled: number === 1 }), next = button("next →", () => move(number + 1), { disabled: number === count, className: "primary" });
    const panel = h("article.card", { tabIndex: 0, "aria-label": `card ${number} of ${count}`, onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "ArrowRight") move(number + 1);
      if (event.key === "ArrowLeft") move(number - 1);
    } }, h("p.where", null, h("a", { href: "#/lessons?all=1" }, "lessons"), ` · ${lesson.title} · ${number} of ${count}`), h("h3", null, card.title), ...blocks(card.text),
    h("div.buttons", null, back, next), h("p.hint", null, button("share as one HTML file", () => share(lesson, context).catch((error) => root.prepend(message(String(error.message)))), { className: "plain" })));
    root.append(h("div.lessonboard", null, panel, stage));
    panel.focus({ preventScroll: true });
    say(`card ${number} of ${count}: ${card.title}`);
    const view = showable(card, context);
    if (view) await context.draw(stage, view.view, view.params);
    else if (card.views.length) stage.append(message(`this card shows ${card.views[0].view} of a model; open one with regard page runs/…`, "note"));
    else stage.remove();
  },
};

/** The lesson as one file that needs no network: its cards, and the figures of the views that Python draws.
 * @param {import("../lesson_text.js").Lesson} lesson @param {any} context */
async function share(lesson, context) {
  const parts = [];
  for (const card of lesson.cards) {
    const view = showable(card, context);
    let drawn = "";
    const body = view?.view === "lecture" ? { example: view.params.example } : view?.view === "show" && view.params.text ? { model: view.params.model, texts: [view.params.text], view: view.params.of } : null;
    if (body) drawn = /<body>|<regard-figure>/.test(drawn = await (await postForBlob("/api/page/figure", { ...body, format: "html" })).text()) ? drawn.slice(drawn.indexOf("<regard-figure>"), drawn.lastIndexOf("</html>")) : "";
    parts.push(`<section><h2>${escaped(card.title)}</h2>${blocks(card.text).map((one) => one.outerHTML).join("\n")}${drawn}</section>`);
  }
  const style = "body{font:17px/1.55 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2733}section{border-top:1px solid #d4d9df;padding:1rem 0}table{border-collapse:collapse}td,th{border:1px solid #d4d9df;padding:2px 8px}pre{overflow:auto;background:#f4f6f8;padding:8px}";
  const page = `<!doctype html>\n<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escaped(lesson.title)}</title><style>${style}</style><h1>${escaped(lesson.title)}</h1>${parts.join("\n")}</html>\n`;
  download(new Blob([page], { type: "text/html" }), `${lesson.title.replace(/[^\w]+/g, "-").toLowerCase()}.html`);
  say("the lesson is saved as one HTML file");
}
