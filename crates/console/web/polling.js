/** Repeats work while a panel is visible. */

export class Polling {
  #work;
  #visible = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {() => Promise<number>} work Returns the time until its next call, in milliseconds. */
  constructor(work) {
    this.#work = work;
  }

  get visible() {
    return this.#visible;
  }

  /** @param {boolean} visible */
  shown(visible) {
    this.#visible = visible;
    clearTimeout(this.#timer);
    if (visible) void this.now();
  }

  /** Does the work now, even if the panel is hidden. */
  async now() {
    clearTimeout(this.#timer);
    const pause = await this.#work();
    // Meanwhile, another call of this method may have set the timer.
    clearTimeout(this.#timer);
    if (this.#visible) this.#timer = setTimeout(() => void this.now(), pause);
  }
}
