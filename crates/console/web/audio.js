/** The emulator's sound: the stream `/v1/audio`, for embedded cores. */

import { ReconnectingSocket } from "./socket.js";
import { Store } from "./store.js";

/** @import { Api } from "./api.js" */

/** Seconds that sound is buffered before it plays, so that small network delays cannot be heard. */
const LEAD = 0.06;
/** Sound that would be buffered for longer than this is dropped, in seconds. */
const LONGEST_LEAD = 0.25;

export class Sound {
  /** @readonly */
  on = new Store(false);
  /** @type {ReconnectingSocket} */
  #socket;
  /** @type {AudioContext | undefined} */
  #context;
  #rate = 32768;
  /** When the scheduled sound ends. */
  #end = 0;

  /** @param {Api} api */
  constructor(api) {
    this.#socket = new ReconnectingSocket(() => api.socketUrl("/v1/audio"), {
      message: (data) => this.#receive(data),
    });
    api.emulator.follow(() => {
      if (this.on.value) this.#socket.restart();
    });
  }

  /** Turns sound on or off. Browsers allow it only in response to a click. */
  toggle() {
    this.on.set(!this.on.value);
    if (this.on.value) {
      this.#context ??= new AudioContext();
      void this.#context.resume();
      this.#socket.start();
    } else {
      this.#socket.stop();
      void this.#context?.suspend();
    }
  }

  /** @param {string | ArrayBuffer} data */
  #receive(data) {
    if (typeof data === "string") {
      const { rate } = /** @type {{ rate?: number }} */ (JSON.parse(data));
      if (rate !== undefined) this.#rate = rate;
      return;
    }
    const context = this.#context;
    const count = data.byteLength >> 2;
    if (!context || count === 0) return;
    const now = context.currentTime;
    if (this.#end < now) this.#end = now + LEAD;
    if (this.#end > now + LONGEST_LEAD) return;
    const buffer = context.createBuffer(2, count, this.#rate);
    const samples = new Int16Array(data);
    for (const channel of [0, 1]) {
      const out = buffer.getChannelData(channel);
      for (let i = 0; i < count; i += 1) out[i] = (samples[i * 2 + channel] ?? 0) / 32768;
    }
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(context.destination);
    source.start(this.#end);
    this.#end += buffer.duration;
  }
}
