/** Settings of the page, stored in this browser. */

import { Store } from "./store.js";

const PREFIX = "framewire.";

/**
 * A setting. Without a stored value, it has the `defaultValue`. A stored value that is not `valid` is ignored.
 * @template T
 * @param {string} name
 * @param {T} defaultValue
 * @param {(value: unknown) => value is T} valid
 * @returns {Store<T>}
 */
export function setting(name, defaultValue, valid) {
  const key = PREFIX + name;
  const read = () => {
    try {
      /** @type {unknown} */
      const value = JSON.parse(localStorage.getItem(key) ?? "null");
      return valid(value) ? value : defaultValue;
    } catch {
      return defaultValue; // Storage may be disabled, or contain a value from another version.
    }
  };
  const store = new Store(read());
  store.follow((value) => {
    try {
      if (value === defaultValue) localStorage.removeItem(key);
      else localStorage.setItem(key, JSON.stringify(value));
    } catch {
      // Without storage, the setting lasts until the page is closed.
    }
  });
  // If the page changes one entry of a list or mapping, it stores the whole list or mapping. So it must first know the
  // changes of other tabs; otherwise it would undo them. (Tests of single modules have no window, so no events.)
  if (typeof defaultValue === "object")
    globalThis.addEventListener?.("storage", (event) => {
      if (event.key === key) store.set(read());
    });
  return store;
}

/**
 * A check for `setting`: whether a value is one of these.
 * @template T
 * @param {readonly T[]} all
 */
export function oneOf(all) {
  return /** @type {(value: unknown) => value is T} */ ((value) => all.includes(/** @type {T} */ (value)));
}
