/** The on-screen controller, for touch and mouse. It handles several pointers, and each can slide over keys. */

import { el } from "./dom.js";
import { isCombination, mapping, nameOf } from "./keyboard.js";
import { isKey, KEYS, keysOf } from "./keys.js";
import { isGameBoy } from "./status.js";

/**
 * @import { Controller } from "./controller.js"
 * @import { Key } from "./keys.js"
 * @import { Status } from "./status.js"
 * @import { Store } from "./store.js"
 */

/** The radius of the dead zone in the middle of the cross, as a fraction of the cross's radius. */
const DEAD = 0.22;

/**
 * The keys of the cross's eight sectors of 45 degrees, clockwise from the right.
 * @type {readonly (readonly Key[])[]}
 */
const SECTORS = [
  ["Right"],
  ["Right", "Down"],
  ["Down"],
  ["Down", "Left"],
  ["Left"],
  ["Left", "Up"],
  ["Up"],
  ["Up", "Right"],
];

/** @type {(controller: Controller, status: Store<Status>) => HTMLElement} */
export function pad(controller, status) {
  const buttons = new Map(KEYS.map((key) => [key, keyButton(key, controller)]));
  /** @type {(key: Key) => HTMLButtonElement | undefined} */
  const of = (key) => buttons.get(key);
  const cross = el("div", { class: "cross" }, of("Up"), of("Left"), of("Right"), of("Down"));
  const root = el(
    "div",
    { class: "pad", role: "group", "aria-label": "Controller" },
    of("L"),
    of("R"),
    cross,
    el("div", { class: "middle" }, of("Select"), of("Start")),
    el("div", { class: "faces" }, of("B"), of("A")),
  );
  takePointers(root, cross, controller);
  status.follow(({ emulator }) => {
    // The game of an emulator that is not connected is not known.
    if (!emulator?.connected) return;
    for (const key of /** @type {const} */ (["L", "R"]))
      of(key)?.toggleAttribute("hidden", isGameBoy(emulator));
  });
  controller.held.follow((mask) => {
    const held = new Set(keysOf(mask));
    for (const [key, button] of buttons) button.classList.toggle("held", held.has(key));
  });
  return root;
}

/** @type {(key: Key, controller: Controller) => HTMLButtonElement} */
function keyButton(key, controller) {
  const button = el(
    "button",
    { type: "button", class: `key key-${key.toLowerCase()}`, "data-key": key, "aria-label": key },
    label(key),
  );
  // The style sheet draws the hint, so it is not part of the button's name.
  mapping.follow((from) => {
    button.dataset.hint = nameOf(key, from);
  });
  // While the button has the focus, Space and Enter press it, even if they are mapped to other keys.
  const source = `button ${key}`;
  button.addEventListener("keydown", (event) => {
    if ((event.key !== " " && event.key !== "Enter") || isCombination(event)) return;
    event.preventDefault();
    controller.hold(source, [key]);
  });
  button.addEventListener("keyup", () => controller.hold(source, []));
  button.addEventListener("blur", () => controller.hold(source, []));
  // Assistive technology sends only a click, without events of a pointer or a keyboard.
  button.addEventListener("click", (event) => {
    if (event.detail !== 0 || event.pointerType) return;
    controller.hold(source, [key]);
    controller.hold(source, []);
  });
  return button;
}

/** @type {(key: Key) => HTMLElement} */
function label(key) {
  /** @type {Partial<Record<Key, string>>} */
  const arrows = { Up: "▲", Down: "▼", Left: "◀", Right: "▶" };
  return el("span", { class: "cap", "aria-hidden": "true" }, arrows[key] ?? key);
}

/** @type {(root: HTMLElement, cross: HTMLElement, controller: Controller) => void} */
function takePointers(root, cross, controller) {
  /** @type {Set<number>} */
  const down = new Set();
  /** @param {PointerEvent} event */
  const move = (event) => {
    if (down.has(event.pointerId)) controller.hold(`pointer ${event.pointerId}`, keysAt(event, root, cross));
  };
  /** @param {PointerEvent} event */
  const up = (event) => {
    down.delete(event.pointerId);
    controller.hold(`pointer ${event.pointerId}`, []);
  };
  root.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const keys = keysAt(event, root, cross);
    if (keys.length === 0) return;
    // A touch must not move the focus, because then the keyboard would no longer control the game.
    event.preventDefault();
    root.setPointerCapture(event.pointerId);
    down.add(event.pointerId);
    move(event);
  });
  root.addEventListener("pointermove", move);
  root.addEventListener("pointerup", up);
  root.addEventListener("pointercancel", up);
  root.addEventListener("lostpointercapture", up);
  root.addEventListener("contextmenu", (event) => event.preventDefault());
}

/**
 * The keys under a pointer. On the cross, the direction from its middle decides, so a thumb can roll over it. In a wide
 * window with a mouse, all keys are in one row, including those of the cross. There, the button under the pointer
 * decides.
 * @type {(event: PointerEvent, root: HTMLElement, cross: HTMLElement) => readonly Key[]}
 */
function keysAt(event, root, cross) {
  const box = cross.getBoundingClientRect();
  const x = (event.clientX - box.left - box.width / 2) / (box.width / 2);
  const y = (event.clientY - box.top - box.height / 2) / (box.height / 2);
  const isRow = box.width > 2 * box.height;
  if (!isRow && Math.abs(x) <= 1.15 && Math.abs(y) <= 1.15) return direction(x, y);
  for (const element of document.elementsFromPoint(event.clientX, event.clientY)) {
    /** @type {HTMLElement | null} */
    const button = element.closest("[data-key]");
    if (button && root.contains(button) && isKey(button.dataset.key)) return [button.dataset.key];
  }
  return [];
}

/**
 * The direction keys at a point of the cross, whose edges are at -1 and 1.
 * @type {(x: number, y: number) => readonly Key[]}
 */
export function direction(x, y) {
  if (Math.hypot(x, y) < DEAD) return [];
  const turn = Math.atan2(y, x) / (2 * Math.PI);
  return SECTORS[(Math.round(turn * 8) + 8) % 8] ?? [];
}
