/** The expressions that the user watches, stored in this browser. */

import { setting } from "./settings.js";

/** @type {(value: unknown) => value is readonly string[]} */
function isTexts(value) {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

export const watched = setting("watches", /** @type {readonly string[]} */ ([]), isTexts);

/**
 * Adds an expression to the watches.
 * @param {string} expression
 */
export function watchExpression(expression) {
  if (!watched.value.includes(expression)) watched.set([...watched.value, expression]);
}
