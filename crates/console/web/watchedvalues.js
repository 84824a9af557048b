/** A short list of the values of all watches. It is below each tool except the watches tool, if there are watches. */

import { el, setText } from "./dom.js";
import { Redraw } from "./redraw.js";
import { watched } from "./watchlist.js";
import { WatchSubscription } from "./watchsubscription.js";

/** @import { App } from "./app.js" */

export class WatchedValues {
  #list = el("ul", { class: "watched-values", "aria-label": "Watched values" });
  /** @readonly */
  element = el("div", {}, this.#list);
  /** @type {Map<string, HTMLElement>} */
  #shown = new Map();
  /** The newest values, as text. @type {Map<string, string>} */
  #newest = new Map();
  #subscription;
  #redraw = new Redraw(() => {
    for (const [text, value] of this.#shown) setText(value, this.#newest.get(text) ?? "–");
  });

  /** @param {App} app */
  constructor(app) {
    this.#subscription = new WatchSubscription(app, {
      values: (values) => {
        for (const [text, value] of Object.entries(values))
          this.#newest.set(text, value === null ? "no value" : String(value));
      },
      refused: (expression) => this.#newest.set(expression, "not accepted"),
      // The watches tool shows the reason.
      failed: () => this.#newest.clear(),
    });
    app.api.emulator.follow(() => this.#newest.clear());
    watched.follow((texts) => this.#sync(texts));
  }

  /** @param {boolean} visible */
  shown(visible) {
    this.#subscription.watch(visible ? watched.value : []);
    this.#redraw.shown(visible);
  }

  /** @param {readonly string[]} texts */
  #sync(texts) {
    this.#shown.clear();
    const items = texts.map((text) => {
      const value = el("span", { class: "value" }, "–");
      this.#shown.set(text, value);
      return el("li", {}, el("code", {}, text), " ", value);
    });
    this.#list.replaceChildren(...items);
    if (this.#redraw.visible) this.#subscription.watch(texts);
  }
}
