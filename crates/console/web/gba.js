/** Reads the video memory of the Game Boy Advance. */

import { hex } from "./hexgrid.js";
import { blank, colourOf, coloursOf, drawMap, drawTile, flipText, halfword, isOn, TILE } from "./tiles.js";

/** @import { Facts, Graphics, Layer, Palette, Picture, Place, Sprite, Tile, TileSet } from "./tiles.js" */

const PALETTE = 0x0500_0000;
const VRAM = 0x0600_0000;
const OAM = 0x0700_0000;
/** The offset of the sprites' tiles in video memory. In backgrounds, the console draws only tiles that are before it. */
const SPRITE_TILES = 0x1_0000;
const VRAM_END = 0x1_8000;
const SCREEN = { width: 240, height: 160 };
const SPRITES = 128;

/** The parts of memory domains that `gbaGraphics` needs. */
export const GBA_MEMORY = /** @type {const} */ ([
  { domain: "io", address: 0, length: 0x60 },
  { domain: "palette", address: 0, length: 0x400 },
  { domain: "vram", address: 0, length: VRAM_END },
  { domain: "oam", address: 0, length: 0x400 },
]);

/** Registers, as offsets in the domain `io`. */
const DISPCNT = 0;
const BGCNT = 8;
const BGOFS = 0x10;
const BG2PA = 0x20;

/** Width and height of sprites in pixels, by shape and size. Shape 3 is prohibited. */
const SIZES = [
  [8, 8],
  [16, 16],
  [32, 32],
  [64, 64],
  [16, 8],
  [32, 8],
  [32, 16],
  [64, 32],
  [8, 16],
  [8, 32],
  [16, 32],
  [32, 64],
];

/** For each mode from 0 to 2, the numbers of the backgrounds that cannot be rotated and scaled, and of those that can. */
const BACKGROUNDS = [
  { text: [0, 1, 2, 3], affine: [] },
  { text: [0, 1], affine: [2] },
  { text: [], affine: [2, 3] },
];

/**
 * @typedef {object} Memory
 * @property {Uint8Array} io
 * @property {Uint8Array} vram
 * @property {Uint8Array} oam
 * @property {readonly Palette[]} background Palettes of 16 colours.
 * @property {readonly Palette[]} sprite
 * @property {readonly [Palette]} background256 All colours of backgrounds as one palette.
 * @property {readonly [Palette]} sprite256
 */

/**
 * @param {number} frame
 * @param {readonly Uint8Array[]} parts The bytes of `GBA_MEMORY`.
 * @returns {Graphics}
 */
export function gbaGraphics(frame, [io, palette, vram, oam]) {
  if (!io || !palette || !vram || !oam) throw new Error("the emulator did not send all of video memory");
  const bank = (/** @type {string} */ name, /** @type {number} */ first) =>
    Array.from({ length: 16 }, (_, index) => paletteAt(`${name} ${index}`, palette, first + index * 32, 16));
  /** @type {Memory} */
  const memory = {
    io,
    vram,
    oam,
    background: bank("Background", 0),
    sprite: bank("Sprites", 0x200),
    background256: [paletteAt("Background, 256 colours", palette, 0, 256)],
    sprite256: [paletteAt("Sprites, 256 colours", palette, 0x200, 256)],
  };
  return {
    frame,
    vram,
    palettes: [...memory.background, ...memory.sprite],
    tileSets: [
      tileSet("Background, 16 colours", 0, 4, memory.background),
      tileSet("Background, 256 colours", 0, 8, memory.background256),
      tileSet("Sprites, 16 colours", SPRITE_TILES, 4, memory.sprite),
      tileSet("Sprites, 256 colours", SPRITE_TILES, 8, memory.sprite256),
    ],
    sprites: Array.from({ length: SPRITES }, (_, index) => sprite(memory, index)),
    layers: layers(memory),
  };
}

/** @type {(address: number, length: number) => Place} */
function onBus(address, length) {
  return { domain: "", address, length, text: hex(address, 8) };
}

/** @type {(label: string, bytes: Uint8Array, first: number, count: number) => Palette} */
function paletteAt(label, bytes, first, count) {
  return { label, place: onBus(PALETTE + first, count * 2), colours: coloursOf(bytes, first, count) };
}

/** @type {(label: string, first: number, bits: number, palettes: readonly Palette[]) => TileSet} */
function tileSet(label, first, bits, palettes) {
  const end = first === 0 ? SPRITE_TILES : VRAM_END;
  const size = TILE * bits;
  return {
    label,
    first,
    count: (end - first) / size,
    bits,
    palettes,
    place: (tile) => onBus(VRAM + first + tile * size, size),
  };
}

