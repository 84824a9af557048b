/** A WebSocket that reconnects automatically. */

import { Store } from "./store.js";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 4000;
/** How long a connection attempt may take. */
const TIMEOUT_MS = 5000;
/** After a connection that lasted this long, the first reconnection attempt comes after the shortest pause. */
const STABLE_MS = 3000;

/**
 * @typedef {object} Handlers
 * @property {() => void} [open]
 * @property {(data: string | ArrayBuffer) => void} message
 * @property {() => void} [close] Called when an open connection ends, because it was lost or because of `stop`.
 */

/**
 * The sockets that are between `start` and `stop`, each with the controller that removes its event listeners.
 * @type {Map<ReconnectingSocket, AbortController>}
 */
const active = new Map();

/** Reconnects all sockets of the page. Called when the network has dropped their connections silently. */
export function reconnectAll() {
  for (const socket of [...active.keys()]) socket.restart();
}

export class ReconnectingSocket {
  /** @readonly Whether it is connected. */
  connected = new Store(false);
  /** @readonly How many times the connection was lost. */
  losses = new Store(0);
  #url;
  #handlers;
  /** @type {WebSocket | undefined} */
  #socket;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #pause = FIRST_PAUSE_MS;

  /**
   * `url` is called for every connection.
   * @param {() => string} url
   * @param {Handlers} handlers
   */
  constructor(url, handlers) {
    this.#url = url;
    this.#handlers = handlers;
  }

  start() {
    if (!active.has(this)) {
      const listeners = new AbortController();
      active.set(this, listeners);
      const { signal } = listeners;
      addEventListener("online", () => this.reconnectNow(), { signal });
      const listener = () => {
        if (!document.hidden) this.reconnectNow();
      };
      document.addEventListener("visibilitychange", listener, { signal });
    }
    if (!this.#socket && this.#timer === undefined) this.#connect();
  }

  stop() {
    active.get(this)?.abort();
    active.delete(this);
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#drop();
  }

  /** Reconnects immediately, to the current `url`. */
  restart() {
    this.stop();
    this.#pause = FIRST_PAUSE_MS;
    this.start();
  }

  /** Connects now if the socket is waiting for its next attempt. */
  reconnectNow() {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#connect();
  }

  /**
   * Sends a message. Returns false if there is no connection.
   * @type {(data: string | ArrayBuffer) => boolean}
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
    const timeout = setTimeout(() => {
      if (this.#socket !== socket || socket.readyState !== WebSocket.CONNECTING) return;
      this.#drop();
      this.#reconnectLater();
    }, TIMEOUT_MS);
    socket.onopen = () => {
      clearTimeout(timeout);
      since = performance.now();
      this.connected.set(true);
      this.#handlers.open?.();
    };
    socket.onmessage = (event) => this.#handlers.message(event.data);
    socket.onclose = () => {
      clearTimeout(timeout);
      if (since > 0 && performance.now() - since > STABLE_MS) this.#pause = FIRST_PAUSE_MS;
      if (since > 0) this.losses.set(this.losses.value + 1);
      this.#drop();
      if (active.has(this)) this.#reconnectLater();
    };
  }

  #reconnectLater() {
    // The pause is random, so that not all pages reconnect at the same moment.
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
