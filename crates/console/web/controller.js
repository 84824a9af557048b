/** Combines the keys that the user holds on all input devices, and sends the changes to the emulator. */

import { tap } from "./actions.js";
import { attempt } from "./app.js";
import { SHORT_FRAMES } from "./emulation.js";
import { keysOf, maskOf } from "./keys.js";
import { refusals, unlessRefused } from "./refusals.js";
import { Store } from "./store.js";

/**
 * @import { Api } from "./api.js"
 * @import { Answer, EmulatorClient } from "./emulation.js"
 * @import { Key } from "./keys.js"
 * @import { Status } from "./status.js"
 */

/**
 * If a press is shorter than this, the page asks the emulator to hold the key for `SHORT_FRAMES` more frames.
 * The game reads its keys only once per frame, and a tap may be shorter than a frame. The network may also
 * make a press shorter.
 */
const SHORT_PRESS_MS = 100;

export class Controller {
  /** @readonly Mask of the keys that at least one source holds. */
  held = new Store(0);
  /** @type {Map<string, number>} */
  #sources = new Map();
  #emulation;
  #api;
  #status;
  /** Mask of the keys that the emulator holds, as far as this page knows. */
  #sent = 0;
  /** Mask of the keys whose last release may not have arrived. */
  #unsure = 0;
  /** When each key was pressed. The index is the number of the key's bit. @type {number[]} */
  #since = [];
  /**
   * For each key, the answer to the request that ends its last short press. The emulator then holds the key
   * for `SHORT_FRAMES` frames (the *hold*) and releases it.
   * @type {Promise<Answer>[]}
   */
  #holds = [];
  /** Mask of the keys whose last press may have ended the hold of the short press before it. */
  #interrupting = 0;

  /**
   * @param {EmulatorClient} emulation
   * @param {Api} api
   * @param {Store<Status>} status
   */
  constructor(emulation, api, status) {
    this.#emulation = emulation;
    this.#api = api;
    this.#status = status;
    const release = () => this.releaseAll();
    addEventListener("blur", release);
    addEventListener("pagehide", release);
    api.copying.follow(release);
    // After a replay, the keys that the user still holds are pressed.
    status.onChange(() => this.#send());
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) release();
    });
  }

  /**
   * Sets the keys that `source` (a pointer, the keyboard, …) holds.
   * @type {(source: string, keys: Iterable<Key>) => void}
   */
  hold(source, keys) {
    const mask = maskOf(keys);
    if (this.#api.viewOnly.value || mask === (this.#sources.get(source) ?? 0)) return;
    const before = this.held.value;
    if (mask === 0) this.#sources.delete(source);
    else this.#sources.set(source, mask);
    let held = 0;
    for (const part of this.#sources.values()) held |= part;
    this.held.set(held);
    const pressed = held & ~before;
    if (this.#api.copying.value) this.#copy(pressed);
    else if (pressed !== 0) unlessRefused(this.#refusal, () => this.#send());
    else this.#send();
  }

  /** The reason why keys are not sent now. */
  get #refusal() {
    return refusals({ api: this.#api, status: this.#status }).play;
  }

  /** Releases all keys. */
  releaseAll() {
    this.#sources.clear();
    this.held.set(0);
    this.#since.length = 0;
    this.#send();
  }

  /** Sends the state of the keys again after a lost connection, because the last changes may not have arrived. */
  repeat() {
    const down = (this.#sent | this.#unsure) & ~this.held.value;
    this.#sent = 0;
    if (down !== 0) void this.#confirm(down, this.#emulation.release(down));
    this.#send();
  }

  /**
   * Waits for the answer to the release of keys. Without an answer, `repeat` releases them again.
   * @type {(keys: number, answer: Promise<Answer>) => Promise<void>}
   */
  async #confirm(keys, answer) {
    if ((await answer).arrived) this.#unsure &= ~keys;
    else this.#unsure |= keys;
  }

  #send() {
    const now = performance.now();
    const isSilent = this.#api.copying.value || this.#refusal !== undefined;
    const held = isSilent ? 0 : this.held.value;
    const pressed = held & ~this.#sent;
    if (pressed !== 0) {
      const answer = this.#emulation.press(pressed);
      forBits(pressed, (bit) => {
        this.#since[bit] = now;
        void this.#noteInterruption(bit, answer);
      });
    }
    const released = this.#sent & ~held;
    let short = 0;
    forBits(released, (bit) => {
      if (now - (this.#since[bit] ?? 0) < SHORT_PRESS_MS) short |= 1 << bit;
    });
    const long = released & ~short;
    const again = short & this.#interrupting;
    const once = short & ~again;
    if (once !== 0) this.#releaseSoon(once, this.#emulation.releaseSoon(once));
    if (again !== 0) this.#releaseSoon(again, this.#emulation.releaseSoonAgain(again));
    if (long !== 0) void this.#confirm(long, this.#emulation.release(long));
    this.#sent = held;
  }

  /** @type {(keys: number, answer: Promise<Answer>) => void} */
  #releaseSoon(keys, answer) {
    void this.#confirm(keys, answer);
    forBits(keys, (bit) => {
      this.#holds[bit] = answer;
    });
  }

  /**
   * Notes whether a press may have ended the hold of the short press before it. This is assumed until the
   * answers show that the hold was already over.
   * @type {(bit: number, answer: Promise<Answer>) => Promise<void>}
   */
  async #noteInterruption(bit, answer) {
    const hold = this.#holds[bit];
    if (!hold) return;
    this.#interrupting |= 1 << bit;
    const since = this.#since[bit];
    const [begin, now] = [(await hold).frame, (await answer).frame];
    const isOver = begin !== undefined && now !== undefined && now >= begin + SHORT_FRAMES;
    // Meanwhile, the key may have been pressed again.
    if (isOver && since === this.#since[bit]) this.#interrupting &= ~(1 << bit);
  }

  /**
   * While the page copies actions (`api.copying`): copies the command that taps these keys, and sends nothing.
   * @param {number} pressed
   */
  #copy(pressed) {
    if (pressed === 0) return;
    void attempt(() => this.#api.copy(this.#api.addressed(tap(keysOf(pressed), 2))));
  }
}

/** @type {(mask: number, act: (bit: number) => void) => void} */
function forBits(mask, act) {
  for (let bit = 0; mask >> bit !== 0; bit += 1) if (mask & (1 << bit)) act(bit);
}
