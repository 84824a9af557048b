/** Sends frequent and urgent requests to the emulator over JSON-RPC: keys, memory, echo. */

import { ApiError } from "./api.js";

/** @import { Rpc } from "./rpc.js" */

/**
 * A memory domain, such as work RAM.
 * @typedef {object} Domain
 * @property {string} id
 * @property {string} label
 * @property {number} base The bus address of the first byte.
 * @property {number} size In bytes.
 */

/** @typedef {{ frame: number, results: { value?: unknown; error?: { detail: string } }[] }} Outcome */

/**
 * The outcome of a change of keys: whether an answer arrived, and the frame of the change if it succeeded.
 * @typedef {{ arrived: boolean, frame?: number }} Answer
 */

/** For how many frames the emulator holds a key that was pressed only for a short time. */
export const SHORT_FRAMES = 3;

export class EmulatorClient {
  #rpc;

  /** @param {Rpc} rpc */
  constructor(rpc) {
    this.#rpc = rpc;
  }

  /**
   * Presses keys.
   * @param {number} mask
   */
  press(mask) {
    return this.#answer({ op: "add_keys", keys: mask });
  }

  /**
   * Releases keys.
   * @param {number} mask
   */
  release(mask) {
    return this.#answer({ op: "clear_keys", keys: mask });
  }

  /**
   * Releases keys after the game has seen them for `SHORT_FRAMES` frames. `hold_keys` holds keys for two frames more
   * than its parameter `frames`.
   * @param {number} mask
   */
  releaseSoon(mask) {
    return this.#answer({ op: "hold_keys", keys: mask, frames: SHORT_FRAMES - 2 });
  }

  /**
   * Like `releaseSoon`, but for a press that may have ended an earlier hold. After such a press, the hold of
   * `hold_keys` may have to wait for the next frame. A press does not end a hold that waits. So if the keys are pressed
   * again before the hold begins, the hold releases them too early. Therefore, this method uses a key timeline, which
   * ends when the keys are pressed again. `releaseSoon` does not use one, because the server does not go back in the
   * history during a timeline. If the server refuses the timeline, the keys are released at once.
   * @param {number} mask
   */
  releaseSoonAgain(mask) {
    // Two steps, each with a frame (four bytes) and the keys that are held from there on (two bytes): `mask`
    // from frame 0 on, and no key from frame `SHORT_FRAMES` on.
    const steps = new DataView(new ArrayBuffer(12));
    steps.setUint16(4, mask, true);
    steps.setUint32(6, SHORT_FRAMES, true);
    const bytes = String.fromCharCode(...new Uint8Array(steps.buffer));
    return this.#answer({ op: "clear_keys", keys: mask }, { op: "play_keys", steps: btoa(bytes) });
  }

  /**
   * Finds out whether this page may control the emulator. It sends a request that releases no keys. The request changes
   * nothing, but the server rejects it if this page may only read.
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
   * @type {(domain: string, address: number, length: number) => Promise<Uint8Array>}
   */
  async read(domain, address, length) {
    const where = domain === "" ? { op: "read_range" } : { op: "domain_read_range", domain };
    const [bytes] = await this.batch([{ ...where, address, length }]);
    return fromBase64(String(bytes));
  }

  /** @returns {Promise<Domain[]>} */
  async domains() {
    const [names] = await this.batch([{ op: "domains" }]);
    const ids = /** @type {string[]} */ (names);
    const facts = await this.batch(
      ids.flatMap((domain) => [
        { op: "domain_name", domain },
        { op: "domain_base", domain },
        { op: "domain_size", domain },
      ]),
    );
    return ids.map((id, index) => {
      const [label, base, size] = facts.slice(index * 3);
      return { id, label: String(label), base: Number(base), size: Number(size) };
    });
  }

  /**
   * Runs operations in order at one frame boundary. Returns their values or throws the first error.
   * @type {(ops: object[]) => Promise<unknown[]>}
   */
  async batch(ops) {
    return (await this.#perform(ops)).values;
  }

  /**
   * Reads ranges of memory domains, all in the same frame.
   * @param {readonly { domain: string, address: number, length: number }[]} ranges
   * @returns {Promise<{ frame: number, parts: Uint8Array[] }>}
   */
  async readTogether(ranges) {
    const { frame, values } = await this.#perform(
      ranges.map((range) => ({ op: "domain_read_range", ...range })),
    );
    return { frame, parts: values.map((value) => fromBase64(String(value))) };
  }

  /**
   * Gets a savestate without a picture or other extra data.
   * @returns {Promise<{ frame: number, bytes: Uint8Array }>}
   */
  async state() {
    const { frame, values } = await this.#perform([{ op: "save_state", flags: 0 }]);
    return { frame, bytes: fromBase64(String(values[0])) };
  }

  /** @type {(ops: object[]) => Promise<{ frame: number, values: unknown[] }>} */
  async #perform(ops) {
    /** @type {Outcome} */
    const { frame, results } = await this.#rpc.callSelected("batch", { ops });
    const values = results.map(({ value, error }) => {
      if (error) throw new Error(error.detail);
      return value;
    });
    return { frame, values };
  }

  /**
   * Sends operations, and returns whether an answer arrived, and the frame. Does not throw: if there is no emulator,
   * the status badge shows that.
   * @param {...object} ops
   * @returns {Promise<Answer>}
   */
  async #answer(...ops) {
    try {
      const { frame } = await this.#perform(ops);
      return { arrived: true, frame };
    } catch (error) {
      return { arrived: !(error instanceof ApiError && error.status === 0) };
    }
  }
}

/** @type {(text: string) => Uint8Array<ArrayBuffer>} */
export function fromBase64(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = characters.charCodeAt(at);
  return bytes;
}
