// @ts-check
// The quizzes of the decks; a wrong answer is explained, and one may try again.
import { h, say } from "../dom.js";
import { inline } from "../markdown.js";
import { QUIZZES } from "../quizzes.js";

/** @param {import("../quizzes.js").Quiz} quiz */
export function quizCard(quiz) {
  const told = h("div", { "aria-live": "polite" });
  const buttons = quiz.choices.map((choice, at) => h("button.choice", { type: "button", "aria-pressed": "false", onclick: () => {
    buttons.forEach((one, place) => { one.setAttribute("aria-pressed", String(place === at)); one.classList.toggle("right", place === at && !!choice.right); one.classList.toggle("wrong", place === at && !choice.right); });
    told.replaceChildren(h(`p.message.${choice.right ? "good" : "error"}`, null, h("strong", null, choice.right ? "Right. " : "Not yet. "), ...inline(choice.why)));
    say(choice.right ? "right" : "not yet");
  } }, h("span.letter", null, `(${"abcd"[at]})`), choice.text));
  return h("section.quiz", { "aria-label": quiz.title }, h("p.where", null, `deck ${quiz.deck} · ${quiz.title}`), h("p.question", null, ...inline(quiz.question)), h("div.choices", { role: "group", "aria-label": "answers" }, buttons), told);
}

/** @type {import("./index.js").View} */
export default {
  id: "quiz",
  title: "Quizzes",
  group: "Learn",
  hint: "The questions of the decks, with the reason for every wrong answer.",
  takesModel: false, takesInput: false,
  applies: () => true,
  render(root, context) {
    const one = QUIZZES.find((quiz) => quiz.id === context.params.quiz);
    root.append(h("div.quizzes", null, (one ? [one] : QUIZZES).map(quizCard)));
  },
};
