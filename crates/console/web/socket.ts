/** A WebSocket that comes back by itself. */

import { Store } from "./store.ts";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 4000;
/** After so long without an answer another connection is tried. */
const PATIENCE_MS = 5000;
/** A connection that lasted so long starts again with the shortest pause. */
const STEADY_MS = 3000;

export interface Handlers {
  open?(): void;
  message(data: string | ArrayBuffer): void;
  /** The connection is gone; the next one comes by itself. */
  close?(): void;
}

export class LastingSocket {
  /** Whether it is connected now. */
  readonly connected = new Store(false);
  /** How often a connection was lost. */
  readonly losses = new Store(0);
  readonly #url: () => string;
  readonly #handlers: Handlers;
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pause = FIRST_PAUSE_MS;
  #wanted = false;

  /** `url` is asked anew for every connection. */
  constructor(url: () => string, handlers: Handlers) {
    this.#url = url;
    this.#handlers = handlers;
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.hurry();
    });
  }

  start(): void {
    this.#wanted = true;
    if (!this.#socket && this.#timer === undefined) this.#connect();
  }

  stop(): void {
    this.#wanted = false;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#drop();
  }

  /** Connects again at once, to where `url` says now. */
  restart(): void {
    this.stop();
    this.#pause = FIRST_PAUSE_MS;
    this.start();
  }

  /** Ends a pause between attempts. */
  hurry(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#connect();
  }

  /** Whether it could be sent. */
  send(data: string | ArrayBuffer): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(data);
    return true;
  }

  #connect(): void {
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

  #later(): void {
    // Not all pages at once when a server comes back.
    const pause = this.#pause * (0.75 + Math.random() / 2);
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#connect();
    }, pause);
  }

  #drop(): void {
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
