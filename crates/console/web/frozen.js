/** The list of frozen values, each with a button that unfreezes it. */

import * as actions from "./actions.js";
import { ApiError } from "./api.js";
import { attempt, readQuietly } from "./app.js";
import { button } from "./controls.js";
import { el, fill } from "./dom.js";

/** @import { App } from "./app.js" */
/** @import { Action } from "./curl.js" */

/**
 * An entry of `/v1/freeze`.
 * @typedef {object} FrozenValue
 * @property {string} address The address: a number in hex, or a symbol or an expression as the client wrote it.
 * @property {string} [type] The type, if the value is a number.
 * @property {number} [value] The number.
 * @property {string} [data] The bytes as base64, if the value is not a number.
 */

/** The shortest time between two updates of the list, except after the user freezes or unfreezes a value. */
const EVERY_MS = 1000;

export class FrozenList {
  /** @readonly */
  element = el("ul", { class: "frozen", "aria-label": "Frozen values", hidden: true });
  #app;
  #shown = "[]";
  #asked = Number.NEGATIVE_INFINITY;

  /** @param {App} app */
  constructor(app) {
    this.#app = app;
    app.api.emulator.follow(() => {
      // The listed values belong to the emulator that was selected before.
      this.#shown = "[]";
      this.element.hidden = true;
      this.#asked = Number.NEGATIVE_INFINITY;
    });
  }

  /**
   * Freezes or unfreezes a value, and updates the list.
   * @param {Action} action
   */
  async act(action) {
    await attempt(() => this.#app.api.act(action));
    await attempt(() => this.refresh());
  }

  /** Updates the list, unless it was updated a short time ago. */
  async refreshIfOld() {
    if (performance.now() - this.#asked < EVERY_MS) return;
    try {
      await this.refresh();
    } catch (error) {
      // The script of mGBA-http cannot freeze values.
      if (!(error instanceof ApiError) || error.status !== 501) throw error;
    }
  }

  async refresh() {
    this.#asked = performance.now();
    const emulator = this.#app.api.emulator.value;
    /** @type {{ frozen: FrozenValue[] }} */
    const { frozen } = await readQuietly(this.#app, "frozenMemory", actions.FREEZE);
    if (emulator !== this.#app.api.emulator.value) return;
    const text = JSON.stringify(frozen);
    if (text === this.#shown) return;
    this.#shown = text;
    this.element.hidden = frozen.length === 0;
    fill(this.element, ...frozen.map((one) => this.#row(one)));
  }

  /** @type {(one: FrozenValue) => HTMLElement} */
  #row({ address, type, value, data }) {
    return el(
      "li",
      {},
      el("code", {}, address),
      el("span", {}, type === undefined ? `bytes ${data}` : `${type} = ${value}`),
      button({ icon: "close", label: `Unfreeze ${address}`, compact: true, kind: "quiet" }, () =>
        this.act(actions.unfreeze(address)),
      ),
    );
  }
}
