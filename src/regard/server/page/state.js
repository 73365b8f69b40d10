// @ts-check
// The state of the page is its address: #/heads?model=demo&text=we+are+eating+bread&layer=0

/** @typedef {Record<string, string>} Params */
/** @typedef {{view: string, params: Params}} State */

/** @param {string} hash @returns {State} */
export function parse(hash) {
  const [path, query] = hash.replace(/^#?\/?/, "").split(/\?(.*)/s);
  return { view: decodeURIComponent(path || ""), params: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

/** @param {string} view @param {Record<string, any>} params */
export function link(view, params = {}) {
  const kept = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

export const current = () => parse(location.hash);

/** Another view: one step in the history, and it is drawn. @param {string} view @param {Record<string, any>} [params] */
export function go(view, params) {
  location.hash = link(view, params);
}

/** The same view with other choices: the address changes, nothing is drawn anew. @param {Record<string, any>} changes */
export function keep(changes) {
  const { view, params } = current();
  history.replaceState(null, "", link(view, { ...params, ...changes }));
}
