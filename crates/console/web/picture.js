/** Decodes the video stream; docs/video.md, "A message", describes the format. */

const KEY = 1;
const DELTA = 2;
const VERSION = 1;
const HEADER = 20;
const TILE = 8;
const AREA = TILE * TILE;

/** The error for a message that is malformed or does not fit the current picture. */
export class PictureError extends Error {}

/**
 * A copy of a picture of the stream.
 * @typedef {object} PictureCopy
 * @property {number} width
 * @property {number} height
 * @property {number} frame
 * @property {number} tick
 * @property {Uint32Array} words The pixels.
 */

/**
 * Whether a message contains a whole picture.
 * @type {(message: ArrayBuffer) => boolean}
 */
export function isKeyPicture(message) {
  return new DataView(message).getUint8(0) === KEY;
}

/** Holds the current picture and updates it with each message. */
export class Decoder {
  width = 0;
  height = 0;
  /** The emulator's frame counter. */
  frame = 0;
  /** Frames run since the emulator started. */
  tick = 0;
  /** The pixels for `ImageData`: red, green, blue and an alpha of 255. */
  pixels = new Uint8ClampedArray(0);
  #words = new Uint32Array(0);
  #begun = false;

  /**
   * Applies a message. Returns true if the size of the picture changed. After an error, the decoder accepts only a
   * key picture.
   * @type {(message: ArrayBuffer) => boolean}
   */
  decode(message) {
    try {
      return this.#decode(new DataView(message));
    } catch (error) {
      this.#begun = false;
      throw error instanceof RangeError ? new PictureError("the message ends too early") : error;
    }
  }

  /**
   * A copy of the current picture, for `restore`.
   * @returns {PictureCopy}
   */
  copy() {
    const { width, height, frame, tick } = this;
    return { width, height, frame, tick, words: this.#words.slice() };
  }

  /**
   * Returns to a picture, so that the messages after it can be decoded again.
   * @param {PictureCopy} copy
   */
  restore({ width, height, frame, tick, words }) {
    this.#use(words.slice(), width, height);
    this.frame = frame;
    this.tick = tick;
    this.#begun = true;
  }

  /** @type {(view: DataView) => boolean} */
  #decode(view) {
    const kind = view.getUint8(0);
    if (kind !== KEY && kind !== DELTA) throw new PictureError(`the message is of kind ${kind}`);
    if (view.getUint8(1) !== VERSION) throw new PictureError(`the message is of version ${view.getUint8(1)}`);
    const width = view.getUint16(2, true);
    const height = view.getUint16(4, true);
    const area = width * height;
    if (area === 0 || area > 0xffff) throw new PictureError(`a picture cannot be ${width} by ${height}`);
    const resized = width !== this.width || height !== this.height;
    const base = view.getUint32(16, true);
    if (kind === DELTA && (!this.#begun || resized || base !== this.tick)) {
      throw new PictureError("the delta does not belong to the current picture");
    }
    // If a picture of a new size cannot be decoded, it does not replace the current one.
    const words = resized ? new Uint32Array(area) : this.#words;
    const tiles = new Tiles(view, words, width, height);
    tiles.drawAll();
    if (kind === KEY && tiles.drawn < tiles.all)
      throw new PictureError("the key picture lacks some of its tiles");
    if (resized) this.#use(words, width, height);
    this.frame = view.getUint32(8, true);
    this.tick = view.getUint32(12, true);
    this.#begun = true;
    return resized;
  }

  /** @type {(words: Uint32Array<ArrayBuffer>, width: number, height: number) => void} */
  #use(words, width, height) {
    this.width = width;
    this.height = height;
    this.#words = words;
    this.pixels = new Uint8ClampedArray(this.#words.buffer);
  }
}

/** Draws the tiles of a message. They come after its header and its palette. */
class Tiles {
  drawn = 0;
  /** @readonly @type {number} */
  all;
  #view;
  #words;
  #width;
  #height;
  /** @type {number} */
  #across;
  /** @type {Uint32Array} */
  #palette;
  /** @type {number} */
  #at;
  /** The colours of the current tile. */
  #own = new Uint32Array(AREA);

  /**
   * @param {DataView} view
   * @param {Uint32Array} words
   * @param {number} width
   * @param {number} height
   */
  constructor(view, words, width, height) {
    this.#view = view;
    this.#words = words;
    this.#width = width;
    this.#height = height;
    this.#across = Math.ceil(width / TILE);
    this.all = this.#across * Math.ceil(height / TILE);
    const colours = view.getUint16(6, true);
    this.#palette = new Uint32Array(colours);
    const bytes = new Uint8Array(this.#palette.buffer);
    for (let i = 0; i < colours; i += 1) {
      for (let part = 0; part < 3; part += 1) bytes[i * 4 + part] = view.getUint8(HEADER + i * 3 + part);
      bytes[i * 4 + 3] = 255;
    }
    this.#at = HEADER + colours * 3;
  }

  drawAll() {
    let tile = 0;
    while (this.#at < this.#view.byteLength) {
      tile += this.#short();
      for (let count = this.#short(); count > 0; count -= 1, tile += 1) {
        if (tile >= this.all) throw new PictureError("a tile is outside the picture");
        this.#draw(tile);
      }
    }
  }

  /** @param {number} tile */
  #draw(tile) {
    const count = this.#view.getUint8(this.#at);
    this.#at += 1;
    const bits = bitsOf(count);
    const listed = count === 0 ? AREA : count;
    for (let i = 0; i < listed; i += 1) this.#own[i] = this.#colour();
    const left = (tile % this.#across) * TILE;
    const top = Math.floor(tile / this.#across) * TILE;
    const mask = (1 << bits) - 1;
    for (let pixel = 0; pixel < AREA; pixel += 1) {
      let place = count === 0 ? pixel : 0;
      if (bits > 0) {
        place = (this.#view.getUint8(this.#at + ((pixel * bits) >> 3)) >> ((pixel * bits) & 7)) & mask;
        if (place >= count) throw new PictureError("a colour is not in its list");
      }
      const x = left + (pixel & 7);
      const y = top + (pixel >> 3);
      if (x < this.#width && y < this.#height) this.#words[y * this.#width + x] = this.#own[place] ?? 0;
    }
    this.#at += bits * TILE;
    this.drawn += 1;
  }

  #short() {
    const value = this.#view.getUint16(this.#at, true);
    this.#at += 2;
    return value;
  }

  /** @returns {number} */
  #colour() {
    const wide = this.#palette.length > 256;
    const index = wide ? this.#view.getUint16(this.#at, true) : this.#view.getUint8(this.#at);
    this.#at += wide ? 2 : 1;
    const colour = this.#palette[index];
    if (colour === undefined) throw new PictureError("a colour is not in its list");
    return colour;
  }
}

/**
 * Bits per pixel in a tile with `count` colours.
 * @type {(count: number) => number}
 */
function bitsOf(count) {
  if (count > 16) throw new PictureError(`a tile cannot have ${count} colours`);
  if (count <= 1) return 0;
  if (count === 2) return 1;
  return count <= 4 ? 2 : 4;
}
