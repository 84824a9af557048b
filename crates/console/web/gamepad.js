/** Gamepads as controllers. */

import { Store } from "./store.js";

/**
 * @import { Controller } from "./controller.js"
 * @import { Key } from "./keys.js"
 */

/**
 * Buttons of the standard layout, by position: the right one of the four is A, the bottom one is B.
 * @type {readonly (Key | undefined)[]}
 */
const BUTTONS = [
  "B",
  "A",
  "B",
  "A",
  "L",
  "R",
  "L",
  "R",
  "Select",
  "Start",
  undefined,
  undefined,
  "Up",
  "Down",
  "Left",
  "Right",
];

/** How far a stick must be pushed to count as a direction. */
const PUSHED = 0.5;

/** Names of the gamepads that are connected. */
export const gamepads = new Store(/** @type {readonly string[]} */ ([]));

/**
 * Connects all gamepads to `controller`. They are polled once per display frame, and only while one is connected.
 * @param {Controller} controller
 */
export function playByGamepad(controller) {
  let looking = false;
  const look = () => {
    const connected = navigator.getGamepads().filter((pad) => pad?.connected);
    for (const pad of connected) if (pad) controller.hold(`gamepad ${pad.index}`, keysHeld(pad));
    looking = connected.length > 0;
    if (looking) requestAnimationFrame(look);
  };
  const changed = () => {
    const present = navigator.getGamepads().filter((pad) => pad !== null);
    gamepads.set(present.map((pad) => pad?.id ?? ""));
    if (!looking) look();
  };
  addEventListener("gamepadconnected", changed);
  addEventListener("gamepaddisconnected", (event) => {
    controller.hold(`gamepad ${event.gamepad.index}`, []);
    changed();
  });
}

/**
 * The keys that a gamepad holds.
 * @param {Pick<Gamepad, "buttons" | "axes">} pad
 * @returns {Set<Key>}
 */
export function keysHeld(pad) {
  /** @type {Set<Key>} */
  const keys = new Set();
  pad.buttons.forEach((button, index) => {
    const key = BUTTONS[index];
    if (key !== undefined && button.pressed) keys.add(key);
  });
  const [x = 0, y = 0] = pad.axes;
  if (x > PUSHED) keys.add("Right");
  if (x < -PUSHED) keys.add("Left");
  if (y > PUSHED) keys.add("Down");
  if (y < -PUSHED) keys.add("Up");
  return keys;
}
