/**
 * Reads the video memory of the Game Boy and the Game Boy Color from a savestate, because the bus does not show all
 * palettes and banks.
 */

import { hex } from "./hexgrid.js";
import { blank, coloursOf, drawMap, drawTile, flipText, isOn, TILE } from "./tiles.js";

/** @import { Graphics, Layer, Palette, Place, Sprite, Tile, TileSet } from "./tiles.js" */

/** The size of a state, and offsets in it, from mGBA's `internal/gb/serialize.h`. */
const STATE_SIZE = 0x1_1800;
const MODEL = 0x08;
const PALETTES = 0xd4;
const OAM = 0x260;
const IO = 0x300;
const VRAM = 0x400;

/** Models with this number or a higher one have the hardware of the Game Boy Color. */
const COLOUR = 0x80;
/** The number of the first palette for sprites. In a state, the palettes for the background come before this palette. */
const SPRITE_PALETTES = 8;
/** Bytes in a bank of video memory. */
const BANK = 0x2000;
/** Tiles in a bank. The maps come after them. */
const TILES = 384;
const MAPS = 0x1800;
const SPRITES = 40;
const SCREEN = { width: 160, height: 144 };

/** Registers, as offsets from the bus address FF00. */
const LCDC = 0x40;
const SCY = 0x42;
const SCX = 0x43;
const WY = 0x4a;
const WX = 0x4b;

/**
 * @typedef {object} Memory
 * @property {boolean} colour Whether the console has the hardware of the Game Boy Color.
 * @property {Uint8Array} vram Both banks.
 * @property {Uint8Array} oam
 * @property {(register: number) => number} io
 * @property {readonly Palette[]} background
 * @property {readonly Palette[]} sprite
 */

/**
 * @param {number} frame
 * @param {Uint8Array} state A state of mGBA, without a picture.
 * @returns {Graphics}
 */
export function gameBoyGraphics(frame, state) {
  if (state.length < STATE_SIZE) {
    throw new Error(`the state has ${state.length} bytes; a Game Boy's has ${STATE_SIZE}`);
  }
  const colour = (state[MODEL] ?? 0) >= COLOUR;
  const { background, sprite } = palettes(state, colour);
  /** @type {Memory} */
  const memory = {
    colour,
    vram: state.subarray(VRAM, VRAM + 2 * BANK),
    oam: state.subarray(OAM, OAM + SPRITES * 4),
    io: (register) => state[IO + register] ?? 0,
    background,
    sprite,
  };
  const all = [...background, ...sprite];
  return {
    frame,
    vram: memory.vram,
    palettes: all,
    tileSets: colour ? [tileSet("Bank 0", 0, all), tileSet("Bank 1", BANK, all)] : [tileSet("Tiles", 0, all)],
    sprites: Array.from({ length: SPRITES }, (_, index) => spriteOf(memory, index)),
    layers: [backgroundLayer(memory), windowLayer(memory)],
  };
}

/** @type {(state: Uint8Array, colour: boolean) => { background: Palette[], sprite: Palette[] }} */
function palettes(state, colour) {
  /** @type {(label: string, index: number, place: Place) => Palette} */
  const at = (label, index, place) => ({ label, place, colours: coloursOf(state, PALETTES + index * 8, 4) });
  if (!colour) {
    return {
      background: [at("Background (BGP)", 0, onBus(0xff47, 1))],
      sprite: [
        at("Sprites 0 (OBP0)", SPRITE_PALETTES, onBus(0xff48, 1)),
        at("Sprites 1 (OBP1)", SPRITE_PALETTES + 1, onBus(0xff49, 1)),
      ],
    };
  }
  // These palettes are not on the bus. Games write to them through two pairs of registers: one for the background, one
  // for sprites.
  const eight = Array.from({ length: 8 }, (_, index) => index);
  return {
    background: eight.map((index) => at(`Background ${index}`, index, onBus(0xff68, 2))),
    sprite: eight.map((index) => at(`Sprites ${index}`, SPRITE_PALETTES + index, onBus(0xff6a, 2))),
  };
}

/** @type {(address: number, length: number) => Place} */
function onBus(address, length) {
  return { domain: "", address, length, text: hex(address, 4) };
}

/**
 * A place in video memory. The bus shows only one of its banks at a time.
 * @type {(offset: number, length: number) => Place}
 */
function inVram(offset, length) {
  const bank = offset >= BANK ? "1:" : "";
  return { domain: "vram", address: offset, length, text: bank + hex(0x8000 + (offset % BANK), 4) };
}

