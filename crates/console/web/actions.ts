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

export const SNAPSHOTS = "/v1/snapshots";

const snapshot = (name: string, rest = ""): string => `${SNAPSHOTS}/${encodeURIComponent(name)}${rest}`;

/** Path of a snapshot's picture. */
export const snapshotPicture = (name: string): string => snapshot(name, "/picture");

/** Without a name the server takes the time. */
export const saveSnapshot = (name: string): Action => ({
  title: `Save snapshot ${name}`.trim(),
  method: "POST",
  path: SNAPSHOTS,
  json: name === "" ? {} : { name },
});

export const loadSnapshot = (name: string): Action => ({
  title: `Load snapshot ${name}`,
  method: "POST",
  path: snapshot(name, "/load"),
});

export const renameSnapshot = (name: string, other: string): Action => ({
  title: `Rename snapshot ${name}`,
  method: "PATCH",
  path: snapshot(name),
  json: { name: other },
});

export const deleteSnapshot = (name: string): Action => ({
  title: `Delete snapshot ${name}`,
  method: "DELETE",
  path: snapshot(name),
});

export const RECORDINGS = "/v1/recordings";
/** The recording under way. */
export const RECORDING = "/v1/recording";
/** The replay under way. */
export const REPLAY = "/v1/replay";

const recording = (name: string, rest = ""): string => `${RECORDINGS}/${encodeURIComponent(name)}${rest}`;

/** What a recording is called as a file. */
export const recordingFile = (name: string): string => `${name}.fwr`;

export const startRecording = (name: string): Action => ({
  title: `Record ${name}`,
  method: "POST",
  path: RECORDINGS,
  json: { name },
});

export const stopRecording = (): Action => ({ title: "Stop recording", method: "DELETE", path: RECORDING });

/** Begins a replay at so many times the console's speed, or as fast as it goes. */
export const replay = (name: string, speed: number | undefined): Action => ({
  title: `Replay ${name}`,
  method: "POST",
  path: recording(name, "/replay"),
  json: { ...(speed === undefined ? {} : { speed }), wait: false },
});

export const cancelReplay = (): Action => ({ title: "Cancel the replay", method: "DELETE", path: REPLAY });

export const downloadRecording = (name: string): Action => ({
  title: `Download ${name}`,
  method: "GET",
  path: recording(name, "/file"),
  output: recordingFile(name),
});

export const deleteRecording = (name: string): Action => ({
  title: `Delete recording ${name}`,
  method: "DELETE",
  path: recording(name),
});
