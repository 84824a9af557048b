/**
 * The reasons why the page refuses actions. A disabled button shows its reason as the tooltip. A key shows it as a
 * message.
 */

import { runsOnRequest } from "./status.js";
import { toastOnce } from "./toast.js";

/**
 * @import { App } from "./app.js"
 * @import { Phase } from "./status.js"
 */

const NO_PAUSE = "Scripts cannot pause mGBA. Pause it in its own window, or use Lockstep.";
const NO_SPEED = "Scripts cannot set mGBA's speed. Use its own window (Emulation > Fast forward).";
const NO_SOUND = "mGBA plays its sound on its own machine; scripts have no access to it.";
const NO_STEP = "Pause or use Lockstep first, to step frame by frame.";
const NO_EMULATOR = "No emulator is connected.";
const NO_SERVER = "The server does not answer.";
const NO_TOKEN = "This server requires a token. Sign in above.";
const NO_STATE = "The page is still connecting. Wait a moment.";
const REPLAYING = "A replay is running. Cancel it in Recordings.";
/** The reason if the token allows only reading. */
export const VIEW_ONLY = "This token allows only viewing; it cannot control the emulator.";

/**
 * For each kind of action, the reason why the page refuses it now; `undefined` if the page does not refuse it.
 * @typedef {object} Refusals
 * @property {string | undefined} control Anything that controls the selected emulator.
 * @property {string | undefined} pause Pausing and resuming.
 * @property {string | undefined} step
 * @property {string | undefined} speed
 * @property {string | undefined} sound
 * @property {string | undefined} picture Saving the picture.
 * @property {string | undefined} rewind Going back step by step.
 * @property {string | undefined} play Pressing the game's keys. A replay presses the keys itself.
 * @property {string | undefined} load
 *   Loading a game, a state, an earlier frame or a battery save. This would end a replay, and the game would not get its
 *   earlier state and battery save back.
 */

/**
 * The reasons in the current state of the selected emulator.
 * @type {(app: Pick<App, "api" | "status">) => Refusals}
 */
export function refusals({ api, status }) {
  const { phase, emulator } = status.value;
  const lost = lostReason(phase);
  const replay = reasonIf(phase === "replaying", REPLAYING);
  const rewind = reasonIf(api.viewOnly.value, VIEW_ONLY) ?? replay;
  const control = lost ?? rewind;
  const attached = emulator?.kind === "attached";
  return {
    control,
    pause: control ?? reasonIf(attached && phase !== "lockstep", NO_PAUSE),
    step: control ?? reasonIf(!runsOnRequest(phase), NO_STEP),
    speed: control ?? reasonIf(attached, NO_SPEED),
    sound: lost ?? reasonIf(attached, NO_SOUND),
    picture: lost,
    rewind,
    play: replay,
    load: replay,
  };
}

/**
 * Does something, unless there is a reason to refuse it. In that case, shows the reason instead.
 * @template T
 * @param {string | undefined} reason
 * @param {() => T} work
 * @returns {T | undefined}
 */
export function unlessRefused(reason, work) {
  if (reason === undefined) return work();
  toastOnce(reason);
  return undefined;
}

/** @type {(applies: boolean, reason: string) => string | undefined} */
function reasonIf(applies, reason) {
  return applies ? reason : undefined;
}

/**
 * The reason why there is nothing to control in this phase; `undefined` if there is an emulator.
 * @type {(phase: Phase) => string | undefined}
 */
function lostReason(phase) {
  if (phase === "unreachable") return NO_SERVER;
  if (phase === "locked") return NO_TOKEN;
  if (phase === "loading") return NO_STATE;
  return phase === "running" || phase === "replaying" || runsOnRequest(phase) ? undefined : NO_EMULATOR;
}
