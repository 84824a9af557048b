/** Names of files on the server: snapshots and recordings. */

/**
 * Replaces spaces in a name from a user with hyphens, because the server does not accept spaces.
 * @type {(text: string) => string}
 */
export function fileName(text) {
  return text.trim().replace(/\s+/g, "-");
}

/**
 * The first of `base-1`, `base-2`, ... that is not used.
 * @type {(base: string, used: readonly string[]) => string}
 */
export function freeName(base, used) {
  let number = 1;
  while (used.includes(`${base}-${number}`)) number += 1;
  return `${base}-${number}`;
}
