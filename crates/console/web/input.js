/** The input panel: sequences of keys, and the keys and gamepad buttons that play the game. */

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
