/** The live picture: draws the stream `/v1/video` on a canvas. */

import { Clip } from "./clip.js";
import { Decoder } from "./picture.js";
import { ReconnectingSocket } from "./socket.js";
import { Store } from "./store.js";

/** @import { Api } from "./api.js" */

/**
 * A picture that arrived less than this time before a display frame waits for the next display frame, if an
 * older picture can be drawn now.
 */
const EARLY_MS = 6;
/** How many messages may wait while the browser draws nothing, for example because another window covers the page. */
const UNDRAWN = 30;

/**
 * Statistics of the stream in the last second.
 * @typedef {object} VideoRate
 * @property {number} pictures Pictures that were drawn.
 * @property {number} bits Bits that arrived.
 * @property {number} missed Frames whose pictures were not drawn.
 */

export class Video {
  /** @readonly @type {ReconnectingSocket} */
  socket;
  /** @readonly @type {Store<VideoRate>} */
  rate = new Store({ pictures: 0, bits: 0, missed: 0 });
  /** @readonly Whether the canvas has a picture. */
  seen = new Store(false);
  /** @readonly The size of the picture in pixels. */
  shape = new Store({ width: 240, height: 160 });
  /** @readonly The pictures of the last seconds. */
  clip = new Clip();
  #canvas;
  /** @type {CanvasRenderingContext2D} */
  #context;
  #decoder = new Decoder();
  /**
   * Messages that are not decoded yet, oldest first, with the times at which they arrived.
   * @type {{ message: ArrayBuffer, at: number }[]}
   */
  #waiting = [];
  #drawing = false;
  /** @type {ImageData | undefined} */
  #image;
  #pictures = 0;
  #bytes = 0;
  #missed = 0;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Api} api
   */
  constructor(canvas, api) {
    this.#canvas = canvas;
    const context = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    if (!context) throw new Error("this browser draws no pictures");
    this.#context = context;
    this.socket = new ReconnectingSocket(() => api.socketUrl("/v1/video"), {
      message: (data) => {
        if (data instanceof ArrayBuffer) this.#receive(data);
      },
    });
    setInterval(() => this.#count(), 1000);
    // A hidden page needs no pictures. They would only cost the server and the emulator time.
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.socket.stop();
      else this.socket.start();
    });
    api.emulator.follow(() => {
      this.#forget();
      if (!document.hidden) this.socket.restart();
    });
  }

  /** Clears the picture. It belongs to the emulator that was selected before. */
  #forget() {
    this.#decoder = new Decoder();
    this.#waiting = [];
    this.#image = undefined;
    this.clip.clear();
    this.#context.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    this.seen.set(false);
  }

  /** @param {ArrayBuffer} message */
  #receive(message) {
    this.#waiting.push({ message, at: performance.now() });
    this.#bytes += message.byteLength;
    if (this.#waiting.length > UNDRAWN) this.#decodeNext();
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => this.#draw());
  }

  /**
   * Draws the newest picture, at most once in each display frame. Pictures do not arrive in step with the display. If
   * they arrive at about the same time as display frames, some arrive just before one and some just after. Then two
   * pictures can fall into the same display frame, and users see only one of them. To avoid that, a picture that has
   * only just arrived may wait for the next display frame.
   */
  #draw() {
    const newest = this.#waiting.at(-1);
    const waits = this.#waiting.length > 1 && newest && performance.now() - newest.at < EARLY_MS;
    const left = waits ? 1 : 0;
    this.#drawing = left > 0;
    if (this.#drawing) requestAnimationFrame(() => this.#draw());
    const before = this.#decoder.tick;
    let decoded = false;
    while (this.#waiting.length > left) decoded = this.#decodeNext() || decoded;
    if (!decoded || !this.#image) return;
    this.#context.putImageData(this.#image, 0, 0);
    this.#pictures += 1;
    if (this.seen.value) this.#missed += Math.max(0, this.#decoder.tick - before - 1);
    this.seen.set(true);
  }

  /**
   * Decodes the oldest waiting message. Returns whether that gave a picture.
   * @returns {boolean}
   */
  #decodeNext() {
    const next = this.#waiting.shift();
    if (!next) return false;
    const { message } = next;
    try {
      if (this.#decoder.decode(message) || !this.#image) this.#resize();
    } catch (error) {
      console.warn(error);
      // Decoding can continue only with a whole picture, which this message requests.
      this.socket.send("key");
      return false;
    }
    this.clip.add(message, this.#decoder);
    return true;
  }

  #resize() {
    const { width, height, pixels } = this.#decoder;
    this.#canvas.width = width;
    this.#canvas.height = height;
    this.#image = new ImageData(pixels, width, height);
    this.shape.set({ width, height });
  }

  #count() {
    this.rate.set({ pictures: this.#pictures, bits: this.#bytes * 8, missed: this.#missed });
    this.#pictures = this.#bytes = this.#missed = 0;
  }
}
