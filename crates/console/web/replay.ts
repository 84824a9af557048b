/** A replay of a recording under way: begun, followed to its end, or cancelled. */

import * as actions from "./actions.ts";
import { type App, attempt } from "./app.ts";
import { button } from "./controls.ts";
import { el, fill } from "./dom.ts";

/** A replay as the server tells of it. */
interface Replay {
  recording: string;
  frames: number;
  played: number;
  over: boolean;
  equal: boolean | null;
  pictures: number | null;
  memories: number | null;
  diverged: { frame: number; what: string } | null;
  damage: { frame: number; detail: string } | null;
  cancelled: boolean;
  problem: { detail: string } | null;
}

const EVERY_MS = 200;

/** Says how a replay goes. */
export class ReplayLine {
  readonly element = el("div", { class: "replay", role: "status" });
  readonly #app: App;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(app: App) {
    this.#app = app;
  }

  /** Plays a recording, so many times the console's speed, and tells how it goes until it is over. */
  async play(name: string, speed: number | undefined): Promise<void> {
    const begun = await attempt(() => this.#app.api.act<Replay>(actions.replay(name, speed)));
    if (begun) await this.#follow(begun);
  }

  async #follow(replay: Replay): Promise<void> {
    clearTimeout(this.#timer);
    if (replay.over) {
      fill(this.element, el("p", { class: replay.equal ? "outcome good" : "outcome bad" }, outcome(replay)));
      await this.#app.watch.refresh();
      return;
    }
    const { recording, played, frames } = replay;
    fill(
      this.element,
      el("progress", { max: frames, value: played, "aria-label": `Replaying ${recording}` }),
      el("span", {}, `${recording}: frame ${played} of ${frames}`),
      button({ icon: "stop", label: "Cancel" }, () =>
        attempt(() => this.#app.api.act(actions.cancelReplay())),
      ),
    );
    this.#timer = setTimeout(async () => {
      const next = await attempt(() => this.#app.api.read<Replay>(actions.REPLAY));
      if (next) await this.#follow(next);
      else fill(this.element);
    }, EVERY_MS);
  }
}

function outcome({
  recording,
  frames,
  played,
  pictures,
  memories,
  diverged,
  damage,
  cancelled,
  problem,
}: Replay): string {
  if (problem) return `${recording} could not be replayed: ${problem.detail}`;
  if (diverged)
    return `${recording} went another way: the ${diverged.what} differs behind its frame ${diverged.frame}.`;
  if (damage) return `${recording} is damaged from its frame ${damage.frame} on: ${damage.detail}`;
  if (cancelled) return `The replay of ${recording} was cancelled behind its frame ${played}.`;
  const compared = [counted(pictures, "picture"), counted(memories, "state of memory")]
    .filter(Boolean)
    .join(", ");
  return `${recording} went the same way again in all of its ${frames} frames${compared ? `: ${compared} compared` : ""}.`;
}

function counted(count: number | null, what: string): string {
  if (!count) return "";
  return count === 1 ? `1 ${what}` : `${count} ${what.replace(/^\w+/, "$&s")}`;
}
