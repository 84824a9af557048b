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

/**
 * Properties of `json` that are `undefined` are not sent.
 * @type {(title: string, path: string, json?: unknown) => Action}
 */
const post = (title, path, json) => ({ title, method: "POST", path, json });

/** @type {(title: string, path: string) => Action} */
const remove = (title, path) => ({ title, method: "DELETE", path });

/** @type {(title: string, path: string, file: Blob) => Action} */
const upload = (title, path, file) => ({ title, method: "PUT", path, file, isLong: true });

/** @type {(title: string, path: string, output: string) => Action} */
const download = (title, path, output) => ({ title, method: "GET", path, output });

export const pause = () => post("Pause", "/v1/pause");

export const resume = () => ({ ...post("Resume", "/v1/resume"), isUrgent: true });

export const reset = () => post("Reset", "/v1/reset");

/** @param {number} frames */
export const advance = (frames) => ({
  ...post(frames === 1 ? "Advance one frame" : `Advance ${frames} frames`, "/v1/advance", { frames }),
  isLong: true,
});

/**
 * Goes back to a frame of the history. A line is a part of the history in which no frames are missing.
 * @type {(frame: number, line: number) => Action}
 */
export const rewind = (frame, line) => post(`Go back to frame ${frame}`, "/v1/rewind", { frame, line });

/**
 * Starts lockstep, in which frames run only when a request needs them, such as `advance` or a replay. Lockstep ends
 * after `timeout` milliseconds without a request.
 * @param {number} timeout
 */
export const lockstep = (timeout) => post("Lockstep", "/v1/lockstep", { timeout });

/**
 * Sets the speed: a multiple of the console's speed, or as fast as possible.
 * @param {number | "unlimited"} times
 */
export const speed = (times) => ({
  ...post(`Speed ${times === "unlimited" ? times : `${times}×`}`, "/v1/speed", { speed: times }),
  isUrgent: true,
});

export const screenshot = () => download("Save the picture", "/v1/screen", "screen.png");

/**
 * Holds keys for a number of frames.
 * @type {(keys: readonly Key[], frames: number) => Action}
 */
export const tap = (keys, frames) => post(`Tap ${keys.join("+")}`, "/v1/tap", { keys, frames });

/**
 * Plays a sequence of key presses, such as `A:2 .:10 Up+B:30`.
 * @type {(sequence: string) => Action}
 */
export const play = (sequence) => ({
  ...post("Play a sequence", "/v1/input", { sequence }),
  query: { wait: true },
  isLong: true,
});

/** Ends all sequences and all holds of keys, and releases their keys. */
export const cancelInput = () => remove("Cancel input", "/v1/input");

/**
 * Writes a number; `domain` is empty for the bus.
 * @type {(domain: string, address: string, value: number, type: string) => Action}
 */
export const write = (domain, address, value, type) => ({
  title: `Write ${value} to ${domain === "" ? "" : `${domain}:`}${address}`,
  method: "PUT",
  path: pathIn("/v1/memory", address),
  query: { domain: domain === "" ? undefined : domain },
  json: { value, type },
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

/** @param {string} address */
export const unfreeze = (address) => remove(`Unfreeze ${address}`, pathIn(FREEZE, address));

/** @param {string} type */
export const startSearch = (type) => post(`Search for a ${type}`, "/v1/search", { type });

/**
 * Keeps the candidates of a search that pass a test, such as `greater`.
 * @type {(id: number, is: string, value: number | undefined) => Action}
 */
export const narrowSearch = (id, is, value) =>
  post(
    `Keep what is ${is.replaceAll("_", " ")}${value === undefined ? "" : ` ${value}`}`,
    `/v1/search/${id}/narrow`,
    { is, value },
  );

/** @param {number} id */
export const undoSearch = (id) => post("Undo a step of the search", `/v1/search/${id}/undo`);

/** @param {number} id */
export const endSearch = (id) => remove("End the search", `/v1/search/${id}`);

/** Path of the snapshots. */
export const SNAPSHOTS = "/v1/snapshots";

/**
 * Path of a snapshot's picture.
 * @param {string} name
 */
export const snapshotPicture = (name) => pathIn(SNAPSHOTS, name, "/picture");

/**
 * Saves a snapshot. With `replace`, it replaces an older snapshot with this name.
 * @type {(name: string, replace: boolean) => Action}
 */
export const saveSnapshot = (name, replace) =>
  post(`Save snapshot ${name}`, SNAPSHOTS, replace ? { name, replace } : { name });

/**
 * Saves a slot, which is a snapshot that replaces the older snapshot with the same name.
 * @param {string} name
 */
export const saveSlot = (name) => post(`Save ${name}`, SNAPSHOTS, { name, replace: true });

/** @param {Blob} file */
export const loadState = (file) => upload("Load a state", "/v1/state", file);

export const batterySave = () => download("Download the battery save", "/v1/save", "game.sav");

/** @param {Blob} file */
export const loadBatterySave = (file) => upload("Load a battery save", "/v1/save", file);

/** @type {(name: string, file: Blob, replace: boolean) => Action} */
export const uploadRom = (name, file, replace) => ({
  ...upload(`Play ${name}`, "/v1/rom", file),
  query: replace ? { name, replace } : { name },
});

/** @param {string} name */
export const loadSnapshot = (name) => post(`Load snapshot ${name}`, pathIn(SNAPSHOTS, name, "/load"));

/** @type {(name: string, newName: string) => Action} */
export const renameSnapshot = (name, newName) => ({
  title: `Rename snapshot ${name}`,
  method: "PATCH",
  path: pathIn(SNAPSHOTS, name),
  json: { name: newName },
});

/** @param {string} name */
export const deleteSnapshot = (name) => remove(`Delete snapshot ${name}`, pathIn(SNAPSHOTS, name));

/** Path of the recordings. */
export const RECORDINGS = "/v1/recordings";

/** @type {(name: string, file: Blob, replace: boolean) => Action} */
export const uploadRecording = (name, file, replace) => ({
  ...upload(`Add recording ${name}`, pathIn(RECORDINGS, name, "/file"), file),
  query: replace ? { replace } : {},
});

/** Path of the current recording. */
export const RECORDING = "/v1/recording";
/** Path of the current replay. */
export const REPLAY = "/v1/replay";

/**
 * Starts a recording. With `replace`, it replaces an older recording with this name.
 * @type {(name: string, replace: boolean) => Action}
 */
export const startRecording = (name, replace) =>
  post(`Record ${name}`, RECORDINGS, replace ? { name, replace } : { name });

export const stopRecording = () => remove("Stop recording", RECORDING);

/**
 * Starts a replay at a multiple of the console's speed, or as fast as possible if `speed` is `undefined`. After the
 * replay, the emulator has its earlier state and battery save again.
 * @type {(name: string, speed: number | undefined) => Action}
 */
export const replay = (name, speed) =>
  post(`Replay ${name}`, pathIn(RECORDINGS, name, "/replay"), { speed, restore: true, wait: false });

export const cancelReplay = () => remove("Cancel the replay", REPLAY);

/** @param {string} name */
export const downloadRecording = (name) => ({
  ...download(`Download ${name}`, pathIn(RECORDINGS, name, "/file"), `${name}.fwr`),
  isLong: true,
});

/** @param {string} name */
export const deleteRecording = (name) => remove(`Delete recording ${name}`, pathIn(RECORDINGS, name));
