/** Rows for lists of places in memory. Users can open each place in the memory panel, or watch it. */

import { button } from "./controls.js";
import { el } from "./dom.js";
import { hex } from "./hexgrid.js";
import { icon } from "./icons.js";

/** @import { Place } from "./tiles.js" */

/**
 * A place in memory from a reply of the server.
 * @typedef {object} FoundPlace
 * @property {string | null} domain The memory domain; null for the bus.
 * @property {number | null} offset The offset in the domain; null for the bus.
 * @property {number | null} bank The bank, if the domain has banks; null on the bus and in a domain without banks.
 * @property {number | null} address The bus address while its bank is mapped; null if it is never on the bus.
 * @property {string | null} symbol
 * @property {string} watch The expression for the value at this place.
 * @property {number} [length] In bytes.
 */

/**
 * @typedef {object} PlaceUse
 * @property {(place: Place) => void} reveal Shows bytes in the memory panel.
 * @property {(expression: string) => void} watch Adds an expression to the watches.
 */

/**
 * @param {FoundPlace} found
 * @param {string} value The text for the value at this place.
 * @param {PlaceUse} use
 * @returns {HTMLElement}
 */
export function placeRow(found, value, { reveal, watch }) {
  const place = placeOf(found);
  const label = found.symbol === null ? place.text : `${place.text} ${found.symbol}`;
  const watched = el("button", { type: "button", class: "quiet" }, icon("plus"), "Watch");
  watched.ariaLabel = `Watch ${found.watch}`;
  watched.addEventListener("click", () => watch(found.watch));
  return el(
    "li",
    {},
    button({ label, kind: "quiet" }, () => reveal(place)),
    el("code", {}, value),
    watched,
  );
}

/**
 * Where to show a place. Banked memory is shown in its domain, because the bus shows only some of its banks at a time.
 * @type {(found: FoundPlace) => Place}
 */
function placeOf({ domain, offset, bank, address, length = 1 }) {
  if (address !== null && bank === null) return { domain: "", address, length, text: hex(address, 8) };
  const inDomain = domain ?? "";
  const text = `${inDomain}:${hex(offset ?? 0, 4)}`;
  return { domain: inDomain, address: offset ?? 0, length, text };
}
