/** The views of the graphics panel. */

import { CellPicture, paint } from "./cells.js";
import { field, numberChoice, setOptions } from "./controls.js";
import { el, fill } from "./dom.js";
import { hex } from "./hexgrid.js";
import { blank, drawPalettes, drawTile, drawTiles, TILE } from "./tiles.js";

/**
 * @import { SelectOption } from "./controls.js"
 * @import { Box, Facts, Graphics, Layer, Picture, Place, TileSet } from "./tiles.js"
 */

/**
 * @typedef {object} View
 * @property {string} label
 * @property {HTMLElement} element
 * @property {(graphics: Graphics) => void} show
 * @property {(graphics: Graphics) => Detail | undefined} detail Describes the part that the user points at.
 * @property {() => HTMLCanvasElement} canvas The picture that the user can save as a file.
 */

/**
 * @typedef {object} Detail
 * @property {string} title
 * @property {Facts} facts
 * @property {readonly { label: string, place: Place }[]} places Places in memory. The memory panel marks the first one.
 * @property {Picture | undefined} [picture]
 * @property {Box | undefined} [box] The place on the screen.
 */

/** How many tiles are in each row of the picture of all tiles. */
const ACROSS = 16;
/** Width and height of a colour in the picture of all palettes, in pixels of the page. */
const SWATCH = 18;

/** @implements {View} */
export class PalettesView {
  label = "Palettes";
  /** @readonly @type {HTMLElement} */
  element;
  #cells;

  /** @param {() => void} changed Called when the user points at something else. */
  constructor(changed) {
    this.#cells = new CellPicture("Colours", 1, changed);
    this.element = el("div", { class: "view palettes" }, this.#cells.element);
  }

  /** @param {Graphics} graphics */
  show({ palettes }) {
    this.#cells.show(drawPalettes(palettes), SWATCH);
  }

  /** @type {(graphics: Graphics) => Detail | undefined} */
  detail({ palettes }) {
    const { column = 0, row = -1 } = this.#cells.cell ?? {};
    const palette = palettes[row];
    const colour = palette?.colours[column];
    if (!palette || colour === undefined) return undefined;
    const picture = { width: 1, height: 1, pixels: Uint32Array.of(colour) };
    const [red = 0, green = 0, blue = 0] = [0, 8, 16].map((shift) => (colour >> shift) & 255);
    return {
      title: `${palette.label}, colour ${column}`,
      facts: [
        ["Colour", `#${hex((red << 16) | (green << 8) | blue, 6)}`],
        ["In the game", `${hex((red >> 3) | ((green >> 3) << 5) | ((blue >> 3) << 10), 4)}`],
      ],
      places: [{ label: "Palette", place: palette.place }],
      picture,
    };
  }

  canvas() {
    return this.#cells.canvas;
  }
}

/** @implements {View} */
export class TilesView {
  label = "Tiles";
  /** @readonly @type {HTMLElement} */
  element;
  #cells;
  #set = el("select", {});
  #palette = el("select", {});
  #zoom = zoomList();

