/** Names of addresses, as the server's symbol files have them. */

import type { Api } from "./api.ts";
import { Store } from "./store.ts";

export interface Named {
  name: string;
  address: number;
  /** Such as `u16`; many files say nothing of it. */
  type?: string;
  /** How many of them are there in a row. */
  count: number;
}

/** The symbols of the chosen emulator, by address. */
export class Symbols {
  readonly all = new Store<readonly Named[]>([]);
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
    api.emulator.follow(() => void this.#load());
  }

  /** The symbol that begins at an address. */
  at(address: number): Named | undefined {
    return this.all.value.find((symbol) => symbol.address === address);
  }

  /** The symbol at or before an address, if it may reach so far. */
  around(address: number): Named | undefined {
    let best: Named | undefined;
    for (const symbol of this.all.value) {
      if (symbol.address <= address && address < symbol.address + sizeOf(symbol)) best = symbol;
    }
    return best;
  }

  /** An address from what people write: a number, `0x…`, bare hex, or a symbol with or without `+offset`. */
  resolve(text: string): number | undefined {
    const [, name = "", offset] = /^\s*([^+]*?)\s*(?:\+\s*(\w+)\s*)?$/.exec(text) ?? [];
    const symbol = this.all.value.find((known) => known.name === name);
    const base = symbol?.address ?? parseNumber(name);
    const extra = offset === undefined ? 0 : parseNumber(offset);
    if (base === undefined || extra === undefined || base + extra > 0xffff_ffff) return undefined;
    return base + extra;
  }

  async #load(): Promise<void> {
    try {
      const { symbols } = await this.#api.read<{ symbols: Named[] }>("/v1/symbols");
      this.all.set([...symbols].sort((a, b) => a.address - b.address));
    } catch {
      this.all.set([]);
    }
  }
}

/** Bytes of a symbol; where its type is not known, one. */
function sizeOf(symbol: Named): number {
  return (Number(symbol.type?.slice(1) ?? "8") / 8) * symbol.count;
}

/** Addresses are hex for people, with or without `0x`. */
function parseNumber(text: string): number | undefined {
  if (!/^(0x)?[0-9a-f]{1,8}$/i.test(text)) return undefined;
  return Number.parseInt(text.replace(/^0x/i, ""), 16);
}
