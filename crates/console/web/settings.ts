/** What the page remembers of its user, in this browser only. */

import { Store } from "./store.ts";

const PREFIX = "framewire.";

/** A setting of this name; what is stored but no longer `valid` counts as not set. */
export function setting<T>(name: string, usual: T, valid: (value: unknown) => value is T): Store<T> {
  const store = new Store(read(name, usual, valid));
  store.follow((value) => write(name, value, usual));
  return store;
}

function read<T>(name: string, usual: T, valid: (value: unknown) => value is T): T {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(PREFIX + name) ?? "null");
    return valid(value) ? value : usual;
  } catch {
    return usual; // Storage may be turned off, or hold what another version wrote.
  }
}

function write<T>(name: string, value: T, usual: T): void {
  try {
    if (value === usual) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // Then it lasts as long as the page.
  }
}
