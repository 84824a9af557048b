/** Sequences of presses by frame: written, played and cancelled. */

import * as actions from "./actions.ts";
import { type App, attempt } from "./app.ts";
import { button, field } from "./controls.ts";
import { el, setText } from "./dom.ts";
import { setting } from "./settings.ts";
import { toast } from "./toast.ts";

const EXAMPLE = "A:2 .:10 Left:30 .:5 Right+B:30";

/** What became of a sequence. */
interface Played {
  first: number;
  last: number;
  over?: { frame: number; cancelled: boolean };
}

export function sequencesPanel(app: App): HTMLElement {
  const kept = setting("sequence", EXAMPLE, (value): value is string => typeof value === "string");
  const text = el("input", { type: "text", value: kept.value, spellcheck: "false", autocomplete: "off" });
  text.addEventListener("input", () => kept.set(text.value));
  const result = el("p", { class: "note", role: "status" });
  const play = async (): Promise<void> => {
    setText(result, "Playing…");
    const played = await attempt(() => app.api.act<Played>(actions.play(text.value)));
    setText(result, played ? playedText(played) : "");
  };
  const form = el(
    "form",
    { class: "line" },
    field("Sequence", text),
    el("button", { type: "submit", class: "primary" }, "Play"),
    button({ icon: "stop", label: "Cancel" }, () =>
      attempt(async () => {
        await app.api.act(actions.cancelInput());
        toast("All sequences and holds have ended.");
      }),
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void play();
  });
  return el(
    "div",
    { class: "part" },
    form,
    el(
      "p",
      { class: "about" },
      "Each part is keys and frames: ",
      el("code", {}, "A:2"),
      " holds A for two frames, ",
      el("code", {}, ".:10"),
      " waits for ten, ",
      el("code", {}, "Up+B:30"),
      " holds both. The emulator itself keeps the time, so no delay of the network moves a press.",
    ),
    result,
  );
}

function playedText({ first, last, over }: Played): string {
  const frames = `from frame ${first} to ${last}`;
  return over?.cancelled
    ? `Cancelled at frame ${over.frame}; it would have gone ${frames}.`
    : `Played ${frames}.`;
}
