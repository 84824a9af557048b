/** The server's HTTP interface: what users do by it, and what the page reads. */

import { type Action, curl, type Method, target } from "./curl.ts";
import { Store } from "./store.ts";

/** A refusal as the server words it (RFC 9457). */
export interface Problem {
  title: string;
  status: number;
  detail?: string;
}

/** A request that was refused, or that reached no server. */
export class ApiError extends Error {
  /** 0 if there was no answer. */
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** An action that was copied as a command instead of done. */
export class Copied extends Error {}

/** One action that was done, for the log. */
export interface Done {
  at: Date;
  action: Action;
  /** 0 if there was no answer. */
  status: number;
  milliseconds: number;
  /** What went wrong. */
  problem?: string;
}

/** How many actions the log keeps. */
const LOG_LENGTH = 100;

/** After so long without an answer a request counts as lost; the server's own deadline is far shorter. */
const PATIENCE_MS = 20_000;

export class Api {
  /** The emulator that is acted on; `undefined` is the server's first. */
  readonly emulator = new Store<string | undefined>(undefined);
  /** Whether actions are copied as commands rather than done. */
  readonly copying = new Store(false);
  /** The last actions, the newest first. */
  readonly log = new Store<readonly Done[]>([]);
  /** Whether the server wants a token that this browser has not shown. */
  readonly locked = new Store(false);
  /** Called with each command that was copied. */
  onCopied: (command: string) => void = () => {};

  /** Does what a user asked for, or copies it as a command. */
  async act<T>(action: Action): Promise<T> {
    const addressed = this.addressed(action);
    if (this.copying.value) {
      await this.copy(addressed);
      throw new Copied();
    }
    const begun = performance.now();
    const note = (status: number, problem?: string): void => {
      const done: Done = {
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
      return (await content(response)) as T;
    } catch (error) {
      if (error instanceof ApiError) note(error.status, error.message);
      throw error;
    }
  }

  /** Reads something for the page itself; it is no action and is not logged. */
  async read<T>(path: string, query: Action["query"] = {}): Promise<T> {
    return (await content(await this.#fetch(this.addressed({ title: "", method: "GET", path, query })))) as T;
  }

  /** As [`read`], with a body; still only for what changes nothing. */
  async ask<T>(path: string, json: unknown, method: Method = "POST"): Promise<T> {
    return (await content(await this.#fetch(this.addressed({ title: "", method, path, json })))) as T;
  }

  /** The command for an action, on the chosen emulator. */
  command(action: Action): string {
    return curl(action, location.origin, this.#tokens);
  }

  /** Puts the command for an action on the clipboard. */
  async copy(action: Action): Promise<void> {
    const command = this.command(action);
    await copyText(command);
    this.onCopied(command);
  }

  /** The action, naming the chosen emulator. */
  addressed(action: Action): Action {
    const emulator = this.emulator.value;
    if (emulator === undefined || action.query?.emulator !== undefined) return action;
    return { ...action, query: { ...action.query, emulator } };
  }

  /** A path of this server for pictures and sockets. */
  url(path: string, query: NonNullable<Action["query"]> = {}): string {
    return target(this.addressed({ title: "", method: "GET", path, query }));
  }

  /** The address of a WebSocket on this server. */
  socketUrl(path: string, query: NonNullable<Action["query"]> = {}): string {
    const url = new URL(this.url(path, query), location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url.href;
  }

  /** Finds out whether programs need a token here; this browser may have shown one, in a cookie that no page can see. */
  async probe(): Promise<void> {
    const response = await fetch("/v1/emulators", { credentials: "omit" });
    this.#tokens = response.status === 401;
  }

  #tokens = false;

  async #fetch(action: Action): Promise<Response> {
    const init: RequestInit = { method: action.method, signal: AbortSignal.timeout(PATIENCE_MS) };
    if (action.json !== undefined) {
      init.body = JSON.stringify(action.json);
      init.headers = { "Content-Type": "application/json" };
    } else if (action.file) {
      init.body = action.file;
      init.headers = { "Content-Type": "application/octet-stream" };
    }
    let response: Response;
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

async function content(response: Response): Promise<unknown> {
  const type = response.headers.get("Content-Type") ?? "";
  if (response.status === 204) return undefined;
  if (type.includes("json")) return response.json();
  if (type.startsWith("text/")) return response.text();
  return response.blob();
}

async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const problem = JSON.parse(text) as Partial<Problem>;
    return new ApiError(problem.detail ?? problem.title ?? text, response.status);
  } catch {
    return new ApiError(text || response.statusText, response.status);
  }
}

/** Copies by the clipboard where the page may, else by a selected text: plain HTTP to another machine has none. */
async function copyText(text: string): Promise<void> {
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
