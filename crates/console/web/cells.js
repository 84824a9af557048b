/** A picture that consists of cells, such as tiles. Users choose a cell with the pointer or the arrow keys. */

import { el, fill } from "./dom.js";
import { placeMark } from "./marks.js";

/** @import { Box, Picture } from "./tiles.js" */

/** @typedef {{ column: number, row: number }} Cell */

export class CellPicture {
  /** @readonly @type {HTMLElement} */
  element;
  /** @readonly */
  canvas = el("canvas", {});
  /** @type {HTMLElement} */
  #sheet;
  /** Marks the cell that `cell` returns: the one under the pointer, or the chosen one. */
  #chosenMark = el("div", { class: "cell-mark", hidden: true });
  #boxes = el("div", { class: "boxes" });
  /** Width and height of a cell in pixels. */
  #size;
  /** @type {(cell: Cell | undefined) => void} */
  #picked;
  /** @type {Cell | undefined} */
  #hovered;
  /** @type {Cell | undefined} */
  #chosen;

  /**
   * @param {string} label
   * @param {number} size Width and height of a cell in pixels.
   * @param {(cell: Cell | undefined) => void} picked Called when the user may have changed `cell`.
   */
  constructor(label, size, picked) {
    this.#size = size;
    this.#picked = picked;
    this.#sheet = el("div", { class: "sheet" }, this.canvas, this.#boxes, this.#chosenMark);
    this.element = el(
      "div",
      {
        class: "cells",
        tabindex: "0",
        role: "group",
        "aria-label": `${label}. The arrow keys go from one to the next.`,
        "data-own-keys": true,
      },
      this.#sheet,
    );
    this.#sheet.addEventListener("pointermove", (event) => this.#hover(this.#under(event)));
    this.#sheet.addEventListener("pointerleave", () => this.#hover(undefined));
    this.#sheet.addEventListener("click", (event) => this.#choose(this.#under(event)));
    this.element.addEventListener("keydown", (event) => this.#key(event));
  }

  /**
   * The cell under the pointer, or the chosen cell if the pointer is not over the picture or has not moved since the
   * last arrow key.
   * @returns {Cell | undefined}
   */
  get cell() {
    return this.#hovered ?? this.#chosen;
  }

  /**
   * @param {Picture} picture
   * @param {number} zoom
   * @param {readonly Box[]} [boxes] The parts of the picture to mark.
   */
  show(picture, zoom, boxes = []) {
    paint(this.canvas, picture);
    this.#sheet.style.setProperty("width", `${picture.width * zoom}px`);
    fill(
      this.#boxes,
      ...boxes.map((box) => {
        const mark = el("div", { class: "box" });
        placeMark(mark, box, picture);
        return mark;
      }),
    );
    /** @type {(cell: Cell | undefined) => Cell | undefined} */
    const inside = (cell) =>
      cell && cell.column < this.#columns && cell.row < this.#rows ? cell : undefined;
    this.#chosen = inside(this.#chosen);
    this.#hovered = inside(this.#hovered);
    this.#mark();
  }

  get #columns() {
    return this.canvas.width / this.#size;
  }

  get #rows() {
    return this.canvas.height / this.#size;
  }

  /** @type {(event: MouseEvent) => Cell} */
  #under(event) {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    /** @type {(part: number, count: number) => number} */
    const cell = (part, count) => Math.max(0, Math.min(count - 1, Math.floor(part * count)));
    return {
      column: cell((event.clientX - left) / width, this.#columns),
      row: cell((event.clientY - top) / height, this.#rows),
    };
  }

  /** @param {Cell | undefined} cell */
  #hover(cell) {
    if (cell?.column === this.#hovered?.column && cell?.row === this.#hovered?.row) return;
    this.#hovered = cell;
    this.#mark();
    this.#picked(this.cell);
  }

  /** @param {Cell | undefined} cell */
  #choose(cell) {
    this.#chosen = cell;
    this.#mark();
    this.#picked(this.cell);
  }

  #mark() {
    const cell = this.cell;
    this.#chosenMark.hidden = cell === undefined;
    if (!cell) return;
    const size = this.#size;
    const box = { x: cell.column * size, y: cell.row * size, width: size, height: size };
    placeMark(this.#chosenMark, box, this.canvas);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    /** @type {Record<string, readonly [number, number]>} */
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    // Without a chosen cell, the first key chooses the cell in the top left corner.
    const { column, row } = this.#chosen ?? { column: -step[0], row: -step[1] };
    this.#hovered = undefined;
    this.#choose({
      column: Math.max(0, Math.min(this.#columns - 1, column + step[0])),
      row: Math.max(0, Math.min(this.#rows - 1, row + step[1])),
    });
    this.#chosenMark.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

/**
 * Draws a picture on a canvas, and gives the canvas the size of the picture.
 * @type {(canvas: HTMLCanvasElement, picture: Picture) => void}
 */
export function paint(canvas, { width, height, pixels }) {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const bytes = new Uint8ClampedArray(/** @type {ArrayBuffer} */ (pixels.buffer));
  canvas
    .getContext("2d", { willReadFrequently: true })
    ?.putImageData(new ImageData(bytes, width, height), 0, 0);
}
