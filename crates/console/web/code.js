/** Writes requests as short programs, in a language that the user chooses. */

import { curl, target } from "./curl.js";
import { setting } from "./settings.js";

/** @import { Action } from "./curl.js" */

/** The languages, with the names that users see. */
export const LANGUAGES = /** @type {const} */ ({
  curl: "curl",
  python: "Python",
  javascript: "JavaScript",
  lua: "Lua",
});

/** @typedef {keyof typeof LANGUAGES} Language */

/** @type {(value: unknown) => value is Language} */
export function isLanguage(value) {
  return typeof value === "string" && Object.hasOwn(LANGUAGES, value);
}

/** The language in which requests are copied. */
export const language = setting("language", /** @type {Language} */ ("curl"), isLanguage);

/**
 * The parts of a request, as strings.
 * @typedef {object} Parts
 * @property {string} url
 * @property {string} method
 * @property {string | undefined} json The body.
 * @property {boolean} file Whether the body is the contents of a file.
 * @property {Record<string, string>} headers Header fields in addition to `Authorization`.
 * @property {boolean} token Whether the program sends a token, which it gets from the environment.
 * @property {string | undefined} output The file in which the program saves the answer.
 */

/** @type {Record<Exclude<Language, "curl">, (parts: Parts) => string>} */
const WRITERS = { python, javascript, lua };

/**
 * The code for an action. With `token`, the code sends a token from the environment.
 * @type {(wanted: Language, action: Action, origin: string, token: boolean) => string}
 */
export function code(wanted, action, origin, token) {
  if (wanted === "curl") return curl(action, origin, token);
  return WRITERS[wanted]({
    url: origin + target(action),
    method: action.method,
    json: action.json === undefined ? undefined : JSON.stringify(action.json),
    file: action.file !== undefined,
    headers: {
      ...action.headers,
      ...(action.json === undefined ? {} : { "Content-Type": "application/json" }),
    },
    token,
    output: action.output,
  });
}

/** The file name endings of programs. */
export const ENDINGS = /** @type {const} */ ({ curl: "sh", python: "py", javascript: "mjs", lua: "lua" });

/**
 * A program that performs actions one after another. The title of each action is in a comment.
 * @type {(wanted: Language, actions: readonly Action[], origin: string, token: boolean) => string}
 */
export function program(wanted, actions, origin, token) {
  /** @type {Set<string>} */
  const imports = new Set();
  const parts = actions.map((action) => {
    const lines = code(wanted, action, origin, token).split("\n");
    const isImport = (/** @type {string} */ line) => /^(import |local http = require)/.test(line);
    for (const line of lines.filter(isImport)) imports.add(line);
    const rest = lines.filter((line) => !isImport(line)).join("\n");
    const comment = `${COMMENTS[wanted]} ${action.title.replaceAll("\n", " ")}`;
    return [comment, BLOCKS[wanted](rest)].join("\n");
  });
  const start = wanted === "curl" ? ["#!/bin/sh", "set -e"] : [...imports];
  return `${[start.join("\n"), ...parts].join("\n\n")}\n`;
}

/** @type {Record<Language, string>} */
const COMMENTS = { curl: "#", python: "#", javascript: "//", lua: "--" };

/**
 * Puts the code of an action into a block, in the languages in which the code declares the local variable `answer`. So
 * each action has its own `answer`.
 * @type {Record<Language, (code: string) => string>}
 */
const BLOCKS = {
  curl: (code) => code,
  python: (code) => code,
  javascript: (code) => `{\n${indented(code)}\n}`,
  lua: (code) => `do\n${indented(code)}\nend`,
};

/** @type {(code: string) => string} */
function indented(code) {
  return code.replaceAll(/^/gm, "  ");
}

/**
 * The code for Python, with only its standard library.
 * @type {(parts: Parts) => string}
 */
function python({ url, method, json, file, headers: more, token, output }) {
  const headers = Object.entries(more).map((pair) => pair.map((text) => JSON.stringify(text)).join(": "));
  if (token) headers.push('"Authorization": "Bearer " + os.environ["FRAMEWIRE_TOKEN"]');
  const words = [JSON.stringify(url), `method=${JSON.stringify(method)}`];
  // A JSON string is also a valid Python string literal.
  if (json !== undefined) words.push(`data=${JSON.stringify(json)}.encode()`);
  else if (file) words.push('data=open("FILE", "rb").read()');
  if (headers.length > 0) words.push(`headers={${headers.join(", ")}}`);
  const answer = "urllib.request.urlopen(request).read()";
  return [
    token ? "import os, urllib.request" : "import urllib.request",
    `request = urllib.request.Request(${words.join(", ")})`,
    output === undefined
      ? `print(${answer}.decode())`
      : `open(${JSON.stringify(output)}, "wb").write(${answer})`,
  ].join("\n");
}

/**
 * The code for Node.js, Deno and Bun, as a module.
 * @type {(parts: Parts) => string}
 */
function javascript({ url, method, json, file, headers: more, token, output }) {
  const headers = Object.entries(more).map((pair) => pair.map((text) => JSON.stringify(text)).join(": "));
  if (token) headers.push("Authorization: `Bearer ${" + "process.env.FRAMEWIRE_TOKEN}`");
  const options = [`method: ${JSON.stringify(method)}`];
  if (headers.length > 0) options.push(`headers: { ${headers.join(", ")} }`);
  if (json !== undefined) options.push(`body: JSON.stringify(${json})`);
  else if (file) options.push('body: fs.readFileSync("FILE")');
  return [
    ...(file || output !== undefined ? ['import fs from "node:fs";'] : []),
    `const answer = await fetch(${JSON.stringify(url)}, { ${options.join(", ")} });`,
    output === undefined
      ? "console.log(await answer.text());"
      : `fs.writeFileSync(${JSON.stringify(output)}, Buffer.from(await answer.arrayBuffer()));`,
  ].join("\n");
}

/**
 * The code for LuaJIT, with Framewire's library.
 * @type {(parts: Parts) => string}
 */
function lua({ url, method, json, file, headers: more, token, output }) {
  const options = [`url = ${JSON.stringify(url)}`, `method = ${JSON.stringify(method)}`];
  const headers = Object.entries(more).map(
    ([name, value]) => `[${JSON.stringify(name)}] = ${JSON.stringify(value)}`,
  );
  if (token) headers.push('Authorization = "Bearer " .. os.getenv("FRAMEWIRE_TOKEN")');
  if (headers.length > 0) options.push(`headers = { ${headers.join(", ")} }`);
  // A JSON text has no control characters. So JSON.stringify escapes only characters that Lua escapes in the same way.
  if (json !== undefined) options.push(`body = ${JSON.stringify(json)}`);
  else if (file) options.push('body = io.open("FILE", "rb"):read("*a")');
  return [
    'local http = require "framewire.http"',
    `local answer = assert(http.client():request { ${options.join(", ")} })`,
    output === undefined
      ? "print(answer.body)"
      : `io.open(${JSON.stringify(output)}, "wb"):write(answer.body)`,
  ].join("\n");
}
