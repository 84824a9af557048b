/** The values of expressions as they change, and of others as others are watched. */

import { Subscription } from "./subscription.js";

/**
 * @import { Api } from "./api.js"
 * @import { Rpc } from "./rpc.js"
 * @import { Notice } from "./subscription.js"
 */

/**
 * @typedef {object} FeedEvents
 * @property {(values: Readonly<Record<string, unknown>>, frame: number) => void} values Values that changed, or all of them at the beginning.
 * @property {(error: unknown) => void} refused The server does not take what is to be watched.
 */

export class WatchFeed {
  #events;
  /** @type {Subscription} */
  #subscription;
  /** @type {readonly string[]} */
  #wanted = [];

  /**
   * @param {Rpc} rpc
   * @param {Api} api
   * @param {FeedEvents} events
   */
  constructor(rpc, api, events) {
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

  /**
   * Watches exactly these.
   * @param {readonly string[]} expressions
   */
  watch(expressions) {
    if (
      expressions.length === this.#wanted.length &&
      expressions.every((text, at) => text === this.#wanted[at])
    )
      return;
    this.#wanted = expressions;
    void this.#subscription.renew();
  }

  /** @param {Notice} notice */
  #take({ data }) {
    const changed = Object.entries(data.changes ?? {}).map(
      ([text, change]) => /** @type {const} */ ([text, change.new]),
    );
    this.#events.values({ ...data.values, ...Object.fromEntries(changed) }, data.frame ?? 0);
  }
}
