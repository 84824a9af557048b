/** Keeps the last values of something that changes over time. */

/** The last points of a value, oldest first, up to a limit. */
export class Series {
  #limit;
  /** @type {{ at: number; value: number }[]} */
  #points = [];

  /** @param {number} limit */
  constructor(limit) {
    this.#limit = limit;
  }

  /** @returns {readonly { at: number; value: number }[]} */
  get points() {
    return this.#points;
  }

  /**
   * Adds a point. It replaces a last point with the same `at`. If the last point has a greater `at`, all previous points are
   * removed.
   * @param {number} at When: a time in milliseconds, or a frame.
   * @param {number} value
   */
  add(at, value) {
    const last = this.#points.at(-1)?.at;
    // A frame counter goes back after a reset or a loaded state. Then the previous points are not valid.
    if (last !== undefined && at < last) this.#points = [];
    else if (at === last) this.#points.pop();
    this.#points.push({ at, value });
    if (this.#points.length > this.#limit) this.#points.splice(0, this.#points.length - this.#limit);
  }

  /**
   * Keeps the last point at or before `at`, and the points after it. Removes all earlier points.
   * @param {number} at
   */
  forgetBefore(at) {
    const first = this.#points.findLastIndex((point) => point.at <= at);
    if (first > 0) this.#points.splice(0, first);
  }

  /**
   * The smallest and the largest value; `undefined` if there are no points.
   * @returns {{ least: number; most: number } | undefined}
   */
  range() {
    let least = Infinity;
    let most = -Infinity;
    for (const { value } of this.#points) {
      least = Math.min(least, value);
      most = Math.max(most, value);
    }
    return least <= most ? { least, most } : undefined;
  }
}
