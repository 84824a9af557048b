/** What the user holds down, by whatever means, and how it gets to the emulator. */

import type { Api } from "./api.ts";
import { type Key, keysOf, maskOf } from "./keys.ts";
import { Store } from "./store.ts";

/**
 * A press that is shorter is ended by the emulator, some frames later. The game looks at its keys once a frame, and a
 * tap on glass may be shorter than that; on the way, a press and its end may also come closer together.
 */
const SHORT_PRESS_MS = 100;

/** Takes changes of keys to the emulator. */
export interface KeyLine {
  press(mask: number): void;
  release(mask: number): void;
  /** Lets go of them once the game has seen them. */
  releaseSoon(mask: number): void;
}

export class Controller {
  /** Mask of what is held, all sources together. */
  readonly held = new Store(0);
  readonly #sources = new Map<string, number>();
  readonly #line: KeyLine;
  readonly #api: Api;
  /** What the emulator was told. */
  #told = 0;
  /** When each key was pressed, by bit. */
  readonly #since: number[] = [];

  constructor(line: KeyLine, api: Api) {
    this.#line = line;
    this.#api = api;
    const release = (): void => this.releaseAll();
    addEventListener("blur", release);
    addEventListener("pagehide", release);
    api.copying.follow(release);
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) release();
    });
  }

  /** `source` (a pointer, the keyboard, …) now holds exactly these keys. */
  hold(source: string, keys: Iterable<Key>): void {
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
  releaseAll(): void {
    this.#sources.clear();
    this.held.set(0);
    this.#since.length = 0;
    this.#tell();
  }

  /** After a lost connection: what was told may or may not have arrived, so it is told again. */
  repeat(): void {
    const told = this.#told;
    this.#told = 0;
    if (told & ~this.held.value) this.#line.release(told & ~this.held.value);
    this.#tell();
  }

  #tell(): void {
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

  #copy(pressed: number): void {
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

function forBits(mask: number, act: (bit: number) => void): void {
  for (let bit = 0; mask >> bit !== 0; bit += 1) if (mask & (1 << bit)) act(bit);
}
