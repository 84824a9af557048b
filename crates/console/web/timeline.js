/** The timeline below the picture. It shows the frames of the history, and the user can go back to them. */

import * as actions from "./actions.js";
import { ApiError } from "./api.js";
import { aimed, attempt, readQuietly } from "./app.js";
import { button, disable } from "./controls.js";
import { el, fill, refill, setText } from "./dom.js";
import { mayCommand } from "./keyboard.js";
import { refusals, unlessRefused } from "./refusals.js";
import { Thumbnails } from "./thumbnails.js";

/**
 * @import { App } from "./app.js"
 * @import { ButtonLook } from "./controls.js"
 */

/**
 * A mark at a frame: a snapshot, a recording or an event.
 * @typedef {{ name: string, frame: number }} Mark
 */

/**
 * A line: a sequence of frames without a gap. A new line begins after going back, after a reset, and after a state or a
 * game is loaded.
 * @typedef {object} Line
 * @property {number} line Its number.
 * @property {"game" | "reset" | "state" | "rewind"} began How it began.
 * @property {{ line: number, frame: number } | null} follows
 *   The line and the frame after which it begins; null unless it began with going back.
 * @property {number[]} states The frames that have a state.
 * @property {number[]} pictures The frames that have a small picture.
 * @property {{ frame: number, keys: string[] }[]} keys The keys that are held from each of these frames on.
 * @property {number[]} changes
 *   Frames at which something other than keys changed the game, such as a write or a frozen value.
 * @property {Mark[]} snapshots
 * @property {Mark[]} recordings
 */

/**
 * The answer of `/v1/timeline`.
 * @typedef {{ frame: number, line: number | null, lines: Line[] }} History
 */

/**
 * A part of a line, up to and including its frame `last`.
 * @typedef {{ line: Line, last: number }} Part
 */

/** The shortest time between two requests for the history. */
const EVERY_MS = 1500;
/** The longest time between two requests, after the server has refused several of them in a row. */
const EVERY_MS_REFUSED = 60_000;
/** How many frames are shown at most: two minutes. */
const SPAN = 7200;
/** At most `PICTURES` + 1 small pictures are shown. */
const PICTURES = 10;
/** The number of frames between two small pictures that the server keeps. */
const PICTURE_FRAMES = 60;
/** While Rewind or its key is held, the emulator goes back this many frames at a time: twice as fast as the game runs. */
const STEP = 12;
/** The time between these steps. */
const STEP_MS = 100;
/** A change gets no mark if it is fewer than this many frames after the change before it. */
const TOGETHER = 60;
/** The largest number of marks for changes on each line. The line shows the newest ones. */
const CHANGES = 20;
/** The keyboard keys that go back while they are held. */
const KEYS = new Set(["Comma", "Backquote"]);

