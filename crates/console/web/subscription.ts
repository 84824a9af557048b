/** One subscription of the JSON-RPC connection, kept over reconnections and changes of the emulator. */

import type { Api } from "./api.ts";
import type { Rpc } from "./rpc.ts";

/** What the server tells of a subscription. */
export interface Notice {
  subscription: number;
  event: string;
  data: {
    frame?: number;
    values?: Record<string, unknown>;
    changes?: Record<string, { new: unknown }>;
  };
}

export interface Subscriber {
  /** What is subscribed to, but for the emulator; `undefined` is nothing. */
  wanted(): object | undefined;
  /** Something was told. */
  told(notice: Notice): void;
  /** The server does not take it. */
  refused?(error: unknown): void;
}

export class Subscription {
  readonly #rpc: Rpc;
  readonly #api: Api;
  readonly #subscriber: Subscriber;
  #number: number | undefined;
  /** Counts up with each wish, so that the answer to an old one is known. */
  #wish = 0;

  constructor(rpc: Rpc, api: Api, subscriber: Subscriber) {
    this.#rpc = rpc;
    this.#api = api;
    this.#subscriber = subscriber;
    rpc.on("event", (params) => {
      const notice = params as Notice;
      if (notice.subscription === this.#number) subscriber.told(notice);
    });
    rpc.onOpen(() => {
      this.#number = undefined;
      void this.renew();
    });
    api.emulator.follow(() => void this.renew());
  }

  /** Subscribes to what is wanted now, in place of what was before. */
  async renew(): Promise<void> {
    this.#wish += 1;
    const wish = this.#wish;
    const old = this.#number;
    this.#number = undefined;
    if (!this.#rpc.socket.connected.value) return;
    try {
      if (old !== undefined) await this.#rpc.call("unsubscribe", { subscription: old });
      const wanted = this.#subscriber.wanted();
      if (wanted === undefined || wish !== this.#wish) return;
      const emulator = this.#api.emulator.value;
      const { subscription } = await this.#rpc.call<{ subscription: number }>("subscribe", {
        ...wanted,
        ...(emulator === undefined ? {} : { emulator }),
      });
      if (wish === this.#wish) this.#number = subscription;
      else await this.#rpc.call("unsubscribe", { subscription });
    } catch (error) {
      if (wish === this.#wish && this.#rpc.socket.connected.value) this.#subscriber.refused?.(error);
    }
  }
}
