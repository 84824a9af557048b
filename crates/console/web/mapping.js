/** The panel for key mappings and gamepads. */

import { button } from "./controls.js";
import { el, fill, freshId, setText } from "./dom.js";
import { gamepads } from "./gamepad.js";
import { keyboardPlays, mapping, nameOf, remapped, USUAL_MAPPING } from "./keyboard.js";
import { KEYS } from "./keys.js";

/** @import { Key } from "./keys.js" */

/** @returns {HTMLElement} */
export function mappingPanel() {
  const plays = el("input", { type: "checkbox", id: freshId("field"), checked: keyboardPlays.value });
  plays.addEventListener("change", () => keyboardPlays.set(plays.checked));
  const rows = el("div", { class: "mapping", "data-own-keys": true });
  for (const key of KEYS) rows.append(row(key));
  const pads = el("p", { class: "about" });
  gamepads.follow((names) => {
    setText(
      pads,
      names.length > 0 ? `Gamepad: ${names.join(", ")}` : "Press a button on a gamepad to use it.",
    );
  });
  return el(
    "div",
    { class: "part" },
    el("div", { class: "check" }, plays, el("label", { for: plays.id }, "Use the keyboard to play")),
    el(
      "p",
      { class: "about" },
      "Select a key of the game, then press the keyboard key for it. Escape cancels.",
    ),
    rows,
    button({ label: "Reset to mGBA's keys", icon: "reset" }, () => mapping.set(USUAL_MAPPING)),
    el("h2", {}, "Gamepad"),
    pads,
  );
}

/**
 * @param {Key} key
 * @returns {HTMLElement}
 */
function row(key) {
  const cap = el("kbd", {});
  const control = el("button", { type: "button", "data-map": key }, el("span", {}, key), " ", cap);
  let waiting = false;
  const show = () => {
    fill(cap, waiting ? "press a key…" : nameOf(key, mapping.value));
    control.classList.toggle("waiting", waiting);
  };
  const end = () => {
    waiting = false;
    show();
  };
  control.addEventListener("click", () => {
    waiting = true;
    show();
  });
  control.addEventListener("blur", end);
  control.addEventListener("keydown", (event) => {
    // Tab still moves the focus, so nobody is trapped here.
    if (!waiting || event.key === "Tab") return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key !== "Escape") mapping.set(remapped(mapping.value, event.code, key));
    end();
  });
  mapping.follow(show);
  return control;
}
