/** Controls that many panels use. */

import { el, freshId } from "./dom.js";
import { icon } from "./icons.js";

/**
 * @import { Child } from "./dom.js"
 * @import { IconName } from "./icons.js"
 */

/**
 * @typedef {object} ButtonLook
 * @property {IconName} [icon]
 * @property {string} label Shown, unless `compact`; always what assistive technology says.
 * @property {boolean} [compact]
 * @property {"primary" | "quiet" | "danger"} [kind]
 * @property {string} [hint] Also shown while the mouse is on it.
 */

/**
 * A button. While what it does is under way it is busy, and not done twice.
 * @param {ButtonLook} look
 * @param {(event: MouseEvent) => unknown} act
 * @returns {HTMLButtonElement}
 */
export function button(look, act) {
  const classes = [look.kind ?? "", look.compact ? "square" : ""].join(" ").trim();
  const element = el("button", { type: "button", class: classes || undefined });
  if (look.icon) element.append(icon(look.icon));
  if (look.compact) element.setAttribute("aria-label", look.label);
  else element.append(el("span", {}, look.label));
  const hint = look.hint ?? (look.compact ? look.label : undefined);
  if (hint !== undefined) element.title = hint;
  element.addEventListener("click", (event) => {
    if (element.getAttribute("aria-disabled") === "true" || element.ariaBusy === "true") return;
    const under = act(event);
    if (!(under instanceof Promise)) return;
    element.ariaBusy = "true";
    void under.finally(() => {
      element.ariaBusy = null;
    });
  });
  return element;
}

/**
 * Makes a control useless for a reason that people can read, or useful again with none; it keeps its place in the focus order.
 * @param {HTMLElement} control
 * @param {string | undefined} reason
 */
export function disable(control, reason) {
  if (reason === undefined) {
    control.removeAttribute("aria-disabled");
    if (control.dataset.title !== undefined) control.title = control.dataset.title;
    return;
  }
  control.dataset.title ??= control.title;
  control.setAttribute("aria-disabled", "true");
  control.title = reason;
}

/**
 * A labelled field.
 * @param {string} label
 * @param {HTMLInputElement | HTMLSelectElement} input
 * @returns {HTMLElement}
 */
export function field(label, input, hidden = false) {
  input.id ||= freshId("field");
  return el(
    "div",
    { class: "field" },
    el("label", { for: input.id, class: hidden ? "unseen" : undefined }, label),
    input,
  );
}

/**
 * Options of a list; those that are the same as before are left alone, with the choice.
 * @param {HTMLSelectElement} select
 * @param {readonly { value: string; label: string }[]} options
 */
export function setOptions(select, options) {
  const before = [...select.options].map((option) => `${option.value} ${option.label}`).join("\n");
  if (before === options.map(({ value, label }) => `${value} ${label}`).join("\n")) return;
  const chosen = select.value;
  select.replaceChildren(...options.map(({ value, label }) => el("option", { value }, label)));
  if (options.some(({ value }) => value === chosen)) select.value = chosen;
}

/**
 * A form of one line; `submit` is called by Enter and by its button.
 * @param {() => unknown} submit
 * @param {...Child} children
 * @returns {HTMLFormElement}
 */
export function lineForm(submit, ...children) {
  const form = el("form", { class: "line" }, ...children);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  return form;
}

/**
 * What a panel shows while it has nothing.
 * @param {string} text
 * @returns {HTMLElement}
 */
export function empty(text) {
  return el("p", { class: "empty" }, text);
}
