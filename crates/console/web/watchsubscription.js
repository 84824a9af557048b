/** Receives the values of watched expressions when they change. */

import { isRejection } from "./api.js";
import { textOf } from "./app.js";
import { Polling } from "./polling.js";
import { runsOnRequest } from "./status.js";
import { Subscription } from "./subscription.js";

/**
 * @import { App } from "./app.js"
 * @import { Notice } from "./subscription.js"
 */

/** The time between two evaluations of the expressions while frames run only on request. */
const EVERY_MS = 500;
/** Bytes or a text alone, such as `bytes[score, 4]`. They can be watched, but not evaluated. */
const ALONE = /^(bytes|text)\s*\[[^=]*\]$/;

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
  #api;
  /** Expressions that the server rejected. @type {Set<string>} */
  #bad = new Set();
  /** Those of them that the server rejected only because of the others. @type {Set<string>} */
  #surplus = new Set();
  /** @type {Subscription} */
  #subscription;
  /** @type {readonly string[]} */
  #expressions = [];
  /** Whether to subscribe again as soon as an emulator is connected. */
  #failed = false;
  /** The values after the last frame; empty until the server accepts the subscription. @type {Map<string, unknown>} */
  #watched = new Map();
  /** The values that the subscriber got last. @type {Map<string, unknown>} */
  #reported = new Map();
  /** A watch has no event until a frame has run. So without frames, it misses writes to memory and loaded states. */
  #evaluating = new Polling(() => this.#evaluate());

  /**
   * @param {App} app
   * @param {WatchSubscriber} subscriber
   */
  constructor({ rpc, api, poller, status }, subscriber) {
    this.#subscriber = subscriber;
    this.#rpc = rpc;
    this.#api = api;
    // The game of another emulator may have the symbols that this game lacks.
    api.emulator.follow(() => {
      this.#bad = new Set();
    });
    this.#subscription = new Subscription(rpc, api, {
      wanted: () => {
        const good = this.#expressions.filter((text) => !this.#bad.has(text));
        this.#watched.clear();
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
    status.follow(({ emulator, phase }) => {
      this.#evaluating.shown(runsOnRequest(phase));
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
    for (const text of this.#surplus) this.#bad.delete(text);
    this.#surplus.clear();
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
    const expressions = this.#expressions;
    const before = bad.size;
    for (const text of expressions) {
      const problem = bad.has(text) ? undefined : await this.problemOf(text);
      // Meanwhile, another emulator was selected, another game was loaded or the expressions were changed, and the
      // subscription was renewed. So this answer is out of date.
      if (bad !== this.#bad || expressions !== this.#expressions) return;
      if (problem === undefined) continue;
      bad.add(text);
      this.#subscriber.refused(text, problem);
    }
    const last = expressions.findLast((text) => !bad.has(text));
    // The server accepts each of them, but not all together, for example because there are too many.
    if (bad.size === before && isRejection(error) && last !== undefined && last !== expressions[0]) {
      bad.add(last);
      this.#surplus.add(last);
      this.#subscriber.refused(last, textOf(error));
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
    if (data.values) {
      this.#watched = new Map(Object.entries(data.values));
      this.#reported.clear();
    }
    for (const [text, change] of Object.entries(data.changes ?? {})) this.#watched.set(text, change.new);
    this.#report(this.#watched, data.frame ?? 0);
  }

  async #evaluate() {
    const values = [...this.#watched.keys()];
    if (values.length === 0) return EVERY_MS;
    if (values.some((text) => ALONE.test(text))) {
      // A new subscription begins with all values.
      await this.#subscription.renew();
      return EVERY_MS;
    }
    const emulator = this.#api.emulator.value;
    try {
      /** @type {{ frame: number, results: { value?: Record<string, unknown> }[] }} */
      const { frame, results } = await this.#rpc.callSelected("batch", { ops: [{ op: "evaluate", values }] });
      if (emulator === this.#api.emulator.value)
        this.#report(new Map(Object.entries(results[0]?.value ?? {})), frame);
    } catch {
      // The header shows a lost connection. If an expression is wrong, the subscription is refused too.
    }
    return EVERY_MS;
  }

  /**
   * Gives the subscriber the values that it does not have yet.
   * @type {(values: ReadonlyMap<string, unknown>, frame: number) => void}
   */
  #report(values, frame) {
    const fresh = [...values].filter(([text, value]) => this.#reported.get(text) !== value);
    for (const [text, value] of fresh) this.#reported.set(text, value);
    this.#subscriber.values(Object.fromEntries(fresh), frame);
  }
}
