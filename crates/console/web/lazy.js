/** A tool whose code is loaded when the tool is first shown. */

import { textOf } from "./app.js";
import { button } from "./controls.js";
import { el, fill } from "./dom.js";

/**
 * @typedef {object} Panel
 * @property {HTMLElement} element
 * @property {(visible: boolean) => void} [shown]
 *   Called when the panel is shown or hidden. A hidden panel must not poll.
 */

export class LazyPanel {
  /** @readonly */
  element = el("div", {});
  #load;
  #loading = false;
  /** @type {Panel | undefined} */
  #panel;
  #visible = false;

  /** @param {() => Promise<Panel>} load Loads the code and makes the panel. */
  constructor(load) {
    this.#load = load;
  }

  /** @param {boolean} visible */
  shown(visible) {
    this.#visible = visible;
    if (this.#panel) this.#panel.shown?.(visible);
    else if (visible && !this.#loading) void this.#start();
  }

  async #start() {
    this.#loading = true;
    try {
      this.#panel = await this.#load();
    } catch (error) {
      this.#loading = false;
      const again = button({ label: "Try again" }, () => this.shown(true));
      const text = `This tool could not be loaded. Reload the page if the server was updated. ${textOf(error)}`;
      fill(this.element, el("p", { class: "note", role: "alert" }, text), again);
      return;
    }
    this.#panel.element.classList.add("parts");
    fill(this.element, this.#panel.element);
    this.#panel.shown?.(this.#visible);
  }
}
