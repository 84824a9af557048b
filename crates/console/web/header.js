/** The header of the page: the selected emulator, its state, the latency, and the page's settings. */

import { LANGUAGES, language } from "./code.js";
import { button, field, setOptions } from "./controls.js";
import { byId, el, fill, setText } from "./dom.js";
import { icon } from "./icons.js";
import { milliseconds } from "./link.js";
import { oneOf, setting } from "./settings.js";
import { VIEW_ONLY } from "./refusals.js";

/**
 * @import { App } from "./app.js"
 * @import { IconName } from "./icons.js"
 * @import { Latency } from "./link.js"
 * @import { EmulatorState, Phase } from "./status.js"
 */

/** @type {Record<Phase, { text: string; tone: "good" | "bad" | "wait" }>} */
export const PHASES = {
  loading: { text: "Connecting", tone: "wait" },
  unreachable: { text: "Server gone", tone: "bad" },
  locked: { text: "Token needed", tone: "bad" },
  unknown: { text: "No such emulator", tone: "bad" },
  disconnected: { text: "No emulator", tone: "bad" },
  stalled: { text: "Stalled", tone: "bad" },
  replaying: { text: "Replaying", tone: "wait" },
  paused: { text: "Paused", tone: "wait" },
  lockstep: { text: "Lockstep", tone: "wait" },
  running: { text: "Running", tone: "good" },
};

/**
 * @param {App} app
 * @param {Latency} latency
 * @param {() => Promise<void>} openPalette Opens the command palette.
 */
export function header(app, latency, openPalette) {
  byId("chooser").append(chooser(app));
  byId("badges").append(stateBadge(app), viewOnlyBadge(app), saveBadge(app), latencyBadge(app, latency));
  byId("menu").append(
    signInButton(app),
    commandsButton(openPalette),
    curlButton(app),
    el("a", { href: "/docs", class: "button quiet", title: "Documentation of the HTTP interface" }, "API"),
    themeButton(),
  );
}

/**
 * Selects the emulator that the page shows and controls, and puts its name into the URL of the page.
 * @type {(app: App, name: string) => void}
 */
export function selectEmulator(app, name) {
  app.controller.releaseAll();
  app.api.emulator.set(name);
  const url = new URL(location.href);
  url.searchParams.set("emulator", name);
  history.replaceState(null, "", url);
}

/** @type {(app: App) => HTMLElement} */
function chooser(app) {
  const select = el("select", {});
  const title = el("span", { class: "game" });
  select.addEventListener("change", () => selectEmulator(app, select.value));
  const choice = field("Emulator", select, true);
  app.status.follow(({ phase, emulators, emulator }) => {
    choice.hidden = emulators.length < 2;
    setOptions(
      select,
      emulators.map(({ name }) => [name, name]),
    );
    // If the server has no emulator with the name in the URL, none is selected, so the user can select each of them.
    if (emulator || phase === "unknown") select.value = emulator?.name ?? "";
    setText(title, emulator?.title ?? "");
    document.title = emulator?.title ? `${emulator.title} – Framewire` : "Framewire console";
  });
  return el("div", { class: "chooser" }, choice, title);
}

/** @type {(app: App) => HTMLElement} */
function stateBadge(app) {
  const word = el("span", {});
  const rate = el("span", { class: "number" });
  const badge = el("p", { class: "badge" }, el("span", { class: "dot" }), word, rate);
  const live = el("span", { class: "unseen", role: "status" });
  const mean = new MeanRate();
  app.status.follow(({ phase, emulator }) => {
    const look = PHASES[phase];
    badge.dataset.tone = look.tone;
    setText(word, look.text);
    setText(live, look.text);
    setText(rate, mean.text(phase === "running" ? emulator : undefined));
  });
  return el("div", {}, badge, live);
}

/**
 * A badge that is visible while the game's battery save cannot be written.
 * @type {(app: App) => HTMLElement}
 */
function saveBadge(app) {
  const badge = el("p", { class: "badge", role: "status" }, el("span", { class: "dot" }), "Not saved");
  badge.dataset.tone = "bad";
  app.status.follow(({ emulator }) => {
    badge.hidden = !emulator?.save_problem;
    badge.title = emulator?.save_problem ?? "";
  });
  return badge;
}

/**
 * A badge that is visible while the token of this browser allows only reading.
 * @type {(app: App) => HTMLElement}
 */
