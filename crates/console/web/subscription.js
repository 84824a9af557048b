/** One subscription of the JSON-RPC connection, kept over reconnections and changes of the emulator. */

/**
 * @import { Api } from "./api.js"
 * @import { Rpc } from "./rpc.js"
 */

/**
 * What the server tells of a subscription.
 * @typedef {object} Notice
 * @property {number} subscription
 * @property {string} event
 * @property {{ frame?: number; values?: Record<string, unknown>; changes?: Record<string, { new: unknown }>; }} data
 */

/**
 * @typedef {object} Subscriber
 * @property {() => object | undefined} wanted What is subscribed to, but for the emulator; `undefined` is nothing.
 * @property {(notice: Notice) => void} told Something was told.
 * @property {(error: unknown) => void} [refused] The server does not take it.
 */

export class Subscription {
  #rpc;
  #api;
  #subscriber;
  /** @type {number | undefined} */
  #number;
  /** Counts up with each wish, so that the answer to an old one is known. */
  #wish = 0;

  /**
   * @param {Rpc} rpc
   * @param {Api} api
   * @param {Subscriber} subscriber
   */
  constructor(rpc, api, subscriber) {
    this.#rpc = rpc;
    this.#api = api;
    this.#subscriber = subscriber;
    rpc.on("event", (params) => {
      const notice = /** @type {Notice} */ (params);
      if (notice.subscription === this.#number) subscriber.told(notice);
    });
    rpc.onOpen(() => {
      this.#number = undefined;
      void this.renew();
    });
    api.emulator.follow(() => void this.renew());
  }

  /** Subscribes to what is wanted now, in place of what was before. */
  async renew() {
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
      /** @type {{ subscription: number }} */
      const { subscription } = await this.#rpc.call("subscribe", {
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
