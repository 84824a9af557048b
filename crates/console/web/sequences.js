/** The panel for input sequences: write, play and cancel them. */

import * as actions from "./actions.js";
import { attempt } from "./app.js";
import { about, button, codeInput, field, lineForm } from "./controls.js";
import { el, setText } from "./dom.js";
import { setting } from "./settings.js";
import { toast } from "./toast.js";

/** @import { App } from "./app.js" */

const EXAMPLE = "A:2 .:10 Left:30 .:5 Right+B:30";
const PLAYING = "Playing…";

/**
 * The result of a sequence.
 * @typedef {{ first: number, last: number, over?: { frame: number; cancelled: boolean } }} PlayResult
 */

/** @type {(app: App) => HTMLElement} */
export function sequencesPanel(app) {
  const kept = setting("sequence", EXAMPLE, (value) => typeof value === "string");
  const text = codeInput({ value: kept.value });
  text.addEventListener("input", () => kept.set(text.value));
  const result = el("p", { class: "note", role: "status" });
  /** How many sequences of this page are playing. Sequences with different keys can play at the same time. */
  let playing = 0;
  const play = async () => {
    playing += 1;
    setText(result, PLAYING);
    /** @type {PlayResult | undefined} */
    const played = await attempt(() => app.api.act(actions.play(text.value)));
    playing -= 1;
    if (played) setText(result, playedText(played));
    else setText(result, playing > 0 ? PLAYING : "");
  };
  const form = lineForm(
    () => void play(),
    field("Sequence", text),
    el("button", { type: "submit", class: "primary" }, "Play"),
    button({ icon: "stop", label: "Cancel" }, () =>
      attempt(async () => {
        await app.api.act(actions.cancelInput());
        toast("Cancelled all sequences and holds.");
      }),
    ),
  );
  return el(
    "div",
    { class: "part" },
    form,
    about(
      "Each step names keys and a number of frames: ",
      el("code", {}, "A:2"),
      " holds A for two frames, ",
      el("code", {}, ".:10"),
      " waits for ten, ",
      el("code", {}, "Up+B:30"),
      " holds both. The emulator counts the frames, so network delays do not change the timing.",
    ),
    result,
  );
}

/** @type {(played: PlayResult) => string} */
function playedText({ first, last, over }) {
  const frames = `from frame ${first} to ${last}`;
  return over?.cancelled
    ? `Cancelled at frame ${over.frame}; the whole sequence would have run ${frames}.`
    : `Played ${frames}.`;
}
