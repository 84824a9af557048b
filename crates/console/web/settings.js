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
  const store = new Store(read(name, defaultValue, valid));
  store.follow((value) => {
    try {
      if (value === defaultValue) localStorage.removeItem(PREFIX + name);
      else localStorage.setItem(PREFIX + name, JSON.stringify(value));
    } catch {
      // Without storage, the setting lasts until the page is closed.
    }
  });
  // The page changes one entry of a list or mapping, and stores the whole. So it must know the changes of other tabs, or it
  // would undo them. The tests of modules run without a window.
  if (typeof defaultValue === "object")
    globalThis.addEventListener?.("storage", ({ key }) => {
      if (key === PREFIX + name) store.set(read(name, defaultValue, valid));
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

/**
 * @template T
 * @param {string} name
 * @param {T} defaultValue
 * @param {(value: unknown) => value is T} valid
 * @returns {T}
 */
function read(name, defaultValue, valid) {
  try {
    /** @type {unknown} */
    const value = JSON.parse(localStorage.getItem(PREFIX + name) ?? "null");
    return valid(value) ? value : defaultValue;
  } catch {
    return defaultValue; // Storage may be disabled, or contain a value from another version.
  }
}
