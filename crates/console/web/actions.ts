/** What a user can ask of the server, each as one request: the same that "copy as curl" gives. */

import type { Action } from "./curl.ts";
import type { Key } from "./keys.ts";

export const pause = (): Action => ({ title: "Pause", method: "POST", path: "/v1/pause" });

export const resume = (): Action => ({ title: "Resume", method: "POST", path: "/v1/resume" });

export const reset = (): Action => ({ title: "Reset", method: "POST", path: "/v1/reset" });

export const advance = (frames: number): Action => ({
  title: frames === 1 ? "Advance one frame" : `Advance ${frames} frames`,
  method: "POST",
  path: "/v1/advance",
  json: { frames },
});

/** Each frame waits for [`advance`]; it ends by itself after `timeout` milliseconds without one. */
export const lockstep = (timeout: number): Action => ({
  title: "Lockstep",
  method: "POST",
  path: "/v1/lockstep",
  json: { timeout },
});

/** Times the console's speed, or as fast as it goes. */
export const speed = (times: number | "unlimited"): Action => ({
  title: `Speed ${times === "unlimited" ? times : `${times}×`}`,
  method: "POST",
  path: "/v1/speed",
  json: { speed: times },
});

export const screenshot = (): Action => ({
  title: "Save the picture",
  method: "GET",
  path: "/v1/screen",
  output: "screen.png",
});

export const tap = (keys: readonly Key[], frames: number): Action => ({
  title: `Tap ${keys.join("+")}`,
  method: "POST",
  path: "/v1/tap",
  json: { keys, frames },
});

/** A sequence of presses, such as `A:2 .:10 Up+B:30`. */
export const play = (sequence: string): Action => ({
  title: "Play a sequence",
  method: "POST",
  path: "/v1/input",
  query: { wait: true },
  json: { sequence },
});

/** Ends all sequences and holds. */
export const cancelInput = (): Action => ({ title: "Cancel input", method: "DELETE", path: "/v1/input" });

/** Writes a number; `domain` is empty for the bus. */
export const write = (domain: string, address: string, value: number, type: string): Action => ({
  title: `Write ${value} to ${domain === "" ? "" : `${domain}:`}${address}`,
  method: "POST",
  path: "/v1/batch",
  json: { ops: [{ op: "write", address, type, value, ...(domain === "" ? {} : { domain }) }] },
});
