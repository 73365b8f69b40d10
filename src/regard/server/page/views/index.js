// @ts-check
// The views, in the order of the navigation. Each module has one: what it is called, for which models, and how it is drawn.
import heads from "./heads.js";
import lecture from "./lecture.js";
import lessons from "./lessons.js";
import quiz from "./quiz.js";
import sheet from "./sheet.js";
import show from "./show.js";

/** @typedef {{id: string, title: string, group: string, hint: string, takesModel: boolean, takesInput: boolean, takesTrace?: boolean, takesPair?: boolean,
 *   text?: (model: any) => string | undefined, applies: (model: any, start: any) => true | string, render: (root: HTMLElement, context: any) => Promise<void> | void}} View */

/** @type {View[]} */
export const VIEWS = [lessons, sheet, quiz, lecture, heads, show];

/** @param {string} id */
export const find = (id) => VIEWS.find((one) => one.id === id);
