/** The panel with the latency and the quality of the connection to the emulator. */

import { about } from "./controls.js";
import { el, setText } from "./dom.js";
import { LATENCY_SPAN_MS, milliseconds } from "./link.js";
import { plot } from "./plot.js";

/**
 * @import { App } from "./app.js"
 * @import { Latency } from "./link.js"
 * @import { Store } from "./store.js"
 * @import { VideoRate } from "./video.js"
 */

/**
 * The panel. `losses` returns how many times this page lost a connection.
 * @type {(app: App, latency: Latency, rate: Store<VideoRate>, losses: () => number) => HTMLElement}
 */
export function linkPanel(app, latency, rate, losses) {
  const curve = plot(LATENCY_SPAN_MS);
  curve.element.classList.add("wide");
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
  const facts = new Map(names.map((name) => [name, el("dd", {}, "–")]));
  const rows = [...facts].map(([name, value]) => el("div", {}, el("dt", {}, name), value));
  /** @type {(name: string, text: string) => void} */
  const say = (name, text) => {
    const place = facts.get(name);
    if (place) setText(place, text);
  };
  latency.last.follow((last) => {
    const since = performance.now() - LATENCY_SPAN_MS;
    const shown = latency.series.points.filter(({ at }) => at >= since);
    const times = shown.map(({ value }) => value).sort((a, b) => a - b);
    say("Round trip", last === undefined ? "no answer" : milliseconds(last));
    say("Median", times.length > 0 ? milliseconds(times[times.length >> 1] ?? 0) : "–");
    say("Slowest", times.length > 0 ? milliseconds(times.at(-1) ?? 0) : "–");
    curve.draw(latency.series, performance.now());
  });
  rate.follow(({ pictures, bits, missed }) => {
    say("Picture", `${pictures} a second`);
    say("Stream", `${(bits / 1e6).toFixed(2)} Mbit/s`);
    say("Left out", `${missed} frames a second`);
    say("Lost connections", String(losses()));
  });
  app.status.follow(({ emulator }) => {
    if (!emulator) {
      for (const name of ["Emulator", "Frame", "Game", "Where", "Version"]) say(name, "–");
      return;
    }
    say("Emulator", `${emulator.frames_per_second.toFixed(1)} frames/s`);
    say("Frame", emulator.frame.toLocaleString("en"));
    say("Game", [emulator.title, emulator.code].filter(Boolean).join(" · ") || "–");
    const isEmbedded = emulator.kind === "embedded";
    say("Where", isEmbedded ? "embedded in the server" : `mGBA at ${emulator.address ?? "?"}`);
    const version = isEmbedded ? emulator.library_version : emulator.script_version;
    say("Version", version ? `${isEmbedded ? "libmgba" : "script"} ${version}` : "–");
  });
  return el(
    "div",
    {},
    about("Round trip from this page through the server to the emulator in the last minute."),
    curve.element,
    el("dl", { class: "facts" }, ...rows),
  );
}
