/** The panel for the mappings of the keyboard and of gamepads. */

import { about, button } from "./controls.js";
import { el, fill, freshId, setText } from "./dom.js";
import { DEFAULT_BUTTONS, gamepads, nextPart, padMapping, partNames } from "./gamepad.js";
import { DEFAULT_MAPPING, keyboardPlays, mapping, nameOf, remapped } from "./keyboard.js";
import { KEYS } from "./keys.js";

/**
 * @import { Mapping } from "./keyboard.js"
 * @import { Key } from "./keys.js"
 * @import { Store } from "./store.js"
 */

/**
 * An input device: the keyboard, or all gamepads together. Its *parts* are its keys, buttons and stick directions.
 * @typedef {object} Device
 * @property {Store<Mapping>} mapping
 * @property {(key: Key, from: Mapping) => string} nameOf Returns the names of the parts that stand for a key.
 * @property {string} prompt
 * @property {(take: (part: string) => void) => () => void} [listen]
 *   Calls `take` with each part that is pressed, until the returned function is called. The keyboard does not need this,
 *   because the buttons of this panel get its events.
 */

/** @type {Device} */
const KEYBOARD = { mapping, nameOf, prompt: "press a key…" };
/** @type {Device} */
const GAMEPAD = { mapping: padMapping, nameOf: partNames, prompt: "press a button…", listen: nextPart };

/** @returns {HTMLElement} */
export function mappingPanel() {
  const plays = el("input", { type: "checkbox", id: freshId("field"), checked: keyboardPlays.value });
  plays.addEventListener("change", () => keyboardPlays.set(plays.checked));
  const pads = about();
  const ofPads = el(
    "div",
    {},
    rows("Buttons of the gamepad", GAMEPAD),
    button({ label: "Reset the gamepad's buttons", icon: "reset" }, () => padMapping.set(DEFAULT_BUTTONS)),
  );
  gamepads.follow((names) => {
    setText(
      pads,
      names.length > 0
        ? `${names.join(", ")}. Select a key of the game, then press a button or push a stick.`
        : "Press a button on a gamepad to use it.",
    );
    ofPads.hidden = names.length === 0;
  });
  return el(
    "div",
    { class: "part" },
    el("div", { class: "check" }, plays, el("label", { for: plays.id }, "Use the keyboard to play")),
    about("Select a key of the game, then press the keyboard key for it. Escape cancels."),
    rows("Keyboard keys", KEYBOARD),
    button({ label: "Reset to mGBA's keys", icon: "reset" }, () => mapping.set(DEFAULT_MAPPING)),
    el("h2", {}, "Gamepad"),
    pads,
    ofPads,
  );
}

/** @type {(label: string, device: Device) => HTMLElement} */
function rows(label, device) {
  const all = KEYS.map((key) => row(key, device));
  // data-own-keys: key presses in this element neither control the game nor perform the page's keyboard commands.
  return el("div", { class: "mapping", role: "group", "aria-label": label, "data-own-keys": true }, ...all);
}

/** @type {(key: Key, device: Device) => HTMLElement} */
function row(key, device) {
  const cap = el("kbd", {});
  const control = el("button", { type: "button", "data-map": key }, el("span", {}, key), " ", cap);
  let waiting = false;
  let stop = () => {};
  const show = () => {
    fill(cap, waiting ? device.prompt : device.nameOf(key, device.mapping.value));
    control.classList.toggle("waiting", waiting);
  };
  const end = () => {
    waiting = false;
    stop();
    show();
  };
  /** @param {string} part */
  const take = (part) => {
    device.mapping.set(remapped(device.mapping.value, part, key));
    end();
  };
  control.addEventListener("click", () => {
    waiting = true;
    stop = device.listen?.(take) ?? stop;
    show();
  });
  control.addEventListener("blur", end);
  control.addEventListener("keydown", (event) => {
    // Tab still moves the focus. Otherwise, users of the keyboard could not leave the button.
    if (!waiting || event.key === "Tab") return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Escape") end();
    else if (!device.listen) take(event.code);
  });
  device.mapping.follow(show);
  return control;
}
