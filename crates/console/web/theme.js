/** The themes: light, dark, or the system's. */

import { el, fill } from "./dom.js";
import { icon } from "./icons.js";
import { oneOf, setting } from "./settings.js";

/** @import { IconName } from "./icons.js" */

const THEMES = /** @type {const} */ (["auto", "light", "dark"]);
/** @typedef {(typeof THEMES)[number]} Theme */

/** @type {Record<Theme, { icon: IconName; label: string }>} */
const LOOKS = {
  auto: { icon: "auto", label: "Theme: system" },
  light: { icon: "sun", label: "Theme: light" },
  dark: { icon: "moon", label: "Theme: dark" },
};

/**
 * A button that switches to the next theme.
 * @returns {HTMLButtonElement}
 */
export function themeButton() {
  const theme = setting("theme", "auto", oneOf(THEMES));
  const button = el("button", { type: "button", class: "quiet square" });
  button.addEventListener("click", () => {
    theme.set(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "auto");
  });
  theme.follow((chosen) => {
    document.documentElement.dataset.theme = chosen;
    const look = LOOKS[chosen];
    button.setAttribute("aria-label", look.label);
    button.title = look.label;
    fill(button, icon(look.icon));
  });
  return button;
}
