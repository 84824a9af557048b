/** How the ways to the emulator are: measured by a message that goes all the way and back. */

import { el, setText } from "./dom.js";
import { History, plot } from "./plot.js";
import { Store } from "./store.js";

/**
 * @import { App } from "./app.js"
 * @import { VideoRate } from "./video.js"
 */

const EVERY_MS = 500;
const KEPT = 120;

/** Milliseconds from this page through the server to the emulator and back; `undefined` while nothing comes back. */
export class Latency {
  /** @readonly */
  last = new Store(/** @type {number | undefined} */ (undefined));
  /** @readonly */
  history = new History(KEPT);
  #measure;

  /** @param {() => Promise<unknown>} measure */
  constructor(measure) {
    this.#measure = measure;
  }

  start() {
    void this.#once();
  }

  async #once() {
    if (!document.hidden) {
      const begun = performance.now();
      try {
        await this.#measure();
        const took = performance.now() - begun;
        this.history.add(performance.now(), took);
        this.last.set(took);
      } catch {
        this.last.set(undefined);
      }
    }
    setTimeout(() => void this.#once(), EVERY_MS);
  }
}

/**
 * The panel. `reconnects` is how often a connection of this page was lost.
 * @param {App} app
 * @param {Latency} latency
 * @param {Store<VideoRate>} rate
 * @param {() => number} reconnects
 * @returns {HTMLElement}
 */
export function linkPanel(app, latency, rate, reconnects) {
  const canvas = el("canvas", { class: "plot wide", "aria-hidden": "true" });
  /** @type {Map<string, HTMLElement>} */
  const facts = new Map();
  const list = el("dl", { class: "facts" });
  /** @param {string} name */
  const fact = (name) => {
    const value = el("dd", {}, "–");
    facts.set(name, value);
    list.append(el("div", {}, el("dt", {}, name), value));
  };
  const names = [
    "Round trip",
    "Median",
    "Slowest",
    "Emulator",
    "Frame",
    "Picture",
    "Stream",
    "Left out",
    "Lost connections",
    "Game",
    "Where",
    "Version",
  ];
  names.forEach(fact);
  /** @type {(name: string, text: string) => void} */
  const say = (name, text) => {
    const place = facts.get(name);
    if (place) setText(place, text);
  };
  latency.last.follow((last) => {
    const times = latency.history.points.map(({ value }) => value).sort((a, b) => a - b);
    say("Round trip", last === undefined ? "no answer" : milliseconds(last));
    say("Median", times.length > 0 ? milliseconds(times[times.length >> 1] ?? 0) : "–");
    say("Slowest", times.length > 0 ? milliseconds(times.at(-1) ?? 0) : "–");
    plot(canvas, latency.history, performance.now(), KEPT * EVERY_MS);
  });
  rate.follow(({ pictures, bits, missed }) => {
    say("Picture", `${pictures} a second`);
    say("Stream", `${(bits / 1e6).toFixed(2)} Mbit/s`);
    say("Left out", `${missed} frames a second`);
    say("Lost connections", String(reconnects()));
  });
  app.status.follow(({ emulator }) => {
    if (!emulator) return;
    say("Emulator", `${emulator.frames_per_second.toFixed(1)} frames/s`);
    say("Frame", emulator.frame.toLocaleString("en"));
    say("Game", [emulator.title, emulator.code].filter(Boolean).join(" · ") || "–");
    say(
      "Where",
      emulator.kind === "embedded" ? "in the server itself" : `mGBA at ${emulator.address ?? "?"}`,
    );
    const version = emulator.kind === "embedded" ? emulator.library_version : emulator.script_version;
    say("Version", version ? `${emulator.kind === "embedded" ? "libmgba" : "script"} ${version}` : "–");
  });
  return el(
    "div",
    {},
    el(
      "p",
      { class: "about" },
      "From this page through the server into the emulator and back, in the last minute.",
    ),
    canvas,
    list,
  );
}

/**
 * @param {number} time
 * @returns {string}
 */
export function milliseconds(time) {
  return `${time.toFixed(time < 10 ? 1 : 0)} ms`;
}
