/** Draws pictures from video memory: palettes, and the tiles of 8 by 8 pixels that form backgrounds and sprites. */

/** The width and height of a tile. */
export const TILE = 8;

/**
 * Pixels in the format of `ImageData`. Each pixel is a word with red in its lowest byte; 0 is a transparent pixel.
 * @typedef {{ width: number, height: number, pixels: Uint32Array }} Picture
 */

/**
 * Where bytes are in memory.
 * @typedef {object} Place
 * @property {string} domain The memory domain; empty for the bus.
 * @property {number} address The bus address, or the offset in the domain.
 * @property {number} length In bytes.
 * @property {string} text The address in its usual notation.
 */

/**
 * A tile as it appears in a background or a sprite.
 * @typedef {object} Tile
 * @property {number} offset Its offset in video memory.
 * @property {number} bits Bits per pixel: 2, 4 or 8.
 * @property {Uint32Array} colours
 * @property {boolean} [flipX]
 * @property {boolean} [flipY]
 */

/** @typedef {readonly (readonly [name: string, value: string])[]} Facts */

/** @typedef {{ label: string, place: Place, colours: Uint32Array }} Palette */

/**
 * Tiles that lie one after another in video memory.
 * @typedef {object} TileSet
 * @property {string} label
 * @property {number} first The offset of the first tile in video memory.
 * @property {number} count
 * @property {number} bits Bits per pixel.
 * @property {readonly Palette[]} palettes The palettes with which its tiles can be drawn.
 * @property {(tile: number) => Place} place
 */

/**
 * @typedef {object} Sprite
 * @property {number} index
 * @property {Place} place Its entry in the sprite table (OAM).
 * @property {boolean} shown Whether a part of it can be on the screen.
 * @property {Box} box Its place on the screen. Parts of the box may be outside of the screen.
 * @property {Facts} facts
 * @property {Place} tilePlace The place of its first tile.
 * @property {() => Picture | undefined} draw
 *   Draws the sprite without flipping, rotating or scaling it. Returns `undefined` for a prohibited shape.
 */

/** @typedef {{ x: number, y: number, width: number, height: number }} Box */

/**
 * A background with all of its tiles, or a bitmap.
 * @typedef {object} Layer
 * @property {string} label
 * @property {Facts} facts
 * @property {Box} [view] The part that the screen shows. It may wrap around at the edges of the layer.
 * @property {() => Picture} draw
 * @property {(column: number, row: number) => { facts: Facts, place: Place }} cell
 *   Describes a square of 8 by 8 pixels.
 */

/**
 * The contents of video memory in one frame.
 * @typedef {object} Graphics
 * @property {number} frame
 * @property {Uint8Array} vram
 * @property {readonly Palette[]} palettes
 * @property {readonly TileSet[]} tileSets
 * @property {readonly Sprite[]} sprites
 * @property {readonly Layer[]} layers
 */

/** @type {(width: number, height: number) => Picture} */
export function blank(width, height) {
  return { width, height, pixels: new Uint32Array(width * height) };
}

/**
 * Converts a 15-bit colour to a pixel, with the same rounding as mGBA.
 * @type {(value: number) => number}
 */
export function colourOf(value) {
  /** @param {number} five */
  const eight = (five) => (five << 3) | (five >> 2);
  const red = eight(value & 31);
  const green = eight((value >> 5) & 31);
  const blue = eight((value >> 10) & 31);
  return (0xff00_0000 | (blue << 16) | (green << 8) | red) >>> 0;
}

/**
 * Converts the 15-bit colours that start at the byte `first`.
 * @type {(bytes: Uint8Array, first: number, count: number) => Uint32Array}
 */
export function coloursOf(bytes, first, count) {
  return Uint32Array.from({ length: count }, (_, index) => colourOf(halfword(bytes, first + index * 2)));
}

/** @type {(bytes: Uint8Array, at: number) => number} */
export function halfword(bytes, at) {
  return (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
}

/**
 * Draws a tile. A pixel of colour 0 is transparent.
 * @type {(picture: Picture, left: number, top: number, vram: Uint8Array, tile: Tile) => void}
 */
export function drawTile(picture, left, top, vram, { offset, bits, colours, flipX, flipY }) {
  for (let y = 0; y < TILE; y += 1) {
    const line = offset + y * bits;
    const to = (top + (flipY ? 7 - y : y)) * picture.width + left;
    for (let x = 0; x < TILE; x += 1) {
      const index = indexOf(vram, line, bits, x);
      picture.pixels[to + (flipX ? 7 - x : x)] = index === 0 ? 0 : (colours[index] ?? 0);
    }
  }
}

/**
 * The colour number of a pixel in a line of a tile.
 * @param {Uint8Array} vram
 * @param {number} line The offset of the line in video memory.
 * @param {number} bits
 * @param {number} x
 * @returns {number}
 */
function indexOf(vram, line, bits, x) {
  if (bits === 8) return vram[line + x] ?? 0;
  if (bits === 4) return ((vram[line + (x >> 1)] ?? 0) >> ((x & 1) * 4)) & 15;
  const shift = 7 - x;
  return (((vram[line] ?? 0) >> shift) & 1) | ((((vram[line + 1] ?? 0) >> shift) & 1) << 1);
}

/**
 * A picture of all tiles of a set, with `across` tiles in each row.
 * @type {(vram: Uint8Array, set: TileSet, colours: Uint32Array, across: number) => Picture}
 */
export function drawTiles(vram, { first, count, bits }, colours, across) {
  const picture = blank(across * TILE, Math.ceil(count / across) * TILE);
  for (let tile = 0; tile < count; tile += 1) {
    const left = (tile % across) * TILE;
    const top = Math.floor(tile / across) * TILE;
    drawTile(picture, left, top, vram, { offset: first + tile * TILE * bits, bits, colours });
  }
  return picture;
}

/**
 * A picture of a map. Tiles outside of `vram` are transparent.
 * @type {(vram: Uint8Array, columns: number, rows: number, tileAt: (column: number, row: number) => Tile) => Picture}
 */
export function drawMap(vram, columns, rows, tileAt) {
  const picture = blank(columns * TILE, rows * TILE);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      drawTile(picture, column * TILE, row * TILE, vram, tileAt(column, row));
    }
  }
  return picture;
}

/**
 * A picture of palettes. Each palette is a line, and each colour is a pixel.
 * @type {(palettes: readonly Palette[]) => Picture}
 */
export function drawPalettes(palettes) {
  const picture = blank(Math.max(...palettes.map(({ colours }) => colours.length)), palettes.length);
  palettes.forEach(({ colours }, row) => {
    picture.pixels.set(colours, row * picture.width);
  });
  return picture;
}

/**
 * Whether a part of a box is on the screen.
 * @type {(box: Box, screen: { width: number, height: number }) => boolean}
 */
export function isOn({ x, y, width, height }, screen) {
  return x < screen.width && y < screen.height && x + width > 0 && y + height > 0;
}

/** @type {(flipX?: boolean, flipY?: boolean) => string} */
export function flipText(flipX, flipY) {
  if (flipX) return flipY ? "both ways" : "left to right";
  return flipY ? "upside down" : "none";
}
