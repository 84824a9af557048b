/** Recordings of input: made, kept by the server, and played again with what is seen compared. */

import * as actions from "./actions.ts";
import { ApiError } from "./api.ts";
import { type App, attempt, textOf } from "./app.ts";
import { button, disable, empty, field } from "./controls.ts";
import { confirm } from "./dialog.ts";
import { el, fill } from "./dom.ts";
import { icon } from "./icons.ts";
import { ReplayLine } from "./replay.ts";
import { toast } from "./toast.ts";
import { saveFile } from "./transport.ts";

/** A recording as the server lists it. */
export interface Recording {
  name: string;
  time: string;
  frame: number;
  size: number;
}

/** The recording that is being made. */
interface UnderWay {
  name: string;
  frames: number;
  /** Why it has ended. */
  ended: string | null;
}

const EVERY_MS = 3000;
const EVERY_MS_RECORDING = 500;
/** Frames in a console's second. */
const RATE = 59.7275;
const NO_REPLAY =
  "Only a core in the server can be replayed on; a stock mGBA can be recorded, and the file replayed by `framewire replay`.";

export class RecordingsPanel {
  readonly element: HTMLElement;
  readonly #app: App;
  readonly #list = el("ul", { class: "recordings" });
  readonly #name = el("input", {
    type: "text",
    value: "recording",
    maxlength: "64",
    required: true,
    autocomplete: "off",
  });
  readonly #speed = el(
    "select",
    {},
    el("option", { value: "1" }, "1×"),
    el("option", { value: "4" }, "4×"),
    el("option", { value: "" }, "Max"),
  );
  readonly #underWay = el("div", { class: "recording running", role: "status", hidden: true });
  readonly #replay: ReplayLine;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #shown = "";
  /** Whether a recording may be under way. */
  #recording = true;

  constructor(app: App) {
    this.#app = app;
    this.#replay = new ReplayLine(app);
    const form = el(
      "form",
      { class: "line" },
      field("Name of the recording", this.#name),
      el("button", { type: "submit", class: "primary" }, icon("record"), "Record"),
      field("Replay speed", this.#speed),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#record();
    });
    this.element = el(
      "div",
      {},
      form,
      el(
        "p",
        { class: "about" },
        "A recording holds every key with its frame, whoever pressed it, and now and then a hash of what is seen.",
      ),
      this.#underWay,
      this.#replay.element,
      this.#list,
    );
    app.api.emulator.follow(() => {
      this.#shown = "";
      this.#recording = true;
    });
  }

  /** Told whether the panel can be seen. */
  shown(visible: boolean): void {
    clearTimeout(this.#timer);
    this.#recording = true;
    if (visible) void this.#refresh();
  }

  async #record(): Promise<void> {
    const begun = await attempt(() =>
      this.#app.api.act<UnderWay>(actions.startRecording(this.#name.value.trim())),
    );
    if (!begun) return;
    this.#recording = true;
    await this.#refresh();
  }

  async #stop(): Promise<void> {
    const ended = await attempt(() => this.#app.api.act<UnderWay>(actions.stopRecording()));
    if (ended) toast(`Recorded ${ended.frames} frames as ${ended.name}.`);
    await this.#refresh();
  }

  async #refresh(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#refreshUnderWay();
    try {
      const { recordings } = await this.#app.api.read<{ recordings: Recording[] }>(actions.RECORDINGS, {
        limit: 1000,
      });
      this.#show(recordings);
    } catch (error) {
      if (error instanceof ApiError && error.status >= 400)
        fill(this.#list, el("li", { class: "nothing" }, empty(textOf(error))));
      this.#shown = "";
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#refresh(), this.#recording ? EVERY_MS_RECORDING : EVERY_MS);
  }

  async #refreshUnderWay(): Promise<void> {
    if (!this.#recording) return;
    let underWay: UnderWay | undefined;
    try {
      underWay = await this.#app.api.read<UnderWay>(actions.RECORDING);
    } catch {
      // There is none, or no answer, which is said elsewhere.
    }
    this.#recording = underWay !== undefined && underWay.ended === null;
    this.#underWay.hidden = !this.#recording;
    if (!underWay || !this.#recording) return;
    fill(
      this.#underWay,
      el(
        "div",
        { class: "about" },
        el("strong", {}, `Recording ${underWay.name}`),
        el("span", {}, `${underWay.frames} frames, ${(underWay.frames / RATE).toFixed(1)} s`),
      ),
      el(
        "div",
        { class: "actions" },
        button({ icon: "stop", label: "Stop", kind: "danger" }, () => this.#stop()),
      ),
    );
  }

  #show(recordings: readonly Recording[]): void {
    const attached = this.#app.status.value.emulator?.kind === "attached";
    const text = JSON.stringify([recordings, attached]);
    if (text === this.#shown) return;
    this.#shown = text;
    if (recordings.length === 0) {
      fill(this.#list, el("li", { class: "nothing" }, empty("No recordings yet.")));
      return;
    }
    const newest = [...recordings].sort((a, b) => b.time.localeCompare(a.time));
    fill(this.#list, ...newest.map((recording) => this.#row(recording, attached)));
  }

  #row({ name, frame, time, size }: Recording, attached: boolean): HTMLElement {
    const replay = button(
      { icon: "play", label: `Replay ${name}`, compact: true, kind: "primary", hint: "Replay" },
      () => this.#replay.play(name, this.#speed.value === "" ? undefined : Number(this.#speed.value)),
    );
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
        button(
          { icon: "download", label: `Download ${name}`, compact: true, kind: "quiet", hint: "Download" },
          () => this.#download(name),
        ),
        button({ icon: "trash", label: `Delete ${name}`, compact: true, kind: "quiet", hint: "Delete" }, () =>
          this.#delete(name),
        ),
      ),
    );
  }

  async #download(name: string): Promise<void> {
    await attempt(async () => {
      saveFile(await this.#app.api.act<Blob>(actions.downloadRecording(name)), actions.recordingFile(name));
    });
  }

  async #delete(name: string): Promise<void> {
    const sure =
      this.#app.api.copying.value ||
      (await confirm(`Delete ${name}?`, "It cannot be brought back.", "Delete"));
    if (!sure) return;
    await attempt(async () => {
      await this.#app.api.act(actions.deleteRecording(name));
      toast(`Deleted ${name}.`);
    });
    await this.#refresh();
  }
}
