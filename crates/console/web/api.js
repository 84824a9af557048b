/** A client of the server's HTTP interface: it sends the user's actions and reads data for the page. */

import { code, language, program } from "./code.js";
import { target } from "./curl.js";
import { Store } from "./store.js";

/** @import { Action } from "./curl.js" */

/** An error for the user: usually, a request failed or got no answer. */
export class ApiError extends Error {
  /**
   * The HTTP status; 0 if there was no answer, only a part of one, or no request.
   * @readonly
   * @type {number}
   */
  status;

  /**
   * @param {string} message
   * @param {number} status
   */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/**
 * Whether the server rejected a request as wrong. The same request would be rejected again.
 * @type {(error: unknown) => error is ApiError}
 */
export function isRejection(error) {
  return error instanceof ApiError && error.status >= 400 && error.status < 500;
}

/** Thrown when an action was copied as a command instead of being sent. */
export class Copied extends Error {}

/**
 * An action that was sent, for the log.
 * @typedef {object} LogEntry
 * @property {Date} at
 * @property {Action} action
 * @property {number} status The HTTP status; 0 if there was no answer, or only a part of one.
 * @property {number} milliseconds
 * @property {string | undefined} problem What went wrong, if the action failed.
 */

/** How many actions the log keeps. */
const LOG_LENGTH = 100;

/**
 * How long a request may wait for its answer, unless its action is long. The server's own deadline is far shorter, except
 * for long actions: uploads, downloads of large files, and requests that wait until the game has run enough frames.
 */
const TIMEOUT_MS = 20_000;

export class Api {
  /** @readonly The selected emulator; `undefined` is the server's first one. */
  emulator = new Store(/** @type {string | undefined} */ (undefined));
  /** @readonly Whether the page copies actions as commands instead of sending them. */
  copying = new Store(false);
  /** @readonly The last actions, newest first. */
  log = new Store(/** @type {readonly LogEntry[]} */ ([]));
  /** @readonly Whether the server has just answered 401: it requires a token, and this browser is not logged in. */
  locked = new Store(false);
  /** @readonly Whether the token of this browser allows only reading. */
  viewOnly = new Store(false);
  /**
   * Called with each command that was copied.
   * @type {(command: string) => void}
   */
  onCopied = () => {};

  /**
   * Sends an action of the user, or copies it as a command.
   * @template T
   * @param {Action} action
   * @returns {Promise<T>}
   */
  async act(action) {
    const addressed = this.addressed(action);
    if (this.copying.value) {
      await this.copy(addressed);
      throw new Copied();
    }
    const begun = performance.now();
    /** @type {(status: number, problem?: string) => void} */
    const note = (status, problem) => {
      const milliseconds = performance.now() - begun;
      const done = { at: new Date(), action: addressed, status, milliseconds, problem };
      this.log.set([done, ...this.log.value].slice(0, LOG_LENGTH));
    };
    try {
      const { status, content } = await this.#fetch(addressed);
      note(status);
      return /** @type {T} */ (content);
    } catch (error) {
      if (error instanceof ApiError) note(error.status, error.message);
      throw error;
    }
  }

  /**
   * Reads something for the page itself. The log does not show this request.
   * @template T
   * @param {string} path
   * @param {Action["query"]} [query]
   * @returns {Promise<T>}
   */
  async read(path, query = {}) {
    const { content } = await this.#fetch(this.addressed({ title: "", method: "GET", path, query }));
    return /** @type {T} */ (content);
  }

  /**
   * Like `read`, but with a body. Use it for requests that change nothing. Use it also for the many requests that the
   * page sends while the user drags something: with `act`, they would fill the log.
   * @template T
   * @param {string} path
   * @param {unknown} json
   * @param {Action["query"]} [query]
   * @returns {Promise<T>}
   */
  async ask(path, json, query = {}) {
    const { content } = await this.#fetch(this.addressed({ title: "", method: "POST", path, json, query }));
    return /** @type {T} */ (content);
  }

