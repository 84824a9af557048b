/** Runs replays: starts them, shows their progress, and cancels them. */

import * as actions from "./actions.js";
import { isRejection } from "./api.js";
import { aimed, attempt, selectedName } from "./app.js";
import { button } from "./controls.js";
import { el, fill, refill, setText } from "./dom.js";
import { toast } from "./toast.js";

/** @import { App } from "./app.js" */

/**
 * The state of a replay, as the server reports it.
 * @typedef {object} Replay
 * @property {string} recording
 * @property {number} frames
 * @property {number} played
 * @property {boolean} over
 * @property {boolean | null} equal
 * @property {number | null} pictures How many pictures were compared.
 * @property {number | null} memories How many states of memory were compared.
 * @property {{ frame: number; what: string } | null} diverged
 * @property {{ frame: number; detail: string } | null} damage
 * @property {boolean} cancelled
 * @property {{ detail: string } | null} problem
 */

/** The time between two requests for the state of the replay. */
const EVERY_MS = 200;

/** Starts replays, and shows the progress of the newest one on each emulator. */
export class Replays {
  /** @readonly */
  element = el("div", { class: "replays", role: "status" });
  #app;
  /** By the name of the emulator. @type {Map<string | undefined, ReplayProgress>} */
  #shown = new Map();

  /** @param {App} app */
  constructor(app) {
    this.#app = app;
  }

  /**
   * Replays a recording and shows the progress.
   * @param {string} name
   * @param {number | undefined} speed A multiple of the console's speed; `undefined` for as fast as possible.
   */
  async play(name, speed) {
    const emulator = selectedName(this.#app);
    /** @type {Replay | undefined} */
    const begun = await attempt(() => this.#app.api.act(actions.replay(name, speed)));
    if (!begun) return;
    this.#shown.get(emulator)?.replace();
    for (const [other, { isOver }] of this.#shown) if (isOver) this.#shown.delete(other);
    const progress = new ReplayProgress(this.#app, emulator);
    this.#shown.set(emulator, progress);
    refill(this.element, ...[...this.#shown.values()].map(({ element }) => element));
    await this.#app.poller.setReplaying(emulator, !begun.over);
    await progress.follow(begun);
  }
}

/** Shows the progress of a replay. */
class ReplayProgress {
  /** @readonly */
  element = el("div", { class: "replay" });
  /** Whether the replay is over. */
  isOver = false;
  #app;
  #emulator;
  #bar = el("progress", {});
  #text = el("span", {});
  #cancel = button({ icon: "stop", label: "Cancel" }, () =>
    attempt(() => this.#app.api.act(aimed(actions.cancelReplay(), this.#emulator))),
  );
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** Whether a newer replay on the same emulator has taken the place of this one. */
  #isReplaced = false;

  /**
   * @param {App} app
   * @param {string | undefined} emulator
   */
  constructor(app, emulator) {
    this.#app = app;
    this.#emulator = emulator;
  }

  /** Stops following the replay, because there is a newer one on the same emulator. */
  replace() {
    this.#isReplaced = true;
    clearTimeout(this.#timer);
  }

  /** @param {Replay} replay */
  async follow(replay) {
    this.isOver = replay.over;
    // Replays on several emulators can be of recordings with the same name.
    const isOneOfMany = this.#app.status.value.emulators.length > 1;
    const recording = isOneOfMany ? `${replay.recording} on ${this.#emulator}` : replay.recording;
    if (replay.over) {
      const text = outcome({ ...replay, recording });
      fill(this.element, el("p", { class: replay.equal ? "outcome good" : "outcome bad" }, text));
      await this.#app.poller.setReplaying(this.#emulator, false);
      return;
    }
    const { played, frames } = replay;
    Object.assign(this.#bar, { max: Math.max(1, frames), value: played });
    this.#bar.setAttribute("aria-label", `Replaying ${recording}`);
    setText(this.#text, `${recording}: frame ${played} of ${frames}`);
    // The button stays the same, so that no click is lost between two updates.
    if (this.#cancel.parentElement !== this.element) fill(this.element, this.#bar, this.#text, this.#cancel);
    this.#timer = setTimeout(async () => {
      /** @type {Replay | undefined} */
      let next;
      try {
        next = await this.#app.api.read(actions.REPLAY, { emulator: this.#emulator });
      } catch (error) {
        // If the server did not reject the request, the replay may still run. Then the header shows the problem.
        if (isRejection(error)) toast(error.message, "bad");
        else next = replay;
      }
      if (this.#isReplaced) return;
      if (next) await this.follow(next);
      else {
        this.isOver = true;
        this.element.remove();
        await this.#app.poller.setReplaying(this.#emulator, false);
      }
    }, EVERY_MS);
  }
}

/** @type {(replay: Replay) => string} */
function outcome({ recording, frames, played, pictures, memories, diverged, damage, cancelled, problem }) {
  if (problem) return `${recording} could not be replayed: ${problem.detail}`;
  if (diverged)
    return `${recording} does not match: the ${diverged.what} differs after its frame ${diverged.frame}.`;
  if (damage) return `${recording} is damaged from its frame ${damage.frame} on: ${damage.detail}`;
  if (cancelled) return `The replay of ${recording} was cancelled after frame ${played}.`;
  const compared = [counted(pictures, "picture"), counted(memories, "state of memory")]
    .filter(Boolean)
    .join(", ");
  return `Replay matches: ${frames} of ${frames} frames of ${recording} are identical${compared ? ` (${compared} compared)` : ""}.`;
}

/** @type {(count: number | null, what: string) => string} */
function counted(count, what) {
  if (!count) return "";
  return count === 1 ? `1 ${what}` : `${count} ${what.replace(/^\w+/, "$&s")}`;
}
