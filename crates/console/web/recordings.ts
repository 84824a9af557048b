/** Recordings of input: made, kept by the server, and played again with each picture compared. */

import * as actions from "./actions.ts";
import { type App, attempt } from "./app.ts";
import { button, empty, field } from "./controls.ts";
import { confirm } from "./dialog.ts";
import { el, fill, setText } from "./dom.ts";
import { toast } from "./toast.ts";
import { saveFile } from "./transport.ts";

/** A recording as the server lists it. */
export interface Recording {
  name: string;
  frames: number;
  time: string;
  bytes: number;
  /** Whether it is still being made. */
  running: boolean;
}

/** What became of a replay. */
interface Replay {
  frames: number;
  diverged_at: number | null;
}

const EVERY_MS = 2000;
/** Frames of a console's second. */
const RATE = 59.7275;

export class RecordingsPanel {
  readonly element: HTMLElement;
  readonly #app: App;
  readonly #list = el("ul", { class: "recordings" });
  readonly #name = el("input", { type: "text", placeholder: "name, or leave it to the clock", maxlength: "100", autocomplete: "off" });
  readonly #result = el("p", { class: "note", role: "status" });
  #timer: ReturnType<typeof setTimeout> | undefined;
  #shown = "";

  constructor(app: App) {
    this.#app = app;
    const form = el(
      "form",
      { class: "line" },
      field("Name of the recording", this.#name),
      el("button", { type: "submit", class: "primary" }, "Record"),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#record();
    });
    this.element = el(
      "div",
      {},
      form,
      el("p", { class: "about" }, "A recording holds every key with its frame, whoever pressed it, and a hash of the picture now and then."),
      this.#result,
      this.#list,
    );
    app.api.emulator.follow(() => {
      this.#shown = "";
    });
  }

  /** Told whether the panel can be seen. */
  shown(visible: boolean): void {
    clearTimeout(this.#timer);
    if (visible) void this.#refresh();
  }

  async #record(): Promise<void> {
    const name = this.#name.value.trim() || new Date().toISOString().slice(0, 19).replace("T", " ").replaceAll(":", "-");
    await this.#do(actions.startRecording(name), `Recording ${name}.`);
    this.#name.value = "";
  }

  async #do(action: Parameters<App["api"]["act"]>[0], said: string): Promise<void> {
    await attempt(async () => {
      await this.#app.api.act(action);
      toast(said);
    });
    await this.#refresh();
  }

  async #refresh(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      const { recordings } = await this.#app.api.read<{ recordings: Recording[] }>(actions.RECORDINGS);
      this.#show(recordings);
    } catch {
      // As with snapshots.
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#refresh(), EVERY_MS);
  }

  #show(recordings: readonly Recording[]): void {
    const text = JSON.stringify(recordings);
    if (text === this.#shown) return;
    this.#shown = text;
    if (recordings.length === 0) {
      fill(this.#list, el("li", { class: "nothing" }, empty("No recordings yet.")));
      return;
    }
    const newest = [...recordings].sort((a, b) => b.time.localeCompare(a.time));
    fill(this.#list, ...newest.map((recording) => this.#row(recording)));
  }

  #row({ name, frames, time, running }: Recording): HTMLElement {
    const seconds = frames / RATE;
    return el(
      "li",
      { class: running ? "recording running" : "recording" },
      el(
        "div",
        { class: "about" },
        el("strong", {}, name),
        el("span", {}, `${frames.toLocaleString("en")} frames, ${seconds.toFixed(1)} s`),
        el("time", { datetime: time }, new Date(time).toLocaleString()),
      ),
      el(
        "div",
        { class: "actions" },
        running &&
          button({ icon: "stop", label: `Stop recording ${name}`, compact: true, kind: "danger", hint: "Stop" }, () =>
            this.#do(actions.stopRecording(), `Recorded ${name}.`),
          ),
        !running && button({ icon: "play", label: `Replay ${name}`, compact: true, kind: "primary", hint: "Replay" }, () => this.#replay(name)),
        !running && button({ icon: "download", label: `Download ${name}`, compact: true, kind: "quiet", hint: "Download" }, () => this.#download(name)),
        !running && button({ icon: "trash", label: `Delete ${name}`, compact: true, kind: "quiet", hint: "Delete" }, () => this.#delete(name)),
      ),
    );
  }

  async #replay(name: string): Promise<void> {
    setText(this.#result, `Replaying ${name}…`);
    const replay = await attempt(() => this.#app.api.act<Replay>(actions.replay(name)));
    setText(this.#result, replay ? replayText(name, replay) : "");
  }

  async #download(name: string): Promise<void> {
    await attempt(async () => saveFile(await this.#app.api.act<Blob>(actions.downloadRecording(name)), `${name}.json`));
  }

  async #delete(name: string): Promise<void> {
    const sure = this.#app.api.copying.value || (await confirm(`Delete ${name}?`, "It cannot be brought back.", "Delete"));
    if (sure) await this.#do(actions.deleteRecording(name), `Deleted ${name}.`);
  }
}

function replayText(name: string, { frames, diverged_at }: Replay): string {
  if (diverged_at !== null) return `${name} diverged at frame ${diverged_at}: the game is not as it was recorded.`;
  return `${name} went the same way again for all of its ${frames.toLocaleString("en")} frames.`;
}
