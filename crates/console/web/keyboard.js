/** Lets the keyboard control the game. */

import { isKey } from "./keys.js";
import { setting } from "./settings.js";

/**
 * @import { Controller } from "./controller.js"
 * @import { Key } from "./keys.js"
 */

/**
 * Maps keys of the keyboard, or parts of a gamepad (see gamepad.js), to keys of the console. The keyboard's keys have the
 * names of `KeyboardEvent.code`, which depend on the positions of the keys.
 * @typedef {Readonly<Record<string, Key>>} Mapping
 */

/** The default mapping of mGBA. @type {Mapping} */
export const DEFAULT_MAPPING = {
  KeyX: "A",
  KeyZ: "B",
  Backspace: "Select",
  Enter: "Start",
  ArrowRight: "Right",
  ArrowLeft: "Left",
  ArrowUp: "Up",
  ArrowDown: "Down",
  KeyS: "R",
  KeyA: "L",
};

/** @type {(value: unknown) => value is Mapping} */
export function isMapping(value) {
  return typeof value === "object" && value !== null && Object.values(value).every(isKey);
}

/** The mapping that the user has chosen. */
export const mapping = setting("keyboard", DEFAULT_MAPPING, isMapping);

/** Whether the keyboard controls the game. */
export const keyboardPlays = setting("keyboard-plays", true, (value) => typeof value === "boolean");

/** The elements that use the keys themselves. In them, no key runs a command or goes back in the timeline. */
const FIELDS = "input:not(.scrub), select, textarea, dialog, [role=grid], [data-own-keys]";

/**
 * A copy of the mapping in which only `code` stands for `key`.
 * @type {(before: Mapping, code: string, key: Key) => Mapping}
 */
export function remapped(before, code, key) {
  const others = Object.entries(before).filter(([otherCode, other]) => otherCode !== code && other !== key);
  return Object.fromEntries([...others, [code, key]]);
}

/**
 * The name of the keyboard key that stands for `key`.
 * @type {(key: Key, from: Mapping) => string}
 */
export function nameOf(key, from) {
  const code = Object.entries(from).find(([, other]) => other === key)?.[0];
  return code === undefined ? "none" : codeName(code);
}

/**
 * The name of a keyboard key.
 * @type {(code: string) => string}
 */
function codeName(code) {
  /** @type {Record<string, string>} */
  const signs = {
    ArrowUp: "↑",
    ArrowDown: "↓",
    ArrowLeft: "←",
    ArrowRight: "→",
    Backspace: "⌫ Back",
    Enter: "⏎ Enter",
  };
  return signs[code] ?? code.replace(/^(Key|Digit)/, "").replace(/([a-z])([A-Z0-9])/g, "$1 $2");
}

/**
 * Sends the mapped keys of the keyboard to `controller`, unless the focused element needs them. If `screen` has the
 * focus, all mapped keys go to the game, except Tab, Escape, and combinations with Ctrl, Alt or Meta. A mapped Ctrl, Alt or
 * Meta key is a key of the game like any other, and makes no combinations.
 * @type {(controller: Controller, screen: HTMLElement) => void}
 */
export function playByKeyboard(controller, screen) {
  /** @type {Map<string, Key>} */
  const held = new Map();
  const update = () => controller.hold("keyboard", held.values());
  addEventListener("keydown", (event) => {
    const key = mapping.value[event.code];
    const codes = [event.code, ...held.keys()];
    if (key === undefined || isCombination(event, codes) || !plays(event, screen)) return;
    event.preventDefault();
    held.set(event.code, key);
    update();
  });
  addEventListener("keyup", (event) => {
    if (held.delete(event.code)) update();
  });
  // The controller itself releases all keys when the page loses the focus.
  addEventListener("blur", () => held.clear());
  mapping.follow(() => {
    held.clear();
    update();
  });
}

/**
 * Whether a key is pressed together with Ctrl, Alt or Meta. The keys in `playing` do not count, because they are keys of
 * the game.
 * @type {(event: KeyboardEvent, playing?: readonly string[]) => boolean}
 */
export function isCombination({ ctrlKey, altKey, metaKey }, playing = []) {
  /** @type {(name: string) => boolean} */
  const isFree = (name) => !playing.some((code) => code === `${name}Left` || code === `${name}Right`);
  return (ctrlKey && isFree("Control")) || (altKey && isFree("Alt")) || (metaKey && isFree("Meta"));
}

/**
 * Whether a key may run a command of the page. It may not if it belongs to the game, to a field or to a button.
 * @type {(event: KeyboardEvent) => boolean}
 */
export function mayCommand(event) {
  if (isCombination(event) || event.defaultPrevented) return false;
  if (keyboardPlays.value && mapping.value[event.code] !== undefined) return false;
  const target = event.target;
  if (!(target instanceof Element)) return true;
  if (target.closest(FIELDS)) return false;
  return event.code !== "Space" || target.closest("button, a, summary") === null;
}

/**
 * Whether a key goes to the game, and not to the focused element.
 * @type {(event: KeyboardEvent, screen: HTMLElement) => boolean}
 */
function plays(event, screen) {
  if (!keyboardPlays.value || event.defaultPrevented) return false;
  if (event.code === "Tab" || event.code === "Escape") return false;
  const target = event.target;
  if (!(target instanceof Element) || target === screen) return true;
  // The timeline's slider and the tabs use the arrow keys, but not the keys of commands. So they are not in FIELDS.
  if (target.closest(`${FIELDS}, .scrub, [role=tablist]`)) return false;
  // Enter and Space press a focused button or link.
  const pressable = target.closest("button, a, summary") !== null;
  return !(pressable && (event.code === "Enter" || event.code === "Space"));
}