export class Timeline {
  /** @readonly @type {HTMLElement} */
  element;
  #app;
  #thumbnails;
  #pictures = el("div", { class: "pictures", "aria-hidden": "true" });
  #held = el("div", { class: "held", "aria-hidden": "true" });
  #marks = el("div", { class: "marks" });
  #branches = el("div", { class: "branches" });
  /** The buttons of snapshots, recordings and branches, by what they show. @type {Map<string, HTMLButtonElement>} */
  #buttons = new Map();
  #time = el("output", { class: "time" });
  #slider = el("input", { type: "range", class: "scrub", "aria-label": "Timeline", step: 1 });
  #back = button({ label: "Rewind", hint: "Hold to go back (keyboard: , or `)" }, ({ detail }) => {
    // A click by keyboard is one step back. For a pointer, `pointerdown` begins to go back.
    if (detail > 0) return;
    void this.#hold();
    this.#release();
  });
  /** @type {History | undefined} */
  #history;
  /** The number of the line that the emulator was on when the history arrived. */
  #line = 0;
  /**
   * Set while the user moves along the timeline. `ran` is whether the game ran before and can be paused. `emulator` and
   * `line` say where the user moves: another emulator may be selected before the last request is sent.
   * @type {{ ran: boolean, emulator: string | undefined, line: number } | undefined}
   */
  #moving;
  /** Whether the user has moved along the timeline since the last call of `#end`. */
  #moved = false;
  /** How many times the user has chosen a frame. */
  #scrubs = 0;
  /** The frame to go to next. @type {number | undefined} */
  #wanted;
  /** The call of `#go` that has not ended. @type {Promise<void> | undefined} */
  #going;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** Whether something changed since the last request. */
  #changed = false;
  /** Whether the user holds Rewind or its key. */
  #holding = false;
  /** How many times the user has begun to hold it. */
  #holds = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #stepping;
  #shown = "";
  /** How many requests for the history were sent. */
  #asked = 0;
  /** The number of the last request whose answer counts. Answers to older requests are ignored. */
  #answered = 0;
  /** How many requests for the history the server has refused in a row. */
  #refusals = 0;

  /**
   * @param {App} app
   * @param {HTMLElement} focus The picture.
   */
  constructor(app, focus) {
    this.#app = app;
    this.#thumbnails = new Thumbnails(app);
    this.element = el(
      "section",
      { class: "timeline", "aria-label": "History", hidden: true },
      this.#back,
      el("div", { class: "strip" }, this.#pictures, this.#held, this.#slider, this.#marks),
      this.#time,
      this.#branches,
    );
    this.#slider.addEventListener("input", () => this.#scrub(this.#slider.valueAsNumber));
    this.#slider.addEventListener("change", () => void this.#end());
    // No `change` comes if the slider has the same value after the movement as before it. The browser sets the final
    // value after these events.
    for (const type of /** @type {const} */ (["pointerup", "pointercancel"]))
      this.#slider.addEventListener(type, () => setTimeout(() => void this.#end()));
    // After the user has moved the slider with a pointer, the keyboard controls the game again.
    this.#slider.addEventListener("pointerup", () => focus.focus({ preventScroll: true }));
    this.#back.addEventListener("pointerdown", ({ button }) => {
      if (button === 0) void this.#hold();
    });
    for (const type of /** @type {const} */ (["pointerup", "pointercancel", "pointerleave"]))
      this.#back.addEventListener(type, () => this.#release());
    addEventListener("keydown", (event) => {
      if (!KEYS.has(event.code) || this.element.hidden || !mayCommand(event)) return;
      event.preventDefault();
      if (!event.repeat) unlessRefused(refusals(app).rewind, () => void this.#hold());
    });
    addEventListener("keyup", (event) => {
      if (KEYS.has(event.code)) this.#release();
    });
    addEventListener("blur", () => this.#release());
    addEventListener("pagehide", () => {
      // The page may end before `#release` has resumed the game.
      const { ran, emulator } = this.#moving ?? {};
      if (ran) void attempt(() => app.api.act(aimed(actions.resume(), emulator)));
      this.#release();
    });
    app.status.follow(() => void this.#refresh());
    app.api.emulator.follow(() => {
      this.#release();
      this.#history = undefined;
      this.#refusals = 0;
      // An answer that is still on its way belongs to the emulator that was selected before.
      this.#answered = this.#asked;
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.element.hidden = true;
    });
    app.poller.game.follow(() => {
      this.#shown = "";
      // Frees the pictures. Another emulator, or a server that was started again, has lines with the same numbers.
      this.#thumbnails.of([]);
    });
    const showRefusal = () => {
      const { rewind } = refusals(app);
      disable(this.#back, rewind);
      this.#slider.disabled = rewind !== undefined;
    };
    app.status.onChange(showRefusal);
    app.api.viewOnly.follow(showRefusal);
  }

  /** Asks for the history. If the page asked for it a short time ago, it asks again when the timer ends. */
  async #refresh() {
    this.#changed = true;
    if (this.#timer !== undefined || this.#moving) return;
    const { emulator } = this.#app.status.value;
    if (!emulator?.connected || document.hidden) return;
    this.#changed = false;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        // `#refresh` was called while the timer ran.
        if (this.#changed) void this.#refresh();
      },
      Math.min(EVERY_MS * 2 ** this.#refusals, EVERY_MS_REFUSED),
    );
    const selected = this.#app.api.emulator.value;
    try {
      await this.#ask(emulator.frame);
      this.#refusals = 0;
    } catch (error) {
      if (selected !== this.#app.api.emulator.value) return;
      if (error instanceof ApiError && error.status === 501) this.element.hidden = true;
      else this.#changed = true;
      // A lost connection (status 0) is not a refusal: the history should be visible soon after a reconnection.
      if (error instanceof ApiError && error.status > 0) this.#refusals += 1;
    }
  }

  /**
   * Asks for the history and shows it.
   * @param {number} frame The emulator's frame.
   */
  async #ask(frame) {
    this.#asked += 1;
    const asked = this.#asked;
    const first = Math.max(0, frame - SPAN);
    /** @type {History} */
    const history = await readQuietly(this.#app, "history", "/v1/timeline", { first });
    // The answer to an earlier request may come after the answer to a later one.
    if (this.#moving || asked <= this.#answered) return;
    this.#answered = asked;
    this.#show(history);
  }

  /** @param {History} history */
  #show(history) {
    this.#history = history;
    const parts = pathOf(history);
    const end = parts.at(-1);
    this.element.hidden = end === undefined || end.line.states.length === 0;
    if (!end || this.element.hidden) return;
    this.#line = end.line.line;
    const last = Math.max(end.last, history.frame);
    const first = Math.max(last - SPAN, Math.min(...parts.flatMap(({ line }) => line.states.slice(0, 1))));
    Object.assign(this.#slider, { min: first, max: last, value: history.frame });
    this.#showTime(history.frame);
    const text = JSON.stringify([history.lines, first, last]);
    if (text === this.#shown) return;
    this.#shown = text;
    /** @type {(frame: number) => string} */
    const place = (frame) => `${((frame - first) / Math.max(1, last - first)) * 100}%`;
    this.#showPictures(parts, first, last);
    this.#showHeld(parts, place, first, last);
    this.#showMarks(parts, place, first);
    this.#showBranches(history, parts);
    for (const [key, one] of this.#buttons) if (!one.isConnected) this.#buttons.delete(key);
  }

  /**
   * A button that goes to a frame of a line. Updates reuse the button, so that it keeps the focus and no click is lost.
   * @type {(look: ButtonLook, frame: number, line: number) => HTMLButtonElement}
   */
  #button(look, frame, line) {
    const key = `${look.label} ${frame} ${line}`;
    const one = this.#buttons.get(key) ?? button(look, () => this.#jump(frame, line));
    this.#buttons.set(key, one);
    return one;
  }

  /** @type {(parts: Part[], first: number, last: number) => void} */
  #showPictures(parts, first, last) {
    const all = parts.flatMap(({ line, last: end }) =>
      line.pictures
        .filter((frame) => frame <= end && frame >= first)
        .map((frame) => ({ line: line.line, frame })),
    );
    // The pictures are at multiples of `step`. So the strip moves by one picture at a time as frames run.
    const step = Math.max(1, Math.ceil((last - first) / PICTURES / PICTURE_FRAMES)) * PICTURE_FRAMES;
    const from = Math.ceil(first / step);
    const count = Math.max(1, Math.floor(last / step) - from + 1);
    const shown = Array.from({ length: count }, (_, number) => {
      const middle = (from + number) * step;
      return all.reduce(
        (best, one) => (best && Math.abs(best.frame - middle) <= Math.abs(one.frame - middle) ? best : one),
        all[0],
      );
    });
    fill(this.#pictures, ...this.#thumbnails.of(shown.filter((one) => one !== undefined)));
  }

  /** @type {(parts: Part[], place: (frame: number) => string, first: number, last: number) => void} */
  #showHeld(parts, place, first, last) {
    const bars = parts.flatMap(({ line, last: end }) =>
      line.keys.flatMap(({ frame, keys }, number) => {
        const until = Math.min(line.keys[number + 1]?.frame ?? last, end);
        if (keys.length === 0 || until <= first || until <= frame) return [];
        const bar = el("span", {});
        const from = Math.max(frame, first);
        bar.style.left = place(from);
        bar.style.width = `calc(${place(first + until - from)} + 1px)`;
        return [bar];
      }),
    );
    fill(this.#held, ...bars);
  }

  /** @type {(parts: Part[], place: (frame: number) => string, first: number) => void} */
  #showMarks(parts, place, first) {
    /** @type {(kind: string, line: Line, mark: Mark) => HTMLElement} */
    const flag = (kind, line, { name, frame }) => {
      const element = this.#button({ label: `${kind} ${name}`, compact: true }, frame, line.line);
      element.className = `mark ${kind.toLowerCase()}`;
      element.style.left = place(frame);
      return element;
    };
    const marks = parts.flatMap(({ line, last }, number) => {
      /** @param {Mark} mark */
      const shown = ({ frame }) => frame >= first && frame <= last;
      return [
        ...eventsOf(line, number === 0)
          .filter(shown)
          .map((mark) => eventMark(mark, place(mark.frame))),
        ...line.snapshots.filter(shown).map((mark) => flag("Snapshot", line, mark)),
        ...line.recordings.filter(shown).map((mark) => flag("Recording", line, mark)),
      ];
    });
    refill(this.#marks, ...marks);
  }

  /**
   * Shows a button for each of the last lines that the emulator has left, for example by going back.
   * @type {(history: History, parts: Part[]) => void}
   */
  #showBranches(history, parts) {
    const left = history.lines.filter((line) => line.states.length > 0 && !isWhole(parts, line)).slice(-3);
    const branches = left.map((line) => {
      const end = line.states.at(-1) ?? 0;
      const label = `Branch ${line.line}, frame ${end.toLocaleString("en")}`;
      return this.#button({ label, kind: "quiet", hint: "Go to the end of this branch" }, end, line.line);
    });
    refill(this.#branches, ...branches);
  }

  /** @param {number} frame */
  #showTime(frame) {
    const last = Number(this.#slider.max);
    const seconds = (last - frame) / 60;
    setText(this.#time, seconds < 0.1 ? "now" : `-${seconds.toFixed(1)} s`);
    this.#slider.setAttribute("aria-valuetext", `Frame ${frame}, ${seconds.toFixed(1)} seconds back`);
  }

  /**
   * Goes to a frame of any line, and stays there if the game is paused.
   * @param {number} frame
   * @param {number} line
   */
  #jump(frame, line) {
    return unlessRefused(refusals(this.#app).load, () =>
      attempt(async () => {
        await this.#app.api.act(actions.rewind(frame, line));
        await this.#restart();
      }),
    );
  }

  /**
   * Goes to a frame while the user moves along the timeline. Meanwhile, the game is paused if that is possible. If the
   * page copies actions as commands instead of sending them, this only shows the time; `#end` copies the command.
   * @param {number} frame
   */
  #scrub(frame) {
    // A replay may have begun after the user has begun to move.
    if (refusals(this.#app).rewind) return;
    this.#showTime(frame);
    this.#moved = true;
    if (this.#app.api.copying.value) return;
    this.#wanted = frame;
    this.#scrubs += 1;
    this.#begin();
    this.#going ??= this.#go();
  }

  #begin() {
    const { phase, emulator } = this.#app.status.value;
    // Requests cannot pause a stock mGBA. After each step, it continues from the frame to which it went back.
    this.#moving ??= {
      ran: phase === "running" && emulator?.kind === "embedded",
      emulator: emulator?.name,
      line: this.#line,
    };
  }

  /** Goes to the wanted frame, and then to each newer one until there is none. Sends one request at a time. */
  async #go() {
    await attempt(async () => {
      const { api } = this.#app;
      const { ran, emulator, line } = this.#moving ?? {};
      if (ran) await api.ask("/v1/pause", {}, { emulator });
      while (this.#wanted !== undefined && !refusals(this.#app).rewind) {
        const frame = this.#wanted;
        this.#wanted = undefined;
        await api.ask("/v1/rewind", { frame, line }, { emulator });
      }
    });
    this.#wanted = undefined;
    this.#going = undefined;
  }

  /** Called when the user has chosen a frame. If the game was running before, it continues from this frame. */
  async #end() {
    if (!this.#moved) return;
    this.#moved = false;
    const moving = this.#moving;
    const frame = this.#slider.valueAsNumber;
    if (this.#app.api.copying.value) {
      await attempt(() => this.#app.api.act(actions.rewind(frame, this.#line)));
      return;
    }
    if (!moving) return;
    const scrubs = this.#scrubs;
    await this.#going;
    if (refusals(this.#app).rewind) {
      if (scrubs === this.#scrubs) this.#moving = undefined;
      return;
    }
    const { ran, emulator, line } = moving;
    const steps = ran ? [actions.rewind(frame, line), actions.resume()] : [actions.rewind(frame, line)];
    for (const step of steps) {
      // The user has begun to move again. The end of that movement does the rest.
      if (scrubs !== this.#scrubs) return;
      await attempt(() => this.#app.api.act(aimed(step, emulator)));
    }
    if (scrubs !== this.#scrubs) return;
    this.#moving = undefined;
    // Answers that are still on their way are from before the movement.
    this.#answered = this.#asked;
    await this.#restart();
  }

  /** Refreshes the history at once. */
  async #restart() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#shown = "";
    await this.#app.poller.refresh();
  }

  /** Begins to go back step by step. If the user has already released the button or the key, goes back one step. */
  async #hold() {
    const { emulator } = this.#app.status.value;
    if (this.#holding || refusals(this.#app).rewind || !this.#history || !emulator) return;
    this.#holding = true;
    this.#holds += 1;
    const hold = this.#holds;
    const selected = this.#app.api.emulator.value;
    const step = () => {
      const frame = Math.max(Number(this.#slider.min), (this.#wanted ?? this.#slider.valueAsNumber) - STEP);
      this.#slider.value = String(frame);
      this.#scrub(frame);
    };
    // Since the history arrived, frames have run, and a state may have been loaded.
    const asked = this.#moving ?? (await attempt(() => this.#ask(emulator.frame).then(() => true)));
    if (selected !== this.#app.api.emulator.value) return;
    // Meanwhile, the user may have released it, and may have begun again.
    const isHeld = this.#holding && hold === this.#holds;
    const isKnown = asked && this.#history && !this.element.hidden;
    if (isKnown) step();
    if (isKnown && isHeld) this.#stepping = setInterval(step, STEP_MS);
    else if (isHeld || !this.#holding) {
      this.#holding = false;
      void this.#end();
    }
  }

  #release() {
    if (!this.#holding) return;
    this.#holding = false;
    clearInterval(this.#stepping);
    void this.#end();
  }
}

/**
 * The emulator's current line, after the parts of the earlier lines that lead to it.
 * @type {(history: History) => Part[]}
 */
function pathOf({ lines, line: current }) {
  /** @type {Part[]} */
  const parts = [];
  let line = lines.find(({ line }) => line === current);
  let last = line?.states.at(-1) ?? 0;
  while (line) {
    parts.unshift({ line, last });
    const follows = line.follows;
    last = follows?.frame ?? 0;
    line = lines.find(({ line }) => line === follows?.line);
  }
  return parts;
}

/**
 * The events of a line: how it began, and when something other than keys changed the game.
 * @param {Line} line
 * @param {boolean} isFirst Whether it is the first line that is shown.
 * @returns {Mark[]}
 */
function eventsOf(line, isFirst) {
  const begin = line.follows?.frame ?? line.states[0];
  const name = { game: "Game loaded", reset: "Reset", state: "State loaded", rewind: "Went back" }[
    line.began
  ];
  // The answer has only the newer states of a long line. If its keys go back further, so does the line.
  const isCut = begin !== undefined && (line.keys[0]?.frame ?? begin) < begin;
  const isHidden = isCut || (isFirst && line.began === "rewind");
  const began = begin === undefined || isHidden ? [] : [{ name, frame: begin }];
  const changes = line.changes
    .filter((frame, number) => frame - (line.changes[number - 1] ?? -TOGETHER) >= TOGETHER)
    .map((frame) => ({ name: "Memory changed", frame }));
  return [...began, ...changes.slice(-CHANGES)];
}

/** @type {(event: Mark, left: string) => HTMLElement} */
function eventMark({ name, frame }, left) {
  const label = `${name} at frame ${frame.toLocaleString("en")}`;
  const element = el("span", { class: "mark event", role: "img", "aria-label": label, title: label });
  element.style.left = left;
  return element;
}

/**
 * Whether the path contains a line up to the line's end.
 * @type {(parts: Part[], line: Line) => boolean}
 */
function isWhole(parts, line) {
  return parts.some((part) => part.line === line && part.last >= (line.states.at(-1) ?? 0));
}
