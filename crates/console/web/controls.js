/** Controls that several panels use. */

import { el, freshId } from "./dom.js";
import { icon } from "./icons.js";

/**
 * @import { Child, Props } from "./dom.js"
 * @import { IconName } from "./icons.js"
 */

/**
 * @typedef {object} ButtonLook
 * @property {IconName} [icon]
 * @property {string} label The visible text unless `compact`; always the accessible name.
 * @property {boolean} [compact]
 * @property {"primary" | "quiet" | "danger"} [kind]
 * @property {string} [hint] The tooltip. A compact button without a `hint` uses its label as the tooltip.
 */

/**
 * A button. It ignores clicks while its action is running, and after `disable`.
 * @type {(look: ButtonLook, act: (event: MouseEvent) => unknown) => HTMLButtonElement}
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
    const running = act(event);
    if (!(running instanceof Promise)) return;
    element.ariaBusy = "true";
    void running.finally(() => {
      element.ariaBusy = null;
    });
  });
  return element;
}

/**
 * A small button in an entry of a list. Its accessible name contains the name of the entry; its tooltip does not.
 * @type {(
 *   shown: IconName, verb: string, name: string, act: () => unknown, kind?: "primary" | "quiet"
 * ) => HTMLButtonElement}
 */
export function entryButton(shown, verb, name, act, kind = "quiet") {
  return button({ icon: shown, label: `${verb} ${name}`, compact: true, kind, hint: verb }, act);
}

/**
 * Disables a control and shows the reason as its tooltip. Without a reason, enables the control. A disabled control can
 * still get the focus. Only a `button` of this file ignores clicks while it is disabled. For any other control, the caller
 * must also set `disabled`.
 * @type {(control: HTMLElement, reason: string | undefined) => void}
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
 * A field with a label. If `hidden` is true, the label is only for assistive technology.
 * @type {(label: string, input: HTMLInputElement | HTMLSelectElement, hidden?: boolean) => HTMLElement}
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
 * A field for text that is not prose, such as an address. The browser neither checks its spelling nor completes it.
 * @type {(props: Props) => HTMLInputElement}
 */
export function codeInput(props) {
  return el("input", { type: "text", spellcheck: "false", autocomplete: "off", ...props });
}

/** @typedef {readonly [value: string, label: string]} SelectOption An option of a select element. */

/**
 * Sets the options of a select element and keeps the selection. Does nothing if the options are the same as before.
 * @type {(select: HTMLSelectElement, options: readonly SelectOption[]) => void}
 */
export function setOptions(select, options) {
  const before = [...select.options].map((option) => `${option.value} ${option.label}`).join("\n");
  if (before === options.map(([value, label]) => `${value} ${label}`).join("\n")) return;
  const chosen = select.value;
  select.replaceChildren(...options.map(([value, label]) => el("option", { value }, label)));
  if (options.some(([value]) => value === chosen)) select.value = chosen;
}

/**
 * A list from which the user chooses one of these options. At first, `chosen` is selected, or else the first option.
 * @type {(options: readonly SelectOption[], chosen?: string) => HTMLSelectElement}
 */
export function choice(options, chosen) {
  const select = el("select", {}, ...options.map(([value, label]) => el("option", { value }, label)));
  if (chosen !== undefined) select.value = chosen;
  return select;
}

/**
 * A list from which the user chooses a number.
 * @type {(values: readonly number[], chosen: number, label: (value: number) => string) => HTMLSelectElement}
 */
export function numberChoice(values, chosen, label) {
  return choice(
    values.map((value) => [String(value), label(value)]),
    String(chosen),
  );
}

/**
 * A form with its fields in one line. Enter and the submit button call `submit`. If `submit` returns a promise, they do
 * nothing until it is settled.
 * @type {(submit: () => unknown, ...children: Child[]) => HTMLFormElement}
 */
export function lineForm(submit, ...children) {
  const form = el("form", { class: "line" }, ...children);
  let running = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running) return;
    running = true;
    try {
      await submit();
    } finally {
      running = false;
    }
  });
  return form;
}

/**
 * Moves the focus to the picture after a click with the pointer on a button in `root`. Otherwise Enter, which is the
 * game's Start key, would press that button again.
 * @type {(root: HTMLElement, picture: HTMLElement) => void}
 */
export function playAfterClicks(root, picture) {
  root.addEventListener("click", (event) => {
    const byPointer = event.detail > 0 && event.target instanceof Element && event.target.closest("button");
    if (byPointer && !document.querySelector("dialog[open]")) picture.focus({ preventScroll: true });
  });
}

/**
 * A text that explains a panel or a part of it.
 * @type {(...text: Child[]) => HTMLElement}
 */
export function about(...text) {
  return el("p", { class: "about" }, ...text);
}

/**
 * The only entry of a list that is empty, with a text that explains why.
 * @type {(text: string) => HTMLElement}
 */
export function emptyEntry(text) {
  return el("li", { class: "nothing" }, el("p", { class: "empty" }, text));
}
