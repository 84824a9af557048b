/** Keeps the open tool and the selected address in the URL of the page, so that a link to the page opens them again. */

/**
 * @import { Store } from "./store.js"
 * @import { Place } from "./tiles.js"
 */

/**
 * @typedef {object} Linked
 * @property {Store<string>} tool The open tool.
 * @property {Store<Place | undefined>} place The place that is selected in the memory panel.
 * @property {(tool: string) => void} open
 * @property {(place: Place) => void} reveal Shows bytes in the memory panel.
 */

/** Time from the last change to its entry in the URL, in milliseconds. */
const WRITE_MS = 200;

/**
 * Opens what the URL of the page names, now and after each change of the URL. Keeps the URL up to date.
 * @param {Linked} linked
 */
export function followLink(linked) {
  const { tool, place } = linked;
  openLinked(linked);
  addEventListener("hashchange", () => openLinked(linked));
  const write = () => {
    const parts = new URLSearchParams({ tool: tool.value });
    if (tool.value === "memory" && place.value) {
      if (place.value.domain !== "") parts.set("domain", place.value.domain);
      parts.set("address", place.value.text);
    }
    history.replaceState(null, "", `#${parts}`);
  };
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  // Browsers limit how often `replaceState` may be called, and a held arrow key selects a byte 30 times a second.
  const writeSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(write, WRITE_MS);
  };
  // Unlike `follow`, `onChange` does not call the listener now. The URL must not change before the user
  // opens something.
  tool.onChange(writeSoon);
  place.onChange(writeSoon);
}

/**
 * Opens the tool and shows the address that the URL of the page names.
 * @param {Linked} linked
 */
function openLinked({ open, reveal }) {
  const parts = new URLSearchParams(location.hash.slice(1));
  const tool = parts.get("tool");
  if (tool !== null) open(tool);
  const text = parts.get("address");
  if (tool !== "memory" || text === null || !/^[0-9a-f]{1,8}$/i.test(text)) return;
  const address = Number.parseInt(text, 16);
  reveal({ domain: parts.get("domain") ?? "", address, length: 1, text });
}
