/** The toolbar: pause, step, speed, reset, sound and picture. */

import * as actions from "./actions.js";
import { act, attempt } from "./app.js";
import { button, disable, field, playAfterClicks, setOptions } from "./controls.js";
import { el, fill, setText } from "./dom.js";
import { icon } from "./icons.js";
import { refusals } from "./refusals.js";
import { runsOnRequest } from "./status.js";

/**
 * @import { App } from "./app.js"
 * @import { Sound } from "./audio.js"
 * @import { Action } from "./curl.js"
 * @import { EmulatorState } from "./status.js"
 */

/** Lockstep ends after this much time without a request from any client. */
const LOCKSTEP_MS = 60_000;

const UNLIMITED = "unlimited";
/** @type {readonly string[]} */
const SPEEDS = ["0.25", "0.5", "1", "2", "4", "8", UNLIMITED];

const NO_FULL_SCREEN = "This browser cannot show a part of a page in full screen.";
const IN_A_WINDOW =
  "This mGBA runs in its own window. Pause, speed and sound are there; Lockstep works here.";

/**
 * `focus` is the picture. It gets the focus after a click, so that the keyboard controls the game again.
 * @type {(app: App, stage: HTMLElement, focus: HTMLElement) => HTMLElement}
 */
export function transport(app, stage, focus) {
  const { api } = app;
  const run = button({ icon: "pause", label: "Pause", kind: "primary" }, () =>
    act(app, runsOnRequest(app.status.value.phase) ? actions.resume() : actions.pause()),
  );
  const frames = el("input", { type: "number", min: 1, max: 3600, value: 1, inputmode: "numeric" });
  const step = button({ icon: "step", label: "Step" }, () =>
    act(app, actions.advance(Math.min(3600, Math.max(1, Math.round(frames.valueAsNumber) || 1)))),
  );
  const lock = button(
    { icon: "lock", label: "Lockstep", compact: true, hint: "Lockstep: each frame waits for Step" },
    () => act(app, app.status.value.phase === "lockstep" ? actions.resume() : actions.lockstep(LOCKSTEP_MS)),
  );
  const speed = el("select", {});
  speed.addEventListener("change", async () => {
    const value = speed.value === UNLIMITED ? UNLIMITED : Number(speed.value);
    await act(app, actions.speed(value));
    // If the server refused the action, or the page only copied it as a command, the emulator still has its
    // old speed.
    showSpeed(speed, app.status.value.emulator);
  });
  const reset = button({ icon: "reset", label: "Reset", compact: true, hint: "Reset the console" }, () =>
    attempt(async () => {
      const { confirm } = await import("./dialog.js");
      const detail = "Progress that the game has not saved is lost.";
      if (await confirm(api, "Reset the console?", detail, "Reset")) await act(app, actions.reset());
    }),
  );
  const sound = soundButton(app);
  const camera = button({ icon: "camera", label: "Save the picture", compact: true }, () =>
    download(app, actions.screenshot()),
  );
  const full = button({ icon: "full", label: "Full screen", compact: true }, () =>
    document.fullscreenElement ? document.exitFullscreen() : stage.requestFullscreen(),
  );
  if (!document.fullscreenEnabled) disable(full, NO_FULL_SCREEN);

  const reason = el("p", { class: "reason" });
  const show = () => {
    const { phase, emulator } = app.status.value;
    const still = runsOnRequest(phase);
    run.replaceChildren(icon(still ? "play" : "pause"), el("span", {}, still ? "Resume" : "Pause"));
    lock.setAttribute("aria-pressed", String(phase === "lockstep"));
    if (document.activeElement !== speed) showSpeed(speed, emulator);
    const refused = refusals(app);
    disable(run, refused.pause);
    disable(step, refused.step);
    disable(lock, refused.control);
    disable(speed, refused.speed);
    speed.disabled = speed.ariaDisabled === "true";
    disable(reset, refused.control);
    disable(sound, refused.sound);
    disable(camera, refused.picture);
    setText(reason, emulator?.kind === "attached" && !refused.control ? IN_A_WINDOW : "");
    reason.hidden = reason.textContent === "";
  };
  app.status.follow(show);
  api.viewOnly.follow(show);

  const bar = el(
    "div",
    { class: "transport", role: "toolbar", "aria-label": "Emulation" },
    run,
    el("div", { class: "joined" }, step, field("Frames to step", frames, true)),
    lock,
    field("Speed", speed, true),
    el("span", { class: "gap" }),
    reset,
    sound,
    camera,
    full,
  );
  playAfterClicks(bar, focus);
  return el("div", { class: "controls" }, bar, reason);
}

/**
 * Lists the usual speeds and the current one.
 * @type {(select: HTMLSelectElement, emulator: EmulatorState | undefined) => void}
 */
function showSpeed(select, emulator) {
  const now = String(emulator?.speed ?? 1);
  const all = SPEEDS.includes(now) ? SPEEDS : [...SPEEDS, now];
  setOptions(
    select,
    all.map((value) => [value, value === UNLIMITED ? "Max" : `${value}×`]),
  );
  select.value = now;
}

/** @type {(app: App) => HTMLButtonElement} */
function soundButton(app) {
  /** @type {Sound | undefined} */
  let sound;
  /** @type {AudioContext | undefined} */
  let context;
  /** @param {boolean} on */
  const show = (on) => {
    control.setAttribute("aria-pressed", String(on));
    fill(control, icon(on ? "sound" : "mute"));
  };
  const control = button({ icon: "mute", label: "Sound", compact: true }, () =>
    attempt(async () => {
      // A browser may allow sound only if both happen in the click itself, before anything is awaited.
      context ??= new AudioContext();
      void context.resume();
      const { Sound } = await import("./audio.js");
      if (!sound) {
        sound = new Sound(app, context);
        sound.on.follow(show);
      }
      sound.toggle();
    }),
  );
  show(false);
  return control;
}

/**
 * Sends an action, and saves the answer under the action's file name.
 * @type {(app: App, action: Action) => Promise<void>}
 */
export async function download(app, action) {
  await attempt(async () => saveFile(await app.api.act(action), action.output ?? ""));
}

/**
 * Saves a file through the browser.
 * @type {(content: Blob, name: string) => void}
 */
export function saveFile(content, name) {
  const link = el("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}
