/** Draws changing values while they are visible. */

/** The time between two calls of `draw`. Without hardware acceleration, each costs the browser about 10 ms. */
const DRAW_MS = 200;

export class Redraw {
  #draw;
  #visible = false;
  #running = false;

  /** @param {() => void} draw */
  constructor(draw) {
    this.#draw = draw;
  }

  get visible() {
    return this.#visible;
  }

  /** @param {boolean} visible */
  shown(visible) {
    this.#visible = visible;
    if (visible && !this.#running) this.#run();
  }

  #run() {
    this.#running = this.#visible;
    if (!this.#visible) return;
    this.#draw();
    setTimeout(() => requestAnimationFrame(() => this.#run()), DRAW_MS);
  }
}
