/** The watches panel: expressions over memory with their current values and small plots. */

import { textOf } from "./app.js";
import { button, codeInput, emptyEntry, field, lineForm } from "./controls.js";
import { el, setText } from "./dom.js";
import { plot } from "./plot.js";
import { Redraw } from "./redraw.js";
import { Series } from "./series.js";
import { expressionOf, nameList } from "./symbols.js";
import { watched, watchExpression } from "./watchlist.js";
import { WatchSubscription } from "./watchsubscription.js";

/**
 * @import { App } from "./app.js"
 * @import { Symbols } from "./symbols.js"
 */

/** How many points a plot keeps. A frame adds at most one, so they cover all frames that the plot shows. */
const KEPT = 600;
/** How many frames a plot shows. */
const SPAN = 600;

/**
 * @typedef {object} Row
 * @property {HTMLElement} element
 * @property {(value: unknown, frame: number) => void} show
 * @property {(problem: string) => void} refuse Shows that the server rejected the expression.
 * @property {(frame: number) => void} draw
 * @property {() => void} clear Removes the values.
 */

export class WatchesPanel {
  /** @readonly @type {HTMLElement} */
  element;
  /** @type {Map<string, Row>} */
  #rows = new Map();
  #list = el("ul", { class: "watches" });
  #input = codeInput({ placeholder: "score, u16[0x02000038] > 100" });
  #problem = el("p", { class: "problem", role: "alert" });
  /** The reason why nothing could be watched. Visible until values come. */
  #failure = "";
  /** @type {WatchSubscription} */
  #subscription;
  #frame = 0;
  #redraw = new Redraw(() => {
    for (const row of this.#rows.values()) row.draw(this.#frame);
  });

  /**
   * @param {App} app
   * @param {Symbols} symbols
   */
  constructor(app, symbols) {
    this.#subscription = new WatchSubscription(app, {
      values: (values, frame) => this.#receive(values, frame),
      refused: (expression, problem) => this.#rows.get(expression)?.refuse(problem),
      failed: (error) => {
        this.#failure = textOf(error);
        setText(this.#problem, this.#failure);
      },
    });
    const names = nameList(symbols);
    this.#input.setAttribute("list", names.id);
    const suggestions = el("div", { class: "chips" });
    const heading = el("h2", {}, "Symbols");
    symbols.all.follow((all) => {
      heading.hidden = all.length === 0;
      suggestions.replaceChildren(
        ...all
          .filter(({ type, count }) => type !== undefined && count === 1)
          .slice(0, 12)
          .map((symbol) =>
            button({ label: symbol.name, icon: "plus", kind: "quiet" }, () =>
              watchExpression(expressionOf(symbol)),
            ),
          ),
      );
    });
    const form = lineForm(
      () => this.#submit(),
      field("Expression to watch", this.#input),
      names,
      el("button", { type: "submit", class: "primary" }, "Watch"),
    );
    this.element = el("div", {}, form, this.#problem, this.#list, heading, suggestions);
    app.api.emulator.follow(() => {
      // The values belong to the emulator that was selected before.
      for (const row of this.#rows.values()) row.clear();
    });
    watched.follow((texts) => this.#sync(texts));
  }

  /** Adds the expression in the field. If it is wrong, it stays in the field, and the user can correct it. */
  async #submit() {
    const text = this.#input.value.trim();
    if (text === "") return;
    const problem = await this.#subscription.problemOf(text);
    setText(this.#problem, problem ?? "");
    if (problem !== undefined) return;
    watchExpression(text);
    // Meanwhile, the user may have entered the next one.
    if (this.#input.value.trim() === text) this.#input.value = "";
  }

  /** @param {boolean} visible */
  shown(visible) {
    this.#subscription.watch(visible ? watched.value : []);
    this.#redraw.shown(visible);
  }

  /** @param {readonly string[]} texts */
  #sync(texts) {
    setText(this.#problem, "");
    for (const [text, row] of this.#rows) {
      if (texts.includes(text)) continue;
      row.element.remove();
      this.#rows.delete(text);
    }
    for (const text of texts) {
      if (this.#rows.has(text)) continue;
      const row = watchRow(text, () => watched.set(watched.value.filter((other) => other !== text)));
      this.#rows.set(text, row);
      this.#list.append(row.element);
    }
    this.#list.querySelector(".nothing")?.remove();
    if (texts.length === 0)
      this.#list.append(emptyEntry("No watches yet. Enter an expression, or select a symbol below."));
    this.#subscription.watch(this.#redraw.visible ? texts : []);
  }

  /** @type {(values: Readonly<Record<string, unknown>>, frame: number) => void} */
  #receive(values, frame) {
    this.#frame = frame;
    if (this.#problem.textContent === this.#failure) setText(this.#problem, "");
    for (const [text, value] of Object.entries(values)) this.#rows.get(text)?.show(value, frame);
  }
}

/** @type {(text: string, remove: () => void) => Row} */
function watchRow(text, remove) {
  let series = new Series(KEPT);
  const value = el("span", { class: "value" }, "–");
  const range = el("span", { class: "range" });
  const curve = plot(SPAN);
  const element = el(
    "li",
    { class: "watch" },
    el("code", { class: "name" }, text),
    value,
    curve.element,
    range,
    button({ icon: "close", label: `Stop watching ${text}`, compact: true, kind: "quiet" }, remove),
  );
  let drawn = -1;
  let newest = "–";
  return {
    element,
    refuse(problem) {
      element.classList.add("refused");
      newest = "–";
      setText(value, newest);
      setText(range, problem);
    },
    show(now, frame) {
      element.classList.remove("refused");
      newest = now === null ? "no value" : String(now);
      const number = typeof now === "boolean" ? Number(now) : now;
      if (typeof number === "number") series.add(frame, number);
      drawn = -1;
    },
    draw(frame) {
      if (frame === drawn || element.classList.contains("refused")) return;
      drawn = frame;
      setText(value, newest);
      series.forgetBefore(frame - SPAN);
      const span = series.range();
      setText(range, span ? `${span.least} … ${span.most}` : "");
      curve.draw(series, frame);
    },
    clear() {
      series = new Series(KEPT);
      newest = "–";
      drawn = -1;
      element.classList.remove("refused");
    },
  };
}
