/** Watches: expressions over memory, each with its value now and a small plot of its last seconds. */

import { type App, textOf } from "./app.ts";
import { button, empty, field } from "./controls.ts";
import { el, freshId, setText } from "./dom.ts";
import { History, plot } from "./plot.ts";
import { setting } from "./settings.ts";
import { WatchFeed } from "./feed.ts";
import type { Symbols } from "./symbols.ts";

/** Points that a plot keeps: ten seconds of one each frame. */
const KEPT = 600;
/** Frames that a plot shows. */
const SPAN = 600;

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

interface Row {
  element: HTMLElement;
  history: History;
  show(value: unknown, frame: number): void;
  draw(frame: number): void;
}

export class WatchesPanel {
  readonly element: HTMLElement;
  readonly #watched = setting<readonly string[]>("watches", [], isTexts);
  readonly #rows = new Map<string, Row>();
  readonly #list = el("ul", { class: "watches" });
  readonly #input = el("input", {
    type: "text",
    placeholder: "score, u16[0x02000038] > 100",
    spellcheck: "false",
    autocomplete: "off",
  });
  readonly #problem = el("p", { class: "problem", role: "alert" });
  readonly #feed: WatchFeed;
  #frame = 0;
  #visible = false;
  #drawing = false;

  constructor(app: App, symbols: Symbols) {
    this.#feed = new WatchFeed(app.rpc, app.api, {
      values: (values, frame) => this.#take(values, frame),
      refused: (error) => setText(this.#problem, textOf(error)),
    });
    const names = el("datalist", { id: freshId("symbols") });
    this.#input.setAttribute("list", names.id);
    const suggestions = el("div", { class: "chips" });
    symbols.all.follow((all) => {
      names.replaceChildren(...all.map(({ name }) => el("option", { value: name })));
      suggestions.replaceChildren(
        ...all
          .filter(({ type, count }) => type !== undefined && count === 1)
          .slice(0, 12)
          .map(({ name }) => button({ label: name, icon: "plus", kind: "quiet" }, () => this.add(name))),
      );
    });
    const form = el(
      "form",
      { class: "line" },
      field("Expression to watch", this.#input),
      names,
      el("button", { type: "submit", class: "primary" }, "Watch"),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = this.#input.value.trim();
      if (text === "") return;
      this.add(text);
      this.#input.value = "";
    });
    this.element = el(
      "div",
      {},
      form,
      this.#problem,
      this.#list,
      el("h2", { class: "quiet-title" }, "Symbols"),
      suggestions,
    );
    symbols.all.follow((all) => {
      suggestions.previousElementSibling?.toggleAttribute("hidden", all.length === 0);
    });
    this.#watched.follow((watched) => this.#sync(watched));
  }

  /** Watches one more expression. */
  add(expression: string): void {
    if (!this.#watched.value.includes(expression)) this.#watched.set([...this.#watched.value, expression]);
  }

  /** Told whether the panel can be seen. */
  shown(visible: boolean): void {
    this.#visible = visible;
    this.#feed.watch(visible ? this.#watched.value : []);
    if (visible && !this.#drawing) this.#draw();
  }

  #sync(watched: readonly string[]): void {
    setText(this.#problem, "");
    for (const [text, row] of this.#rows) {
      if (watched.includes(text)) continue;
      row.element.remove();
      this.#rows.delete(text);
    }
    for (const text of watched) {
      if (this.#rows.has(text)) continue;
      const row = watchRow(text, () =>
        this.#watched.set(this.#watched.value.filter((other) => other !== text)),
      );
      this.#rows.set(text, row);
      this.#list.append(row.element);
    }
    this.#list.querySelector(".empty")?.parentElement?.remove();
    if (watched.length === 0)
      this.#list.append(
        el("li", {}, empty("Nothing is watched. Write an expression, or choose a symbol below.")),
      );
    this.#feed.watch(this.#visible ? watched : []);
  }

  #take(values: Readonly<Record<string, unknown>>, frame: number): void {
    this.#frame = frame;
    for (const [text, value] of Object.entries(values)) this.#rows.get(text)?.show(value, frame);
  }

  #draw(): void {
    this.#drawing = this.#visible;
    if (!this.#visible) return;
    for (const row of this.#rows.values()) row.draw(this.#frame);
    requestAnimationFrame(() => this.#draw());
  }
}

function watchRow(text: string, remove: () => void): Row {
  const history = new History(KEPT);
  const value = el("span", { class: "value" }, "–");
  const range = el("span", { class: "range" });
  const canvas = el("canvas", { class: "plot", "aria-hidden": "true" });
  const element = el(
    "li",
    { class: "watch" },
    el("code", { class: "name" }, text),
    value,
    canvas,
    range,
    button({ icon: "close", label: `Stop watching ${text}`, compact: true, kind: "quiet" }, remove),
  );
  let drawn = -1;
  return {
    element,
    history,
    show(now, frame) {
      const number = typeof now === "boolean" ? Number(now) : now;
      setText(value, number === null ? "no value" : String(now));
      if (typeof number !== "number") return;
      history.add(frame, number);
      const span = history.range();
      setText(range, span ? `${span.least} … ${span.most}` : "");
    },
    draw(frame) {
      if (frame === drawn) return;
      drawn = frame;
      plot(canvas, history, frame, SPAN);
    },
  };
}
