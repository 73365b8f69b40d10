// @ts-check
// What the page asks of its server, and of nothing else.
import { fromHalf } from "./numbers.js";

export class ServerError extends Error {}

/** @typedef {{name: string, shape: number[], data: Float32Array | Uint8Array}} Value */

let key = "";
/** Asks for the API key once; a server on another machine wants one. @type {() => Promise<string>} */
export let askForKey = async () => "";
/** @param {() => Promise<string>} ask */
export function setAskForKey(ask) { askForKey = ask; }

/** @param {string} path @param {RequestInit} options @returns {Promise<Response>} */
async function ask(path, options) {
  const headers = { ...(options.headers ?? {}), ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ServerError("the server does not answer; is `regard page` still running?");
  }
  if (response.status === 401 && (key = await askForKey())) return ask(path, options);
  if (response.ok) return response;
  let said = `the server answered ${response.status}`;
  try { said = (await response.json()).error.message ?? said; } catch { /* not of ours */ }
  throw new ServerError(said);
}

/** @param {string} path @param {AbortSignal} [signal] */
export const get = async (path, signal) => (await ask(path, { signal })).json();

/** @param {any} body @param {AbortSignal} [signal] @returns {RequestInit} */
const posted = (body, signal) => ({ method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal });

/** @param {string} path @param {any} body @param {AbortSignal} [signal] */
export const post = async (path, body, signal) => (await ask(path, posted(body, signal))).json();

/** @param {string} path @param {any} body @param {AbortSignal} [signal] */
export const postForBlob = async (path, body, signal) => (await ask(path, posted(body, signal))).blob();

/** @param {string} path @param {Blob} file */
export const upload = async (path, file) => (await ask(path, { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" } })).json();

/** Arrays by their names, and what else the server said. @param {ArrayBuffer} buffer @returns {{arrays: Record<string, Value>, more: any}} */
export function unpack(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const { arrays, ...more } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  /** @type {Record<string, Value>} */
  const found = {};
  for (const { name, shape, dtype, start } of arrays) {
    const count = shape.reduce((/** @type {number} */ one, /** @type {number} */ other) => one * other, 1), from = 4 + size + start;
    const data = dtype === "float16" ? fromHalf(new Uint16Array(buffer, from, count)) : dtype === "uint8" ? new Uint8Array(buffer, from, count) : new Float32Array(buffer, from, count);
    found[name] = { name, shape, data };
  }
  return { arrays: found, more };
}

/** @param {string} path @param {AbortSignal} [signal] */
export const getPacked = async (path, signal) => unpack(await (await ask(path, { signal })).arrayBuffer());

/** @param {string} path @param {any} body @param {AbortSignal} [signal] */
export const postPacked = async (path, body, signal) => unpack(await (await ask(path, posted(body, signal))).arrayBuffer());

/** Lines of JSON as they arrive. @param {string} path @param {any} body @param {AbortSignal} [signal] @returns {AsyncGenerator<any>} */
export async function* postLines(path, body, signal) {
  const response = await ask(path, posted(body, signal));
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const found = JSON.parse(line);
      if (found.error) throw new ServerError(found.error.message);
      yield found;
    }
  }
}

/** A head or another value of a trace; each is fetched once. */
export class TraceValues {
  /** @param {string} id */
  constructor(id) { this.id = id; /** @type {Map<string, Promise<any>>} */ this.kept = new Map(); }
  /** @param {string[]} paths @param {number} [head] @returns {Promise<Record<string, Value>>} */
  get(paths, head) {
    const query = new URLSearchParams({ paths: paths.join(","), ...(head === undefined ? {} : { head: String(head) }) });
    const path = `/api/page/trace/${this.id}/values?${query}`;
    if (!this.kept.has(path)) {
      const found = getPacked(path).then((one) => one.arrays);
      found.catch(() => this.kept.delete(path));
      this.kept.set(path, found);
      while (this.kept.size > 24) this.kept.delete(/** @type {string} */ (this.kept.keys().next().value)); // of 1,024 tokens 4 MB each
    }
    return /** @type {Promise<any>} */ (this.kept.get(path));
  }
  atlas() { return getPacked(`/api/page/trace/${this.id}/atlas`).then((one) => one.arrays); }
}
