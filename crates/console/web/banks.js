/** Addresses in banked memory of the Game Boy. Its bus shows only one or two banks of each such memory at a time. */

import { hex } from "./hexgrid.js";

/**
 * Where a memory domain is on the bus.
 * @typedef {object} BankWindow
 * @property {number} base The address of its first byte.
 * @property {number} [size] The size of a bank, if the domain has several banks.
 * @property {number} [others] The address of its other banks.
 */

/** @type {Readonly<Record<string, BankWindow>>} */
const WINDOWS = {
  cart0: { base: 0, size: 0x4000, others: 0x4000 },
  vram: { base: 0x8000, size: 0x2000, others: 0x8000 },
  sram: { base: 0xa000, size: 0x2000, others: 0xa000 },
  wram: { base: 0xc000, size: 0x1000, others: 0xd000 },
  oam: { base: 0xfe00 },
  io: { base: 0xff00 },
  hram: { base: 0xff80 },
};

/**
 * The usual notation for the address of a byte in a domain: `03:4000`, or `fe00` in memory without banks.
 * @type {(domain: string, offset: number) => string}
 */
export function bankedName(domain, offset) {
  const window = WINDOWS[domain];
  if (!window) return hex(offset, 4);
  const { base, size, others = base } = window;
  if (size === undefined) return hex(base + offset, 4);
  const bank = Math.floor(offset / size);
  return `${hex(bank, 2)}:${hex((bank === 0 ? base : others) + (offset % size), 4)}`;
}

/**
 * The offset in a domain for a number that the user enters. In memory without banks, the number can be an address on the
 * bus, as the grid shows it. Any other number already is the offset.
 * @type {(domain: string, address: number) => number}
 */
export function offsetIn(domain, address) {
  const { base, size } = WINDOWS[domain] ?? { base: 0 };
  return size === undefined && address >= base ? address - base : address;
}

/**
 * The domain and offset of an address such as `3:4000`, and the size of the banks.
 * @type {(text: string) => { domain: string, offset: number, size: number } | undefined}
 */
export function parseBanked(text) {
  const [, bankText, addressText] = /^\s*([0-9a-f]{1,3}):([0-9a-f]{4})\s*$/i.exec(text) ?? [];
  if (bankText === undefined || addressText === undefined) return undefined;
  const bank = Number.parseInt(bankText, 16);
  const address = Number.parseInt(addressText, 16);
  for (const [domain, { base, size, others = base }] of Object.entries(WINDOWS)) {
    if (size === undefined) continue;
    const first = bank === 0 ? base : others;
    if (address < first || address >= first + size) continue;
    return { domain, offset: bank * size + address - first, size };
  }
  return undefined;
}
