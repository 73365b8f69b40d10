// @ts-check
// The views, in the order of the navigation. Each module has one: what it is called, for which models, and how it is drawn.
import alignment from "./alignment.js";
import compare from "./compare.js";
import fill from "./fill.js";
import generate from "./generate.js";
import heads from "./heads.js";
import lecture from "./lecture.js";
import lessons from "./lessons.js";
import map from "./map.js";
import masks from "./masks.js";
import next from "./next.js";
import picture from "./picture.js";
import positions from "./positions.js";
import quiz from "./quiz.js";
import sheet from "./sheet.js";
import show from "./show.js";
import space from "./space.js";
import switches from "./switches.js";
import training from "./training.js";

/** @typedef {{id: string, title: string, group: string, hint: string, takesModel: boolean, takesInput: boolean, takesTrace?: boolean, takesPair?: boolean,
 *   text?: (model: any) => string | undefined, applies: (model: any, start: any) => true | string, render: (root: HTMLElement, context: any) => Promise<void> | void}} View */

/** @type {View[]} */
export const VIEWS = [lessons, sheet, quiz, lecture, heads, alignment, map, show, next, generate, fill, picture, switches, masks, positions, space, compare, training];

/** @param {string} id */
export const find = (id) => VIEWS.find((one) => one.id === id);
