/** The input panel: sequences of keys, and the mapping of the keyboard and of gamepads to the game's keys. */

import { el } from "./dom.js";
import { mappingPanel } from "./mapping.js";
import { sequencesPanel } from "./sequences.js";

/** @import { App } from "./app.js" */

/**
 * @param {App} app
 * @returns {HTMLElement}
 */
export function inputPanel(app) {
  return el("div", {}, sequencesPanel(app), mappingPanel());
}
