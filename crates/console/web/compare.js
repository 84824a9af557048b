/** Shows which bytes differ between two snapshots, or between a snapshot and the running game. */

import { attempt } from "./app.js";
import { field, lineForm, setOptions } from "./controls.js";
import { el, fill, setText } from "./dom.js";
import { placeRow } from "./places.js";

/**
 * @import { App } from "./app.js"
 * @import { SelectOption } from "./controls.js"
 * @import { FoundPlace, PlaceUse } from "./places.js"
 */

/** How many ranges are listed at most. */
const MOST = 50;
/** How many bytes of a range are shown. */
const BYTES = 8;
/** The option for the running game. */
const NOW = "";

/** @typedef {FoundPlace & { length: number, old: string, new: string }} Range */

export class Comparison {
  /** @readonly @type {HTMLElement} */
  element;
  #app;
  #use;
  #from = el("select", {});
  #to = el("select", {});
  #summary = el("p", { class: "note", role: "status" });
  #list = el("ul", { class: "found", "aria-label": "Differences" });
  /** Changes when a comparison begins or the list is cleared. A reply is shown only if this has not changed since. */
  #asked = 0;

  /**
   * @param {App} app
   * @param {PlaceUse} use
   */
  constructor(app, use) {
    this.#app = app;
    this.#use = use;
    this.element = el(
      "div",
      { class: "finder", hidden: true },
      lineForm(
        () => void this.#compare(),
        field("Compare", this.#from),
        field("with", this.#to),
        el("button", { type: "submit" }, "Compare"),
      ),
      this.#summary,
      this.#list,
    );
    const clear = () => {
      // An answer that is still on its way is not shown either.
      this.#asked += 1;
      setText(this.#summary, "");
      fill(this.#list);
    };
    // The differences belong to the game of the emulator that was selected.
    app.api.emulator.follow(clear);
    app.poller.game.follow(clear);
  }

  /**
   * Sets the snapshots that can be compared.
   * @param {readonly string[]} names
   */
  setNames(names) {
    /** @type {SelectOption[]} */
    const options = names.map((name) => [name, name]);
    setOptions(this.#from, options);
    setOptions(this.#to, [[NOW, "the game now"], ...options]);
    this.element.hidden = names.length === 0;
  }

  async #compare() {
    await attempt(async () => {
      this.#asked += 1;
      const asked = this.#asked;
      /** @type {{ ranges: Range[], total: number, bytes: number }} */
      const { ranges, total, bytes } = await this.#app.api.read("/v1/snapshots/diff", {
        from: this.#from.value,
        to: this.#to.value === NOW ? undefined : this.#to.value,
        encoding: "hex",
        limit: MOST,
      });
      // Another emulator or game may have been selected, or another comparison may have begun.
      if (asked !== this.#asked) return;
      const differ = bytes === 1 ? "1 byte differs" : `${bytes.toLocaleString("en")} bytes differ`;
      const rest = total > ranges.length ? ` The first ${ranges.length} of ${total} places:` : "";
      setText(this.#summary, `${differ}.${rest}`);
      fill(this.#list, ...ranges.map((range) => placeRow(range, change(range), this.#use)));
    });
  }
}

/** @type {(range: Range) => string} */
function change({ old, new: now, length }) {
  /** @param {string} bytes */
  const short = (bytes) => bytes.slice(0, BYTES * 2) + (length > BYTES ? "…" : "");
  return `${short(old)} → ${short(now)}`;
}
