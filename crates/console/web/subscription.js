/** A JSON-RPC subscription, renewed after reconnections and when another emulator is selected. */

/**
 * @import { Api } from "./api.js"
 * @import { Rpc } from "./rpc.js"
 */

/**
 * A notification of a subscription.
 * @typedef {object} Notice
 * @property {number} subscription
 * @property {string} event
 * @property {{ frame?: number; values?: Record<string, unknown>; changes?: Record<string, { new: unknown }>; }} data
 */

/**
 * @typedef {object} Subscriber
 * @property {() => object | undefined} wanted The parameters, without the emulator; `undefined` for no subscription.
 * @property {(notice: Notice) => void} received A notification arrived.
 * @property {(error: unknown) => void} [refused] The server rejected the subscription.
 */

export class Subscription {
  #rpc;
  #api;
  #subscriber;
  /** @type {number | undefined} */
  #number;
  /** Counts the renewals, to recognize the answers to old ones. */
  #renewal = 0;

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
      if (notice.subscription === this.#number) subscriber.received(notice);
    });
    rpc.onOpen(() => {
      this.#number = undefined;
      void this.renew();
    });
    api.emulator.follow(() => void this.renew());
  }

  /** Replaces the subscription with the parameters that are wanted now. */
  async renew() {
    this.#renewal += 1;
    const renewal = this.#renewal;
    const old = this.#number;
    this.#number = undefined;
    if (!this.#rpc.socket.connected.value) return;
    try {
      if (old !== undefined) await this.#rpc.call("unsubscribe", { subscription: old });
      const wanted = this.#subscriber.wanted();
      if (wanted === undefined || renewal !== this.#renewal) return;
      const emulator = this.#api.emulator.value;
      /** @type {{ subscription: number }} */
      const { subscription } = await this.#rpc.call("subscribe", {
        ...wanted,
        ...(emulator === undefined ? {} : { emulator }),
      });
      if (renewal === this.#renewal) this.#number = subscription;
      else await this.#rpc.call("unsubscribe", { subscription });
    } catch (error) {
      if (renewal === this.#renewal && this.#rpc.socket.connected.value) this.#subscriber.refused?.(error);
    }
  }
}
