/** The dialogs for commands: the command palette (Ctrl+K), and the list of keys (`?`). */

import { el, fill, freshId } from "./dom.js";

/** @import { Command } from "./commands.js" */

/**
 * Opens a dialog in which the user searches for a command.
 * @param {readonly Command[]} all
 */
export function openPalette(all) {
  const list = el("ul", { role: "listbox", id: freshId("commands"), "aria-label": "Commands" });
  const input = el("input", {
    type: "search",
    role: "combobox",
    "aria-label": "Search commands",
    "aria-controls": list.id,
    "aria-expanded": "true",
    autocomplete: "off",
    placeholder: "Search commands",
  });
  const dialog = el("dialog", { class: "palette", "aria-label": "Commands" }, input, list);
  // A command that lasts until its key is released cannot be started here.
  const startable = all.filter(({ release }) => release === undefined);
  const titles = startable.map(({ title }) => title);
  const listed = startable.filter(({ title }, index) => titles.indexOf(title) === index);
  /** @type {readonly Command[]} */
  let found = [];
  let chosen = 0;
  /** @param {Command | undefined} command */
  const run = (command) => {
    dialog.close();
    void command?.run();
  };
  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/);
    found = listed.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)));
    chosen = Math.max(0, Math.min(chosen, found.length - 1));
    const options = found.map((command, number) => {
      const option = el(
        "li",
        { role: "option", id: `${list.id}-${number}`, "aria-selected": String(number === chosen) },
        el("span", {}, command.title),
        command.keys ? el("kbd", {}, command.keys) : "",
      );
      option.addEventListener("click", () => run(command));
      return option;
    });
    fill(list, ...options);
    options[chosen]?.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", found.length > 0 ? `${list.id}-${chosen}` : "");
  };
  input.addEventListener("input", () => {
    chosen = 0;
    show();
  });
  input.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      chosen += step;
      show();
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(found[chosen]);
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  show();
  input.focus();
}

/**
 * Opens a dialog that lists the keys of all commands.
 * @param {readonly Command[]} all
 */
export function openHelp(all) {
  const title = el("h2", { id: freshId("title") }, "Keyboard shortcuts");
  const rows = all
    .filter(({ keys }) => keys !== undefined)
    .map(({ title, keys }) => el("div", {}, el("dt", {}, el("kbd", {}, keys ?? "")), el("dd", {}, title)));
  const rewindKeys = el("dt", {}, el("kbd", {}, ","), " or ", el("kbd", {}, "`"));
  const rewind = el("div", {}, rewindKeys, el("dd", {}, "Go back while held"));
  const close = el("button", { type: "submit", class: "primary" }, "Close");
  const note = el(
    "p",
    {},
    "A key that controls the game (see Input) does nothing else. Files that you drop on the page are loaded.",
  );
  const form = el("form", { method: "dialog" }, title, el("dl", {}, ...rows, rewind), note, close);
  const dialog = el("dialog", { class: "keys", "aria-labelledby": title.id }, form);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
