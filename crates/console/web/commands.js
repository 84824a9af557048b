/** Commands that users run with a hotkey or by name. `?` lists the hotkeys; Ctrl+K opens the command palette. */

import * as actions from "./actions.js";
import { act, aimed, attempt, selectedName } from "./app.js";
import { mayCommand } from "./keyboard.js";
import { FILTERS, filter, VOLUMES, volume } from "./look.js";
import { refusals, unlessRefused } from "./refusals.js";
import { runsOnRequest } from "./status.js";

/**
 * @import { App } from "./app.js"
 * @import { Action } from "./curl.js"
 */

/**
 * @typedef {object} Command
 * @property {string} title
 * @property {string} [keys] The keys, as text to display.
 * @property {string} [code] The key's `KeyboardEvent.code`, with `Shift+` in front if Shift is held.
 * @property {() => unknown} run
 * @property {() => unknown} [release] Called when the key is released.
 */

/** The numbers of the slots for quick saves. Slot 1 is the snapshot `slot-1`. */
const SLOTS = [1, 2, 3, 4];

/**
 * Listens for the hotkeys, and returns a function that opens the command palette.
 * @type {(app: App) => () => Promise<void>}
 */
export function commands(app) {
  const fixed = [...emulation(app), ...slots(app), ...looks()];
  const palette = async () => {
    const { openPalette } = await import("./palette.js");
    if (!document.querySelector("dialog[open]")) openPalette([...fixed, ...onThePage()]);
  };
  const help = async () => {
    const { openHelp } = await import("./palette.js");
    if (!document.querySelector("dialog[open]")) openHelp(all);
  };
  /** @type {Command} */
  const showKeys = { title: "Show the keys", keys: "?", run: help };
  /** @type {Command[]} */
  const all = [...fixed, { title: "Search commands", keys: "Ctrl K", run: palette }, showKeys];
  /** @type {Map<string, Command>} */
  const held = new Map();
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.code === "KeyK" && !event.altKey) {
      event.preventDefault();
      void palette();
      return;
    }
    if (!mayCommand(event)) return;
    const code = (event.shiftKey ? "Shift+" : "") + event.code;
    const isHelp = event.key === "?";
    const command = isHelp ? showKeys : fixed.find((one) => one.code === code);
    if (!command) return;
    event.preventDefault();
    if (event.repeat) return;
    if (command.release) held.set(event.code, command);
    void command.run();
  });
  /** @param {string} code */
  const release = (code) => {
    held.get(code)?.release?.();
    held.delete(code);
  };
  addEventListener("keyup", (event) => release(event.code));
  const releaseAll = () => {
    for (const code of [...held.keys()]) release(code);
  };
  addEventListener("blur", releaseAll);
  addEventListener("pagehide", releaseAll);
  return palette;
}

/** @type {(app: App) => Command[]} */
function emulation(app) {
  const { status } = app;
  /** Restores the speed from before fast forward; `undefined` if fast forward is off. @type {Action | undefined} */
  let back;
  /** Resolves when the last request for a speed has ended. @type {Promise<unknown> | undefined} */
  let sent;
  let isHeld = false;
  /** Resolves when the last request to pause or resume has ended. @type {Promise<unknown>} */
  let toggled = Promise.resolve();
  return [
    {
      title: "Pause or resume",
      keys: "Space",
      code: "Space",
      run: () =>
        unlessRefused(refusals(app).pause, () => {
          toggled = toggled.then(() =>
            act(app, runsOnRequest(status.value.phase) ? actions.resume() : actions.pause()),
          );
        }),
    },
    {
      title: "Step one frame",
      keys: ".",
      code: "Period",
      run: () => unlessRefused(refusals(app).step, () => act(app, actions.advance(1))),
    },
    {
      title: "Fast forward while held",
      keys: "F",
      code: "KeyF",
      run: () =>
        unlessRefused(refusals(app).speed, async () => {
          isHeld = true;
          await sent;
          const { emulator } = status.value;
          if (!isHeld || back || typeof emulator?.speed !== "number") return;
          // Another emulator may be selected before the key is released.
          back = aimed(actions.speed(emulator.speed), selectedName(app));
          sent = act(app, actions.speed("unlimited"));
          await sent;
        }),
      release: async () => {
        isHeld = false;
        await sent;
        if (isHeld || !back) return;
        sent = act(app, back);
        back = undefined;
        await sent;
      },
    },
    { title: "Save the picture", run: () => press("Save the picture") },
    { title: "Full screen", keys: "Shift F", code: "Shift+KeyF", run: () => press("Full screen") },
    { title: "Sound on or off", keys: "M", code: "KeyM", run: () => press("Sound") },
  ];
}

/** @type {(app: App) => Command[]} */
function slots(app) {
  return SLOTS.flatMap((number) => [
    {
      title: `Load slot ${number}`,
      keys: String(number),
      code: `Digit${number}`,
      run: () =>
        attempt(async () => {
          const { loadState } = await import("./files.js");
          await loadState(app, actions.loadSnapshot(`slot-${number}`), `Loaded slot ${number}.`);
        }),
    },
    {
      title: `Save slot ${number}`,
      keys: `Shift ${number}`,
      code: `Shift+Digit${number}`,
      run: () => attempt(() => app.api.act(actions.saveSlot(`slot-${number}`))),
    },
  ]);
}

/** @returns {Command[]} */
function looks() {
  return [
    ...FILTERS.map((name) => ({ title: `Picture: ${name}`, run: () => filter.set(name) })),
    ...VOLUMES.map((value) => ({ title: `Volume: ${value} %`, run: () => volume.set(value) })),
  ];
}

/**
 * Clicks the button of the page whose label begins with `name`.
 * @param {string} name
 */
function press(name) {
  const buttons = document.querySelectorAll("#stage button, #menu button");
  const wanted = [...buttons].find((one) => labelOf(one).startsWith(name));
  if (wanted instanceof HTMLElement) clickOn(wanted);
}

/**
 * Clicks a button. If the button is disabled, shows the reason, which is its tooltip.
 * @param {HTMLElement} element
 */
function clickOn(element) {
  unlessRefused(element.ariaDisabled === "true" ? element.title : undefined, () => element.click());
}

/** @param {Element} element */
function labelOf(element) {
  return element.getAttribute("aria-label") ?? element.textContent.trim();
}

/**
 * Commands for the tools and the buttons that the page shows now.
 * @returns {Command[]}
 */
function onThePage() {
  const tabs = document.querySelectorAll("[role=tab]");
  const buttons = document.querySelectorAll("#stage .transport button, #menu button:not([data-palette])");
  return [...tabs, ...buttons].flatMap((element) => {
    const label = labelOf(element);
    if (!(element instanceof HTMLElement) || element.hidden || label === "") return [];
    const title = element.matches("[role=tab]") ? `Open ${label}` : label;
    return [{ title, run: () => clickOn(element) }];
  });
}
