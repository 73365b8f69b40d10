// @ts-check
// A lesson is a Markdown file: "# title", then a card for each "## heading". A line "view: heads?text=… | figure?example=…"
// says what stands beside a card: the first of these that the open models can show.
import { parse } from "./state.js";

/** @typedef {{title: string, text: string, views: {view: string, params: Record<string, string>}[]}} Card */
/** @typedef {{title: string, deck: string, cards: Card[]}} Lesson */

/** @param {string} text @returns {Lesson} */
export function readLesson(text) {
  const plain = text.replace(/\r\n?/g, "\n");
  const [head, ...parts] = plain.split(/^## /m);
  const title = /^# (.+)$/m.exec(head)?.[1] ?? "a lesson", deck = /^deck: (.+)$/m.exec(head)?.[1] ?? "";
  if (!parts.length) throw new Error("a lesson has no card; wanted Markdown with “## ” before each card");
  const cards = parts.map((part) => {
    const [name, ...lines] = part.split("\n");
    const views = lines.filter((line) => /^view: /.test(line)).flatMap((line) => line.slice(6).split(" | ").map((one) => parse(one.trim())));
    return { title: name.trim(), text: lines.filter((line) => !/^view: /.test(line)).join("\n"), views };
  });
  return { title, deck, cards };
}

/** @type {Map<string, Promise<string>>} */
const texts = new Map();

/** A lesson of the user's own; gives its name in the address. @param {string} file @param {string} text */
export function takeLesson(file, text) {
  readLesson(text);
  const name = `own-${file.replace(/\.md$/i, "").replace(/[^\w-]+/g, "-")}`;
  texts.set(name, Promise.resolve(text));
  return name;
}

/** @param {string} name */
export async function lessonOf(name) {
  if (!texts.has(name)) {
    if (name.startsWith("own-")) throw new Error("this lesson was opened from a file; open it again");
    texts.set(name, fetch(`/page/lessons/${encodeURIComponent(name)}.md`).then((one) => { if (!one.ok) throw new Error(`there is no lesson ${name}`); return one.text(); }));
  }
  return readLesson(await /** @type {Promise<string>} */ (texts.get(name)));
}
