/** Pictures from video memory: colours, and the tiles of 8 by 8 pixels that backgrounds and sprites consist of. */

/** The width and height of a tile. */
export const TILE = 8;

/**
 * Pixels as `ImageData` has them, each a word with red in its lowest byte. 0 is transparent.
 * @typedef {object} Picture
 * @property {number} width
 * @property {number} height
 * @property {Uint32Array} pixels
 */

/**
 * Where bytes are in memory.
 * @typedef {object} Place
 * @property {string} domain The memory domain; empty for the bus.
 * @property {number} address In the domain.
 * @property {number} length
 * @property {string} text As people write the address.
 */

/**
 * A tile, as a background or a sprite shows it.
 * @typedef {object} Tile
 * @property {number} offset Where it is in video memory.
 * @property {number} bits Per pixel: 2, 4 or 8.
 * @property {Uint32Array} colours
 * @property {boolean} [flipX]
 * @property {boolean} [flipY]
 */

/** @typedef {readonly (readonly [name: string, value: string])[]} Facts */

/**
 * @typedef {object} Palette
 * @property {string} label
 * @property {Place} place
 * @property {Uint32Array} colours
 */

/**
 * Tiles that lie one after another in video memory.
 * @typedef {object} TileSet
 * @property {string} label
 * @property {number} first The offset of the first tile in video memory.
 * @property {number} count
 * @property {number} bits Per pixel.
 * @property {readonly Palette[]} palettes Those that its tiles can be drawn with.
 * @property {(tile: number) => Place} place
 */

/**
 * @typedef {object} Sprite
 * @property {number} index
 * @property {Place} place Its entry in the memory of sprites.
 * @property {boolean} shown Whether some of it can be on the screen.
 * @property {Box} box Where it is on the screen; parts may be outside.
 * @property {Facts} facts
 * @property {Place} tilePlace Its first tile.
 * @property {() => Picture | undefined} draw Not flipped, rotated or scaled. There is none for a prohibited shape.
 */

/**
 * @typedef {object} Box
 * @property {number} x
 * @property {number} y
 * @property {number} width
 * @property {number} height
 */

/**
 * A background with all of its tiles, or a bitmap.
 * @typedef {object} Layer
 * @property {string} label
 * @property {Facts} facts
 * @property {Box} [view] The part that the screen shows, which may go over an edge to the other side.
 * @property {() => Picture} draw
 * @property {(column: number, row: number) => { facts: Facts, place: Place }} cell What is in a square of 8 by 8 pixels.
 */

/**
 * What video memory holds at one frame.
 * @typedef {object} Graphics
 * @property {number} frame
 * @property {Uint8Array} vram
 * @property {readonly Palette[]} palettes
 * @property {readonly TileSet[]} tileSets
 * @property {readonly Sprite[]} sprites
 * @property {readonly Layer[]} layers
 */

/**
 * @param {number} width
 * @param {number} height
 * @returns {Picture}
 */
export function blank(width, height) {
  return { width, height, pixels: new Uint32Array(width * height) };
}

/**
 * The colour of 15 bits as a pixel, with the same rounding as mGBA.
 * @param {number} value
 * @returns {number}
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
 * The colours of 15 bits from `first` on.
 * @param {Uint8Array} bytes
 * @param {number} first
 * @param {number} count
 * @returns {Uint32Array}
 */
export function coloursOf(bytes, first, count) {
  return Uint32Array.from({ length: count }, (_, index) => colourOf(halfword(bytes, first + index * 2)));
}

/**
 * @param {Uint8Array} bytes
 * @param {number} at
 * @returns {number}
 */
export function halfword(bytes, at) {
  return (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
}

/**
 * Draws a tile. A pixel of colour 0 is transparent.
 * @param {Picture} picture
 * @param {number} left
 * @param {number} top
 * @param {Uint8Array} vram
 * @param {Tile} tile
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
 * The number of the colour of a pixel.
 * @param {Uint8Array} vram
 * @param {number} line Where the line of the tile begins.
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
 * All tiles of a set, with `across` of them in a row.
 * @param {Uint8Array} vram
 * @param {TileSet} set
 * @param {Uint32Array} colours
 * @param {number} across
 * @returns {Picture}
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
 * The colours of palettes, each as one pixel and each palette as one line.
 * @param {readonly Palette[]} palettes
 * @returns {Picture}
 */
export function drawPalettes(palettes) {
  const picture = blank(Math.max(...palettes.map(({ colours }) => colours.length)), palettes.length);
  palettes.forEach(({ colours }, row) => {
    picture.pixels.set(colours, row * picture.width);
  });
  return picture;
}

/**
 * Whether any of a box is on a screen.
 * @param {Box} box
 * @param {number} width Of the screen.
 * @param {number} height
 * @returns {boolean}
 */
export function isOn({ x, y, width: wide, height: high }, width, height) {
  return x < width && y < height && x + wide > 0 && y + high > 0;
}

/**
 * @param {boolean} [flipX]
 * @param {boolean} [flipY]
 * @returns {string}
 */
export function flipText(flipX, flipY) {
  if (flipX) return flipY ? "both ways" : "left to right";
  return flipY ? "upside down" : "none";
}
