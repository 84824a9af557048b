/** The server's HTTP interface: what users do by it, and what the page reads. */

import { curl, target } from "./curl.js";
import { Store } from "./store.js";

/** @import { Action, Method } from "./curl.js" */

/**
 * A refusal as the server words it (RFC 9457).
 * @typedef {object} Problem
 * @property {string} title
 * @property {number} status
 * @property {string} [detail]
 */

/** A request that was refused, or that reached no server. */
export class ApiError extends Error {
  /**
   * 0 if there was no answer.
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

/** An action that was copied as a command instead of done. */
export class Copied extends Error {}

/**
 * One action that was done, for the log.
 * @typedef {object} Done
 * @property {Date} at
 * @property {Action} action
 * @property {number} status 0 if there was no answer.
 * @property {number} milliseconds
 * @property {string} [problem] What went wrong.
 */

/** How many actions the log keeps. */
const LOG_LENGTH = 100;

/** After so long without an answer a request counts as lost; the server's own deadline is far shorter. */
const PATIENCE_MS = 20_000;

export class Api {
  /** @readonly The emulator that is acted on; `undefined` is the server's first. */
  emulator = new Store(/** @type {string | undefined} */ (undefined));
  /** @readonly Whether actions are copied as commands rather than done. */
  copying = new Store(false);
  /** @readonly The last actions, the newest first. */
  log = new Store(/** @type {readonly Done[]} */ ([]));
  /** @readonly Whether the server wants a token that this browser has not shown. */
  locked = new Store(false);
  /**
   * Called with each command that was copied.
   * @type {(command: string) => void}
   */
  onCopied = () => {};

  /**
   * Does what a user asked for, or copies it as a command.
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
      /** @type {Done} */
      const done = {
        at: new Date(),
        action: addressed,
        status,
        milliseconds: performance.now() - begun,
      };
      if (problem !== undefined) done.problem = problem;
      this.log.set([done, ...this.log.value].slice(0, LOG_LENGTH));
    };
    try {
      const response = await this.#fetch(addressed);
      note(response.status);
      return /** @type {T} */ (await content(response));
    } catch (error) {
      if (error instanceof ApiError) note(error.status, error.message);
      throw error;
    }
  }

  /**
   * Reads something for the page itself; it is no action and is not logged.
   * @template T
   * @param {string} path
   * @param {Action["query"]} [query]
   * @returns {Promise<T>}
   */
  async read(path, query = {}) {
    return /** @type {T} */ (
      await content(await this.#fetch(this.addressed({ title: "", method: "GET", path, query })))
    );
  }

  /**
   * As [`read`], with a body; still only for what changes nothing.
   * @template T
   * @param {string} path
   * @param {unknown} json
   * @param {Method} [method]
   * @returns {Promise<T>}
   */
  async ask(path, json, method = "POST") {
    return /** @type {T} */ (
      await content(await this.#fetch(this.addressed({ title: "", method, path, json })))
    );
  }

  /**
   * The command for an action, on the chosen emulator.
   * @param {Action} action
   * @returns {string}
   */
  command(action) {
    return curl(action, location.origin, this.#tokens);
  }

  /**
   * Puts the command for an action on the clipboard.
   * @param {Action} action
   */
  async copy(action) {
    const command = this.command(action);
    await copyText(command);
    this.onCopied(command);
  }

  /**
   * The action, naming the chosen emulator.
   * @param {Action} action
   * @returns {Action}
   */
  addressed(action) {
    const emulator = this.emulator.value;
    if (emulator === undefined || action.query?.emulator !== undefined) return action;
    return { ...action, query: { ...action.query, emulator } };
  }

  /**
   * A path of this server for pictures and sockets.
   * @param {string} path
   * @param {NonNullable<Action["query"]>} [query]
   * @returns {string}
   */
  url(path, query = {}) {
    return target(this.addressed({ title: "", method: "GET", path, query }));
  }

  /**
   * The address of a WebSocket on this server.
   * @param {string} path
   * @param {NonNullable<Action["query"]>} [query]
   * @returns {string}
   */
  socketUrl(path, query = {}) {
    const url = new URL(this.url(path, query), location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url.href;
  }

  /** Finds out whether programs need a token here; this browser may have shown one, in a cookie that no page can see. */
  async probe() {
    const response = await fetch("/v1/emulators", { credentials: "omit" });
    this.#tokens = response.status === 401;
  }

  #tokens = false;

  /**
   * @param {Action} action
   * @returns {Promise<Response>}
   */
  async #fetch(action) {
    /** @type {RequestInit} */
    const init = { method: action.method, signal: AbortSignal.timeout(PATIENCE_MS) };
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
    if (!response.ok) throw await refusal(response);
    return response;
  }
}

/**
 * @param {Response} response
 * @returns {Promise<unknown>}
 */
async function content(response) {
  const type = response.headers.get("Content-Type") ?? "";
  if (response.status === 204) return undefined;
  if (type.includes("json")) return response.json();
  if (type.startsWith("text/")) return response.text();
  return response.blob();
}

/**
 * @param {Response} response
 * @returns {Promise<ApiError>}
 */
async function refusal(response) {
  const text = await response.text();
  try {
    const problem = /** @type {Partial<Problem>} */ (JSON.parse(text));
    return new ApiError(problem.detail ?? problem.title ?? text, response.status);
  } catch {
    return new ApiError(text || response.statusText, response.status);
  }
}

/**
 * Copies by the clipboard where the page may, else by a selected text: plain HTTP to another machine has none.
 * @param {string} text
 */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
