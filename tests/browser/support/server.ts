/** A running Framewire server. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createHttp } from "node:http";
import { type AddressInfo, createServer, type Server as NetServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const ROOT = join(__dirname, "../../..");
/** The program. The path is absolute, because the program runs in a folder of its own. */
export const PROGRAM = resolve(process.env.FRAMEWIRE_BIN ?? join(ROOT, "target/debug/framewire"));

/** How long the start may take, including the wait for an emulator. */
const START_MS = 60_000;

/** A part of the answer of `/v1/emulator`. */
interface State {
  frame: number;
  run: string;
  title: string;
  speed: number | "unlimited";
  lockstep: boolean;
}

export class Server {
  readonly url: string;
  /** Its working folder. */
  readonly folder: string;
  readonly #process: ChildProcess;

  private constructor(url: string, folder: string, process: ChildProcess) {
    this.url = url;
    this.folder = folder;
    this.#process = process;
  }

  /** Starts `framewire serve` with these arguments, by default on a free port, and waits until it is ready. */
  static async start(args: readonly string[] = ["--speed", "1"], listen = "127.0.0.1:0"): Promise<Server> {
    const folder = mkdtempSync(join(tmpdir(), "framewire-browser-"));
    const all = ["serve", "--listen", listen, "--quiet", ...args];
    const child = spawn(PROGRAM, all, {
      cwd: folder,
      // The folder for snapshots and recordings, and the one for the demo game, which a killed server does not remove.
      env: { ...process.env, XDG_DATA_HOME: folder, TMPDIR: folder },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const url = await firstMatch(child, /listening on (\S+)/);
      return new Server(url, folder, child);
    } catch (error) {
      child.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** Ends the server with SIGKILL. Its folder remains until `stop`. */
  async kill(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const ended = once(this.#process, "exit");
      this.#process.kill("SIGKILL");
      await ended;
    }
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Sends a GET, or a POST if there is a body, and returns the JSON of the reply. Fails unless the reply is a success. */
  async json<T>(path: string, body?: unknown): Promise<T> {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(this.url + path, init);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** The state of the first emulator. */
  async state(): Promise<State> {
    return this.json("/v1/emulator");
  }

  /** Runs operations in order and returns their values. */
  async batch(...ops: object[]): Promise<unknown[]> {
    const { results } = await this.json<{ results: { value: unknown }[] }>("/v1/batch", { ops });
    return results.map(({ value }) => value);
  }

  /** Resets the demo game and pauses it in this frame, so that its state is always the same. */
  async holdAt(frame: number): Promise<void> {
    await this.batch({ op: "pause" }, { op: "reset" }, { op: "advance", frames: frame });
  }
}

/** The first port of the range of `freePort`. By default, Linux uses no port of this range for outgoing connections. */
const FIRST_PORT = 20_000;
const PORTS = 12_000;
/** Chooses the next port to try. Its first value depends on the process, so that processes try different ports. */
let nextPort = process.pid * 197;

/** A port on which nothing listens at 127.0.0.1. In one process, it is a different one each time. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < PORTS; attempt += 1) {
    const port = FIRST_PORT + (nextPort % PORTS);
    nextPort += 1;
    const probe = createServer();
    const isFree = await new Promise<boolean>((answer) => {
      probe.once("error", () => answer(false));
      probe.listen(port, "127.0.0.1", () => answer(true));
    });
    if (!isFree) continue;
    await new Promise((closed) => probe.close(closed));
    return port;
  }
  throw new Error("no port is free");
}

/** Lets a server listen on a free port, and returns the port. */
export async function listen(server: NetServer): Promise<number> {
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return (server.address() as AddressInfo).port;
}

/** Serves an empty page on another port, so that its origin differs from that of the Framewire server. */
export async function foreignSite(): Promise<{ site: NetServer; port: number }> {
  const site = createHttp((_, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end("<!doctype html><title>Foreign</title><body></body>");
  });
  return { site, port: await listen(site) };
}

/**
 * Waits for a line of a program's output that matches, and returns the first group of the match. Fails if the program
 * ends or the time runs out.
 */
async function firstMatch(child: ChildProcess, pattern: RegExp): Promise<string> {
  return new Promise((found, refuse) => {
    const timer = setTimeout(() => refuse(new Error(`${PROGRAM} was not ready`)), START_MS);
    child.on("error", refuse);
    child.on("exit", (code) => refuse(new Error(`${child.spawnfile} ended with ${code}`)));
    if (!child.stdout) return;
    createInterface(child.stdout).on("line", (line) => {
      const match = pattern.exec(line);
      if (!match?.[1]) return;
      clearTimeout(timer);
      found(match[1]);
    });
  });
}

/** The path of a file of the repository. */
export function repository(path: string): string {
  return join(ROOT, path);
}

/** The demo game with another title. */
export function demoTitled(title: string): Buffer {
  const rom = readFileSync(repository("rom/framewire-demo.gba"));
  rom.write(title, 0xa0, "latin1");
  return rom;
}

/** Arguments for a server with emulators of these names. Each has its own copy of the demo game, in this folder. */
export function demoCopies(folder: string, names: readonly string[]): string[] {
  return names.flatMap((name) => {
    const rom = join(folder, `${name}.gba`);
    copyFileSync(repository("rom/framewire-demo.gba"), rom);
    return ["--rom", `${name}=${rom}`];
  });
}
