/** Frequent and urgent requests to the emulator over JSON-RPC: keys, memory, echo. */

import { ApiError } from "./api.js";

/**
 * @import { Api } from "./api.js"
 * @import { KeySink } from "./controller.js"
 * @import { Rpc } from "./rpc.js"
 */

/**
 * A memory domain, such as working RAM.
 * @typedef {object} Domain
 * @property {string} id
 * @property {string} label
 * @property {number} base The bus address of the first byte.
 * @property {number} size In bytes.
 */

/**
 * @typedef {object} Outcome
 * @property {number} frame
 * @property {{ value?: unknown; error?: { detail: string } }[]} results
 */

/** @implements {KeySink} */
export class EmulatorClient {
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

  /**
   * Finds out whether this page may control the emulator. Releasing no key changes nothing, but needs the right to change.
   * @returns {Promise<boolean | undefined>} `undefined` if there is no answer.
   */
  async mayControl() {
    try {
      await this.batch([{ op: "clear_keys", keys: 0 }]);
      return true;
    } catch (error) {
      return error instanceof ApiError && error.status === 403 ? false : undefined;
    }
  }

  /** Sends a message to the emulator and waits until it comes back. */
  async ping() {
    await this.batch([{ op: "echo", data: "" }]);
  }

  /**
   * Reads bytes from the bus (an empty `domain`) or from a domain, where addresses are offsets.
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
   * Runs operations in order at one frame boundary. Returns their values or throws the first error.
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
   * Sends an operation and ignores its result. The status badge shows when there is no emulator.
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
