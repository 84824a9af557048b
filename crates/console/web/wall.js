/** Shows live pictures of all emulators of the server. A click on a picture selects its emulator. */

import { selectedName } from "./app.js";
import { paint } from "./cells.js";
import { button } from "./controls.js";
import { el, fill, setText } from "./dom.js";
import { PHASES } from "./header.js";
import { Decoder } from "./picture.js";
import { ReconnectingSocket } from "./socket.js";
import { phaseOf } from "./status.js";

/**
 * @import { App } from "./app.js"
 * @import { EmulatorState } from "./status.js"
 */

/** Pictures per second for each emulator. */
const RATE = 15;

/**
 * @typedef {object} Preview
 * @property {HTMLElement} element
 * @property {(emulator: EmulatorState, selected: boolean) => void} show
 * @property {(visible: boolean) => void} play Starts or stops the stream of its pictures.
 */

export class Wall {
  #app;
  /** @type {(name: string) => void} */
  #select;
  /** @type {Map<string, Preview>} */
  #previews = new Map();
  #list = el("ul", { class: "wall" });
  /** @readonly */
  element = el("div", {}, this.#list);
  #visible = false;

  /**
   * @param {App} app
   * @param {(name: string) => void} select Selects an emulator.
   */
  constructor(app, select) {
    this.#app = app;
    this.#select = select;
    app.status.follow(({ emulators }) => this.#show(emulators));
    document.addEventListener("visibilitychange", () => this.#play());
  }

  /** @param {boolean} visible */
  shown(visible) {
    this.#visible = visible;
    this.#play();
  }

  #play() {
    for (const preview of this.#previews.values()) preview.play(this.#visible && !document.hidden);
  }

  /** @param {readonly EmulatorState[]} emulators */
  #show(emulators) {
    const selected = selectedName(this.#app);
    const names = emulators.map(({ name }) => name);
    if (names.join("\n") !== [...this.#previews.keys()].join("\n")) {
      for (const preview of this.#previews.values()) preview.play(false);
      this.#previews = new Map(names.map((name) => [name, this.#preview(name)]));
      fill(this.#list, ...[...this.#previews.values()].map(({ element }) => element));
      this.#play();
    }
    for (const emulator of emulators)
      this.#previews.get(emulator.name)?.show(emulator, emulator.name === selected);
  }

  /** @type {(name: string) => Preview} */
  #preview(name) {
    const canvas = el("canvas", { width: 240, height: 160, "aria-hidden": "true" });
    const url = () => this.#app.api.socketUrl("/v1/video", { emulator: name, rate: RATE });
    const socket = livePicture(canvas, url);
    const state = el("span", { class: "state" });
    const choose = button({ label: name, hint: `Show and control ${name}` }, () => this.#select(name));
    choose.prepend(canvas);
    choose.append(state);
    return {
      element: el("li", {}, choose),
      show: (emulator, selected) => {
        choose.setAttribute("aria-pressed", String(selected));
        const phase = phaseOf(emulator);
        const rate = phase === "running" ? `, ${Math.round(emulator.frames_per_second)} fps` : "";
        setText(state, PHASES[phase].text + rate);
      },
      play: (visible) => {
        if (visible) socket.start();
        else socket.stop();
      },
    };
  }
}

/**
 * Draws a video stream on a canvas.
 * @type {(canvas: HTMLCanvasElement, url: () => string) => ReconnectingSocket}
 */
function livePicture(canvas, url) {
  let decoder = new Decoder();
  const socket = new ReconnectingSocket(url, {
    open: () => {
      decoder = new Decoder();
    },
    message: (data) => {
      if (!(data instanceof ArrayBuffer)) return;
      try {
        decoder.decode(data);
      } catch (error) {
        console.warn(error);
        // Requests a key picture, which can be decoded without earlier pictures.
        socket.send("key");
        return;
      }
      const { width, height, pixels } = decoder;
      paint(canvas, { width, height, pixels: new Uint32Array(pixels.buffer) });
    },
  });
  return socket;
}
