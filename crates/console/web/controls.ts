/** Controls that many panels use. */

import { type Child, el, freshId } from "./dom.ts";
import { type IconName, icon } from "./icons.ts";

export interface ButtonLook {
  icon?: IconName;
  /** Shown, unless `compact`; always what assistive technology says. */
  label: string;
  compact?: boolean;
  kind?: "primary" | "quiet" | "danger";
  /** Also shown while the mouse is on it. */
  hint?: string;
}

/** A button. While what it does is under way it is busy, and not done twice. */
export function button(look: ButtonLook, act: (event: MouseEvent) => unknown): HTMLButtonElement {
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

/** Makes a control useless for a reason that people can read, or useful again with none; it keeps its place in the focus order. */
export function disable(control: HTMLElement, reason: string | undefined): void {
  if (reason === undefined) {
    control.removeAttribute("aria-disabled");
    if (control.dataset.title !== undefined) control.title = control.dataset.title;
    return;
  }
  control.dataset.title ??= control.title;
  control.setAttribute("aria-disabled", "true");
  control.title = reason;
}

/** A labelled field. */
export function field(
  label: string,
  input: HTMLInputElement | HTMLSelectElement,
  hidden = false,
): HTMLElement {
  input.id ||= freshId("field");
  return el(
    "div",
    { class: "field" },
    el("label", { for: input.id, class: hidden ? "unseen" : undefined }, label),
    input,
  );
}

/** Options of a list; those that are the same as before are left alone, with the choice. */
export function setOptions(
  select: HTMLSelectElement,
  options: readonly { value: string; label: string }[],
): void {
  const before = [...select.options].map((option) => `${option.value} ${option.label}`).join("\n");
  if (before === options.map(({ value, label }) => `${value} ${label}`).join("\n")) return;
  const chosen = select.value;
  select.replaceChildren(...options.map(({ value, label }) => el("option", { value }, label)));
  if (options.some(({ value }) => value === chosen)) select.value = chosen;
}

/** A form of one line; `submit` is called by Enter and by its button. */
export function lineForm(submit: () => unknown, ...children: Child[]): HTMLFormElement {
  const form = el("form", { class: "line" }, ...children);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  return form;
}

/** What a panel shows while it has nothing. */
export function empty(text: string): HTMLElement {
  return el("p", { class: "empty" }, text);
}
