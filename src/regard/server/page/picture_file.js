// @ts-check
// The user's own pictures: kept in this tab, sent to the server alone, never in the address.

/** @type {Map<string, {name: string, base64: string}>} */
const pictures = new Map();
const LIMIT = 1_400_000; // bytes of a file; in base64 that is what a request may have

/** @param {Blob} blob @returns {Promise<string>} */
const asBase64 = (blob) => new Promise((give, fail) => {
  const reader = new FileReader();
  reader.onload = () => give(String(reader.result).split(",")[1] ?? "");
  reader.onerror = () => fail(new Error("the file cannot be read"));
  reader.readAsDataURL(blob);
});

/** Keep a picture; a file too large for a request is made smaller here. @param {File} file @returns {Promise<string>} its name in the address */
export async function takePicture(file) {
  /** @type {Blob} */
  let blob = file;
  if (file.size > LIMIT) {
    let bitmap;
    try {
      bitmap = await createImageBitmap(file);
    } catch {
      throw new Error("is not a picture that this browser can read; wanted PNG or JPEG");
    }
    const scale = Math.min(1, 1024 / Math.max(bitmap.width, bitmap.height));
    const canvas = new OffscreenCanvas(Math.max(1, bitmap.width * scale), Math.max(1, bitmap.height * scale));
    canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    blob = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.92 });
  }
  return keepPicture(file.name, await asBase64(blob));
}

/** @param {string} name @param {string} base64 */
export function keepPicture(name, base64) {
  const id = `${pictures.size + 1}-${name.replace(/[^\w.-]+/g, "-").slice(-40)}`;
  pictures.set(id, { name, base64 });
  return id;
}

/** @param {string | undefined} id */
export const pictureOf = (id) => pictures.get(id ?? "");
