/** What the page asks the emulator often or in a hurry: keys, memory, whether it is there. All of it by JSON-RPC. */

import type { Api } from "./api.ts";
import type { KeyLine } from "./controller.ts";
import type { Rpc } from "./rpc.ts";

/** A memory domain, such as working RAM. */
export interface Domain {
  id: string;
  label: string;
  /** Bus address of its first byte. */
  base: number;
  /** Bytes. */
  size: number;
}

interface Outcome {
  frame: number;
  results: { value?: unknown; error?: { detail: string } }[];
}

export class Emulation implements KeyLine {
  readonly #rpc: Rpc;
  readonly #api: Api;

  constructor(rpc: Rpc, api: Api) {
    this.#rpc = rpc;
    this.#api = api;
  }

  press(mask: number): void {
    this.#forget({ op: "add_keys", keys: mask });
  }

  release(mask: number): void {
    this.#forget({ op: "clear_keys", keys: mask });
  }

  releaseSoon(mask: number): void {
    this.#forget({ op: "hold_keys", keys: mask, frames: 1 });
  }

  /** A message to the emulator and back. */
  async ping(): Promise<void> {
    await this.batch([{ op: "echo", data: "" }]);
  }

  /** Bytes from the bus, or from a domain, where addresses are offsets. */
  async read(domain: string, address: number, length: number): Promise<Uint8Array> {
    const where = domain === "" ? { op: "read_range" } : { op: "domain_read_range", domain };
    const [bytes] = await this.batch([{ ...where, address, length }]);
    return fromBase64(String(bytes));
  }

  async domains(): Promise<Domain[]> {
    const [names] = await this.batch([{ op: "domains" }]);
    const domains: Domain[] = [];
    for (const domain of names as string[]) {
      const [label, base, size] = await this.batch([
        { op: "domain_name", domain },
        { op: "domain_base", domain },
        { op: "domain_size", domain },
      ]);
      domains.push({ id: domain, label: String(label), base: Number(base), size: Number(size) });
    }
    return domains;
  }

  /** Operations in order, at one frame boundary; their values, or the first refusal as an error. */
  async batch(ops: object[]): Promise<unknown[]> {
    const { results } = await this.#rpc.call<Outcome>("batch", this.#addressed({ ops }));
    return results.map(({ value, error }) => {
      if (error) throw new Error(error.detail);
      return value;
    });
  }

  /** Says something whose answer changes nothing here: that there is no emulator is shown elsewhere. */
  #forget(op: object): void {
    this.batch([op]).catch(() => {});
  }

  #addressed(params: object): object {
    const emulator = this.#api.emulator.value;
    return emulator === undefined ? params : { ...params, emulator };
  }
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
