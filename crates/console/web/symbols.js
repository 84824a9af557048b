/** The symbols, which are names for addresses, from the server's symbol files. */

import { isRejection } from "./api.js";
import { el, freshId } from "./dom.js";
import { hex } from "./hexgrid.js";
import { Store } from "./store.js";

/**
 * @import { Api } from "./api.js"
 * @import { StatusPoller } from "./status.js"
 */

/**
 * @typedef {object} SymbolInfo
 * @property {string} name
 * @property {number} address
 * @property {string} [type] The type, such as `u16`. Many symbol files have no types.
 * @property {number} count The number of elements, for arrays.
 */

/** Words with a meaning of their own in expressions. They do not mean a symbol, even if one has this name. */
const RESERVED = new Set("and or not true false frame u8 i8 u16 i16 u32 i32".split(" "));
/** The names that an expression can contain. */
const NAME = /^[\p{L}_.@][\p{L}\p{N}_.@$]*$/u;

/** The symbols of the selected emulator's game, sorted by address. */
export class Symbols {
  /** @readonly */
  all = new Store(/** @type {readonly SymbolInfo[]} */ ([]));
  #api;
  /** How many times the symbols were requested. It shows whether an answer belongs to the newest request. */
  #loads = 0;
  /** Whether the newest request failed, and may succeed later. */
  #failed = false;

  /**
   * @param {Api} api
   * @param {StatusPoller} poller
   */
  constructor(api, poller) {
    this.#api = api;
    api.emulator.follow(() => void this.#load());
    poller.game.follow((game) => {
      if (game !== "") void this.#load();
    });
    poller.status.follow(({ phase, emulator }) => {
      // While the server does not answer, or refuses the token, `emulator` is out of date.
      const isOld = phase === "unreachable" || phase === "locked";
      if (this.#failed && emulator?.connected && !isOld) void this.#load();
    });
  }

  /**
   * The symbol that contains an address. If the type of a symbol is unknown, each of its elements counts as one byte.
   * @type {(address: number) => SymbolInfo | undefined}
   */
  around(address) {
    return this.all.value.findLast(
      (symbol) => symbol.address <= address && address < symbol.address + sizeOf(symbol),
    );
  }

  /**
   * The symbols in a range, in order. The value of `odd` alternates from symbol to symbol.
   * @type {(first: number, end: number) => { name: string, first: number, end: number, odd: boolean }[]}
   */
  within(first, end) {
    return this.all.value.flatMap((symbol, index) => {
      const after = symbol.address + sizeOf(symbol);
      if (symbol.address >= end || after <= first) return [];
      return [{ name: symbol.name, first: symbol.address, end: after, odd: index % 2 === 1 }];
    });
  }

  /**
   * Parses an address: `0x…`, bare hex or a symbol, each with an optional `+offset`. After a symbol, an offset that has
   * only the digits 0 to 9 is decimal, as in expressions. All other offsets are hexadecimal.
   * @type {(text: string) => { address: number, symbol: SymbolInfo | undefined } | undefined}
   */
  resolve(text) {
    const [, name = "", offset = "0"] = /^\s*([^+]*?)\s*(?:\+\s*(\w+)\s*)?$/.exec(text) ?? [];
    const symbol = this.all.value.find((known) => known.name === name);
    const base = symbol?.address ?? parseNumber(name);
    const isDecimal = symbol !== undefined && /^\d*$/.test(offset);
    const extra = isDecimal ? Number(offset) : parseNumber(offset);
    if (base === undefined || extra === undefined || base + extra > 0xffff_ffff) return undefined;
    return { address: base + extra, symbol };
  }

  async #load() {
    this.#loads += 1;
    const load = this.#loads;
    this.#failed = false;
    /** @type {SymbolInfo[]} */
    let all = [];
    try {
      /** @type {{ symbols: SymbolInfo[], more: boolean }} */
      let page;
      do {
        const last = all.at(-1);
        page = await this.#api.read("/v1/symbols", last && { after: last.name });
        if (load !== this.#loads) return;
        all.push(...page.symbols);
      } while (page.more);
    } catch (error) {
      if (load !== this.#loads) return;
      this.#failed = !isRejection(error);
      all = [];
    }
    this.all.set(all.sort((a, b) => a.address - b.address));
  }
}

/**
 * The names of all symbols, as suggestions for a field.
 * @type {(symbols: Symbols) => HTMLElement}
 */
export function nameList(symbols) {
  const list = el("datalist", { id: freshId("symbols") });
  symbols.all.follow((all) => {
    list.replaceChildren();
    // One by one, because a call cannot have as many arguments as some games have symbols.
    for (const { name } of all) list.append(el("option", { value: name }));
  });
  return list;
}

/**
 * The expression for the value of a symbol with a type: its name, or its type and address if an expression cannot contain
 * the name.
 * @type {(symbol: SymbolInfo) => string}
 */
export function expressionOf({ name, type, address }) {
  return NAME.test(name) && !RESERVED.has(name) ? name : `${type}[0x${hex(address, 8)}]`;
}

/**
 * The size of a symbol in bytes. An element counts as one byte if its type is unknown.
 * @type {(symbol: SymbolInfo) => number}
 */
function sizeOf(symbol) {
  return (Number(symbol.type?.slice(1) ?? "8") / 8) * symbol.count;
}

/**
 * Addresses are hexadecimal, with or without `0x`.
 * @type {(text: string) => number | undefined}
 */
function parseNumber(text) {
  if (!/^(0x)?[0-9a-f]{1,8}$/i.test(text)) return undefined;
  return Number.parseInt(text.replace(/^0x/i, ""), 16);
}
