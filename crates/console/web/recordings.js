/** The recordings panel: record input, manage the recordings on the server, and replay and compare them. */

import * as actions from "./actions.js";
import { ApiError } from "./api.js";
import { attempt, textOf } from "./app.js";
import { about, button, choice, disable, emptyEntry, entryButton, field, lineForm } from "./controls.js";
import { confirm } from "./dialog.js";
import { el, fill, refillWith, setText } from "./dom.js";
import { RATE } from "./gif.js";
import { icon } from "./icons.js";
import { fileName, freeName } from "./names.js";
import { Polling } from "./polling.js";
import { Replays } from "./replay.js";
import { toast } from "./toast.js";
import { download } from "./transport.js";

/** @import { App } from "./app.js" */

/**
 * An entry of the server's list of recordings.
 * @typedef {{ name: string, time: string, frame: number, size: number }} Recording
 */

/**
 * The current recording.
 * @typedef {object} ActiveRecording
 * @property {string} name
 * @property {number} frames
 * @property {string | null} ended Why it ended; null while it runs.
 */

/** The time between two updates of the panel. */
const EVERY_MS = 3000;
/** The time between two updates while a recording runs. */
const EVERY_MS_RECORDING = 500;
/** The value of `ended` if a client stopped the recording. */
const STOPPED = "stopped";
const NO_REPLAY =
  "A replay needs an emulator embedded in the server. Download this recording and play it with `framewire replay`.";

