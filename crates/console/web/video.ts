/** The live picture: the stream `/v1/video` on a canvas. */

import type { Api } from "./api.ts";
import { Decoder } from "./picture.ts";
import { LastingSocket } from "./socket.ts";
import { Store } from "./store.ts";

/** How the stream went in the last second. */
export interface VideoRate {
  /** Pictures a second. */
  pictures: number;
  /** Bits a second. */
  bits: number;
  /** Frames that were run without a picture of them getting here. */
  missed: number;
}

export class Video {
  readonly socket: LastingSocket;
  readonly rate = new Store<VideoRate>({ pictures: 0, bits: 0, missed: 0 });
  /** Whether the canvas shows something. */
  readonly seen = new Store(false);
  /** Width over height. */
  readonly shape = new Store({ width: 240, height: 160 });
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  readonly #decoder = new Decoder();
  #image: ImageData | undefined;
  #pictures = 0;
  #bytes = 0;
  #missed = 0;

  constructor(canvas: HTMLCanvasElement, api: Api) {
    this.#canvas = canvas;
    const context = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
    if (!context) throw new Error("this browser draws no pictures");
    this.#context = context;
    this.socket = new LastingSocket(() => api.socketUrl("/v1/video"), {
      message: (data) => {
        if (data instanceof ArrayBuffer) this.#take(data);
      },
    });
    setInterval(() => this.#count(), 1000);
    // Nobody looks at a hidden page; its stream costs the server and the emulator for nothing.
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.socket.stop();
      else this.socket.start();
    });
  }

  /** The frame counter of the picture that is shown. */
  get frame(): number {
    return this.#decoder.frame;
  }

  #take(message: ArrayBuffer): void {
    const before = this.#decoder.tick;
    try {
      if (this.#decoder.decode(message) || !this.#image) this.#resize();
    } catch (error) {
      console.warn(error);
      this.socket.send("key");
      return;
    }
    if (!this.#image) return;
    this.#context.putImageData(this.#image, 0, 0);
    this.#pictures += 1;
    this.#bytes += message.byteLength;
    if (this.seen.value) this.#missed += Math.max(0, this.#decoder.tick - before - 1);
    this.seen.set(true);
  }

  #resize(): void {
    const { width, height, pixels } = this.#decoder;
    this.#canvas.width = width;
    this.#canvas.height = height;
    this.#image = new ImageData(pixels, width, height);
    this.shape.set({ width, height });
  }

  #count(): void {
    this.rate.set({ pictures: this.#pictures, bits: this.#bytes * 8, missed: this.#missed });
    this.#pictures = this.#bytes = this.#missed = 0;
  }
}
