/** Measures the round trip from this page to the emulator. */

import { Series } from "./series.js";
import { Store } from "./store.js";

/** The time from the end of a measurement to the next one. */
const EVERY_MS = 500;
/** How many measurements the series keeps. */
const KEPT = 120;
/** The time that a plot of the series shows. */
export const LATENCY_SPAN_MS = KEPT * EVERY_MS;

/** Measures the round trip in milliseconds, again and again. `last` is `undefined` while there is no answer. */
export class Latency {
  /** @readonly */
  last = new Store(/** @type {number | undefined} */ (undefined));
  /** @readonly */
  series = new Series(KEPT);
  #measure;

  /** @param {() => Promise<unknown>} measure */
  constructor(measure) {
    this.#measure = measure;
  }

  start() {
    void this.#once();
  }

  async #once() {
    if (!document.hidden) {
      const begun = performance.now();
      try {
        await this.#measure();
        const took = performance.now() - begun;
        this.series.add(performance.now(), took);
        this.last.set(took);
      } catch {
        this.last.set(undefined);
      }
    }
    setTimeout(() => void this.#once(), EVERY_MS);
  }
}

/** @type {(time: number) => string} */
export function milliseconds(time) {
  return `${time.toFixed(time < 10 ? 1 : 0)} ms`;
}
