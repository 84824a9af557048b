/** What a tool points at: boxes in the game's picture, and bytes in memory. */

import { Store } from "./store.js";

/** @import { Box, Place } from "./tiles.js" */

export class Marks {
  /** @readonly In pixels of the game. */
  box = new Store(/** @type {Box | undefined} */ (undefined));
  /** @readonly */
  place = new Store(/** @type {Place | undefined} */ (undefined));

  clear() {
    this.box.set(undefined);
    this.place.set(undefined);
  }
}

/**
 * Places a mark over a picture of this size.
 * @param {HTMLElement} mark
 * @param {Box} box
 * @param {number} width
 * @param {number} height
 */
export function placeMark(mark, box, width, height) {
  const { style } = mark;
  style.setProperty("left", `${(box.x / width) * 100}%`);
  style.setProperty("top", `${(box.y / height) * 100}%`);
  style.setProperty("width", `${(box.width / width) * 100}%`);
  style.setProperty("height", `${(box.height / height) * 100}%`);
}
