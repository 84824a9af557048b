/** The marks for the thing that the user points at in a tool: a box in the game's picture, and bytes in memory. */

import { Store } from "./store.js";

/** @import { Box, Place } from "./tiles.js" */

export class Marks {
  /** @readonly The marked box, in pixels of the game. */
  box = new Store(/** @type {Box | undefined} */ (undefined));
  /** @readonly The marked bytes. */
  place = new Store(/** @type {Place | undefined} */ (undefined));
}

/**
 * Places a mark over a box of a picture.
 * @type {(mark: HTMLElement, box: Box, picture: { width: number, height: number }) => void}
 */
export function placeMark(mark, box, { width, height }) {
  const { style } = mark;
  style.setProperty("left", `${(box.x / width) * 100}%`);
  style.setProperty("top", `${(box.y / height) * 100}%`);
  style.setProperty("width", `${(box.width / width) * 100}%`);
  style.setProperty("height", `${(box.height / height) * 100}%`);
}
