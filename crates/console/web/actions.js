/** The actions of the page. Each action is one HTTP request, so users can also copy it as a command or a program. */

/**
 * @import { Action } from "./curl.js"
 * @import { Key } from "./keys.js"
 */

/**
 * Path of an entry of a list, such as a snapshot, or of a part of the entry.
 * @type {(list: string, name: string, part?: string) => string}
 */
const pathIn = (list, name, part = "") => `${list}/${encodeURIComponent(name)}${part}`;

/** @returns {Action} */
export const pause = () => ({ title: "Pause", method: "POST", path: "/v1/pause" });

/** @returns {Action} */
export const resume = () => ({ title: "Resume", method: "POST", path: "/v1/resume" });

/** @returns {Action} */
export const reset = () => ({ title: "Reset", method: "POST", path: "/v1/reset" });

/** @type {(frames: number) => Action} */
export const advance = (frames) => ({
  title: frames === 1 ? "Advance one frame" : `Advance ${frames} frames`,
  method: "POST",
  path: "/v1/advance",
  json: { frames },
});

/**
 * Goes back to a frame of the history. A line is a sequence of frames in the history without a gap.
 * @type {(frame: number, line: number) => Action}
 */
export const rewind = (frame, line) => ({
  title: `Go back to frame ${frame}`,
  method: "POST",
  path: "/v1/rewind",
  json: { frame, line },
});

/**
 * Starts lockstep, in which frames run only when a request needs them, such as `advance` or a replay. Lockstep ends
 * after `timeout` milliseconds without a request.
 * @type {(timeout: number) => Action}
 */
export const lockstep = (timeout) => ({
  title: "Lockstep",
  method: "POST",
  path: "/v1/lockstep",
  json: { timeout },
});

/**
 * Sets the speed: a multiple of the console's speed, or as fast as possible.
 * @type {(times: number | "unlimited") => Action}
 */
export const speed = (times) => ({
  title: `Speed ${times === "unlimited" ? times : `${times}×`}`,
  method: "POST",
  path: "/v1/speed",
  json: { speed: times },
});

/** @returns {Action} */
export const screenshot = () => ({
  title: "Save the picture",
  method: "GET",
  path: "/v1/screen",
  output: "screen.png",
});

/**
 * Holds keys for a number of frames.
 * @type {(keys: readonly Key[], frames: number) => Action}
 */
export const tap = (keys, frames) => ({
  title: `Tap ${keys.join("+")}`,
  method: "POST",
  path: "/v1/tap",
  json: { keys, frames },
});

/**
 * Plays a sequence of key presses, such as `A:2 .:10 Up+B:30`.
 * @type {(sequence: string) => Action}
 */
export const play = (sequence) => ({
  title: "Play a sequence",
  method: "POST",
  path: "/v1/input",
  query: { wait: true },
  json: { sequence },
});

/**
 * Ends all sequences and holds.
 * @returns {Action}
 */
export const cancelInput = () => ({ title: "Cancel input", method: "DELETE", path: "/v1/input" });

/**
 * Writes a number; `domain` is empty for the bus.
 * @type {(domain: string, address: string, value: number, type: string) => Action}
 */
export const write = (domain, address, value, type) => ({
  title: `Write ${value} to ${domain === "" ? "" : `${domain}:`}${address}`,
  method: "POST",
  path: "/v1/batch",
  json: { ops: [{ op: "write", address, type, value, ...(domain === "" ? {} : { domain }) }] },
});

/** Path of the frozen values. */
export const FREEZE = "/v1/freeze";

/**
 * Freezes the value at an address: the emulator writes this number there now, and again after each frame.
 * @type {(address: string, value: number, type: string) => Action}
 */
export const freeze = (address, value, type) => ({
  title: `Freeze ${address} at ${value}`,
  method: "PUT",
  path: pathIn(FREEZE, address),
  json: { value, type },
});

/** @type {(address: string) => Action} */
export const unfreeze = (address) => ({
  title: `Unfreeze ${address}`,
  method: "DELETE",
  path: pathIn(FREEZE, address),
});

/** @type {(type: string) => Action} */
export const startSearch = (type) => ({
  title: `Search for a ${type}`,
  method: "POST",
  path: "/v1/search",
  json: { type },
});

/**
 * Keeps the candidates of a search that pass a test, such as `greater`.
 * @type {(id: number, is: string, value: number | undefined) => Action}
 */
export const narrowSearch = (id, is, value) => ({
  title: `Keep what is ${is.replaceAll("_", " ")}${value === undefined ? "" : ` ${value}`}`,
  method: "POST",
  path: `/v1/search/${id}/narrow`,
  json: value === undefined ? { is } : { is, value },
});

