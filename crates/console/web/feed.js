/** The values of watched expressions as they change. */

import { Subscription } from "./subscription.js";

/**
 * @import { Api } from "./api.js"
 * @import { Rpc } from "./rpc.js"
 * @import { Notice } from "./subscription.js"
 */

/**
 * @typedef {object} FeedEvents
 * @property {(values: Readonly<Record<string, unknown>>, frame: number) => void} values Values that changed; at first, all values.
 * @property {(error: unknown) => void} refused The server rejected the expressions.
 */

export class WatchFeed {
  #events;
  /** @type {Subscription} */
  #subscription;
  /** @type {readonly string[]} */
  #expressions = [];

  /**
   * @param {Rpc} rpc
   * @param {Api} api
   * @param {FeedEvents} events
   */
  constructor(rpc, api, events) {
    this.#events = events;
    this.#subscription = new Subscription(rpc, api, {
      wanted: () => {
        if (this.#expressions.length === 0) return undefined;
        // The frame counter changes with each frame, so the plots of constant values move on too.
        return {
          watch: this.#expressions.includes("frame") ? this.#expressions : [...this.#expressions, "frame"],
        };
      },
      received: (notice) => this.#receive(notice),
      refused: (error) => events.refused(error),
    });
  }

  /**
   * Sets the expressions to watch.
   * @param {readonly string[]} expressions
   */
  watch(expressions) {
    if (
      expressions.length === this.#expressions.length &&
      expressions.every((text, at) => text === this.#expressions[at])
    )
      return;
    this.#expressions = expressions;
    void this.#subscription.renew();
  }

  /** @param {Notice} notice */
  #receive({ data }) {
    const changed = Object.entries(data.changes ?? {}).map(
      ([text, change]) => /** @type {const} */ ([text, change.new]),
    );
    this.#events.values({ ...data.values, ...Object.fromEntries(changed) }, data.frame ?? 0);
  }
}
