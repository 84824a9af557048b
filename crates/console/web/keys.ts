/** The console's keys. */

/** In the order of a mask's bits. */
export const KEYS = ["A", "B", "Select", "Start", "Right", "Left", "Up", "Down", "R", "L"] as const;

export type Key = (typeof KEYS)[number];

export function isKey(value: unknown): value is Key {
  return KEYS.includes(value as Key);
}

export function maskOf(keys: Iterable<Key>): number {
  let mask = 0;
  for (const key of keys) mask |= 1 << KEYS.indexOf(key);
  return mask;
}

export function keysOf(mask: number): Key[] {
  return KEYS.filter((_, bit) => (mask & (1 << bit)) !== 0);
}
