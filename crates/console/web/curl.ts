/** Requests as commands for a terminal. */

export type Method = "GET" | "POST" | "PUT" | "DELETE" | "PATCH";

/** What a user asks of the server by one click. */
export interface Action {
  /** What it does, for people. */
  title: string;
  method: Method;
  /** Path without the query. */
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  /** The body: JSON, or else bytes of a file. */
  json?: unknown;
  file?: Blob;
  /** Where a reply of bytes belongs, for the command. */
  output?: string;
}

/** Path and query of an action. */
export function target(action: Action): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(action.query ?? {})) {
    if (value !== undefined) query.append(name, String(value));
  }
  const text = query.toString();
  return text === "" ? action.path : `${action.path}?${text}`;
}

/** The command that does the same. With `token` it sends one, which it takes from the environment. */
export function curl(action: Action, origin: string, token: boolean): string {
  const words = ["curl"];
  const implied = action.json !== undefined || action.file ? "POST" : "GET";
  if (action.method !== implied) words.push("-X", action.method);
  if (token) words.push("-H", '"Authorization: Bearer $FRAMEWIRE_TOKEN"');
  words.push(quoted(origin + target(action)));
  if (action.json !== undefined) {
    words.push("-H", quoted("Content-Type: application/json"), "-d", quoted(JSON.stringify(action.json)));
  } else if (action.file) {
    words.push("--data-binary", "@FILE");
  }
  if (action.output) words.push("-o", quoted(action.output));
  return words.join(" ");
}

/** A word as a POSIX shell reads it. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
