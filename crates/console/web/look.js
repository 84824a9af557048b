/** The user's settings for the filter of the picture and for the volume. */

import { oneOf, setting } from "./settings.js";

/** @type {readonly string[]} */
export const FILTERS = ["sharp", "smooth", "LCD", "GBA colours"];
/** In percent. @type {readonly number[]} */
export const VOLUMES = [100, 75, 50, 25, 10];

export const filter = setting("filter", "sharp", oneOf(FILTERS));
export const volume = setting("volume", 100, isVolume);

/** @type {(value: unknown) => value is number} */
function isVolume(value) {
  return typeof value === "number" && value >= 0 && value <= 100;
}

/**
 * Applies the chosen filter to the element around the picture.
 * @param {HTMLElement} element
 */
export function followFilter(element) {
  filter.follow((name) => {
    element.dataset.filter = name.toLowerCase().replace(" ", "-");
  });
}
