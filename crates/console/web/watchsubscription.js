/** Receives the values of watched expressions when they change. */

import { isRejection } from "./api.js";
import { Subscription } from "./subscription.js";

/**
 * @import { App } from "./app.js"
 * @import { Notice } from "./subscription.js"
 */

/**
 * @typedef {object} WatchSubscriber
 * @property {(values: Readonly<Record<string, unknown>>, frame: number) => void} values
 *   Gets all values at first, and later the values that changed.
 * @property {(expression: string, problem: string) => void} refused
 *   Called when the server rejects an expression. The other expressions are still watched.
 * @property {(error: unknown) => void} failed
 *   Called when nothing can be watched for a reason other than a rejected expression. Unless the
 *   server rejected the request, the page tries again as soon as an emulator is connected.
 */

export class WatchSubscription {
  #subscriber;
  #rpc;
  /** Expressions that the server rejected. @type {Set<string>} */
  #bad = new Set();
  /** @type {Subscription} */
  #subscription;
  /** @type {readonly string[]} */
  #expressions = [];
  /** Whether to subscribe again as soon as an emulator is connected. */
  #failed = false;

  /**
   * @param {App} app
   * @param {WatchSubscriber} subscriber
   */
  constructor({ rpc, api, poller, status }, subscriber) {
    this.#subscriber = subscriber;
    this.#rpc = rpc;
    // The game of another emulator may have the symbols that this game lacks.
    api.emulator.follow(() => {
      this.#bad = new Set();
    });
    this.#subscription = new Subscription(rpc, api, {
      wanted: () => {
        const good = this.#expressions.filter((text) => !this.#bad.has(text));
        if (good.length === 0) return undefined;
        // The frame counter changes in each frame. So every frame has an event, and plots of constant values advance.
        return { watch: good.includes("frame") ? good : [...good, "frame"] };
      },
      received: (notice) => {
        // The subscription ends when another game is loaded.
        if (notice.event === "end") void this.#subscription.renew();
        else this.#receive(notice);
      },
      refused: (error) => void this.#findBad(error),
    });
    poller.game.follow(() => {
      // This game may have the symbols that the previous game lacked.
      this.#bad = new Set();
      void this.#subscription.renew();
    });
    status.follow(({ emulator }) => {
      if (!this.#failed || !emulator?.connected) return;
      this.#failed = false;
      void this.#subscription.renew();
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
   * The reason why the server rejects an expression; `undefined` if it accepts the expression, or does not answer.
   * @type {(expression: string) => Promise<string | undefined>}
   */
  async problemOf(expression) {
    try {
      /** @type {{ subscription: number }} */
      const { subscription } = await this.#rpc.callSelected("subscribe", { watch: [expression] });
      await this.#rpc.call("unsubscribe", { subscription });
      return undefined;
    } catch (error) {
      return isRejection(error) ? error.message.replace(/^watch\[\d+\](:\s*)?/i, "") : undefined;
    }
  }

  /**
   * Finds the expressions that the server rejects, and watches the others.
   * @param {unknown} error
   */
  async #findBad(error) {
    const bad = this.#bad;
    const before = bad.size;
    for (const text of this.#expressions) {
      const problem = bad.has(text) ? undefined : await this.problemOf(text);
      // Meanwhile, another emulator was selected or another game was loaded, and the subscription was renewed. So this
      // answer is out of date.
      if (bad !== this.#bad) return;
      if (problem === undefined) continue;
      bad.add(text);
      this.#subscriber.refused(text, problem);
    }
    if (bad.size > before) {
      await this.#subscription.renew();
      return;
    }
    this.#failed = !isRejection(error);
    this.#subscriber.failed(error);
  }

  /** @param {Notice} notice */
  #receive({ data }) {
    const changed = Object.entries(data.changes ?? {}).map(
      ([text, change]) => /** @type {const} */ ([text, change.new]),
    );
    this.#subscriber.values({ ...data.values, ...Object.fromEntries(changed) }, data.frame ?? 0);
  }
}