/** @type {(id: number) => Action} */
export const undoSearch = (id) => ({
  title: "Undo a step of the search",
  method: "POST",
  path: `/v1/search/${id}/undo`,
});

/** @type {(id: number) => Action} */
export const endSearch = (id) => ({
  title: "End the search",
  method: "DELETE",
  path: `/v1/search/${id}`,
});

/** Path of the snapshots. */
export const SNAPSHOTS = "/v1/snapshots";

/**
 * Path of a snapshot's picture.
 * @type {(name: string) => string}
 */
export const snapshotPicture = (name) => pathIn(SNAPSHOTS, name, "/picture");

/**
 * Saves a snapshot. If the name is empty, the server makes a name from the time.
 * @type {(name: string) => Action}
 */
export const saveSnapshot = (name) => ({
  title: `Save snapshot ${name}`.trim(),
  method: "POST",
  path: SNAPSHOTS,
  json: name === "" ? {} : { name },
});

/**
 * Saves a slot, which is a snapshot that replaces the older snapshot with the same name.
 * @type {(name: string) => Action}
 */
export const saveSlot = (name) => ({
  title: `Save ${name}`,
  method: "POST",
  path: SNAPSHOTS,
  json: { name, replace: true },
});

/** @type {(file: Blob) => Action} */
export const loadState = (file) => ({ title: "Load a state", method: "PUT", path: "/v1/state", file });

/** @returns {Action} */
export const batterySave = () => ({
  title: "Download the battery save",
  method: "GET",
  path: "/v1/save",
  output: "game.sav",
});

/** @type {(file: Blob) => Action} */
export const loadBatterySave = (file) => ({
  title: "Load a battery save",
  method: "PUT",
  path: "/v1/save",
  file,
});

/** @type {(name: string, file: Blob, replace: boolean) => Action} */
export const uploadRom = (name, file, replace) => ({
  title: `Play ${name}`,
  method: "PUT",
  path: "/v1/rom",
  query: replace ? { name, replace } : { name },
  file,
});

/** @type {(name: string) => Action} */
export const loadSnapshot = (name) => ({
  title: `Load snapshot ${name}`,
  method: "POST",
  path: pathIn(SNAPSHOTS, name, "/load"),
});

/** @type {(name: string, newName: string) => Action} */
export const renameSnapshot = (name, newName) => ({
  title: `Rename snapshot ${name}`,
  method: "PATCH",
  path: pathIn(SNAPSHOTS, name),
  json: { name: newName },
});

/** @type {(name: string) => Action} */
export const deleteSnapshot = (name) => ({
  title: `Delete snapshot ${name}`,
  method: "DELETE",
  path: pathIn(SNAPSHOTS, name),
});

/** Path of the recordings. */
export const RECORDINGS = "/v1/recordings";

/** @type {(name: string, file: Blob) => Action} */
export const uploadRecording = (name, file) => ({
  title: `Add recording ${name}`,
  method: "PUT",
  path: pathIn(RECORDINGS, name, "/file"),
  file,
});

/** Path of the current recording. */
export const RECORDING = "/v1/recording";
/** Path of the current replay. */
export const REPLAY = "/v1/replay";

/**
 * Starts a recording. With `replace`, it replaces an older recording with this name.
 * @type {(name: string, replace: boolean) => Action}
 */
export const startRecording = (name, replace) => ({
  title: `Record ${name}`,
  method: "POST",
  path: RECORDINGS,
  json: replace ? { name, replace } : { name },
});

/** @returns {Action} */
export const stopRecording = () => ({ title: "Stop recording", method: "DELETE", path: RECORDING });

/**
 * Starts a replay at a multiple of the console's speed, or as fast as possible if `speed` is `undefined`.
 * @type {(name: string, speed: number | undefined) => Action}
 */
export const replay = (name, speed) => ({
  title: `Replay ${name}`,
  method: "POST",
  path: pathIn(RECORDINGS, name, "/replay"),
  json: { ...(speed === undefined ? {} : { speed }), wait: false },
});

/** @returns {Action} */
export const cancelReplay = () => ({ title: "Cancel the replay", method: "DELETE", path: REPLAY });

/** @type {(name: string) => Action} */
export const downloadRecording = (name) => ({
  title: `Download ${name}`,
  method: "GET",
  path: pathIn(RECORDINGS, name, "/file"),
  output: `${name}.fwr`,
});

/** @type {(name: string) => Action} */
export const deleteRecording = (name) => ({
  title: `Delete recording ${name}`,
  method: "DELETE",
  path: pathIn(RECORDINGS, name),
});
