/** JSON-RPC 2.0 over the WebSocket `/v1/ws`: what must be quick (keys) or is asked often (memory), and what is pushed. */

import { ApiError } from "./api.ts";
import { LastingSocket } from "./socket.ts";

/** After so long without an answer a call counts as lost. */
const PATIENCE_MS = 10_000;

interface Waiting {
  resolve(value: unknown): void;
  reject(error: ApiError): void;
  timer: ReturnType<typeof setTimeout>;
}

interface Message {
  id?: number;
  result?: unknown;
  error?: { code: number; message: string; data?: { detail?: string; status?: number } };
  method?: string;
  params?: unknown;
}

export class Rpc {
  readonly socket: LastingSocket;
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Map<string, Set<(params: unknown) => void>>();
  readonly #openers = new Set<() => void>();
  #lastId = 0;

  constructor(url: () => string) {
    this.socket = new LastingSocket(url, {
      open: () => {
        for (const opener of this.#openers) opener();
      },
      message: (data) => this.#take(data),
      close: () => this.#failAll(),
    });
  }

  /** Asks for something to be done now; nothing is kept for a later connection. */
  call<T>(method: string, params: object = {}): Promise<T> {
    this.#lastId += 1;
    const id = this.#lastId;
    const sent = this.socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    if (!sent) return Promise.reject(new ApiError("not connected to the server", 0));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new ApiError("the server did not answer", 0));
      }, PATIENCE_MS);
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject, timer });
    });
  }

  /** Calls `listener` with each notification of this method. */
  on(method: string, listener: (params: unknown) => void): void {
    const listeners = this.#listeners.get(method) ?? new Set();
    this.#listeners.set(method, listeners.add(listener));
  }

  /** Calls `opener` at each connection, the one there may be now included; what it returns ends that. */
  onOpen(opener: () => void): () => void {
    this.#openers.add(opener);
    if (this.socket.connected.value) opener();
    return () => this.#openers.delete(opener);
  }

  #take(data: string | ArrayBuffer): void {
    if (typeof data !== "string") return;
    const message = JSON.parse(data) as Message;
    if (message.method !== undefined) {
      for (const listener of this.#listeners.get(message.method) ?? []) listener(message.params);
      return;
    }
    const waiting = this.#waiting.get(message.id ?? -1);
    if (!waiting) return;
    this.#waiting.delete(message.id ?? -1);
    clearTimeout(waiting.timer);
    const error = message.error;
    if (error)
      waiting.reject(new ApiError(error.data?.detail ?? error.message, error.data?.status ?? error.code));
    else waiting.resolve(message.result);
  }

  #failAll(): void {
    for (const waiting of this.#waiting.values()) {
      clearTimeout(waiting.timer);
      waiting.reject(new ApiError("the connection to the server was lost", 0));
    }
    this.#waiting.clear();
  }
}
