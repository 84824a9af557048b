/** A value that tells who listens when it changes. */
export class Store<T> {
  #value: T;
  readonly #listeners = new Set<(value: T) => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of this.#listeners) listener(value);
  }

  /** Calls `listener` now and with each new value; what it returns ends that. */
  follow(listener: (value: T) => void): () => void {
    listener(this.#value);
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
