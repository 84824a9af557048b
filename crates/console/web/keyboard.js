/** The keyboard as a controller. */

import { isKey } from "./keys.js";
import { setting } from "./settings.js";

/**
 * @import { Controller } from "./controller.js"
 * @import { Key } from "./keys.js"
 */

/**
 * Which key of the keyboard (`KeyboardEvent.code`: its place, whatever is printed on it) stands for which key.
 * @typedef {Readonly<Record<string, Key>>} Mapping
 */

/**
 * As mGBA has it.
 * @type {Mapping}
 */
export const USUAL_MAPPING = {
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

/**
 * @param {unknown} value
 * @returns {value is Mapping}
 */
function isMapping(value) {
  return typeof value === "object" && value !== null && Object.values(value).every(isKey);
}

/**
 * @param {unknown} value
 * @returns {value is boolean}
 */
function isBoolean(value) {
  return typeof value === "boolean";
}

export const mapping = setting("keyboard", USUAL_MAPPING, isMapping);

/** Whether the keyboard plays at all. */
export const keyboardPlays = setting("keyboard-plays", true, isBoolean);

/**
 * The mapping with `code` for `key`, in place of what either was before.
 * @param {Mapping} before
 * @param {string} code
 * @param {Key} key
 * @returns {Mapping}
 */
export function remapped(before, code, key) {
  const others = Object.entries(before).filter(([otherCode, other]) => otherCode !== code && other !== key);
  return Object.fromEntries([...others, [code, key]]);
}

/**
 * The keyboard's key for `key`, as people call it.
 * @param {Key} key
 * @param {Mapping} from
 * @returns {string}
 */
export function nameOf(key, from) {
  const code = Object.entries(from).find(([, other]) => other === key)?.[0];
  return code === undefined ? "none" : codeName(code);
}

/**
 * A `KeyboardEvent.code` as people call it.
 * @param {string} code
 * @returns {string}
 */
export function codeName(code) {
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
 * Has the keyboard drive `controller`; `screen` is the game's picture, on which every key plays.
 * @param {Controller} controller
 * @param {HTMLElement} screen
 */
export function playByKeyboard(controller, screen) {
  /** @type {Map<string, Key>} */
  const held = new Map();
  const tell = () => controller.hold("keyboard", held.values());
  addEventListener("keydown", (event) => {
    const key = mapping.value[event.code];
    if (key === undefined || !plays(event, screen)) return;
    event.preventDefault();
    held.set(event.code, key);
    tell();
  });
  addEventListener("keyup", (event) => {
    if (held.delete(event.code)) tell();
  });
  addEventListener("blur", () => held.clear());
  mapping.follow(() => {
    held.clear();
    tell();
  });
}

/**
 * Whether a key belongs to the game rather than to what has the focus.
 * @param {KeyboardEvent} event
 * @param {HTMLElement} screen
 * @returns {boolean}
 */
function plays(event, screen) {
  if (!keyboardPlays.value || event.defaultPrevented) return false;
  if (event.ctrlKey || event.altKey || event.metaKey || event.code === "Tab" || event.code === "Escape")
    return false;
  const target = event.target;
  if (!(target instanceof Element) || target === screen) return true;
  if (target.closest("input, select, textarea, dialog, [role=grid], [role=tablist], [data-own-keys]"))
    return false;
  // A focused button or link is pressed by these.
  const pressable = target.closest("button, a, summary") !== null;
  return !(pressable && (event.code === "Enter" || event.code === "Space"));
}
