/** The controller on the page, for fingers and for the mouse. Any number of pointers, and each may slide over keys. */

import type { Controller } from "./controller.ts";
import { el } from "./dom.ts";
import { mapping, nameOf } from "./keyboard.ts";
import { isKey, KEYS, type Key, keysOf } from "./keys.ts";

/** The part of the cross's radius in its middle that is no direction. */
const DEAD = 0.22;

/** The cross has eight directions: a sector of 45 degrees each, clockwise from the right. */
const SECTORS: readonly (readonly Key[])[] = [
  ["Right"],
  ["Right", "Down"],
  ["Down"],
  ["Down", "Left"],
  ["Left"],
  ["Left", "Up"],
  ["Up"],
  ["Up", "Right"],
];

export function pad(controller: Controller): HTMLElement {
  const buttons = new Map<Key, HTMLButtonElement>();
  for (const key of KEYS) buttons.set(key, keyButton(key, controller));
  const of = (key: Key): HTMLButtonElement | undefined => buttons.get(key);
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
  controller.held.follow((mask) => {
    const held = new Set(keysOf(mask));
    for (const [key, button] of buttons) button.classList.toggle("held", held.has(key));
  });
  return root;
}

function keyButton(key: Key, controller: Controller): HTMLButtonElement {
  const button = el(
    "button",
    { type: "button", class: `key key-${key.toLowerCase()}`, "data-key": key },
    label(key),
  );
  button.setAttribute("aria-label", key);
  // Drawn by the style sheet: it is no part of the button's name.
  mapping.follow((from) => {
    button.dataset.hint = nameOf(key, from);
  });
  // With the keyboard's focus on it: Space and Enter are the button itself, whatever else they are mapped to.
  const source = `button ${key}`;
  button.addEventListener("keydown", (event) => {
    if (event.key !== " " && event.key !== "Enter") return;
    event.preventDefault();
    controller.hold(source, [key]);
  });
  button.addEventListener("keyup", () => controller.hold(source, []));
  button.addEventListener("blur", () => controller.hold(source, []));
  // Assistive technology clicks without a pointer or a key.
  button.addEventListener("click", (event) => {
    if (event.detail !== 0 || event.pointerType) return;
    controller.hold(source, [key]);
    controller.hold(source, []);
  });
  return button;
}

function label(key: Key): HTMLElement {
  const arrows: Partial<Record<Key, string>> = { Up: "▲", Down: "▼", Left: "◀", Right: "▶" };
  return el("span", { class: "cap", "aria-hidden": "true" }, arrows[key] ?? key);
}

function takePointers(root: HTMLElement, cross: HTMLElement, controller: Controller): void {
  const down = new Set<number>();
  const move = (event: PointerEvent): void => {
    if (down.has(event.pointerId)) controller.hold(`pointer ${event.pointerId}`, keysAt(event, root, cross));
  };
  const up = (event: PointerEvent): void => {
    down.delete(event.pointerId);
    controller.hold(`pointer ${event.pointerId}`, []);
  };
  root.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const keys = keysAt(event, root, cross);
    if (keys.length === 0) return;
    // No focus by a finger: it would take the keyboard away from the game.
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

/** The keys under a pointer: on the cross by the angle from its middle, so that a thumb can roll over it. */
function keysAt(event: PointerEvent, root: HTMLElement, cross: HTMLElement): readonly Key[] {
  const box = cross.getBoundingClientRect();
  const x = (event.clientX - box.left - box.width / 2) / (box.width / 2);
  const y = (event.clientY - box.top - box.height / 2) / (box.height / 2);
  if (Math.abs(x) <= 1.15 && Math.abs(y) <= 1.15) return direction(x, y);
  for (const element of document.elementsFromPoint(event.clientX, event.clientY)) {
    const button = element.closest<HTMLElement>("[data-key]");
    if (button && root.contains(button) && isKey(button.dataset.key)) return [button.dataset.key];
  }
  return [];
}

/** The directions at a point of the cross, whose edges are at -1 and 1. */
export function direction(x: number, y: number): readonly Key[] {
  if (Math.hypot(x, y) < DEAD) return [];
  const turn = Math.atan2(y, x) / (2 * Math.PI);
  return SECTORS[(Math.round(turn * 8) + 8) % 8] ?? [];
}
