/** Names of addresses, as the server's symbol files have them. */

import { Store } from "./store.js";

/** @import { Api } from "./api.js" */

/**
 * @typedef {object} Named
 * @property {string} name
 * @property {number} address
 * @property {string} [type] Such as `u16`; many files say nothing of it.
 * @property {number} count How many of them are there in a row.
 */

/** The symbols of the chosen emulator, by address. */
export class Symbols {
  /** @readonly */
  all = new Store(/** @type {readonly Named[]} */ ([]));
  #api;

  /** @param {Api} api */
  constructor(api) {
    this.#api = api;
    api.emulator.follow(() => void this.#load());
  }

  /**
   * The symbol that begins at an address.
   * @param {number} address
   * @returns {Named | undefined}
   */
  at(address) {
    return this.all.value.find((symbol) => symbol.address === address);
  }

  /**
   * The symbol at or before an address, if it may reach so far.
   * @param {number} address
   * @returns {Named | undefined}
   */
  around(address) {
    /** @type {Named | undefined} */
    let best;
    for (const symbol of this.all.value) {
      if (symbol.address <= address && address < symbol.address + sizeOf(symbol)) best = symbol;
    }
    return best;
  }

  /**
   * An address from what people write: a number, `0x…`, bare hex, or a symbol with or without `+offset`.
   * @param {string} text
   * @returns {number | undefined}
   */
  resolve(text) {
    const [, name = "", offset] = /^\s*([^+]*?)\s*(?:\+\s*(\w+)\s*)?$/.exec(text) ?? [];
    const symbol = this.all.value.find((known) => known.name === name);
    const base = symbol?.address ?? parseNumber(name);
    const extra = offset === undefined ? 0 : parseNumber(offset);
    if (base === undefined || extra === undefined || base + extra > 0xffff_ffff) return undefined;
    return base + extra;
  }

  async #load() {
    try {
      /** @type {{ symbols: Named[] }} */
      const { symbols } = await this.#api.read("/v1/symbols");
      this.all.set([...symbols].sort((a, b) => a.address - b.address));
    } catch {
      this.all.set([]);
    }
  }
}

/**
 * Bytes of a symbol; where its type is not known, one.
 * @param {Named} symbol
 * @returns {number}
 */
function sizeOf(symbol) {
  return (Number(symbol.type?.slice(1) ?? "8") / 8) * symbol.count;
}

/**
 * Addresses are hex for people, with or without `0x`.
 * @param {string} text
 * @returns {number | undefined}
 */
function parseNumber(text) {
  if (!/^(0x)?[0-9a-f]{1,8}$/i.test(text)) return undefined;
  return Number.parseInt(text.replace(/^0x/i, ""), 16);
}
