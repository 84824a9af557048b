/** A stock mGBA in a window, with the demo game and our script: `crates/lab/examples/window.rs`. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { repository } from "./server.ts";

const PROGRAM = process.env.FRAMEWIRE_WINDOW ?? repository("target/debug/examples/window");

export class Window {
  /** The address at which its script listens. */
  address = "";
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;

  private constructor() {
    this.#process = spawn(PROGRAM, [], { stdio: ["pipe", "pipe", "inherit"] });
    this.#lines = createInterface(this.#process.stdout)[Symbol.asyncIterator]();
  }

  static async open(): Promise<Window> {
    const window = new Window();
    window.address = (await window.#line()).replace("attach ", "");
    return window;
  }

  /** Pauses or resumes mGBA in its window, as a user would. */
  async send(command: "pause" | "resume"): Promise<void> {
    this.#process.stdin.write(`${command}\n`);
    await this.#line();
  }

  async close(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, "exit");
    this.#process.stdin.end();
    await ended;
  }

  async #line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`${PROGRAM} has ended`);
    return value;
  }
}
