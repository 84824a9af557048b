/** Light, dark, or as the system has it. */

import { el, fill } from "./dom.ts";
import { type IconName, icon } from "./icons.ts";
import { setting } from "./settings.ts";

const THEMES = ["auto", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const LOOKS: Record<Theme, { icon: IconName; label: string }> = {
  auto: { icon: "auto", label: "Theme: as the system" },
  light: { icon: "sun", label: "Theme: light" },
  dark: { icon: "moon", label: "Theme: dark" },
};

function isTheme(value: unknown): value is Theme {
  return THEMES.includes(value as Theme);
}

/** A button that goes through the themes. */
export function themeButton(): HTMLButtonElement {
  const theme = setting<Theme>("theme", "auto", isTheme);
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
