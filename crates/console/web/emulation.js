/** What the page asks the emulator often or in a hurry: keys, memory, whether it is there. All of it by JSON-RPC. */

/**
 * @import { Api } from "./api.js"
 * @import { KeyLine } from "./controller.js"
 * @import { Rpc } from "./rpc.js"
 */

/**
 * A memory domain, such as working RAM.
 * @typedef {object} Domain
 * @property {string} id
 * @property {string} label
 * @property {number} base Bus address of its first byte.
 * @property {number} size Bytes.
 */

/**
 * @typedef {object} Outcome
 * @property {number} frame
 * @property {{ value?: unknown; error?: { detail: string } }[]} results
 */

/** @implements {KeyLine} */
export class Emulation {
  #rpc;
  #api;

  /**
   * @param {Rpc} rpc
   * @param {Api} api
   */
  constructor(rpc, api) {
    this.#rpc = rpc;
    this.#api = api;
  }

  /** @param {number} mask */
  press(mask) {
    this.#forget({ op: "add_keys", keys: mask });
  }

  /** @param {number} mask */
  release(mask) {
    this.#forget({ op: "clear_keys", keys: mask });
  }

  /** @param {number} mask */
  releaseSoon(mask) {
    this.#forget({ op: "hold_keys", keys: mask, frames: 1 });
  }

  /** A message to the emulator and back. */
  async ping() {
    await this.batch([{ op: "echo", data: "" }]);
  }

  /**
   * Bytes from the bus, or from a domain, where addresses are offsets.
   * @param {string} domain
   * @param {number} address
   * @param {number} length
   * @returns {Promise<Uint8Array>}
   */
  async read(domain, address, length) {
    const where = domain === "" ? { op: "read_range" } : { op: "domain_read_range", domain };
    const [bytes] = await this.batch([{ ...where, address, length }]);
    return fromBase64(String(bytes));
  }

  /** @returns {Promise<Domain[]>} */
  async domains() {
    const [names] = await this.batch([{ op: "domains" }]);
    /** @type {Domain[]} */
    const domains = [];
    for (const domain of /** @type {string[]} */ (names)) {
      const [label, base, size] = await this.batch([
        { op: "domain_name", domain },
        { op: "domain_base", domain },
        { op: "domain_size", domain },
      ]);
      domains.push({ id: domain, label: String(label), base: Number(base), size: Number(size) });
    }
    return domains;
  }

  /**
   * Operations in order, at one frame boundary; their values, or the first refusal as an error.
   * @param {object[]} ops
   * @returns {Promise<unknown[]>}
   */
  async batch(ops) {
    /** @type {Outcome} */
    const { results } = await this.#rpc.call("batch", this.#addressed({ ops }));
    return results.map(({ value, error }) => {
      if (error) throw new Error(error.detail);
      return value;
    });
  }

  /**
   * Says something whose answer changes nothing here: that there is no emulator is shown elsewhere.
   * @param {object} op
   */
  #forget(op) {
    this.batch([op]).catch(() => {});
  }

  /**
   * @param {object} params
   * @returns {object}
   */
  #addressed(params) {
    const emulator = this.#api.emulator.value;
    return emulator === undefined ? params : { ...params, emulator };
  }
}

/**
 * @param {string} text
 * @returns {Uint8Array}
 */
function fromBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
