/** Short messages at the edge of the page, announced by assistive technology. */

import { byId, el } from "./dom.js";
import { icon } from "./icons.js";

/** How long a message is shown. */
const SHOWN_MS = 6000;
/** How many messages are shown at most. */
const MOST = 4;

/** @typedef {"good" | "bad" | "copied"} Tone */

/**
 * A button in a message, for an action that the user may want next.
 * @typedef {{ label: string, act: () => unknown }} Offer
 */

/**
 * Shows the reason why something was refused, unless it is already visible.
 * @type {(text: string) => void}
 */
export function toastOnce(text) {
  if (!byId("toasts").textContent.includes(text)) toast(text, "bad");
}

/**
 * Shows `text` for a few seconds, and longer while the mouse is over it or the focus is in it.
 * @type {(text: string, tone?: Tone, offer?: Offer) => void}
 */
export function toast(text, tone = "good", offer = undefined) {
  const place = byId("toasts");
  // A copied text replaces the previous one in the clipboard. So the message about the new text replaces the message about
  // the previous one.
  if (tone === "copied") place.querySelector(".toast.copied")?.remove();
  const close = el(
    "button",
    { type: "button", class: "quiet square", "aria-label": "Dismiss" },
    icon("close"),
  );
  const box = el("div", { class: `toast ${tone}` }, el("p", {}, text));
  const gone = () => box.remove();
  if (offer) {
    const control = el("button", { type: "button" }, offer.label);
    control.addEventListener("click", () => {
      gone();
      void offer.act();
    });
    box.append(control);
  }
  box.append(close);
  const expire = () => {
    if (box.matches(":hover, :focus-within")) setTimeout(expire, SHOWN_MS / 2);
    else gone();
  };
  setTimeout(expire, SHOWN_MS);
  close.addEventListener("click", gone);
  place.append(box);
  while (place.childElementCount > MOST) place.firstElementChild?.remove();
}
