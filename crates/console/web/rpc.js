/** JSON-RPC 2.0 over the WebSocket `/v1/ws`, for urgent and frequent calls and for notifications. */

import { ApiError } from "./api.js";
import { ReconnectingSocket, reconnectAll } from "./socket.js";

/** @import { Api } from "./api.js" */

/** How long a call may wait for its answer. */
const TIMEOUT_MS = 10_000;
/** If a call gets no answer, and nothing else has arrived for this long either, the connection is dead. */
const DEAD_MS = 20_000;

/**
 * @typedef {object} PendingCall
 * @property {(value: unknown) => void} resolve
 * @property {(error: ApiError) => void} reject
 * @property {ReturnType<typeof setTimeout>} timer
 */

/**
 * @typedef {object} Message
 * @property {number} [id]
 * @property {unknown} [result]
 * @property {{ code: number; message: string; data?: { detail?: string; status?: number } }} [error]
 * @property {string} [method]
 * @property {unknown} [params]
 */

export class Rpc {
  /** @readonly @type {ReconnectingSocket} */
  socket;
  #api;
  /** @type {Map<number, PendingCall>} */
  #waiting = new Map();
  /** @type {Set<(params: unknown) => void>} */
  #listeners = new Set();
  /** @type {Set<() => unknown>} */
  #openers = new Set();
  #lastId = 0;
  /** When the connection opened, or when its last message arrived. */
  #heard = 0;

  /** @param {Api} api */
  constructor(api) {
    this.#api = api;
    this.socket = new ReconnectingSocket(() => api.socketUrl("/v1/ws"), {
      open: () => {
        this.#heard = performance.now();
        for (const opener of this.#openers) opener();
      },
      message: (data) => this.#receive(data),
      close: () => this.#failAll(),
    });
  }

  /**
   * Calls a method. Without a connection it fails; calls are not queued. Parameters that are `undefined` are not sent.
   * @template T
   * @param {string} method
   * @param {object} [params]
   * @returns {Promise<T>}
   */
  call(method, params = {}) {
    this.#lastId += 1;
    const id = this.#lastId;
    const sent = this.socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    if (!sent) return Promise.reject(new ApiError("not connected to the server", 0));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new ApiError("the server did not answer", 0));
        this.#replaceIfDead();
      }, TIMEOUT_MS);
      this.#waiting.set(id, { resolve: /** @type {(value: unknown) => void} */ (resolve), reject, timer });
    });
  }

  /**
   * Calls a method for the selected emulator.
   * @template T
   * @param {string} method
   * @param {object} [params]
   * @returns {Promise<T>}
   */
  callSelected(method, params = {}) {
    return this.call(method, { ...params, emulator: this.#api.emulator.value });
  }

  /**
   * Calls `listener` with each event of a subscription.
   * @param {(params: unknown) => void} listener
   */
  onEvent(listener) {
    this.#listeners.add(listener);
  }

  /**
   * Calls `opener` now if connected, and on each new connection.
   * @param {() => unknown} opener
   */
  onOpen(opener) {
    this.#openers.add(opener);
    if (this.socket.connected.value) opener();
  }

  /**
   * Reconnects if the connection is dead. Then the page's other connections are dead too, so they also reconnect. The
   * browser itself may not notice a dead connection, for example after the network has changed.
   */
  #replaceIfDead() {
    const { connected, losses } = this.socket;
    if (!connected.value || performance.now() - this.#heard < DEAD_MS) return;
    losses.set(losses.value + 1);
    reconnectAll();
  }

  /** @param {string | ArrayBuffer} data */
  #receive(data) {
    this.#heard = performance.now();
    if (typeof data !== "string") return;
    const message = /** @type {Message} */ (JSON.parse(data));
    if (message.method === "event") for (const listener of this.#listeners) listener(message.params);
    if (message.method !== undefined) return;
    const waiting = this.#waiting.get(message.id ?? -1);
    if (!waiting) return;
    this.#waiting.delete(message.id ?? -1);
    clearTimeout(waiting.timer);
    const error = message.error;
    if (error)
      waiting.reject(new ApiError(error.data?.detail ?? error.message, error.data?.status ?? error.code));
    else waiting.resolve(message.result);
  }

  #failAll() {
    for (const waiting of this.#waiting.values()) {
      clearTimeout(waiting.timer);
      waiting.reject(new ApiError("the connection to the server was lost", 0));
    }
    this.#waiting.clear();
  }
}
