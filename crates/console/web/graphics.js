/** The graphics panel: palettes, tiles, sprites and backgrounds, all from the video memory of the same frame. */

import { button } from "./controls.js";
import { el, fill, setText } from "./dom.js";
import { gameBoyGraphics } from "./gameboy.js";
import { GBA_MEMORY, gbaGraphics } from "./gba.js";
import { LayersView, PalettesView, showFacts, SpritesView, TilesView } from "./graphicsviews.js";
import { Polling } from "./polling.js";
import { oneOf, setting } from "./settings.js";
import { isGameBoy } from "./status.js";
import { paint } from "./cells.js";
import { saveFile } from "./transport.js";

/**
 * @import { App } from "./app.js"
 * @import { EmulatorClient } from "./emulation.js"
 * @import { Detail, View } from "./graphicsviews.js"
 * @import { Graphics, Place } from "./tiles.js"
 */

/** The shortest time from the start of a read to the start of the next one. */
const EVERY_MS = 100;
/** At most 1 / `SHARE` of the time is spent on reading memory and drawing the results. */
const SHARE = 5;

/** @typedef {(place: Place) => void} Reveal Shows bytes in the memory panel. */

export class GraphicsPanel {
  /** @readonly @type {HTMLElement} */
  element;
  #app;
  #emulation;
  /** @type {readonly View[]} */
  #views;
  #open;
  /** @type {Graphics | undefined} */
  #graphics;
  #detail;
  #note = el("p", { class: "note", role: "status" });
  #polling = new Polling(() => this.#refresh());

  /**
   * @param {App} app
   * @param {EmulatorClient} emulation
   * @param {Reveal} reveal
   */
  constructor(app, emulation, reveal) {
    this.#app = app;
    this.#emulation = emulation;
    this.#detail = new DetailBox(app, reveal);
    const changed = () => this.#draw();
    this.#views = [
      new PalettesView(changed),
      new TilesView(changed),
      new SpritesView(changed),
      new LayersView(changed),
    ];
    const labels = this.#views.map(({ label }) => label);
    this.#open = setting("graphics", labels[0] ?? "", oneOf(labels));
    const choices = labels.map((label) => button({ label }, () => this.#open.set(label)));
    this.element = el(
      "div",
      { class: "graphics" },
      el(
        "div",
        { class: "line" },
        el("div", { class: "choices", role: "group", "aria-label": "What to show" }, ...choices),
        button({ icon: "download", label: "PNG", hint: "Save what is shown as a PNG file" }, () =>
          this.#save(),
        ),
      ),
      ...this.#views.map(({ element }) => element),
      this.#detail.element,
      this.#note,
    );
    this.#open.follow((open) => {
      labels.forEach((label, index) => {
        choices[index]?.setAttribute("aria-pressed", String(label === open));
        this.#views[index]?.element.toggleAttribute("hidden", label !== open || !this.#graphics);
      });
      this.#draw();
    });
    app.api.emulator.follow(() => {
      // These graphics belong to the emulator that was selected before.
      this.#graphics = undefined;
      for (const { element } of this.#views) element.hidden = true;
      this.#detail.clear();
      setText(this.#note, "");
      // Reads at once, because the answer of the emulator that was selected before may take long.
      if (this.#polling.visible) void this.#polling.now();
    });
  }

  /** @param {boolean} visible */
  shown(visible) {
    this.#polling.shown(visible);
    if (!visible) this.#app.marks.box.set(undefined);
  }

  /** @returns {View | undefined} */
  get #view() {
    return this.#views.find(({ label }) => label === this.#open.value);
  }

  async #refresh() {
    const begun = performance.now();
    const emulator = this.#app.api.emulator.value;
    try {
      const graphics = await this.#read();
      if (this.#polling.visible && emulator === this.#app.api.emulator.value) {
        this.#graphics = graphics;
        this.#draw();
        setText(this.#note, `Frame ${graphics.frame.toLocaleString("en")}`);
      }
    } catch (error) {
      if (emulator === this.#app.api.emulator.value)
        setText(this.#note, error instanceof Error ? `Not up to date: ${error.message}.` : "");
    }
    const took = performance.now() - begun;
    return document.hidden ? 1000 : Math.max(EVERY_MS - took, took * (SHARE - 1));
  }

  /** @returns {Promise<Graphics>} */
  async #read() {
    if (isGameBoy(this.#app.status.value.emulator)) {
      const { frame, bytes } = await this.#emulation.state();
      return gameBoyGraphics(frame, bytes);
    }
    const { frame, parts } = await this.#emulation.readTogether(GBA_MEMORY);
    return gbaGraphics(frame, parts);
  }

  #draw() {
    const view = this.#view;
    if (!this.#graphics || !view) return;
    view.element.hidden = false;
    view.show(this.#graphics);
    this.#detail.show(view.detail(this.#graphics));
  }

  #save() {
    if (!this.#graphics) return;
    const name = `${this.#open.value.toLowerCase()}.png`;
    this.#view?.canvas().toBlob((blob) => {
      if (blob) saveFile(blob, name);
    });
  }
}

/** Describes what the user points at, such as a tile: its picture, its properties, and its places in memory. */
class DetailBox {
  /** @readonly */
  element = el("div", { class: "detail", hidden: true });
  #app;
  #reveal;
  #canvas = el("canvas", { "aria-hidden": "true" });
  #title = el("h2", {});
  #facts = el("dl", { class: "values" });
  #places = el("div", { class: "line" });
  #shown = "";

  /**
   * @param {App} app
   * @param {Reveal} reveal
   */
  constructor(app, reveal) {
    this.#app = app;
    this.#reveal = reveal;
    this.element.append(this.#canvas, el("div", {}, this.#title, this.#facts, this.#places));
  }

  /** Hides the details, and removes both marks: in the game's picture, and in the memory panel. */
  clear() {
    this.show(undefined);
    this.#shown = "";
    this.#app.marks.place.set(undefined);
  }

  /** @param {Detail | undefined} detail */
  show(detail) {
    this.element.hidden = detail === undefined;
    this.#app.marks.box.set(detail?.box);
    if (!detail) return;
    const { title, facts, places, picture } = detail;
    this.#canvas.hidden = picture === undefined;
    if (picture) {
      paint(this.#canvas, picture);
      this.#canvas.style.setProperty("width", `${Math.min(128, picture.width * 8)}px`);
    }
    const text = JSON.stringify([title, facts, places]);
    if (text === this.#shown) return;
    this.#shown = text;
    this.#app.marks.place.set(places[0]?.place);
    setText(this.#title, title);
    showFacts(this.#facts, facts);
    fill(
      this.#places,
      ...places.map(({ label, place }) =>
        button({ label: `${label} ${place.text}`, hint: "Show in the memory panel" }, () =>
          this.#reveal(place),
        ),
      ),
    );
  }
}
