/**
 * A value that calls its listeners when it changes.
 * @template T
 */
export class Store {
  #value;
  /** @type {Set<(value: T) => void>} */
  #listeners = new Set();

  /** @param {T} value */
  constructor(value) {
    this.#value = value;
  }

  /** @returns {T} */
  get value() {
    return this.#value;
  }

  /** @param {T} value */
  set(value) {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of this.#listeners) listener(value);
  }

  /**
   * Calls `listener` now and with each new value.
   * @param {(value: T) => void} listener
   */
  follow(listener) {
    listener(this.#value);
    this.onChange(listener);
  }

  /**
   * Calls `listener` with each new value.
   * @param {(value: T) => void} listener
   */
  onChange(listener) {
    this.#listeners.add(listener);
  }
}
