/** The keyboard as a controller. */

import type { Controller } from "./controller.ts";
import { isKey, type Key } from "./keys.ts";
import { setting } from "./settings.ts";

/** Which key of the keyboard (`KeyboardEvent.code`: its place, whatever is printed on it) stands for which key. */
export type Mapping = Readonly<Record<string, Key>>;

/** As mGBA has it. */
export const USUAL_MAPPING: Mapping = {
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

function isMapping(value: unknown): value is Mapping {
  return typeof value === "object" && value !== null && Object.values(value).every(isKey);
}

function isBoolean(value: unknown): value is boolean {
  return typeof value === "boolean";
}

export const mapping = setting<Mapping>("keyboard", USUAL_MAPPING, isMapping);

/** Whether the keyboard plays at all. */
export const keyboardPlays = setting("keyboard-plays", true, isBoolean);

/** The mapping with `code` for `key`, in place of what either was before. */
export function remapped(before: Mapping, code: string, key: Key): Mapping {
  const others = Object.entries(before).filter(([otherCode, other]) => otherCode !== code && other !== key);
  return Object.fromEntries([...others, [code, key]]);
}

/** The keyboard's key for `key`, as people call it. */
export function nameOf(key: Key, from: Mapping): string {
  const code = Object.entries(from).find(([, other]) => other === key)?.[0];
  return code === undefined ? "none" : codeName(code);
}

/** A `KeyboardEvent.code` as people call it. */
export function codeName(code: string): string {
  const signs: Record<string, string> = {
    ArrowUp: "↑",
    ArrowDown: "↓",
    ArrowLeft: "←",
    ArrowRight: "→",
    Backspace: "⌫ Back",
    Enter: "⏎ Enter",
  };
  return signs[code] ?? code.replace(/^(Key|Digit)/, "").replace(/([a-z])([A-Z0-9])/g, "$1 $2");
}

/** Has the keyboard drive `controller`; `screen` is the game's picture, on which every key plays. */
export function playByKeyboard(controller: Controller, screen: HTMLElement): void {
  const held = new Map<string, Key>();
  const tell = (): void => controller.hold("keyboard", held.values());
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

/** Whether a key belongs to the game rather than to what has the focus. */
function plays(event: KeyboardEvent, screen: HTMLElement): boolean {
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
