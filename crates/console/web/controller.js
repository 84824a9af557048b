/** What the user holds down, by whatever means, and how it gets to the emulator. */

import { keysOf, maskOf } from "./keys.js";
import { Store } from "./store.js";

/**
 * @import { Api } from "./api.js"
 * @import { Key } from "./keys.js"
 */

/**
 * A press that is shorter is ended by the emulator, some frames later. The game looks at its keys once a frame, and a
 * tap on glass may be shorter than that; on the way, a press and its end may also come closer together.
 */
const SHORT_PRESS_MS = 100;

/**
 * Takes changes of keys to the emulator.
 * @typedef {object} KeyLine
 * @property {(mask: number) => void} press
 * @property {(mask: number) => void} release
 * @property {(mask: number) => void} releaseSoon Lets go of them once the game has seen them.
 */

export class Controller {
  /** @readonly Mask of what is held, all sources together. */
  held = new Store(0);
  /** @type {Map<string, number>} */
  #sources = new Map();
  #line;
  #api;
  /** What the emulator was told. */
  #told = 0;
  /**
   * When each key was pressed, by bit.
   * @type {number[]}
   */
  #since = [];

  /**
   * @param {KeyLine} line
   * @param {Api} api
   */
  constructor(line, api) {
    this.#line = line;
    this.#api = api;
    const release = () => this.releaseAll();
    addEventListener("blur", release);
    addEventListener("pagehide", release);
    api.copying.follow(release);
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) release();
    });
  }

  /**
   * `source` (a pointer, the keyboard, …) now holds exactly these keys.
   * @param {string} source
   * @param {Iterable<Key>} keys
   */
  hold(source, keys) {
    const mask = maskOf(keys);
    if (mask === (this.#sources.get(source) ?? 0)) return;
    const before = this.held.value;
    if (mask === 0) this.#sources.delete(source);
    else this.#sources.set(source, mask);
    let held = 0;
    for (const part of this.#sources.values()) held |= part;
    this.held.set(held);
    if (this.#api.copying.value) this.#copy(held & ~before);
    else this.#tell();
  }

  /** Lets go of everything, at once. */
  releaseAll() {
    this.#sources.clear();
    this.held.set(0);
    this.#since.length = 0;
    this.#tell();
  }

  /** After a lost connection: what was told may or may not have arrived, so it is told again. */
  repeat() {
    const told = this.#told;
    this.#told = 0;
    if (told & ~this.held.value) this.#line.release(told & ~this.held.value);
    this.#tell();
  }

  #tell() {
    const now = performance.now();
    const held = this.held.value;
    const pressed = held & ~this.#told;
    if (pressed !== 0) {
      this.#line.press(pressed);
      forBits(pressed, (bit) => {
        this.#since[bit] = now;
      });
    }
    const released = this.#told & ~held;
    let short = 0;
    forBits(released, (bit) => {
      if (now - (this.#since[bit] ?? 0) < SHORT_PRESS_MS) short |= 1 << bit;
    });
    if (short !== 0) this.#line.releaseSoon(short);
    if ((released & ~short) !== 0) this.#line.release(released & ~short);
    this.#told = held;
  }

  /** @param {number} pressed */
  #copy(pressed) {
    if (pressed === 0) return;
    const keys = keysOf(pressed);
    void this.#api.copy({
      title: `Tap ${keys.join("+")}`,
      method: "POST",
      path: "/v1/tap",
      json: { keys, frames: 2 },
    });
  }
}

/**
 * @param {number} mask
 * @param {(bit: number) => void} act
 */
function forBits(mask, act) {
  for (let bit = 0; mask >> bit !== 0; bit += 1) if (mask & (1 << bit)) act(bit);
}