/** @type {(memory: Memory, index: number) => Sprite} */
function sprite(memory, index) {
  const [a = 0, b = 0, c = 0] = [0, 2, 4].map((at) => halfword(memory.oam, index * 8 + at));
  const affine = (a & 0x100) !== 0;
  const [width = 0, height = 0] = SIZES[((a >> 14) & 3) * 4 + ((b >> 14) & 3)] ?? [];
  const scale = affine && (a & 0x200) !== 0 ? 2 : 1;
  const rawX = b & 0x1ff;
  const rawY = a & 0xff;
  const box = {
    x: rawX >= 256 ? rawX - 512 : rawX,
    y: rawY >= SCREEN.height ? rawY - 256 : rawY,
    width: width * scale,
    height: height * scale,
  };
  const bits = a & 0x2000 ? 8 : 4;
  const palette = bits === 8 ? memory.sprite256[0] : memory.sprite[c >> 12];
  const number = c & 0x3ff;
  // If the tiles form a sheet (see `drawSprite`), tiles with 256 colours have even numbers.
  const first = SPRITE_TILES + 32 * (bits === 8 && !isInRow(memory) ? number & ~1 : number);
  const mode = ["normal", "translucent", "window", "prohibited"][(a >> 10) & 3] ?? "";
  return {
    index,
    place: onBus(OAM + index * 8, 8),
    shown: width > 0 && (affine || (a & 0x200) === 0) && isOn(box, SCREEN),
    box,
    tilePlace: onBus(VRAM + first, bits * TILE),
    facts: [
      ["Place", `${box.x}, ${box.y}`],
      ["Size", width === 0 ? "prohibited" : `${width} × ${height}`],
      ["Tile", String(number)],
      ["Palette", palette?.label ?? ""],
      ["Priority", String((c >> 10) & 3)],
      affine
        ? /** @type {const} */ (["Matrix", `${(b >> 9) & 31}${scale === 2 ? ", double size" : ""}`])
        : /** @type {const} */ (["Flip", flipText((b & 0x1000) !== 0, (b & 0x2000) !== 0)]),
      ["Mode", `${mode}${a & 0x1000 ? ", mosaic" : ""}`],
    ],
    draw: () => {
      if (width === 0 || !palette) return undefined;
      return drawSprite(memory, { offset: first, bits, colours: palette.colours }, width, height);
    },
  };
}

/**
 * Draws a sprite. Its tiles follow one another in memory, or they form a rectangle in a sheet of 32 by 32 tiles (16 by 32
 * tiles with 256 colours). A bit of DISPCNT selects the arrangement.
 * @param {Memory} memory
 * @param {Tile} tile The first tile.
 * @param {number} width
 * @param {number} height
 * @returns {Picture}
 */
function drawSprite(memory, tile, width, height) {
  const picture = blank(width, height);
  const size = tile.bits * TILE;
  const stride = isInRow(memory) ? (width / TILE) * size : 32 * 32;
  for (let y = 0; y < height / TILE; y += 1) {
    for (let x = 0; x < width / TILE; x += 1) {
      const offset = tile.offset + y * stride + x * size;
      drawTile(picture, x * TILE, y * TILE, memory.vram, { ...tile, offset });
    }
  }
  return picture;
}

/**
 * Whether the tiles of a sprite follow one another in memory.
 * @type {(memory: Memory) => boolean}
 */
function isInRow({ io }) {
  return (halfword(io, DISPCNT) & 0x40) !== 0;
}

/**
 * The backgrounds of the current mode.
 * @type {(memory: Memory) => readonly Layer[]}
 */
function layers(memory) {
  const control = halfword(memory.io, DISPCNT);
  const mode = control & 7;
  const backgrounds = BACKGROUNDS[mode];
  if (!backgrounds) return [bitmap(memory, mode, control)];
  return [
    ...backgrounds.text.map((number) => textLayer(memory, number)),
    ...backgrounds.affine.map((number) => affineLayer(memory, number)),
  ];
}

/**
 * A background that cannot be rotated. Each entry of its map selects a tile and its palette, and can flip the tile.
 * @type {(memory: Memory, number: number) => Layer}
 */
