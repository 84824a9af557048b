/** A subscription to expressions, kept over reconnections and changes of what is watched. */

import type { Api } from "./api.ts";
import type { Rpc } from "./rpc.ts";

export interface FeedEvents {
  /** Values that changed, or all of them at the beginning. */
  values(values: Readonly<Record<string, unknown>>, frame: number): void;
  /** The server does not take what is to be watched. */
  refused(error: unknown): void;
}

interface Notice {
  subscription: number;
  event: string;
  data: {
    frame?: number;
    values?: Record<string, unknown>;
    changes?: Record<string, { new: unknown }>;
  };
}

export class WatchFeed {
  readonly #rpc: Rpc;
  readonly #api: Api;
  readonly #events: FeedEvents;
  #wanted: readonly string[] = [];
  #subscription: number | undefined;
  /** Counts up with each wish, so that the answer to an old one is known. */
  #wish = 0;

  constructor(rpc: Rpc, api: Api, events: FeedEvents) {
    this.#rpc = rpc;
    this.#api = api;
    this.#events = events;
    rpc.on("event", (params) => this.#take(params as Notice));
    rpc.onOpen(() => {
      this.#subscription = undefined;
      void this.#subscribe();
    });
    api.emulator.follow(() => void this.#subscribe());
  }

  /** Watches exactly these. */
  watch(expressions: readonly string[]): void {
    if (
      expressions.length === this.#wanted.length &&
      expressions.every((text, at) => text === this.#wanted[at])
    )
      return;
    this.#wanted = expressions;
    void this.#subscribe();
  }

  async #subscribe(): Promise<void> {
    this.#wish += 1;
    const wish = this.#wish;
    const old = this.#subscription;
    this.#subscription = undefined;
    if (!this.#rpc.socket.connected.value) return;
    try {
      if (old !== undefined) await this.#rpc.call("unsubscribe", { subscription: old });
      if (this.#wanted.length === 0 || wish !== this.#wish) return;
      const emulator = this.#api.emulator.value;
      const { subscription } = await this.#rpc.call<{ subscription: number }>("subscribe", {
        // The frame counter too: it changes with each frame, so that time goes on for what does not change.
        watch: this.#wanted.includes("frame") ? this.#wanted : [...this.#wanted, "frame"],
        ...(emulator === undefined ? {} : { emulator }),
      });
      if (wish === this.#wish) this.#subscription = subscription;
      else await this.#rpc.call("unsubscribe", { subscription });
    } catch (error) {
      if (wish === this.#wish && this.#rpc.socket.connected.value) this.#events.refused(error);
    }
  }

  #take({ subscription, data }: Notice): void {
    if (subscription !== this.#subscription) return;
    const changed = Object.entries(data.changes ?? {}).map(([text, change]) => [text, change.new] as const);
    this.#events.values({ ...data.values, ...Object.fromEntries(changed) }, data.frame ?? 0);
  }
}