export class RecordingsPanel {
  /** @readonly @type {HTMLElement} */
  element;
  #app;
  #list = el("ul", { class: "recordings" });
  #name = el("input", { type: "text", placeholder: "optional", maxlength: "64", autocomplete: "off" });
  #speed = choice([
    ["1", "1×"],
    ["4", "4×"],
    ["", "Max"],
  ]);
  #activeName = el("strong", {});
  #activeLength = el("span", {});
  /** The line about the running recording. Its button stays the same, so that no click is lost between two updates. */
  #activeLine = el(
    "div",
    { class: "recording running", role: "status", hidden: true },
    el("div", { class: "about" }, this.#activeName, this.#activeLength),
    el(
      "div",
      { class: "actions" },
      button({ icon: "stop", label: "Stop", kind: "danger" }, () => this.#stop()),
    ),
  );
  /** @type {Replays} */
  #replays;
  #polling = new Polling(() => this.#refresh());
  #shown = "";
  /** The entries of the list. @type {ReadonlyMap<string, Element>} */
  #rows = new Map();
  /** @type {readonly string[]} */
  #names = [];
  /** Whether a recording runs, as far as the page knows. Other clients can begin one too. */
  #recording = false;

  /** @param {App} app */
  constructor(app) {
    this.#app = app;
    this.#replays = new Replays(app);
    const form = lineForm(
      () => this.#record(),
      field("Name of the recording", this.#name),
      el("button", { type: "submit", class: "primary" }, icon("record"), "Record"),
      field("Replay speed", this.#speed),
    );
    this.element = el(
      "div",
      {},
      form,
      about(
        "A recording holds every key press with its frame, from all clients, and hashes to verify a replay.",
      ),
      this.#activeLine,
      this.#replays.element,
      this.#list,
    );
    app.api.emulator.follow(() => {
      this.#shown = "";
      this.#recording = false;
      this.#activeLine.hidden = true;
      if (this.#polling.visible) void this.#polling.now();
    });
  }

  /** @param {boolean} visible */
  shown(visible) {
    this.#polling.shown(visible);
  }

  async #record() {
    const entered = this.#name.value;
    const name = fileName(entered) || freeName("recording", this.#names);
    const replace = this.#names.includes(name);
    const detail = "There is a recording with this name.";
    if (replace && !(await confirm(this.#app.api, `Replace ${name}?`, detail, "Replace"))) return;
    /** @type {ActiveRecording | undefined} */
    const begun = await attempt(() => this.#app.api.act(actions.startRecording(name, replace)));
    if (!begun) return;
    if (this.#name.value === entered) this.#name.value = "";
    await this.#polling.now();
  }

  async #stop() {
    /** @type {ActiveRecording | undefined} */
    const ended = await attempt(() => this.#app.api.act(actions.stopRecording()));
    if (ended) {
      // Hidden at once, so that a second click does not try to stop a recording that has ended.
      this.#activeLine.hidden = true;
      toast(`Recorded ${ended.frames} frames as ${ended.name}.`);
    }
    // Not awaited, so that the button is not busy when the next recording begins.
    void this.#polling.now();
  }

  async #refresh() {
    await this.#refreshActive();
    try {
      /** @type {{ recordings: Recording[] }} */
      const { recordings } = await this.#app.api.read(actions.RECORDINGS, { limit: 1000 });
      this.#names = recordings.map(({ name }) => name);
      this.#show(recordings);
    } catch (error) {
      if (error instanceof ApiError && error.status >= 400) fill(this.#list, emptyEntry(textOf(error)));
      this.#shown = "";
    }
    return this.#recording ? EVERY_MS_RECORDING : EVERY_MS;
  }

  async #refreshActive() {
    const emulator = this.#app.api.emulator.value;
    /** @type {ActiveRecording | undefined} */
    let active;
    try {
      active = await this.#app.api.read(actions.RECORDING);
    } catch (error) {
      // 404 means that there is no recording. After any other error, a recording may still run, and the header shows the
      // problem.
      if (/** @type {ApiError} */ (error).status !== 404) return;
    }
    // Another emulator was selected meanwhile.
    if (emulator !== this.#app.api.emulator.value) return;
    const ended = this.#recording ? active?.ended : null;
    if (active && ended && ended !== STOPPED)
      toast(`The recording ${active.name} has ended: ${ended}.`, "bad");
    this.#recording = active !== undefined && active.ended === null;
    this.#activeLine.hidden = !this.#recording;
    if (!active || !this.#recording) return;
    setText(this.#activeName, `Recording ${active.name}`);
    setText(this.#activeLength, `${active.frames} frames, ${(active.frames / RATE).toFixed(1)} s`);
  }

  /** @param {readonly Recording[]} recordings */
  #show(recordings) {
    const attached = this.#app.status.value.emulator?.kind === "attached";
    const text = JSON.stringify([recordings, attached, this.#recording]);
    if (text === this.#shown) return;
    this.#shown = text;
    if (recordings.length === 0) {
      fill(this.#list, !this.#recording && emptyEntry("No recordings yet."));
      return;
    }
    const newest = [...recordings].sort((a, b) => Date.parse(b.time) - Date.parse(a.time));
    const items = newest.map((recording) => ({ ...recording, attached }));
    this.#rows = refillWith(this.#list, this.#rows, items, (item) => this.#row(item, attached));
  }

  /** @type {(recording: Recording, attached: boolean) => HTMLElement} */
  #row({ name, frame, time, size }, attached) {
    const play = () =>
      this.#replays.play(name, this.#speed.value === "" ? undefined : Number(this.#speed.value));
    const replay = entryButton("play", "Replay", name, play, "primary");
    if (attached) disable(replay, NO_REPLAY);
    return el(
      "li",
      { class: "recording" },
      el(
        "div",
        { class: "about" },
        el("strong", {}, name),
        el("span", {}, `from frame ${frame}, ${Math.ceil(size / 1024)} KiB`),
        el("time", { datetime: time }, new Date(time).toLocaleString()),
      ),
      el(
        "div",
        { class: "actions" },
        replay,
        entryButton("download", "Download", name, () => download(this.#app, actions.downloadRecording(name))),
        entryButton("trash", "Delete", name, () => this.#delete(name)),
      ),
    );
  }

  /** @param {string} name */
  async #delete(name) {
    if (!(await confirm(this.#app.api, `Delete ${name}?`, "This cannot be undone.", "Delete"))) return;
    await attempt(async () => {
      await this.#app.api.act(actions.deleteRecording(name));
      toast(`Deleted ${name}.`);
    });
    await this.#polling.now();
  }
}