function textLayer(memory, number) {
  const { io, vram } = memory;
  const control = halfword(io, BGCNT + number * 2);
  const tiles = ((control >> 2) & 3) * 0x4000;
  const map = ((control >> 8) & 31) * 0x800;
  const bits = control & 0x80 ? 8 : 4;
  const columns = control & 0x4000 ? 64 : 32;
  const rows = control & 0x8000 ? 64 : 32;
  /** @type {(column: number, row: number) => number} */
  const at = (column, row) => {
    const block = (column >> 5) + (row >> 5) * (columns / 32);
    return map + block * 0x800 + ((row & 31) * 32 + (column & 31)) * 2;
  };
  /** @type {(column: number, row: number) => Tile & { number: number, palette: Palette | undefined }} */
  const tileAt = (column, row) => {
    const entry = halfword(vram, at(column, row));
    const palette = bits === 8 ? memory.background256[0] : memory.background[entry >> 12];
    return {
      number: entry & 0x3ff,
      offset: tiles + (entry & 0x3ff) * bits * TILE,
      bits,
      palette,
      colours: palette?.colours ?? new Uint32Array(0),
      flipX: (entry & 0x400) !== 0,
      flipY: (entry & 0x800) !== 0,
    };
  };
  const x = halfword(io, BGOFS + number * 4) & 0x1ff;
  const y = halfword(io, BGOFS + number * 4 + 2) & 0x1ff;
  return {
    label: `Background ${number}`,
    facts: [
      ...commonFacts(io, number, columns * TILE, rows * TILE),
      ["Scroll", `${x}, ${y}`],
      ["Map", hex(VRAM + map, 8)],
      ["Tiles", `${hex(VRAM + tiles, 8)}, ${bits === 8 ? 256 : 16} colours`],
    ],
    view: { x: x % (columns * TILE), y: y % (rows * TILE), ...SCREEN },
    draw: () => drawMap(vram.subarray(0, SPRITE_TILES), columns, rows, tileAt),
    cell: (column, row) => {
      const tile = tileAt(column, row);
      return {
        place: onBus(VRAM + at(column, row), 2),
        facts: [
          ["Tile", `${tile.number}, at ${hex(VRAM + tile.offset, 8)}`],
          ["Palette", tile.palette?.label ?? ""],
          ["Flip", flipText(tile.flipX, tile.flipY)],
        ],
      };
    },
  };
}

/**
 * An affine background: it can be rotated and scaled. The entries of its map are only the numbers of tiles.
 * @type {(memory: Memory, number: number) => Layer}
 */
function affineLayer({ io, vram, background256: [palette] }, number) {
  const control = halfword(io, BGCNT + number * 2);
  const tiles = ((control >> 2) & 3) * 0x4000;
  const map = ((control >> 8) & 31) * 0x800;
  const columns = 16 << (control >> 14);
  /** @type {(column: number, row: number) => Tile & { number: number }} */
  const tileAt = (column, row) => {
    const entry = vram[map + row * columns + column] ?? 0;
    return { number: entry, offset: tiles + entry * 64, bits: 8, colours: palette.colours };
  };
  return {
    label: `Background ${number}`,
    facts: [
      ...commonFacts(io, number, columns * TILE, columns * TILE),
      ["Matrix", matrix(io, number)],
      ["Map", hex(VRAM + map, 8)],
      ["Tiles", `${hex(VRAM + tiles, 8)}, 256 colours`],
    ],
    draw: () => drawMap(vram.subarray(0, SPRITE_TILES), columns, columns, tileAt),
    cell: (column, row) => {
      const tile = tileAt(column, row);
      return {
        place: onBus(VRAM + map + row * columns + column, 1),
        facts: [["Tile", `${tile.number}, at ${hex(VRAM + tile.offset, 8)}`]],
      };
    },
  };
}

/**
 * The bitmap of modes 3 to 5. In modes 4 and 5, there are two, and a bit of DISPCNT selects the visible one.
 * @type {(memory: Memory, mode: number, control: number) => Layer}
 */
function bitmap({ io, vram, background256: [palette] }, mode, control) {
  const { width, height } = mode === 5 ? { width: 160, height: 128 } : SCREEN;
  const size = mode === 4 ? 1 : 2;
  const first = mode !== 3 && control & 0x10 ? 0xa000 : 0;
  /** @type {(x: number, y: number) => number} */
  const at = (x, y) => first + (y * width + x) * size;
  return {
    label: "Background 2",
    facts: [
      ...commonFacts(io, 2, width, height),
      ["Bitmap", `${hex(VRAM + first, 8)}, ${mode === 4 ? 256 : "32,768"} colours`],
    ],
    draw: () => {
      const picture = blank(width, height);
      for (let pixel = 0; pixel < width * height; pixel += 1) {
        const from = first + pixel * size;
        picture.pixels[pixel] =
          mode === 4 ? (palette.colours[vram[from] ?? 0] ?? 0) : colourOf(halfword(vram, from));
      }
      return picture;
    },
    cell: (column, row) => ({
      place: onBus(VRAM + at(column * TILE, row * TILE), TILE * size),
      facts: [["Pixels", `${column * TILE}, ${row * TILE}`]],
    }),
  };
}

/**
 * The facts about a background that all backgrounds have.
 * @type {(io: Uint8Array, number: number, width: number, height: number) => Facts}
 */
function commonFacts(io, number, width, height) {
  return [
    ["Shown", halfword(io, DISPCNT) & (0x100 << number) ? "yes" : "no"],
    ["Size", `${width} × ${height}`],
    ["Priority", String(halfword(io, BGCNT + number * 2) & 3)],
  ];
}

/**
 * The matrix of a background that can be rotated.
 * @type {(io: Uint8Array, number: number) => string}
 */
function matrix(io, number) {
  const first = BG2PA + (number - 2) * 0x10;
  return [0, 2, 4, 6].map((at) => (((halfword(io, first + at) << 16) >> 16) / 256).toFixed(2)).join(" ");
}