/** @type {(label: string, first: number, palettes: readonly Palette[]) => TileSet} */
function tileSet(label, first, palettes) {
  return { label, first, count: TILES, bits: 2, palettes, place: (tile) => inVram(first + tile * 16, 16) };
}

/** @type {(memory: Memory, index: number) => Sprite} */
function spriteOf({ colour, vram, oam, io, sprite }, index) {
  const [rawY = 0, rawX = 0, number = 0, attributes = 0] = oam.subarray(index * 4);
  const height = io(LCDC) & 4 ? 16 : 8;
  const box = { x: rawX - 8, y: rawY - 16, width: TILE, height };
  const tile = height === 16 ? number & 0xfe : number;
  const bank = colour && attributes & 8 ? BANK : 0;
  const palette = sprite[colour ? attributes & 7 : (attributes >> 4) & 1];
  const first = bank + tile * 16;
  return {
    index,
    place: onBus(0xfe00 + index * 4, 4),
    shown: isOn(box, SCREEN),
    box,
    tilePlace: inVram(first, 16),
    facts: [
      ["Place", `${box.x}, ${box.y}`],
      ["Size", `8 × ${height}`],
      ["Tile", `${tile}${bank ? ", bank 1" : ""}`],
      ["Palette", palette?.label ?? ""],
      ["Behind background", attributes & 0x80 ? "yes" : "no"],
      ["Flip", flipText((attributes & 0x20) !== 0, (attributes & 0x40) !== 0)],
    ],
    draw: () => {
      if (!palette) return undefined;
      const picture = blank(TILE, height);
      for (let part = 0; part < height / TILE; part += 1) {
        drawTile(picture, 0, part * TILE, vram, {
          offset: first + part * 16,
          bits: 2,
          colours: palette.colours,
        });
      }
      return picture;
    },
  };
}

/** @type {(memory: Memory) => Layer} */
function backgroundLayer(memory) {
  const { colour, io } = memory;
  const control = io(LCDC);
  const [x, y] = [io(SCX), io(SCY)];
  const layer = mapLayer(memory, "Background", (control & 8) !== 0);
  return {
    ...layer,
    facts: [["Shown", colour || control & 1 ? "yes" : "no"], ["Scroll", `${x}, ${y}`], ...layer.facts],
    view: { x, y, ...SCREEN },
  };
}

/** @type {(memory: Memory) => Layer} */
function windowLayer(memory) {
  const { colour, io } = memory;
  const control = io(LCDC);
  const [x, y] = [io(WX) - 7, io(WY)];
  const layer = mapLayer(memory, "Window", (control & 0x40) !== 0);
  return {
    ...layer,
    facts: [
      ["Shown", control & 0x20 && (colour || control & 1) ? "yes" : "no"],
      ["Place", `${x}, ${y}`],
      ...layer.facts,
    ],
  };
}

/**
 * @param {Memory} memory
 * @param {string} label
 * @param {boolean} second Whether it uses the second map.
 * @returns {Layer}
 */
function mapLayer({ colour, vram, io, background }, label, second) {
  const map = MAPS + (second ? 0x400 : 0);
  const signed = (io(LCDC) & 0x10) === 0;
  /** @type {(column: number, row: number) => number} */
  const at = (column, row) => map + row * 32 + column;
  /** @type {(column: number, row: number) => Tile & { number: number, palette: Palette | undefined }} */
  const tileAt = (column, row) => {
    const entry = vram[at(column, row)] ?? 0;
    const attributes = colour ? (vram[BANK + at(column, row)] ?? 0) : 0;
    // In this mode, the entries 0 to 127 are the tiles at 9000, after the 256 tiles at 8000.
    const number = signed && entry < 128 ? entry + 256 : entry;
    const palette = background[attributes & 7];
    return {
      number,
      offset: (attributes & 8 ? BANK : 0) + number * 16,
      bits: 2,
      palette,
      colours: palette?.colours ?? new Uint32Array(0),
      flipX: (attributes & 0x20) !== 0,
      flipY: (attributes & 0x40) !== 0,
    };
  };
  return {
    label,
    facts: [
      ["Size", "256 × 256"],
      ["Map", hex(0x8000 + map, 4)],
      ["Tiles", signed ? "8800 to 97ff" : "8000 to 8fff"],
    ],
    draw: () => drawMap(vram, 32, 32, tileAt),
    cell: (column, row) => {
      const tile = tileAt(column, row);
      return {
        place: inVram(at(column, row), 1),
        facts: [
          ["Tile", `${tile.number}, at ${inVram(tile.offset, 16).text}`],
          ["Palette", tile.palette?.label ?? ""],
          ["Flip", flipText(tile.flipX, tile.flipY)],
        ],
      };
    },
  };
}
