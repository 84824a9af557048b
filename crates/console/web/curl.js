/** Writes requests as commands for a terminal. */

/** @typedef {"GET" | "POST" | "PUT" | "DELETE" | "PATCH"} Method */

/**
 * A request that a user sends with one click.
 * @typedef {object} Action
 * @property {string} title A description for the user.
 * @property {Method} method
 * @property {string} path Path without the query.
 * @property {Record<string, string | number | boolean | undefined>} [query]
 * @property {unknown} [json] The body, as JSON.
 * @property {Blob} [file] The body, as bytes. An action has at most one of `json` and `file`.
 * @property {Record<string, string>} [headers] Header fields in addition to `Content-Type` and `Authorization`.
 * @property {boolean} [isUrgent] Whether the request is sent even if the page is closed at once. Its body must be short.
 * @property {boolean} [isLong] Whether the answer can take longer than the time for which the page usually waits.
 * @property {string} [output] The name of the file in which the command saves a binary response.
 */

/**
 * Path and query of an action.
 * @type {(action: Action) => string}
 */
export function target(action) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(action.query ?? {})) {
    if (value !== undefined) query.append(name, String(value));
  }
  const text = query.toString();
  return text === "" ? action.path : `${action.path}?${text}`;
}

/**
 * The curl command for an action. With `token`, the command sends a token from the environment.
 * @type {(action: Action, origin: string, token: boolean) => string}
 */
export function curl(action, origin, token) {
  const words = ["curl"];
  const implied = action.json !== undefined || action.file ? "POST" : "GET";
  if (action.method !== implied) words.push("-X", action.method);
  if (token) words.push("-H", '"Authorization: Bearer $FRAMEWIRE_TOKEN"');
  for (const [name, value] of Object.entries(action.headers ?? {}))
    words.push("-H", quoted(`${name}: ${value}`));
  words.push(quoted(origin + target(action)));
  if (action.json !== undefined) {
    words.push("-H", quoted("Content-Type: application/json"), "-d", quoted(JSON.stringify(action.json)));
  } else if (action.file) {
    words.push("--data-binary", "@FILE");
  }
  if (action.output) words.push("-o", quoted(action.output));
  return words.join(" ");
}

/**
 * A word, quoted for a POSIX shell.
 * @type {(word: string) => string}
 */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
