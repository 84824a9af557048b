/** A JSON-RPC subscription that is renewed after reconnections, and when another emulator is selected. */

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
 * @property {() => object | undefined} wanted
 *   Returns the parameters of the subscription, without the emulator; `undefined` for no subscription.
 * @property {(notice: Notice) => void} received Called with each notification.
 * @property {(error: unknown) => void} [refused] Called when the subscription fails although the page is connected.
 */

export class Subscription {
  #rpc;
  #subscriber;
  /** @type {number | undefined} */
  #number;
  /** The number of renewals so far. It shows whether an answer belongs to the newest renewal. */
  #renewal = 0;

  /**
   * @param {Rpc} rpc
   * @param {Api} api
   * @param {Subscriber} subscriber
   */
  constructor(rpc, api, subscriber) {
    this.#rpc = rpc;
    this.#subscriber = subscriber;
    rpc.onEvent((params) => {
      const notice = /** @type {Notice} */ (params);
      if (notice.subscription === this.#number) subscriber.received(notice);
    });
    rpc.onOpen(() => {
      this.#number = undefined;
      void this.renew();
    });
    api.emulator.follow(() => void this.renew());
  }

  /** Replaces the subscription with a new one that has the parameters that `wanted` returns now. */
  async renew() {
    this.#renewal += 1;
    const renewal = this.#renewal;
    const old = this.#number;
    this.#number = undefined;
    if (!this.#rpc.socket.connected.value) return;
    try {
      // The subscription may have ended already, for example because another game was loaded.
      if (old !== undefined) await this.#rpc.call("unsubscribe", { subscription: old }).catch(() => {});
      const wanted = this.#subscriber.wanted();
      if (wanted === undefined || renewal !== this.#renewal) return;
      /** @type {{ subscription: number }} */
      const { subscription } = await this.#rpc.callSelected("subscribe", wanted);
      if (renewal === this.#renewal) this.#number = subscription;
      else await this.#rpc.call("unsubscribe", { subscription });
    } catch (error) {
      if (renewal === this.#renewal && this.#rpc.socket.connected.value) this.#subscriber.refused?.(error);
    }
  }
}
