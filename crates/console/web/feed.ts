/** The values of expressions as they change, and of others as others are watched. */

import type { Api } from "./api.ts";
import type { Rpc } from "./rpc.ts";
import { type Notice, Subscription } from "./subscription.ts";

export interface FeedEvents {
  /** Values that changed, or all of them at the beginning. */
  values(values: Readonly<Record<string, unknown>>, frame: number): void;
  /** The server does not take what is to be watched. */
  refused(error: unknown): void;
}

export class WatchFeed {
  readonly #events: FeedEvents;
  readonly #subscription: Subscription;
  #wanted: readonly string[] = [];

  constructor(rpc: Rpc, api: Api, events: FeedEvents) {
    this.#events = events;
    this.#subscription = new Subscription(rpc, api, {
      wanted: () => {
        if (this.#wanted.length === 0) return undefined;
        // The frame counter too: it changes with each frame, so that time goes on for what does not change.
        return { watch: this.#wanted.includes("frame") ? this.#wanted : [...this.#wanted, "frame"] };
      },
      told: (notice) => this.#take(notice),
      refused: (error) => events.refused(error),
    });
  }

  /** Watches exactly these. */
  watch(expressions: readonly string[]): void {
    if (
      expressions.length === this.#wanted.length &&
      expressions.every((text, at) => text === this.#wanted[at])
    )
      return;
    this.#wanted = expressions;
    void this.#subscription.renew();
  }

  #take({ data }: Notice): void {
    const changed = Object.entries(data.changes ?? {}).map(([text, change]) => [text, change.new] as const);
    this.#events.values({ ...data.values, ...Object.fromEntries(changed) }, data.frame ?? 0);
  }
}
