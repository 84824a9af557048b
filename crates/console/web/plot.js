/** Small plots of a value over time. */

/** The last points of a value, oldest first, up to a limit. */
export class History {
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

  /** @returns {number | undefined} */
  get last() {
    return this.#points.at(-1)?.value;
  }

  /**
   * @param {number} at
   * @param {number} value
   */
  add(at, value) {
    // Time goes back when the game was reset or a state was loaded: older points no longer apply.
    if (at < (this.#points.at(-1)?.at ?? at)) this.#points = [];
    this.#points.push({ at, value });
    if (this.#points.length > this.#limit) this.#points.splice(0, this.#points.length - this.#limit);
  }

  clear() {
    this.#points = [];
  }

  /**
   * The smallest and largest value since `from`.
   * @returns {{ least: number; most: number } | undefined}
   */
  range(from = -Infinity) {
    let least = Infinity;
    let most = -Infinity;
    for (const { at, value } of this.#points) {
      if (at < from) continue;
      least = Math.min(least, value);
      most = Math.max(most, value);
    }
    return least <= most ? { least, most } : undefined;
  }
}

/**
 * Draws the points of the last `span` before `now` as steps: a value lasts until the next one.
 * @param {HTMLCanvasElement} canvas
 * @param {History} history
 * @param {number} now
 * @param {number} span
 */
export function plot(canvas, history, now, span) {
  const context = fit(canvas);
  if (!context) return;
  const { width, height } = canvas;
  context.clearRect(0, 0, width, height);
  const range = history.range();
  if (!range) return;
  const spread = range.most - range.least || 1;
  const margin = 2 * devicePixelRatio;
  /** @type {(at: number) => number} */
  const x = (at) => width * (1 - (now - at) / span);
  /** @type {(value: number) => number} */
  const y = (value) => height - margin - ((value - range.least) / spread) * (height - 2 * margin);
  const middle = range.most === range.least;
  context.beginPath();
  /** @type {number | undefined} */
  let before;
  for (const { at, value } of history.points) {
    const top = middle ? height / 2 : y(value);
    if (before === undefined) context.moveTo(x(at), top);
    else context.lineTo(x(at), before);
    context.lineTo(x(at), top);
    before = top;
  }
  if (before !== undefined) context.lineTo(width, before);
  const style = getComputedStyle(canvas);
  context.strokeStyle = style.color;
  context.lineWidth = 1.5 * devicePixelRatio;
  context.lineJoin = "round";
  context.stroke();
  context.lineTo(width, height);
  context.lineTo(x(history.points[0]?.at ?? now), height);
  context.closePath();
  context.globalAlpha = 0.14;
  context.fillStyle = style.color;
  context.fill();
  context.globalAlpha = 1;
}

/**
 * Sets the resolution of the canvas to its size on the screen.
 * @param {HTMLCanvasElement} canvas
 * @returns {CanvasRenderingContext2D | null}
 */
function fit(canvas) {
  const width = Math.round(canvas.clientWidth * devicePixelRatio);
  const height = Math.round(canvas.clientHeight * devicePixelRatio);
  if (width === 0 || height === 0) return null;
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  return canvas.getContext("2d");
}
