/** How the server and its emulators are, asked about once a second. */

import { ApiError } from "./api.js";
import { Store } from "./store.js";
import { Subscription } from "./subscription.js";

/**
 * @import { Api } from "./api.js"
 * @import { Rpc } from "./rpc.js"
 */

/**
 * An emulator as `/v1/emulators` lists it.
 * @typedef {object} EmulatorState
 * @property {string} name
 * @property {"embedded" | "attached"} kind
 * @property {boolean} connected
 * @property {"running" | "paused" | "stalled" | "unknown"} run
 * @property {number} frames_per_second
 * @property {number} frame
 * @property {string | null} title
 * @property {string | null} code
 * @property {string | null} script_version
 * @property {string | null} library_version
 * @property {string | null} address
 * @property {string | null} problem
 * @property {string | null} [save_problem] Why what the game saves does not reach its file, if it does not.
 * @property {number | "unlimited" | null} [speed] A multiple of the console's speed; null or absent where it cannot be set.
 * @property {boolean} [lockstep]
 */

/**
 * What the page knows, in one word.
 * @typedef {"loading" | "unreachable" | "locked" | "disconnected" | "stalled" | "paused" | "lockstep" | "running"} Phase
 */

/**
 * @typedef {object} Status
 * @property {Phase} phase
 * @property {readonly EmulatorState[]} emulators
 * @property {EmulatorState | undefined} emulator The chosen one.
 */

/** What changes the state, of what the server tells. */
const HAPPENINGS = new Set([
  "reset",
  "state",
  "game",
  "connected",
  "disconnected",
  "stalled",
  "running",
  "paused",
  "lockstep",
  "save",
]);

const EVERY_MS = 1000;
const EVERY_MS_LOST = 500;

export class StatusWatch {
  /** @readonly */
  status = new Store(/** @type {Status} */ ({ phase: "loading", emulators: [], emulator: undefined }));
  #api;
  #looks = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {Api} api */
  constructor(api) {
    this.#api = api;
  }

  /**
   * Looks again as soon as the server tells of something: resets, states, pauses, stalls, connections.
   * @param {Rpc} rpc
   */
  listen(rpc) {
    // Without it the state is still asked for every second.
    new Subscription(rpc, this.#api, {
      wanted: () => ({ events: true }),
      told: ({ event }) => {
        if (HAPPENINGS.has(event)) void this.refresh();
      },
    });
  }

  start() {
    this.#api.emulator.follow(() => void this.refresh());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) void this.refresh();
    });
  }

  /** Asks now; after what may have changed the state. */
  async refresh() {
    clearTimeout(this.#timer);
    this.#looks += 1;
    const look = this.#looks;
    const status = await this.#look();
    // A later look may have been answered sooner.
    if (look !== this.#looks) return;
    this.status.set(status);
    const pause = this.status.value.phase === "unreachable" ? EVERY_MS_LOST : EVERY_MS;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.refresh(), document.hidden ? pause * 5 : pause);
  }

  /** @returns {Promise<Status>} */
  async #look() {
    try {
      /** @type {{ emulators: EmulatorState[] }} */
      const { emulators } = await this.#api.read("/v1/emulators");
      const wanted = this.#api.emulator.value;
      const emulator = emulators.find(({ name }) => name === wanted) ?? emulators[0];
      return { phase: emulator ? phaseOf(emulator) : "disconnected", emulators, emulator };
    } catch (error) {
      const locked = error instanceof ApiError && error.status === 401;
      return { ...this.status.value, phase: locked ? "locked" : "unreachable" };
    }
  }
}

/**
 * @param {EmulatorState} emulator
 * @returns {Phase}
 */
function phaseOf(emulator) {
  if (!emulator.connected) return "disconnected";
  if (emulator.lockstep) return "lockstep";
  return emulator.run === "unknown" ? "disconnected" : emulator.run;
}
