/** Finds a text or bytes in the console's work RAM. A place leads to its address or becomes a watch. */

import { attempt } from "./app.js";
import { button, field, lineForm } from "./controls.js";
import { el, fill } from "./dom.js";
import { hex } from "./hexgrid.js";
import { icon } from "./icons.js";

/** @import { App } from "./app.js" */

/**
 * A place of the answer of `/v1/find`.
 * @typedef {object} FoundPlace
 * @property {string | null} domain
 * @property {number | null} offset
 * @property {number | null} address On the bus; null if it is not there.
 * @property {string | null} symbol
 * @property {string} watch The expression that reads it.
 */

/** Places that are listed at most. */
const MOST = 20;

/**
 * @param {App} app
 * @param {(address: number) => void} goTo Shows an address of the bus.
 * @param {(expression: string) => void} watch
 * @returns {HTMLElement}
 */
export function finder(app, goTo, watch) {
  const input = el("input", {
    type: "text",
    placeholder: "text to find",
    autocomplete: "off",
    spellcheck: "false",
  });
  const kind = el(
    "select",
    {},
    el("option", { value: "text" }, "Text"),
    el("option", { value: "bytes" }, "Bytes in hex"),
  );
  const list = el("ul", { class: "found" });
  const told = el("p", { class: "note", role: "status" });
  kind.addEventListener("change", () => {
    input.placeholder = kind.value === "text" ? "text to find" : "such as 46 57 44";
  });
  const find = () =>
    attempt(async () => {
      const wanted =
        kind.value === "text"
          ? { text: input.value }
          : { bytes: input.value.replaceAll(/\s/g, ""), encoding: "hex" };
      /** @type {{ count: number, places: FoundPlace[] }} */
      const { count, places } = await app.api.ask("/v1/find", { ...wanted, limit: MOST });
      told.textContent =
        count === 0 ? "Not found in work RAM." : `${count} ${count === 1 ? "place" : "places"}.`;
      fill(list, ...places.map((place) => row(place, goTo, watch)));
    });
  return el(
    "div",
    { class: "finder" },
    lineForm(
      find,
      field("Find in work RAM", input, true),
      field("What to find", kind, true),
      el("button", { type: "submit" }, "Find"),
    ),
    told,
    list,
  );
}

/**
 * @param {FoundPlace} place
 * @param {(address: number) => void} goTo
 * @param {(expression: string) => void} watch
 * @returns {HTMLElement}
 */
function row(place, goTo, watch) {
  const { domain, offset, address, symbol } = place;
  const name = address === null ? `${domain}:${hex(offset ?? 0, 4)}` : hex(address, 8);
  const label = symbol === null ? name : `${name} ${symbol}`;
  const watched = el("button", { type: "button", class: "quiet" }, icon("plus"), "Watch");
  watched.ariaLabel = `Watch ${place.watch}`;
  watched.addEventListener("click", () => watch(place.watch));
  return el(
    "li",
    {},
    address === null ? el("code", {}, label) : button({ label, kind: "quiet" }, () => goTo(address)),
    watched,
  );
}
