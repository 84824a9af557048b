/** Searches memory for a value. A search begins with all numbers of a type. Each test keeps only those that pass it. */

import * as actions from "./actions.js";
import { ApiError } from "./api.js";
import { attempt } from "./app.js";
import { button, choice, field, lineForm } from "./controls.js";
import { el, fill, setText } from "./dom.js";
import { placeRow } from "./places.js";

/**
 * @import { App } from "./app.js"
 * @import { Action } from "./curl.js"
 * @import { FoundPlace, PlaceUse } from "./places.js"
 */

/** The candidates are listed as soon as there are at most this many. */
const MOST = 20;

/** The tests, and whether each needs a value. */
const TESTS = /** @type {const} */ ([
  ["equal", "is equal to", true],
  ["not_equal", "is not", true],
  ["greater", "is greater than", true],
  ["less", "is less than", true],
  ["changed", "has changed", false],
  ["unchanged", "has not changed", false],
  ["increased", "has increased", false],
  ["decreased", "has decreased", false],
  ["increased_by", "has increased by", true],
  ["decreased_by", "has decreased by", true],
]);

/**
 * A search that the server keeps. `count` is the number of its candidates.
 * @typedef {{ id: number, count: number }} Search
 */

/** @typedef {FoundPlace & { value: number }} Candidate */

/** @type {(app: App, use: PlaceUse) => HTMLElement} */
export function searcher(app, use) {
  /** @type {Search | undefined} */
  let search;
  const type = choice(["u8", "u16", "u32", "i8", "i16", "i32"].map((name) => [name, name]));
  const is = choice(TESTS.map(([value, label]) => [value, label]));
  const value = el("input", { type: "text", class: "value", placeholder: "value", autocomplete: "off" });
  const summary = el("p", { class: "note", role: "status" });
  const list = el("ul", { class: "found", "aria-label": "Candidates" });
  const needsValue = () => TESTS.some(([name, , needs]) => name === is.value && needs);

  /**
   * Whether an answer comes too late: meanwhile, another emulator was selected, or a search began or ended.
   * @param {string | undefined} emulator The emulator that was selected when the page sent the request.
   * @param {Search | undefined} before The search at that time.
   */
  const isLate = (emulator, before) => emulator !== app.api.emulator.value || search?.id !== before?.id;

  /** @param {Search | undefined} now */
  const show = async (now) => {
    search = now;
    steps.hidden = now === undefined;
    start.hidden = now !== undefined;
    if (!now) {
      setText(summary, "");
      fill(list);
      return;
    }
    const places = now.count === 1 ? "1 place is" : `${now.count.toLocaleString("en")} places are`;
    setText(summary, `${places} left.`);
    if (now.count > MOST) {
      fill(list);
      return;
    }
    /** @type {{ candidates: Candidate[] }} */
    const { candidates } = await app.api.read(`/v1/search/${now.id}`, { limit: MOST });
    if (search !== now) return;
    fill(
      list,
      ...candidates.map((candidate) =>
        placeRow({ ...candidate, length: Number(type.value.slice(1)) / 8 }, String(candidate.value), use),
      ),
    );
  };
  /** @param {Action} action */
  const step = (action) =>
    attempt(async () => {
      const [emulator, before] = [app.api.emulator.value, search];
      try {
        /** @type {Search} */
        const now = await app.api.act(action);
        if (!isLate(emulator, before)) await show(now);
      } catch (error) {
        // The server no longer has the search, so the user can only begin a new one.
        if (error instanceof ApiError && error.status === 404 && !isLate(emulator, before))
          await show(undefined);
        throw forPage(error);
      }
    });

  const start = lineForm(
    () => step(actions.startSearch(type.value)),
    field("Search for a number", type),
    el("button", { type: "submit" }, "Search"),
  );
  const steps = lineForm(
    () => {
      const number = Number(value.value.trim());
      const wrong = needsValue() && (value.value.trim() === "" || !Number.isInteger(number));
      value.setCustomValidity(wrong ? "Use a whole number, decimal or 0x hex." : "");
      if (!search || !steps.reportValidity()) return;
      return step(actions.narrowSearch(search.id, is.value, needsValue() ? number : undefined));
    },
    field("Keep the places whose number", is),
    field("Value", value, true),
    el("button", { type: "submit", class: "primary" }, "Keep"),
    button({ label: "Undo", hint: "Undo the last step" }, () => {
      if (search) return step(actions.undoSearch(search.id));
    }),
    button({ label: "End" }, () => attempt(endSearch)),
  );
  const endSearch = async () => {
    const ended = search;
    // The page forgets the search before the request, because the request fails if the server no longer has
    // it. While the page copies actions (`api.copying`), it keeps the search, because nothing is sent.
    if (!app.api.copying.value) await show(undefined);
    if (!ended) return;
    try {
      await app.api.act(actions.endSearch(ended.id));
    } catch (error) {
      throw forPage(error);
    }
  };
  const showValue = () => {
    value.hidden = !needsValue();
    value.setCustomValidity("");
  };
  is.addEventListener("change", showValue);
  value.addEventListener("input", () => value.setCustomValidity(""));
  app.api.emulator.follow(() => void show(undefined));
  return el("div", { class: "finder" }, start, steps, summary, list);
}

/**
 * An error of a search, without the server's advice for programs on how to begin a new one. On the page, a button does it.
 * @type {(error: unknown) => unknown}
 */
function forPage(error) {
  if (!(error instanceof ApiError)) return error;
  return new ApiError(error.message.replace(/ with POST \/v1\/search.*/s, "."), error.status);
}
