/** Writes animated GIF files. Each picture contains only the pixels that differ from the picture before it. */

/** @import { Picture } from "./tiles.js" */

/** @typedef {Picture & { tick: number }} Frame A picture, and the number of the console's frame that showed it. */

/** The console's frames per second. */
export const RATE = 59.7275;
/** The largest number of colours in a picture. They are numbered from 1; 0 stands for an unchanged pixel. */
const MOST_COLOURS = 255;
/** The number of codes: a code has at most 12 bits. */
const CODES = 4096;
/** The shortest time for which the last picture is shown, in hundredths of a second. */
const LAST = 50;

/**
 * Writes a GIF file that repeats without end.
 * @param {Iterable<Frame>} frames At least one frame. All frames have the same size.
 * @param {number} scale A whole number: width and height, in the file, of one pixel of the game.
 * @returns {Blob}
 */
export function gif(frames, scale) {
  /** @type {Blob[]} */
  const pictures = [];
  /** @type {number[]} */
  const ticks = [];
  /** @type {Frame | undefined} */
  let before;
  for (const frame of frames) {
    const { width: right, height: bottom } = frame;
    const box = before ? changed(before.pixels, frame) : { left: 0, top: 0, right, bottom };
    if (box) {
      pictures.push(new Blob([/** @type {BlobPart} */ (picture(frame, before?.pixels, box, scale))]));
      ticks.push(frame.tick);
    }
    before = { ...frame, pixels: frame.pixels.slice() };
  }
  if (!before) throw new Error("there are no pictures yet");
  const { width, height } = before;
  /** @type {BlobPart[]} */
  const parts = [header(width * scale, height * scale)];
  const end = before.tick;
  pictures.forEach((bytes, index) => {
    parts.push(control(delay(ticks, index, end)), bytes);
  });
  parts.push(Uint8Array.of(0x3b));
  return new Blob(parts, { type: "image/gif" });
}

/**
 * How long a picture is shown, in hundredths of a second. Rounding errors do not add up. `end` is the tick of the last
 * frame.
 * @type {(ticks: readonly number[], index: number, end: number) => number}
 */
function delay(ticks, index, end) {
  const first = ticks[0] ?? 0;
  const next = ticks[index + 1];
  /** @param {number} tick */
  const at = (tick) => Math.round(((tick - first) / RATE) * 100);
  const shown = at(next ?? end) - at(ticks[index] ?? 0);
  return next === undefined ? Math.max(LAST, shown) : shown;
}

/** @type {(width: number, height: number) => Uint8Array<ArrayBuffer>} */
function header(width, height) {
  return Uint8Array.of(
    ...[..."GIF89a"].map((letter) => letter.charCodeAt(0)),
    ...[width & 255, width >> 8, height & 255, height >> 8, 0, 0, 0],
    // The animation repeats without end.
    ...[0x21, 0xff, 11, ...[..."NETSCAPE2.0"].map((letter) => letter.charCodeAt(0)), 3, 1, 0, 0, 0],
  );
}

/**
 * The graphic control extension. It says how long the picture is shown, and that pixels with colour 0 do not change.
 * @param {number} hundredths
 */
function control(hundredths) {
  return Uint8Array.of(0x21, 0xf9, 4, 0x05, hundredths & 255, hundredths >> 8, 0, 0);
}

/**
 * @typedef {object} Box
 * @property {number} left
 * @property {number} top
 * @property {number} right The column after the last one.
 * @property {number} bottom
 */

/**
 * The smallest box that contains all differences; `undefined` if there are no differences.
 * @type {(before: Uint32Array, picture: Picture) => Box | undefined}
 */
function changed(before, { width, height, pixels }) {
  const box = { left: width, top: height, right: 0, bottom: 0 };
  for (let at = 0; at < pixels.length; at += 1) {
    if (pixels[at] === before[at]) continue;
    const x = at % width;
    const y = (at - x) / width;
    box.left = Math.min(box.left, x);
    box.right = Math.max(box.right, x + 1);
    box.top = Math.min(box.top, y);
    box.bottom = Math.max(box.bottom, y + 1);
  }
  return box.bottom === 0 ? undefined : box;
}

/** @type {(picture: Picture, before: Uint32Array | undefined, box: Box, scale: number) => Uint8Array} */
function picture(picture, before, box, scale) {
  const wide = box.right - box.left;
  const high = box.bottom - box.top;
  const { indices, colours } = indexed(picture, before, box);
  let bits = 2;
  while (1 << bits < colours.length + 1) bits += 1;
  const table = new Uint8Array(3 << bits);
  colours.forEach((colour, index) => {
    table.set([colour & 255, (colour >> 8) & 255, (colour >> 16) & 255], (index + 1) * 3);
  });
  const [left, top, width, height] = [box.left, box.top, wide, high].map((part) => part * scale);
  /** @param {number} [value] */
  const short = (value = 0) => [value & 255, value >> 8];
  const start = [0x2c, ...short(left), ...short(top), ...short(width), ...short(height), 0x80 | (bits - 1)];
  const data = compress(enlarged(indices, wide, high, scale), bits);
  const bytes = new Uint8Array(start.length + table.length + data.length);
  bytes.set(start);
  bytes.set(table, start.length);
  bytes.set(data, start.length + table.length);
  return bytes;
}

