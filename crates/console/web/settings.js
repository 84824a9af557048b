/** Settings of the page, stored in this browser. */

import { Store } from "./store.js";

const PREFIX = "framewire.";

/**
 * A setting with the default value `usual`. A stored value that is not `valid` is ignored.
 * @template T
 * @param {string} name
 * @param {T} usual
 * @param {(value: unknown) => value is T} valid
 * @returns {Store<T>}
 */
export function setting(name, usual, valid) {
  const store = new Store(read(name, usual, valid));
  store.follow((value) => write(name, value, usual));
  return store;
}

/**
 * @template T
 * @param {string} name
 * @param {T} usual
 * @param {(value: unknown) => value is T} valid
 * @returns {T}
 */
function read(name, usual, valid) {
  try {
    /** @type {unknown} */
    const value = JSON.parse(localStorage.getItem(PREFIX + name) ?? "null");
    return valid(value) ? value : usual;
  } catch {
    return usual; // Storage may be disabled, or contain a value from another version.
  }
}

/**
 * @template T
 * @param {string} name
 * @param {T} value
 * @param {T} usual
 */
function write(name, value, usual) {
  try {
    if (value === usual) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // Without storage, the setting lasts until the page is closed.
  }
}
