/** Loads the user's files: games, states, battery saves and recordings. Users can undo the loading of a state. */

import * as actions from "./actions.js";
import { ApiError } from "./api.js";
import { aimed, attempt, selectedName } from "./app.js";
import { button } from "./controls.js";
import { confirm } from "./dialog.js";
import { el } from "./dom.js";
import { refusals } from "./refusals.js";
import { toast } from "./toast.js";

/**
 * @import { App } from "./app.js"
 * @import { Action } from "./curl.js"
 */

/** How the file names of games end. */
const GAME = /\.(gba|agb|gb|gbc|cgb|sgb)$/i;
/** How the file names of recordings end. */
const RECORDING = /\.fwr$/i;
/** How the file names of mGBA's states end. A PNG file can also contain a state. */
const STATE = /\.(ss\d?|state|png)$/i;
/** How the file names of battery saves end. */
const SAVE = /\.(sav|srm)$/i;

/** The types of files that the browser's file dialog shows. */
const ACCEPTED =
  ".gba,.agb,.gb,.gbc,.cgb,.sgb,.fwr,.ss0,.ss1,.ss2,.ss3,.ss4,.ss5,.ss6,.ss7,.ss8,.ss9,.state,.png,.sav,.srm";

/**
 * A button that opens files, with the same effect as dropping them on the page.
 * @type {(app: App) => HTMLElement}
 */
export function fileButton(app) {
  const input = el("input", { type: "file", accept: ACCEPTED, multiple: true, hidden: true });
  input.addEventListener("change", () => {
    // The list is empty after `value` is cleared.
    void takeAll(app, [...(input.files ?? [])]);
    input.value = "";
  });
  const hint = "Open a game, a state, a battery save or a recording. You can also drop it on the page.";
  return el(
    "span",
    {},
    button({ icon: "load", label: "Open a file", hint }, () => input.click()),
    input,
  );
}

/**
 * Loads files one after the other, games first: a save or a state that comes with a game belongs to this game. If the
 * game is not loaded, the other files are not loaded either. They would go to the game that runs now. States are last,
 * because a loaded save resets the game.
 * @type {(app: App, files: readonly File[]) => Promise<void>}
 */
export async function takeAll(app, files) {
  // Another emulator may be selected while a game is uploaded.
  const emulator = selectedName(app);
  const games = files.filter(({ name }) => GAME.test(name));
  for (const game of games) if (!(await attempt(() => takeGame(app, game, emulator)))) return;
  const others = files.filter((file) => !games.includes(file));
  others.sort((a, b) => Number(STATE.test(a.name)) - Number(STATE.test(b.name)));
  for (const file of others) await attempt(() => take(app, file, emulator));
}

/**
 * Loads a file that is not a game. The extension of its name decides what kind of file it is.
 * @type {(app: App, file: File, emulator: string | undefined) => Promise<void>}
 */
async function take(app, file, emulator) {
  if (RECORDING.test(file.name)) {
    const name = serverName(file.name.replace(RECORDING, ""));
    const detail = "The server has another recording with this name.";
    if (await uploadAs(app, name, detail, (replace) => actions.uploadRecording(name, file, replace)))
      toast(`Added the recording ${name}. Replay it in Recordings.`);
    return;
  }
  if (SAVE.test(file.name)) return takeSave(app, file, emulator);
  if (STATE.test(file.name)) {
    const action = aimed(actions.loadState(file), emulator);
    return loadState(app, action, `Loaded the state ${file.name}.`, emulator);
  }
  throw new ApiError(
    `${file.name} is not a kind of file that Framewire can load; use a game (.gba, .gb, .gbc), a state (.ss1, .png), a battery save (.sav) or a recording (.fwr)`,
    0,
  );
}

/**
 * Uploads a game and loads it. Returns false if the user does not want to replace another game.
 * @type {(app: App, file: File, emulator: string | undefined) => Promise<boolean>}
 */
async function takeGame(app, file, emulator) {
  checkMayLoad(app);
  const name = serverName(file.name);
  const detail =
    "The server has another game with this name. Its battery save is kept, and the new game uses it.";
  /** @param {boolean} replace */
  const upload = (replace) => aimed(actions.uploadRom(name, file, replace), emulator);
  if (!(await uploadAs(app, name, detail, upload))) return false;
  toast(`Playing ${name}.`);
  await app.poller.refresh();
  return true;
}

/**
 * Uploads a file. If the server has a file with this name, asks whether to replace it. Returns false if the user does not
 * want that.
 * @type {(app: App, name: string, detail: string, upload: (replace: boolean) => Action) => Promise<boolean>}
 */
async function uploadAs(app, name, detail, upload) {
  try {
    await app.api.act(upload(false));
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
    if (!(await confirm(app.api, `Replace ${name}?`, detail, "Replace"))) return false;
    await app.api.act(upload(true));
  }
  return true;
}

/** @type {(app: App, file: File, emulator: string | undefined) => Promise<void>} */
async function takeSave(app, file, emulator) {
  checkMayLoad(app);
  const detail = "It replaces what this game has saved, and the game is reset. This cannot be undone.";
  if (!(await confirm(app.api, `Load ${file.name}?`, detail, "Load"))) return;
  await app.api.act(aimed(actions.loadBatterySave(file), emulator));
  toast(`Loaded the battery save ${file.name}.`);
  await app.poller.refresh();
}

/**
 * Changes a name to one that the server accepts: at most 64 characters, with a letter or a digit at its start, and no
 * dot at its end.
 * @type {(name: string) => string}
 */
function serverName(name) {
  const ending = /\.\w{1,9}$/.exec(name)?.[0] ?? "";
  const stem = name.slice(0, name.length - ending.length);
  const allowed = stem.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return (allowed.slice(0, 50).replace(/[.-]+$/, "") || "file") + ending;
}

/**
 * Performs an action that loads a state, and offers to go back to the frame that the game had reached before.
 * @type {(app: App, action: Action, message: string, emulator?: string) => Promise<void>}
 */
export async function loadState(app, action, message, emulator = selectedName(app)) {
  checkMayLoad(app);
  // If the page copies actions as commands instead of sending them, no state is loaded, so there is nothing to undo.
  const back = app.api.copying.value ? undefined : await wayBack(app, emulator);
  await app.api.act(action);
  const undo = () =>
    attempt(async () => {
      checkMayLoad(app);
      if (back) await app.api.act(back);
      await app.poller.refresh();
    });
  toast(message, "good", back && { label: "Undo", act: undo });
  await app.poller.refresh();
}

/**
 * Checks that the page may load a game, a state or a battery save now.
 * @param {App} app
 * @throws {ApiError} with the reason, if it may not.
 */
function checkMayLoad(app) {
  const reason = refusals(app).load;
  if (reason !== undefined) throw new ApiError(reason, 0);
}

/**
 * The action that will bring the emulator back to the frame at which it is now; `undefined` if its history is empty, or
 * if the request for the frame fails.
 * @type {(app: App, emulator: string | undefined) => Promise<Action | undefined>}
 */
async function wayBack(app, emulator) {
  try {
    // No frame is as late as `first`, so the reply lists no states.
    /** @type {{ frame: number, line: number | null }} */
    const { frame, line } = await app.api.read("/v1/timeline", {
      first: 0xffff_ffff,
      marks: false,
      emulator,
    });
    return line === null ? undefined : aimed(actions.rewind(frame, line), emulator);
  } catch {
    return undefined;
  }
}
