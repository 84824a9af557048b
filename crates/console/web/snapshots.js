/** The snapshots panel: named states on the server, each with its picture. */

import * as actions from "./actions.js";
import { ApiError } from "./api.js";
import { attempt, textOf } from "./app.js";
import { Comparison } from "./compare.js";
import { button, emptyEntry, entryButton, field, lineForm } from "./controls.js";
import { confirm, prompt } from "./dialog.js";
import { el, fill, refillWith } from "./dom.js";
import { fileButton, loadState } from "./files.js";
import { fileName, freeName } from "./names.js";
import { Polling } from "./polling.js";
import { toast } from "./toast.js";
import { download } from "./transport.js";

/**
 * @import { App } from "./app.js"
 * @import { Action } from "./curl.js"
 * @import { PlaceUse } from "./places.js"
 */

/**
 * An entry of the server's list of snapshots.
 * @typedef {{ name: string, time: string, frame: number }} Snapshot
 */

/** The time between two updates of the list. */
const EVERY_MS = 5000;

export class SnapshotsPanel {
  /** @readonly @type {HTMLElement} */
  element;
  #app;
  #list = el("ul", { class: "snapshots" });
  #name = el("input", { type: "text", placeholder: "optional", maxlength: "64", autocomplete: "off" });
  #polling = new Polling(() => this.#refresh());
  /** The snapshots that the list shows, as JSON; empty if the list has to be made again. */
  #shown = "";
  /** The entries of the list. @type {ReadonlyMap<string, Element>} */
  #cards = new Map();
  #comparison;
  /** @type {readonly string[]} */
  #names = [];

  /**
   * @param {App} app
   * @param {PlaceUse} use What users can do with places in memory that differ.
   */
  constructor(app, use) {
    this.#app = app;
    this.#comparison = new Comparison(app, use);
    const form = lineForm(
      () => this.#save(),
      field("Name of the snapshot", this.#name),
      el("button", { type: "submit", class: "primary" }, "Save now"),
    );
    const files = el(
      "div",
      { class: "line" },
      fileButton(app),
      button({ icon: "download", label: "Battery save", hint: "Download what the game has saved" }, () =>
        download(app, actions.batterySave()),
      ),
    );
    this.element = el("div", {}, form, files, this.#list, this.#comparison.element);
    app.api.emulator.follow(() => {
      this.#shown = "";
      // The pictures' URLs contain the emulator.
      this.#cards = new Map();
    });
  }

  /** @param {boolean} visible */
  shown(visible) {
    this.#polling.shown(visible);
  }

  async #save() {
    const entered = this.#name.value;
    const name = fileName(entered) || freeName("snapshot", this.#names);
    const replace = this.#names.includes(name);
    const detail = "There is a snapshot with this name.";
    if (replace && !(await confirm(this.#app.api, `Replace ${name}?`, detail, "Replace"))) return;
    /** @type {Snapshot | undefined} */
    const saved = await attempt(() => this.#app.api.act(actions.saveSnapshot(name, replace)));
    if (saved) {
      toast(`Saved ${saved.name}.`);
      if (this.#name.value === entered) this.#name.value = "";
    }
    await this.#polling.now();
  }

  /**
   * Performs an action that changes a snapshot, shows a message, and updates the list.
   * @type {(action: Action, message: string) => Promise<void>}
   */
  async #change(action, message) {
    await attempt(async () => {
      await this.#app.api.act(action);
      toast(message);
      await this.#app.poller.refresh();
    });
    await this.#polling.now();
  }

  async #refresh() {
    try {
      /** @type {{ snapshots: Snapshot[] }} */
      const { snapshots } = await this.#app.api.read(actions.SNAPSHOTS, { limit: 1000 });
      this.#names = snapshots.map(({ name }) => name);
      this.#comparison.setNames(this.#names);
      this.#show(snapshots);
    } catch (error) {
      // If the server did not answer, the list stays, because it may still be correct. The header shows that the server
      // does not answer.
      if (error instanceof ApiError && error.status >= 400) fill(this.#list, emptyEntry(textOf(error)));
      this.#shown = "";
    }
    return EVERY_MS;
  }

  /** @param {readonly Snapshot[]} snapshots */
  #show(snapshots) {
    const text = JSON.stringify(snapshots);
    if (text === this.#shown) return;
    this.#shown = text;
    if (snapshots.length === 0) {
      const none = "No snapshots yet. A snapshot saves the current state of the game with its picture.";
      fill(this.#list, emptyEntry(none));
      return;
    }
    const newest = [...snapshots].sort((a, b) => Date.parse(b.time) - Date.parse(a.time));
    this.#cards = refillWith(this.#list, this.#cards, newest, (snapshot) => this.#card(snapshot));
  }

  /** @type {(snapshot: Snapshot) => HTMLElement} */
  #card(snapshot) {
    const { name } = snapshot;
    const { api } = this.#app;
    const picture = el("img", {
      src: api.url(actions.snapshotPicture(name), { time: snapshot.time }),
      alt: `Picture of ${name}`,
      loading: "lazy",
      width: 240,
      height: 160,
    });
    const load = () => attempt(() => loadState(this.#app, actions.loadSnapshot(name), `Loaded ${name}.`));
    return el(
      "li",
      { class: "card" },
      picture,
      el(
        "div",
        { class: "about" },
        el("strong", {}, name),
        el("span", {}, `frame ${snapshot.frame.toLocaleString("en")}`),
        el("time", { datetime: snapshot.time }, new Date(snapshot.time).toLocaleString()),
      ),
      el(
        "div",
        { class: "actions" },
        entryButton("load", "Load", name, load, "primary"),
        entryButton("rename", "Rename", name, () => this.#rename(name)),
        entryButton("trash", "Delete", name, () => this.#delete(name)),
      ),
    );
  }

  /** @param {string} name */
  async #rename(name) {
    // While the page copies actions (`api.copying`), users replace NEW-NAME in the copied command themselves.
    const other = this.#app.api.copying.value
      ? "NEW-NAME"
      : await prompt("Rename the snapshot", "New name", name, "Rename");
    if (other === undefined || fileName(other) === name) return;
    await this.#change(actions.renameSnapshot(name, fileName(other)), `Renamed to ${fileName(other)}.`);
  }

  /** @param {string} name */
  async #delete(name) {
    const sure = await confirm(this.#app.api, `Delete ${name}?`, "This cannot be undone.", "Delete");
    if (sure) await this.#change(actions.deleteSnapshot(name), `Deleted ${name}.`);
  }
}
