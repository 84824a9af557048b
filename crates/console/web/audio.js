/** Plays the emulator's sound from the stream `/v1/audio`, which only embedded cores have. */

import { decode } from "./adpcm.js";
import { volume } from "./look.js";
import { ReconnectingSocket } from "./socket.js";
import { Store } from "./store.js";

/** @import { App } from "./app.js" */

/** For how many seconds sound is buffered before it plays, so that small network delays cannot be heard. */
const LEAD = 0.06;
/** Sound that would be buffered for more seconds than this is dropped. */
const LONGEST_LEAD = 0.25;

export class Sound {
  /** @readonly */
  on = new Store(false);
  /** @type {ReconnectingSocket} */
  #socket;
  /** @type {AudioContext} */
  #context;
  /** @type {GainNode} */
  #gain;
  #rate = 32768;
  /** When the scheduled sound ends, on the clock of the audio context. */
  #end = 0;

  /** Whether the selected emulator has sound for the page. */
  #isAvailable = true;

  /**
   * @param {Pick<App, "api" | "status">} app
   * @param {AudioContext} context
   */
  constructor({ api, status }, context) {
    this.#context = context;
    this.#gain = context.createGain();
    this.#gain.connect(context.destination);
    this.#socket = new ReconnectingSocket(() => api.socketUrl("/v1/audio", { format: "adpcm" }), {
      message: (data) => this.#receive(data),
    });
    volume.follow((percent) => {
      this.#gain.gain.value = percent / 100;
    });
    api.emulator.follow(() => {
      if (this.on.value) this.#socket.restart();
    });
    status.follow(({ emulator }) => {
      this.#isAvailable = emulator?.kind !== "attached";
      this.#connect();
    });
  }

  /** Turns sound on or off. Before each call, the caller resumes the audio context. */
  toggle() {
    this.on.set(!this.on.value);
    if (!this.on.value) void this.#context.suspend();
    this.#connect();
  }

  /** Connects if the sound is on and can come, or else ends the connection. */
  #connect() {
    if (this.on.value && this.#isAvailable) this.#socket.start();
    else this.#socket.stop();
  }

  /** @param {string | ArrayBuffer} data */
  #receive(data) {
    if (typeof data === "string") {
      const { rate } = /** @type {{ rate?: number }} */ (JSON.parse(data));
      if (rate !== undefined) this.#rate = rate;
      return;
    }
    const context = this.#context;
    const [left, right] = decode(data);
    const count = left.length;
    if (count === 0) return;
    const now = context.currentTime;
    if (this.#end < now) this.#end = now + LEAD;
    if (this.#end > now + LONGEST_LEAD) return;
    const buffer = context.createBuffer(2, count, this.#rate);
    buffer.copyToChannel(left, 0);
    buffer.copyToChannel(right, 1);
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#gain);
    source.start(this.#end);
    this.#end += buffer.duration;
  }
}
