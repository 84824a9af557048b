/** Keeps the pictures of the last 35 seconds, in the form of messages of the video stream, because these are small. */

import { Decoder, isKeyPicture } from "./picture.js";

/**
 * @import { Frame } from "./gif.js"
 * @import { PictureCopy } from "./picture.js"
 */

/** How many frames of the console are kept. */
const KEPT = 35 * 60;
/** After how many frames a new segment begins, with a whole picture. */
const SEGMENT = 5 * 60;

/**
 * A whole picture, and the messages after it.
 * @typedef {{ first: PictureCopy, messages: ArrayBuffer[] }} Segment
 */

export class Clip {
  /** @type {Segment[]} */
  #segments = [];
  #last = 0;

  /** Forgets all pictures. */
  clear() {
    this.#segments = [];
    this.#last = 0;
  }

  /**
   * Keeps a message that `decoder` has just decoded.
   * @type {(message: ArrayBuffer, decoder: Decoder) => void}
   */
  add(message, decoder) {
    const { tick } = decoder;
    // Ticks never go back while an emulator runs. If they do, the emulator was started again.
    if (tick < this.#last) this.clear();
    // While the game is paused, several pictures can have the same tick, for example after a state is loaded. The newest
    // one replaces the one before it, so that a paused game does not use more and more memory.
    const again = tick === this.#last;
    this.#last = tick;
    const segment = this.#segments.at(-1);
    // The last picture is the segment's last message, or its first picture if there are no messages.
    if (again && segment?.messages.pop() === undefined) this.#segments.pop();
    if (!segment || again || isKeyPicture(message) || tick >= segment.first.tick + SEGMENT) {
      this.#segments.push({ first: decoder.copy(), messages: [] });
      // `recent` is the first segment that begins within the time to keep. The segment before it may end within that
      // time, so it is kept too.
      const recent = this.#segments.findIndex(({ first }) => first.tick > tick - KEPT);
      this.#segments.splice(0, Math.max(0, recent - 1));
      return;
    }
    segment.messages.push(message);
  }

  /**
   * The pictures of the last `seconds` seconds, without those whose size differs from the size of the newest one. A
   * picture is valid only until the next one is taken.
   * @param {number} seconds
   * @param {number} step The smallest distance between pictures, in frames of the console.
   * @returns {Generator<Frame>}
   */
  *frames(seconds, step) {
    const from = this.#last - seconds * 60;
    const begin = Math.max(
      0,
      this.#segments.findLastIndex(({ first }) => first.tick <= from),
    );
    const { width, height } = this.#segments.at(-1)?.first ?? { width: 0, height: 0 };
    let shown = Number.NEGATIVE_INFINITY;
    // Copies, because `add` continues while a caller takes the pictures slowly.
    const segments = this.#segments
      .slice(begin)
      .map(({ first, messages }) => ({ first, messages: [...messages] }));
    for (const { first, messages } of segments) {
      if (first.width !== width || first.height !== height) continue;
      const decoder = new Decoder();
      decoder.restore(first);
      for (const message of [undefined, ...messages]) {
        if (message) decoder.decode(message);
        if (decoder.tick < from || decoder.tick < shown + step) continue;
        shown = decoder.tick;
        yield { width, height, tick: decoder.tick, pixels: new Uint32Array(decoder.pixels.buffer) };
      }
    }
  }
}
