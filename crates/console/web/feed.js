/** The values of watched expressions as they change. */

import { ApiError } from "./api.js";
import { Subscription } from "./subscription.js";

/**
 * @import { Api } from "./api.js"
 * @import { Rpc } from "./rpc.js"
 * @import { Notice } from "./subscription.js"
 */

/**
 * @typedef {object} FeedEvents
 * @property {(values: Readonly<Record<string, unknown>>, frame: number) => void} values Values that changed; at first, all values.
 * @property {(expression: string, problem: string) => void} refused The server rejected an expression. The others are watched.
 * @property {(error: unknown) => void} failed Nothing is watched.
 */

export class WatchFeed {
  #events;
  #rpc;
  #api;
  /**
   * Expressions that the server rejected.
   * @type {Set<string>}
   */
  #bad = new Set();
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
    this.#rpc = rpc;
    this.#api = api;
    // Another game may have the symbols that this one lacks.
    api.emulator.follow(() => this.#bad.clear());
    this.#subscription = new Subscription(rpc, api, {
      wanted: () => {
        const good = this.#expressions.filter((text) => !this.#bad.has(text));
        if (good.length === 0) return undefined;
        // The frame counter changes with each frame, so the plots of constant values move on too.
        return { watch: good.includes("frame") ? good : [...good, "frame"] };
      },
      received: (notice) => this.#receive(notice),
      refused: (error) => void this.#findBad(error),
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

  /**
   * Why the server rejects an expression; `undefined` if it does not, or if there is no answer.
   * @param {string} expression
   * @returns {Promise<string | undefined>}
   */
  async problemOf(expression) {
    const emulator = this.#api.emulator.value;
    try {
      /** @type {{ subscription: number }} */
      const { subscription } = await this.#rpc.call("subscribe", {
        watch: [expression],
        ...(emulator === undefined ? {} : { emulator }),
      });
      await this.#rpc.call("unsubscribe", { subscription });
      return undefined;
    } catch (error) {
      const rejected = error instanceof ApiError && error.status >= 400 && error.status < 500;
      return rejected ? error.message.replace(/^watch\[\d+\](:\s*)?/i, "") : undefined;
    }
  }

  /**
   * Finds the expressions that the server rejects, and watches the others.
   * @param {unknown} error
   */
  async #findBad(error) {
    const before = this.#bad.size;
    for (const text of this.#expressions) {
      const problem = this.#bad.has(text) ? undefined : await this.problemOf(text);
      if (problem === undefined) continue;
      this.#bad.add(text);
      this.#events.refused(text, problem);
    }
    if (this.#bad.size > before) await this.#subscription.renew();
    else this.#events.failed(error);
  }

  /** @param {Notice} notice */
  #receive({ data }) {
    const changed = Object.entries(data.changes ?? {}).map(
      ([text, change]) => /** @type {const} */ ([text, change.new]),
    );
    this.#events.values({ ...data.values, ...Object.fromEntries(changed) }, data.frame ?? 0);
  }
}
