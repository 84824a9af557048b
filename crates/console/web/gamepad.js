/** Lets gamepads control the game. Loaded when a gamepad is connected, or with the tool *Input*. */

import { isMapping } from "./keyboard.js";
import { setting } from "./settings.js";
import { Store } from "./store.js";

/**
 * @import { Controller } from "./controller.js"
 * @import { Mapping } from "./keyboard.js"
 * @import { Key } from "./keys.js"
 */

/**
 * The default mapping, for gamepads with the standard layout. `b0` is button 0; `a0+` is axis 0 of the sticks, pushed
 * in the positive direction. The keys have the same positions as on the console: of the four buttons, the right one is
 * A, and the bottom one is B.
 * @type {Mapping}
 */
export const DEFAULT_BUTTONS = {
  b1: "A",
  b0: "B",
  b3: "A",
  b2: "B",
  b4: "L",
  b5: "R",
  b6: "L",
  b7: "R",
  b8: "Select",
  b9: "Start",
  b12: "Up",
  b13: "Down",
  b14: "Left",
  b15: "Right",
  "a1-": "Up",
  "a1+": "Down",
  "a0-": "Left",
  "a0+": "Right",
};

/** The mapping of a gamepad's parts to keys. The parts are buttons, and sticks that are pushed in a direction. */
export const padMapping = setting("gamepad", DEFAULT_BUTTONS, isMapping);

/** How far a stick must be pushed to count as a direction. */
const PUSHED = 0.5;

/** Names of the gamepads that are connected. */
export const gamepads = new Store(/** @type {readonly string[]} */ ([]));

/** Whether `playByGamepad` was called. */
let isPlaying = false;
/**
 * Gets each part that is pressed. While it is set, gamepads do not control the game.
 * @type {((part: string) => void) | undefined}
 */
let taker;
/**
 * For each gamepad, the parts that do not control the game until they are released.
 * @type {Map<number, Set<string>>}
 */
const ignored = new Map();

/**
 * From now on, gamepads do not control the game. Instead, `take` is called with each part that is pressed on any
 * gamepad. Returns a function that ends this.
 * @param {(part: string) => void} take
 * @returns {() => void}
 */
export function nextPart(take) {
  taker = take;
  return () => {
    if (taker === take) taker = undefined;
  };
}

/**
 * Connects all gamepads to `controller`, including those that are already there. They are polled once per display
 * frame, and only while one is connected. Further calls do nothing.
 * @param {Controller} controller
 */
export function playByGamepad(controller) {
  if (isPlaying) return;
  isPlaying = true;
  /** @type {Map<number, Set<string>>} */
  const before = new Map();
  let polling = false;
  /** @param {Gamepad} pad */
  const read = (pad) => {
    const parts = partsHeld(pad);
    const fresh = [...parts].find((part) => !before.get(pad.index)?.has(part));
    before.set(pad.index, parts);
    const still = ignored.get(pad.index);
    ignored.set(pad.index, taker ? parts : new Set([...parts].filter((part) => still?.has(part))));
    if (fresh !== undefined) taker?.(fresh);
    const playing = [...parts].filter((part) => !ignored.get(pad.index)?.has(part));
    controller.hold(`gamepad ${pad.index}`, keysFor(playing, padMapping.value));
  };
  const poll = () => {
    const connected = navigator.getGamepads().filter((pad) => pad?.connected);
    for (const pad of connected) if (pad) read(pad);
    polling = connected.length > 0;
    if (polling) requestAnimationFrame(poll);
  };
  const changed = () => {
    const present = navigator.getGamepads().filter((pad) => pad !== null);
    gamepads.set(present.map((pad) => pad?.id ?? ""));
    if (!polling) poll();
  };
  addEventListener("gamepadconnected", changed);
  addEventListener("gamepaddisconnected", (event) => {
    before.delete(event.gamepad.index);
    controller.hold(`gamepad ${event.gamepad.index}`, []);
    changed();
  });
  changed();
}

/**
 * The buttons and sticks of a gamepad that are pressed or pushed.
 * @type {(pad: Pick<Gamepad, "buttons" | "axes">) => Set<string>}
 */
export function partsHeld(pad) {
  const buttons = pad.buttons.flatMap((button, index) => (button.pressed ? [`b${index}`] : []));
  const sticks = pad.axes.flatMap((push, index) =>
    Math.abs(push) > PUSHED ? [`a${index}${push > 0 ? "+" : "-"}`] : [],
  );
  return new Set([...buttons, ...sticks]);
}

/**
 * The keys that parts of a gamepad stand for.
 * @type {(parts: Iterable<string>, from: Mapping) => Set<Key>}
 */
export function keysFor(parts, from) {
  return new Set([...parts].flatMap((part) => from[part] ?? []));
}

/**
 * The names of the parts that stand for `key`.
 * @type {(key: Key, from: Mapping) => string}
 */
export function partNames(key, from) {
  const parts = Object.keys(from).filter((part) => from[part] === key);
  return parts.map(partName).join(", ") || "none";
}

/** @type {(part: string) => string} */
function partName(part) {
  if (part.startsWith("b")) return part.slice(1);
  const [, axis = "0", way] = /^a(\d+)(.)$/.exec(part) ?? [];
  const arrow = Number(axis) % 2 === 0 ? (way === "+" ? "→" : "←") : way === "+" ? "↓" : "↑";
  return `stick ${Math.floor(Number(axis) / 2) + 1} ${arrow}`;
}
