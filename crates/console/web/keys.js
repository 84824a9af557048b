/** The console's keys. */

/** The keys, in the order of their bits in a mask. */
export const KEYS = /** @type {const} */ ([
  "A",
  "B",
  "Select",
  "Start",
  "Right",
  "Left",
  "Up",
  "Down",
  "R",
  "L",
]);

/** @typedef {(typeof KEYS)[number]} Key */

/** @type {(value: unknown) => value is Key} */
export function isKey(value) {
  return KEYS.includes(/** @type {Key} */ (value));
}

/** @type {(keys: Iterable<Key>) => number} */
export function maskOf(keys) {
  let mask = 0;
  for (const key of keys) mask |= 1 << KEYS.indexOf(key);
  return mask;
}

/** @type {(mask: number) => Key[]} */
export function keysOf(mask) {
  return KEYS.filter((_, bit) => (mask & (1 << bit)) !== 0);
}