  /**
   * A program, in the chosen language, that performs all actions of the log that succeeded.
   * @returns {string}
   */
  program() {
    const done = this.log.value.filter(({ status }) => status >= 200 && status < 300);
    const actions = done.map(({ action }) => action).reverse();
    return program(language.value, actions, location.origin, this.#tokens);
  }

  /**
   * Copies the code for an action, in the chosen language, to the clipboard.
   * @param {Action} action
   */
  async copy(action) {
    const command = code(language.value, action, location.origin, this.#tokens);
    await copyText(command);
    this.onCopied(command);
  }

  /**
   * The action with the selected emulator in its query.
   * @type {(action: Action) => Action}
   */
  addressed(action) {
    const emulator = this.emulator.value;
    // The list of all emulators is not about the selected one, which may be unknown to the server.
    const isAboutAll = action.path === "/v1/emulators";
    if (emulator === undefined || action.query?.emulator !== undefined || isAboutAll) return action;
    return { ...action, query: { ...action.query, emulator } };
  }

  /**
   * A path on this server for the selected emulator, for example for a picture.
   * @type {(path: string, query?: NonNullable<Action["query"]>) => string}
   */
  url(path, query = {}) {
    return target(this.addressed({ title: "", method: "GET", path, query }));
  }

  /**
   * The address of a WebSocket on this server.
   * @type {(path: string, query?: NonNullable<Action["query"]>) => string}
   */
  socketUrl(path, query = {}) {
    const url = new URL(this.url(path, query), location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url.href;
  }

  /** Finds out whether programs need a token. It sends no cookies, because the cookie of a login replaces the token. */
  async probe() {
    const response = await fetch("/v1/emulators", { credentials: "omit" });
    this.#tokens = response.status === 401;
  }

  #tokens = false;

  /** @type {(action: Action) => Promise<{status: number, content: unknown}>} */
  async #fetch(action) {
    /** @type {RequestInit} */
    const init = { method: action.method, keepalive: action.isUrgent === true };
    if (!action.isLong) init.signal = AbortSignal.timeout(TIMEOUT_MS);
    if (action.json !== undefined) {
      init.body = JSON.stringify(action.json);
      init.headers = { "Content-Type": "application/json" };
    } else if (action.file) {
      init.body = action.file;
      init.headers = { "Content-Type": "application/octet-stream" };
    }
    /** @type {Response} */
    let response;
    try {
      response = await fetch(target(action), init);
    } catch {
      throw new ApiError("the server did not answer", 0);
    }
    this.locked.set(response.status === 401);
    /** @type {unknown} */
    let content;
    try {
      content = response.ok ? await contentOf(response) : await refusal(response);
    } catch {
      throw new ApiError("the server's answer was cut off", 0);
    }
    if (content instanceof ApiError) throw content;
    return { status: response.status, content };
  }
}

/** @type {(response: Response) => Promise<unknown>} */
async function contentOf(response) {
  const type = response.headers.get("Content-Type") ?? "";
  if (response.status === 204) return undefined;
  if (type.includes("json")) return response.json();
  if (type.startsWith("text/")) return response.text();
  return response.blob();
}

/**
 * The error in a response (RFC 9457).
 * @type {(response: Response) => Promise<ApiError>}
 */
async function refusal(response) {
  const text = await response.text();
  try {
    const problem = /** @type {{ title?: string, detail?: string }} */ (JSON.parse(text));
    return new ApiError(problem.detail ?? problem.title ?? text, response.status);
  } catch {
    return new ApiError(text || response.statusText, response.status);
  }
}

/**
 * Copies with the clipboard API, or with a text selection if that fails. For example, pages that come from another
 * machine over plain HTTP have no clipboard API.
 * @param {string} text
 * @throws {ApiError} if the browser did not copy it.
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    if (!copied) throw new ApiError("this browser did not copy the text", 0);
  }
}
