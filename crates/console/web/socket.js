/** A WebSocket that comes back by itself. */

import { Store } from "./store.js";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 4000;
/** After so long without an answer another connection is tried. */
const PATIENCE_MS = 5000;
/** A connection that lasted so long starts again with the shortest pause. */
const STEADY_MS = 3000;

/**
 * @typedef {object} Handlers
 * @property {() => void} [open]
 * @property {(data: string | ArrayBuffer) => void} message
 * @property {() => void} [close] The connection is gone; the next one comes by itself.
 */

export class LastingSocket {
  /** @readonly Whether it is connected now. */
  connected = new Store(false);
  /** @readonly How often a connection was lost. */
  losses = new Store(0);
  #url;
  #handlers;
  /** @type {WebSocket | undefined} */
  #socket;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #pause = FIRST_PAUSE_MS;
  #wanted = false;

  /**
   * `url` is asked anew for every connection.
   * @param {() => string} url
   * @param {Handlers} handlers
   */
  constructor(url, handlers) {
    this.#url = url;
    this.#handlers = handlers;
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.hurry();
    });
  }

  start() {
    this.#wanted = true;
    if (!this.#socket && this.#timer === undefined) this.#connect();
  }

  stop() {
    this.#wanted = false;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#drop();
  }

  /** Connects again at once, to where `url` says now. */
  restart() {
    this.stop();
    this.#pause = FIRST_PAUSE_MS;
    this.start();
  }

  /** Ends a pause between attempts. */
  hurry() {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#connect();
  }

  /**
   * Whether it could be sent.
   * @param {string | ArrayBuffer} data
   * @returns {boolean}
   */
  send(data) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(data);
    return true;
  }

  #connect() {
    const socket = new WebSocket(this.#url());
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    let since = 0;
    const giveUp = setTimeout(() => {
      if (this.#socket !== socket || socket.readyState !== WebSocket.CONNECTING) return;
      this.#drop();
      this.#later();
    }, PATIENCE_MS);
    socket.onopen = () => {
      clearTimeout(giveUp);
      since = performance.now();
      this.connected.set(true);
      this.#handlers.open?.();
    };
    socket.onmessage = (event) => this.#handlers.message(event.data);
    socket.onclose = () => {
      clearTimeout(giveUp);
      if (since > 0 && performance.now() - since > STEADY_MS) this.#pause = FIRST_PAUSE_MS;
      if (since > 0) this.losses.set(this.losses.value + 1);
      this.#drop();
      if (this.#wanted) this.#later();
    };
  }

  #later() {
    // Not all pages at once when a server comes back.
    const pause = this.#pause * (0.75 + Math.random() / 2);
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#connect();
    }, pause);
  }

  #drop() {
    const socket = this.#socket;
    if (!socket) return;
    this.#socket = undefined;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
    if (this.connected.value) {
      this.connected.set(false);
      this.#handlers.close?.();
    }
  }
}
