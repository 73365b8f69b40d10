// @ts-check
// Numbers: half precision, softmax, products of small matrices, and how a number is written.

/** @param {Uint16Array} bits */
export function fromHalf(bits) {
  const found = new Float32Array(bits.length);
  for (let at = 0; at < bits.length; at++) {
    const one = bits[at], sign = one & 0x8000 ? -1 : 1, exponent = (one >> 10) & 31, fraction = one & 1023;
    if (exponent === 31) found[at] = fraction ? NaN : sign * Infinity;
    else found[at] = sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
  }
  return found;
}

/** @param {ArrayLike<number>} row @param {number} [temperature] @returns {number[]} */
export function softmax(row, temperature = 1) {
  let most = -Infinity;
  for (let at = 0; at < row.length; at++) most = Math.max(most, row[at]);
  if (most === -Infinity) return Array.from(row, () => 0); // all masked: zeros, never NaN
  const powers = Array.from(row, (one) => Math.exp((one - most) / temperature));
  const sum = powers.reduce((total, one) => total + one, 0);
  return powers.map((one) => one / sum);
}

/** @param {number[][]} one @param {number[][]} other */
export const product = (one, other) => one.map((row) => other[0].map((_, column) => row.reduce((sum, value, at) => sum + value * other[at][column], 0)));

/** @param {number[][]} one @returns {number[][]} */
export const transposed = (one) => one[0].map((_, column) => one.map((row) => row[column]));

/** Two decimals, or more where a number is small; a real minus. @param {number} value @param {number} [digits] */
export function shown(value, digits = 2) {
  if (value === -Infinity) return "−∞";
  if (value === Infinity) return "∞";
  if (Number.isNaN(value)) return "NaN";
  const text = value.toFixed(digits);
  return (/^-0\.?0*$/.test(text) ? text.slice(1) : text).replace("-", "−");
}

/** What a person typed: a comma or a point, a real minus or not, -inf. @param {string} text */
export function typed(text) {
  const plain = text.trim().replace("−", "-").replace(",", ".");
  if (/^-(∞|inf(inity)?)$/i.test(plain)) return -Infinity;
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain) ? Number(plain) : NaN;
}

/** @param {number} bytes */
export function bytesShown(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (bytes >= 1024 && at < units.length - 1) { bytes /= 1024; at++; }
  return `${at ? bytes.toFixed(bytes < 10 ? 2 : 1) : bytes} ${units[at]}`;
}

/** Bits, one a cell, the first in the lowest place, in base64. @param {boolean[]} cells */
export function packedBits(cells) {
  const found = new Uint8Array(Math.ceil(cells.length / 8));
  cells.forEach((one, at) => { if (one) found[at >> 3] |= 1 << (at & 7); });
  return btoa(String.fromCharCode(...found));
}
