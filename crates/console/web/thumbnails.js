/** Loads the small pictures of the history, over the JSON-RPC WebSocket if it is open. */

import { el } from "./dom.js";
import { fromBase64 } from "./emulation.js";

/** @import { App } from "./app.js" */

/**
 * A frame of the history. `line` is the number of its line (see timeline.js).
 * @typedef {{ line: number, frame: number }} Moment
 */

export class Thumbnails {
  #app;
  /** The pictures that are shown, by line and frame. @type {Map<string, HTMLImageElement>} */
  #images = new Map();

  /** @param {App} app */
  constructor(app) {
    this.#app = app;
  }

  /**
   * Returns the pictures of these frames, and frees all others. A picture that is there already is not loaded again.
   * @type {(moments: readonly Moment[]) => HTMLImageElement[]}
   */
  of(moments) {
    /** @type {Map<string, HTMLImageElement>} */
    const images = new Map();
    for (const moment of moments) {
      const key = `${moment.line} ${moment.frame}`;
      images.set(key, this.#images.get(key) ?? this.#load(moment, key));
    }
    for (const [key, image] of this.#images) if (!images.has(key)) URL.revokeObjectURL(image.src);
    this.#images = images;
    return [...images.values()];
  }

  /** @type {(moment: Moment, key: string) => HTMLImageElement} */
  #load(moment, key) {
    const image = el("img", { alt: "", draggable: "false" });
    void this.#fill(image, moment, key);
    return image;
  }

  /** @type {(image: HTMLImageElement, moment: Moment, key: string) => Promise<void>} */
  async #fill(image, moment, key) {
    const { api, rpc } = this.#app;
    if (!rpc.socket.connected.value) {
      image.src = api.url("/v1/timeline/picture", { ...moment });
      return;
    }
    try {
      /** @type {{ type: string, data: string }} */
      const { type, data } = await rpc.callSelected("historyPicture", moment);
      // If the image was removed while its picture was loading, nothing would free the picture.
      if (this.#images.get(key) !== image) return;
      image.src = URL.createObjectURL(new Blob([fromBase64(data)], { type }));
    } catch {
      // The server no longer has the picture, or the connection is lost. The next call of `of` loads it again.
      if (this.#images.get(key) === image) this.#images.delete(key);
    }
  }
}