  /** @param {() => void} changed */
  constructor(changed) {
    this.#cells = new CellPicture("Tiles", TILE, changed);
    for (const list of [this.#set, this.#palette, this.#zoom]) list.addEventListener("change", changed);
    this.element = el(
      "div",
      { class: "view" },
      el(
        "div",
        { class: "line" },
        field("Tiles of", this.#set),
        field("Palette", this.#palette),
        field("Zoom", this.#zoom),
      ),
      this.#cells.element,
    );
  }

  /** @param {Graphics} graphics */
  show(graphics) {
    setOptions(this.#set, numbered(graphics.tileSets));
    const set = this.#chosen(graphics);
    if (!set) return;
    setOptions(this.#palette, numbered(set.palettes));
    const colours = this.#colours(set);
    this.#cells.show(drawTiles(graphics.vram, set, colours, ACROSS), Number(this.#zoom.value));
  }

  /** @type {(graphics: Graphics) => Detail | undefined} */
  detail(graphics) {
    const set = this.#chosen(graphics);
    const cell = this.#cells.cell;
    if (!set || !cell) return undefined;
    const tile = cell.row * ACROSS + cell.column;
    if (tile >= set.count) return undefined;
    const picture = blank(TILE, TILE);
    const offset = set.first + tile * TILE * set.bits;
    drawTile(picture, 0, 0, graphics.vram, { offset, bits: set.bits, colours: this.#colours(set) });
    return {
      title: `Tile ${tile}`,
      facts: [["Bytes", String(TILE * set.bits)]],
      places: [{ label: "Tile", place: set.place(tile) }],
      picture,
    };
  }

  canvas() {
    return this.#cells.canvas;
  }

  /** @type {(graphics: Graphics) => TileSet | undefined} */
  #chosen({ tileSets }) {
    return tileSets[Number(this.#set.value)];
  }

  /** @type {(set: TileSet) => Uint32Array} */
  #colours({ palettes }) {
    return palettes[Number(this.#palette.value)]?.colours ?? new Uint32Array(0);
  }
}

/** @implements {View} */
export class SpritesView {
  label = "Sprites";
  /** @readonly @type {HTMLElement} */
  element;
  #list = el("ul", { class: "sprites", "aria-label": "Sprites" });
  #none = el("p", { class: "note" }, "No sprite is on the screen.");
  #all = el("input", { type: "checkbox" });
  /** @type {{ item: HTMLElement, button: HTMLElement, canvas: HTMLCanvasElement }[]} */
  #items = [];
  /** @type {number | undefined} */
  #hovered;
  /** @type {number | undefined} */
  #chosen;
  #changed;

  /** @param {() => void} changed */
  constructor(changed) {
    this.#changed = changed;
    this.#all.addEventListener("change", changed);
    this.element = el(
      "div",
      { class: "view" },
      el("label", { class: "check" }, this.#all, "Also sprites that are not on the screen"),
      this.#none,
      this.#list,
    );
  }

  /** @param {Graphics} graphics */
  show({ sprites }) {
    while (this.#items.length < sprites.length) this.#add();
    let shown = 0;
    this.#items.forEach(({ item, button, canvas }, index) => {
      const sprite = sprites[index];
      const picture = sprite && (sprite.shown || this.#all.checked) ? sprite.draw() : undefined;
      item.hidden = picture === undefined;
      if (!picture) return;
      shown += 1;
      paint(canvas, picture);
      canvas.style.setProperty("width", `${picture.width * 2}px`);
      button.setAttribute("aria-pressed", String(index === this.#chosen));
    });
    this.#none.hidden = shown > 0;
  }

  /** @type {(graphics: Graphics) => Detail | undefined} */
  detail({ sprites }) {
    const sprite = sprites[this.#hovered ?? this.#chosen ?? -1];
    if (!sprite) return undefined;
    return {
      title: `Sprite ${sprite.index}`,
      facts: sprite.facts,
      places: [
        { label: "Sprite", place: sprite.place },
        { label: "Tiles", place: sprite.tilePlace },
      ],
      picture: sprite.draw(),
      box: sprite.shown ? sprite.box : undefined,
    };
  }

  /** @returns {HTMLCanvasElement} The chosen sprite, or all listed sprites if none is chosen. */
  canvas() {
    const chosen = this.#items[this.#chosen ?? -1];
    if (chosen && !chosen.item.hidden) return chosen.canvas;
    const listed = this.#items.filter(({ item }) => !item.hidden).map(({ canvas }) => canvas);
    const sheet = el("canvas", {
      width: Math.max(1, ...listed.map(({ width }) => width)),
      height: Math.max(
        1,
        listed.reduce((sum, { height }) => sum + height, 0),
      ),
    });
    const context = sheet.getContext("2d");
    let top = 0;
    for (const canvas of listed) {
      context?.drawImage(canvas, 0, top);
      top += canvas.height;
    }
    return sheet;
  }

  #add() {
    const index = this.#items.length;
    const canvas = el("canvas", { "aria-hidden": "true" });
    const button = el(
      "button",
      { type: "button", "aria-label": `Sprite ${index}` },
      canvas,
      el("span", {}, String(index)),
    );
    /** @param {number | undefined} hovered */
    const hover = (hovered) => {
      this.#hovered = hovered;
      this.#changed();
    };
    button.addEventListener("pointerenter", () => hover(index));
    button.addEventListener("pointerleave", () => hover(undefined));
    button.addEventListener("focus", () => hover(index));
    button.addEventListener("blur", () => hover(undefined));
    button.addEventListener("click", () => {
      this.#chosen = this.#chosen === index ? undefined : index;
      this.#changed();
    });
    const item = el("li", {}, button);
    this.#items.push({ item, button, canvas });
    this.#list.append(item);
  }
}

/** @implements {View} */
export class LayersView {
  label = "Maps";
  /** @readonly @type {HTMLElement} */
  element;
  #cells;
  #layer = el("select", {});
  #zoom = zoomList();
  #facts = el("dl", { class: "values" });
  #shown = "";

  /** @param {() => void} changed */
  constructor(changed) {
    this.#cells = new CellPicture("Squares of the map", TILE, changed);
    for (const list of [this.#layer, this.#zoom]) list.addEventListener("change", changed);
    this.element = el(
      "div",
      { class: "view" },
      el("div", { class: "line" }, field("Layer", this.#layer), field("Zoom", this.#zoom)),
      this.#cells.element,
      this.#facts,
    );
  }

  /** @param {Graphics} graphics */
  show(graphics) {
    setOptions(this.#layer, numbered(graphics.layers));
    const layer = this.#chosen(graphics);
    if (!layer) return;
    const picture = layer.draw();
    this.#cells.show(picture, Number(this.#zoom.value), layer.view ? wrapped(layer.view, picture) : []);
    const text = JSON.stringify(layer.facts);
    if (text === this.#shown) return;
    this.#shown = text;
    showFacts(this.#facts, layer.facts);
  }

  /** @type {(graphics: Graphics) => Detail | undefined} */
  detail(graphics) {
    const cell = this.#cells.cell;
    const layer = this.#chosen(graphics);
    if (!cell || !layer) return undefined;
    const { facts, place } = layer.cell(cell.column, cell.row);
    return {
      title: `${layer.label}, column ${cell.column}, row ${cell.row}`,
      facts,
      places: [{ label: "Map", place }],
    };
  }

  canvas() {
    return this.#cells.canvas;
  }

  /** @type {(graphics: Graphics) => Layer | undefined} */
  #chosen({ layers }) {
    return layers[Number(this.#layer.value)] ?? layers[0];
  }
}

/**
 * Shows facts in a `dl` element.
 * @type {(list: HTMLElement, facts: Facts) => void}
 */
export function showFacts(list, facts) {
  fill(list, ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

/** A list from which the user selects a magnification. */
function zoomList() {
  return numberChoice([1, 2, 3, 4], 2, (zoom) => `${zoom}×`);
}

/**
 * The options for a select element. The value of each option is its index.
 * @type {(all: readonly { label: string }[]) => SelectOption[]}
 */
function numbered(all) {
  return all.map(({ label }, index) => [String(index), label]);
}

/**
 * The places of a box in a picture that wraps around at its edges. A box that crosses an edge appears at the opposite edge
 * too.
 * @type {(box: Box, picture: { width: number, height: number }) => readonly Box[]}
 */
function wrapped(box, { width, height }) {
  const lefts = box.x + box.width > width ? [box.x, box.x - width] : [box.x];
  const tops = box.y + box.height > height ? [box.y, box.y - height] : [box.y];
  return lefts.flatMap((x) => tops.map((y) => ({ ...box, x, y })));
}