/**
 * The colour of each pixel of a box, as an index into `colours` that starts at 1. The index 0 means that the pixel has
 * not changed. If there are too many colours, the lowest bits of red, green and blue are dropped until few enough are
 * left.
 * @type {(picture: Picture, before: Uint32Array | undefined, box: Box) => { indices: Uint8Array, colours: number[] }}
 */
function indexed({ width, pixels }, before, { left, top, right, bottom }) {
  const indices = new Uint8Array((right - left) * (bottom - top));
  for (let droppedBits = 0; ; droppedBits += 1) {
    const mask = (0x0101_0101 * ((0xff << droppedBits) & 255)) >>> 0;
    /** @type {Map<number, number>} */
    const numbers = new Map();
    let to = 0;
    for (let y = top; y < bottom; y += 1) {
      for (let at = y * width + left; at < y * width + right; at += 1, to += 1) {
        const pixel = pixels[at] ?? 0;
        if (before?.[at] === pixel) {
          indices[to] = 0;
          continue;
        }
        const colour = (pixel & mask) >>> 0;
        const number = numbers.get(colour) ?? numbers.size + 1;
        numbers.set(colour, number);
        indices[to] = number;
      }
    }
    if (numbers.size <= MOST_COLOURS) return { indices, colours: [...numbers.keys()] };
  }
}

/** @type {(indices: Uint8Array, width: number, height: number, scale: number) => Uint8Array} */
function enlarged(indices, width, height, scale) {
  if (scale === 1) return indices;
  const line = width * scale;
  const large = new Uint8Array(line * height * scale);
  for (let y = 0; y < height * scale; y += 1) {
    const from = Math.floor(y / scale) * width;
    for (let x = 0; x < line; x += 1) large[y * line + x] = indices[from + Math.floor(x / scale)] ?? 0;
  }
  return large;
}

/**
 * Compresses indices with GIF's variant of LZW, into blocks of up to 255 bytes.
 * @param {Uint8Array} indices
 * @param {number} bits The size of an index. Codes have at least one bit more.
 * @returns {Uint8Array}
 */
function compress(indices, bits) {
  const clear = 1 << bits;
  const out = new CodeWriter(bits);
  /** For a code and the index that follows it: the code that stands for both; 0 if there is none yet. */
  const known = new Uint16Array(CODES << 8);
  let next = clear + 2;
  let size = bits + 1;
  out.put(clear, size);
  let code = indices[0] ?? 0;
  for (let at = 1; at < indices.length; at += 1) {
    const index = indices[at] ?? 0;
    const longer = known[(code << 8) | index] ?? 0;
    if (longer !== 0) {
      code = longer;
      continue;
    }
    out.put(code, size);
    if (next < CODES) {
      known[(code << 8) | index] = next;
      if (next === 1 << size) size += 1;
      next += 1;
    } else {
      out.put(clear, size);
      known.fill(0);
      next = clear + 2;
      size = bits + 1;
    }
    code = index;
  }
  out.put(code, size);
  // A decoder defines one more code here, and that can make the next code longer.
  if (next === 1 << size && size < 12) size += 1;
  out.put(clear + 1, size);
  return out.finish();
}

/** Packs codes into bytes, and bytes into blocks. */
class CodeWriter {
  /** @type {number[]} */
  #bytes = [];
  #bits = 0;
  #held = 0;
  /** The index of the byte with the length of the current block. */
  #block = 1;

  /** @param {number} smallest GIF's "minimum code size": the size of an index, in bits. It is the first byte. */
  constructor(smallest) {
    this.#bytes.push(smallest, 0);
  }

  /** @type {(code: number, size: number) => void} */
  put(code, size) {
    this.#held |= code << this.#bits;
    this.#bits += size;
    while (this.#bits >= 8) {
      this.#byte(this.#held & 255);
      this.#held >>= 8;
      this.#bits -= 8;
    }
  }

  finish() {
    if (this.#bits > 0) this.#byte(this.#held & 255);
    // An empty block ends the picture. The current block may already be empty.
    if (this.#bytes[this.#block] !== 0) this.#bytes.push(0);
    return Uint8Array.from(this.#bytes);
  }

  /** @param {number} byte */
  #byte(byte) {
    this.#bytes.push(byte);
    const length = (this.#bytes[this.#block] ?? 0) + 1;
    this.#bytes[this.#block] = length;
    if (length === 255) {
      this.#block = this.#bytes.length;
      this.#bytes.push(0);
    }
  }
}
