/** The game's picture, and a message over it if there is a problem. */

import { el, fill } from "./dom.js";
import { icon } from "./icons.js";
import { followFilter } from "./look.js";
import { placeMark } from "./marks.js";
import { Video } from "./video.js";

/**
 * @import { App } from "./app.js"
 * @import { EmulatorState, Status } from "./status.js"
 */

/**
 * @typedef {object} Screen
 * @property {HTMLElement} element
 * @property {HTMLElement} focus The element that has the focus while the user plays.
 * @property {Video} video
 */

/** @type {(app: App) => Screen} */
export function screen(app) {
  const canvas = el("canvas", { width: 240, height: 160, "aria-hidden": "true" });
  const mark = el("div", { class: "box", hidden: true });
  const veil = el("div", { class: "veil", role: "status" });
  const focus = el(
    "div",
    {
      class: "screen",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "game screen",
      "aria-label":
        "Game screen. While it has the focus, the keyboard controls the game. Press Tab to leave it.",
    },
    canvas,
    el("div", { class: "marks", "aria-hidden": "true" }, mark),
  );
  const element = el("div", { class: "bezel" }, focus, veil);
  followFilter(element);
  const video = new Video(canvas, app.api);
  video.shape.follow(({ width, height }) => {
    // The layout of the whole page depends on the shape of the picture.
    const { style } = document.documentElement;
    style.setProperty("--width", String(width));
    style.setProperty("--height", String(height));
  });
  app.marks.box.follow((box) => {
    mark.hidden = box === undefined;
    if (!box) return;
    const shape = video.shape.value;
    // Only the picture of a Super Game Boy has this width. It has a border around the game's screen.
    const [left, top] = shape.width === 256 ? [48, 40] : [0, 0];
    placeMark(mark, { ...box, x: box.x + left, y: box.y + top }, shape);
  });
  followDevicePixels();
  const update = () => show(veil, focus, app.status.value, video.seen.value && video.socket.connected.value);
  app.status.follow(update);
  video.seen.follow(update);
  video.socket.connected.follow(update);
  return { element, focus, video };
}

/** Sets the style sheet's variable for the size of a device pixel, and sets it again when the user zooms. */
function followDevicePixels() {
  document.documentElement.style.setProperty("--device-pixel", `${1 / devicePixelRatio}px`);
  matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", followDevicePixels, {
    once: true,
  });
}

/** @type {(veil: HTMLElement, focus: HTMLElement, status: Status, live: boolean) => void} */
function show(veil, focus, status, live) {
  const overlay = overlayFor(status, live);
  veil.hidden = overlay === undefined;
  focus.classList.toggle("dimmed", overlay !== undefined);
  const text = overlay ? [overlay.title, overlay.text, ...(overlay.emulators ?? [])].join("\n") : "";
  if (veil.dataset.text === text) return;
  veil.dataset.text = text;
  if (!overlay) {
    fill(veil);
    return;
  }
  fill(
    veil,
    overlay.busy ? el("span", { class: "spinner" }) : icon("warning"),
    el("strong", {}, overlay.title),
    el("p", {}, overlay.text),
    ...(overlay.emulators ?? []).map((name) =>
      el("a", { href: `/?${new URLSearchParams({ emulator: name })}` }, name),
    ),
  );
}

/**
 * @typedef {object} Overlay
 * @property {string} title
 * @property {string} text
 * @property {boolean} [busy]
 * @property {readonly string[]} [emulators] Emulators to choose from.
 */

/**
 * The message over the picture, if there is one.
 * @type {(status: Status, live: boolean) => Overlay | undefined}
 */
function overlayFor({ phase, emulator, emulators }, live) {
  switch (phase) {
    case "loading":
      return { title: "Connecting…", text: "", busy: true };
    case "unreachable":
      return {
        title: "The server does not answer",
        text: "It may have stopped. This page reconnects automatically.",
        busy: true,
      };
    case "locked":
      return {
        title: "This server requires a token",
        text: "Sign in above to see and control the emulator.",
      };
    case "unknown": {
      const name = new URLSearchParams(location.search).get("emulator") ?? "";
      return {
        title: `No emulator is called ${JSON.stringify(name)}`,
        text: "Open one of the emulators of this server:",
        emulators: emulators.map((known) => known.name),
      };
    }
    case "disconnected":
      return { title: "No emulator", text: missing(emulator) };
    case "stalled":
      return {
        title: "The emulator does not run",
        text: "It is paused in its own window, has no game, or hangs. This page continues when the emulator runs again.",
      };
    case "replaying":
    case "paused":
    case "lockstep":
    case "running":
      return live ? undefined : { title: "Waiting for the picture…", text: "", busy: true };
  }
}

/**
 * Why there is no emulator, and what to do about it.
 * @type {(emulator: EmulatorState | undefined) => string}
 */
function missing(emulator) {
  const what = "In mGBA, load a game, then load the script: Tools > Scripting > File > Load script.";
  if (!emulator?.address) return what;
  const problem = emulator.problem ? ` (${emulator.problem})` : "";
  return `No script answers at ${emulator.address}${problem}. ${what}`;
}
