/**
 * Finds text or bytes in the console's work RAM and, on the Game Boy, in the high RAM. Users can open each place in the
 * memory panel, or watch it.
 */

import { attempt } from "./app.js";
import { choice, codeInput, field, lineForm } from "./controls.js";
import { el, fill } from "./dom.js";
import { placeRow } from "./places.js";

/**
 * @import { App } from "./app.js"
 * @import { FoundPlace, PlaceUse } from "./places.js"
 */

/** How many places are listed at most. */
const MOST = 20;

/** @type {(app: App, use: PlaceUse) => HTMLElement} */
export function finder(app, use) {
  const input = codeInput({ placeholder: "text to find" });
  const kind = choice([
    ["text", "Text"],
    ["bytes", "Bytes in hex"],
  ]);
  const list = el("ul", { class: "found" });
  const summary = el("p", { class: "note", role: "status" });
  kind.addEventListener("change", () => {
    input.placeholder = kind.value === "text" ? "text to find" : "such as 46 57 44";
  });
  const find = () =>
    attempt(async () => {
      const wanted =
        kind.value === "text"
          ? { text: input.value }
          : { bytes: input.value.replaceAll(/\s/g, ""), encoding: "hex" };
      const [emulator, game] = [app.api.emulator.value, app.poller.game.value];
      /** @type {{ count: number, places: FoundPlace[] }} */
      const { count, places } = await app.api.ask("/v1/find", { ...wanted, limit: MOST });
      if (emulator !== app.api.emulator.value || game !== app.poller.game.value) return;
      summary.textContent =
        count === 0 ? "Not found in work RAM." : `${count} ${count === 1 ? "place" : "places"}.`;
      fill(list, ...places.map((place) => placeRow(place, "", use)));
    });
  const clear = () => {
    summary.textContent = "";
    fill(list);
  };
  // The places belong to the game of the emulator that was selected.
  app.api.emulator.follow(clear);
  app.poller.game.follow(clear);
  return el(
    "div",
    { class: "finder" },
    lineForm(
      () => void find(),
      field("Find in work RAM", input, true),
      field("What to find", kind, true),
      el("button", { type: "submit" }, "Find"),
    ),
    summary,
    list,
  );
}