function viewOnlyBadge(app) {
  const badge = el("p", { class: "badge", role: "status", "data-tone": "wait" }, "View only");
  badge.ariaDescription = VIEW_ONLY;
  app.api.viewOnly.follow((only) => {
    badge.hidden = !only;
  });
  return badge;
}

/** For how long the frame rate is averaged. Just after a pause or after loading a state, a single reading is wrong. */
const MEAN_MS = 2000;

/** The mean frame rate of an emulator that runs without a break. */
class MeanRate {
  /** @type {{ at: number; rate: number }[]} */
  #readings = [];
  #name = "";
  #frame = 0;
  #since = 0;

  /**
   * Adds a reading and returns the mean as text. The text is empty until the emulator has run for `MEAN_MS`.
   * @param {EmulatorState | undefined} emulator The emulator, if it runs.
   * @returns {string}
   */
  text(emulator) {
    const now = performance.now();
    if (!emulator || emulator.name !== this.#name || emulator.frame < this.#frame) {
      this.#readings = [];
      this.#since = now;
    }
    this.#name = emulator?.name ?? "";
    this.#frame = emulator?.frame ?? 0;
    if (!emulator) return "";
    // The newest earlier reading stays even if it is old, because a single reading is not a mean.
    const newest = this.#readings.length - 1;
    this.#readings = this.#readings.filter(({ at }, index) => now - at < MEAN_MS || index === newest);
    this.#readings.push({ at: now, rate: emulator.frames_per_second });
    if (now - this.#since < MEAN_MS) return "";
    const mean = this.#readings.reduce((sum, { rate }) => sum + rate, 0) / this.#readings.length;
    return `${mean.toFixed(1)} fps`;
  }
}

/** @type {(app: App, latency: Latency) => HTMLElement} */
function latencyBadge(app, latency) {
  const number = el("span", { class: "number" });
  const badge = el(
    "p",
    { class: "badge", title: "Round trip from this page to the emulator" },
    "Latency",
    number,
  );
  const show = () => {
    const time = latency.last.value;
    badge.hidden = time === undefined || app.status.value.phase === "unreachable";
    setText(number, time === undefined ? "" : milliseconds(time));
  };
  latency.last.follow(show);
  app.status.follow(show);
  return badge;
}

/**
 * A button that opens the command palette. Users without a keyboard need it.
 * @type {(openPalette: () => Promise<void>) => HTMLElement}
 */
function commandsButton(openPalette) {
  const control = button(
    { icon: "search", label: "Commands", hint: "Search commands (Ctrl K)" },
    openPalette,
  );
  // The palette lists the buttons of the header, but not the one that opens it.
  control.dataset.palette = "";
  return control;
}

/**
 * A switch. While it is on, the page copies each action as a command instead of sending it.
 * @type {(app: App) => HTMLElement}
 */
function curlButton(app) {
  const { copying } = app.api;
  const control = button(
    {
      icon: "curl",
      label: "curl",
      hint: "Copy actions as code and send nothing. Choose the language in Log.",
    },
    () => copying.set(!copying.value),
  );
  const banner = byId("banner");
  const show = () => {
    const on = copying.value;
    control.setAttribute("aria-pressed", String(on));
    document.body.classList.toggle("copying", on);
    banner.hidden = !on;
    fill(
      banner,
      on && el("span", {}, `Clicks copy a request as ${LANGUAGES[language.value]} and send nothing.`),
      on && button({ label: "Done" }, () => copying.set(false)),
    );
  };
  copying.follow(show);
  language.follow(show);
  addEventListener("keydown", (event) => {
    // In a dialog, Escape closes the dialog.
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) copying.set(false);
  });
  return control;
}

/**
 * A button that reloads the page. The server sends the login form to a browser that is not logged in.
 * @type {(app: App) => HTMLElement}
 */
function signInButton(app) {
  const control = button({ icon: "lock", label: "Sign in", kind: "primary" }, () => location.reload());
  app.api.locked.follow((locked) => {
    control.hidden = !locked;
  });
  return control;
}

/** The themes: light, dark, or the system's. */
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
function themeButton() {
  const theme = setting("theme", "auto", oneOf(THEMES));
  const control = el("button", { type: "button", class: "quiet square" });
  control.addEventListener("click", () => {
    theme.set(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "auto");
  });
  theme.follow((chosen) => {
    document.documentElement.dataset.theme = chosen;
    const look = LOOKS[chosen];
    control.setAttribute("aria-label", look.label);
    control.title = look.label;
    fill(control, icon(look.icon));
  });
  return control;
}
