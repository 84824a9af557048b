/** Polls the state of the server and its emulators: regularly, and after each event that may change it. */

import { ApiError } from "./api.js";
import { Store } from "./store.js";
import { Subscription } from "./subscription.js";

/**
 * @import { Api } from "./api.js"
 * @import { Rpc } from "./rpc.js"
 */

/**
 * An entry of `/v1/emulators`.
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
 * @property {string | null} [save_problem] The reason why the battery save cannot be written, if it cannot.
 * @property {number | "unlimited" | null} [speed]
 *   A multiple of the console's speed; null or absent if the speed cannot be set.
 * @property {boolean} [lockstep]
 */

/**
 * The state of the selected emulator or of its server. `unknown` means that the server has no emulator of this name.
 * @typedef {"loading" | "unreachable" | "locked" | "unknown" | "disconnected" | "stalled" | "replaying" | "paused" | "lockstep" | "running"} Phase
 */

/**
 * @typedef {object} Status
 * @property {Phase} phase
 * @property {readonly EmulatorState[]} emulators
 * @property {EmulatorState | undefined} emulator The selected emulator.
 */

/** The events that change the state. */
const STATE_EVENTS = new Set([
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

/** The time from one poll to the next. */
const EVERY_MS = 1000;
/** The time from one poll to the next while frames run only on request. Then events report most changes. */
const EVERY_MS_STILL = 2000;
/** The time from one poll to the next while the server does not answer. */
const EVERY_MS_LOST = 500;

export class StatusPoller {
  /** @readonly */
  status = new Store(/** @type {Status} */ ({ phase: "loading", emulators: [], emulator: undefined }));
  /**
   * Identifies the selected emulator's game: the value changes when another game is loaded or another emulator is selected,
   * and after each reconnection.
   * @readonly
   */
  game = new Store("");
  /** How many `game` events and reconnections there were. Two games can have the same title and code. */
  #games = 0;
  #api;
  #rpc;
  /** How many polls were started. */
  #polls = 0;
  /** The number of the newest poll whose answer was shown. */
  #shown = 0;
  /** The newest poll. @type {Promise<void> | undefined} */
  #newest;
  /** The emulators on which replays run, as far as this page knows. @type {Set<string | undefined>} */
  #replaying = new Set();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {Api} api
   * @param {Rpc} rpc
   */
  constructor(api, rpc) {
    this.#api = api;
    this.#rpc = rpc;
  }

  /**
   * Starts to poll regularly. From now on, also polls when the server sends one of `STATE_EVENTS`, when the connection
   * opens or closes, when another emulator is selected, and when the page becomes visible.
   */
  start() {
    const { connected, losses } = this.#rpc.socket;
    connected.onChange((open) => {
      // The server may have been started again, with another build of the game or with other symbols.
      if (open && losses.value > 0) this.#games += 1;
      void this.refresh();
    });
    // If this fails, the state is still polled.
    new Subscription(this.#rpc, this.#api, {
      wanted: () => ({ events: true }),
      received: ({ event }) => {
        if (event === "game") this.#games += 1;
        if (STATE_EVENTS.has(event)) void this.refresh();
      },
    });
    this.#api.emulator.follow(() => void this.refresh());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) void this.refresh();
    });
  }

  /**
   * Sets whether a replay runs on an emulator. During a replay, the emulator itself reports that it is paused.
   * @type {(emulator: string | undefined, runs: boolean) => Promise<void>}
   */
  async setReplaying(emulator, runs) {
    if (runs) this.#replaying.add(emulator);
    else this.#replaying.delete(emulator);
    await this.refresh();
  }

  /**
   * Polls now, and waits for the answer. If a later poll has begun by then, also waits for the later answer.
   * @returns {Promise<void>}
   */
  refresh() {
    clearTimeout(this.#timer);
    this.#polls += 1;
    this.#newest = this.#poll(this.#polls);
    return this.#newest.then(() => this.#newest);
  }

  /** @param {number} poll The number of this poll. */
  async #poll(poll) {
    const status = await this.#read();
    // The answer of a later poll is already shown.
    if (poll < this.#shown) return;
    this.#shown = poll;
    this.status.set(status);
    const { phase, emulator } = status;
    if (emulator?.connected)
      this.game.set(`${this.#games} ${emulator.name} ${emulator.code} ${emulator.title}`);
    if (poll !== this.#polls) return;
    const still = runsOnRequest(phase) ? EVERY_MS_STILL : EVERY_MS;
    const pause = phase === "unreachable" ? EVERY_MS_LOST : still;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.refresh(), document.hidden ? pause * 5 : pause);
  }

  /** @returns {Promise<Status>} */
  async #read() {
    try {
      /** @type {{ emulators: EmulatorState[] }} */
      const { emulators } = this.#rpc.socket.connected.value
        ? await this.#rpc.call("emulators")
        : await this.#api.read("/v1/emulators");
      const wanted = this.#api.emulator.value;
      const emulator = wanted === undefined ? emulators[0] : emulators.find(({ name }) => name === wanted);
      if (wanted !== undefined && !emulator) return { phase: "unknown", emulators, emulator };
      if (emulator?.connected && this.#replaying.has(emulator.name))
        return { phase: "replaying", emulators, emulator };
      return { phase: emulator ? phaseOf(emulator) : "disconnected", emulators, emulator };
    } catch (error) {
      const locked = error instanceof ApiError && error.status === 401;
      return { ...this.status.value, phase: locked ? "locked" : "unreachable" };
    }
  }
}

/**
 * Whether the game is for the Game Boy or the Game Boy Color.
 * @type {(emulator: EmulatorState | undefined) => boolean}
 */
export function isGameBoy(emulator) {
  return /^(DMG|CGB)/.test(emulator?.code ?? "");
}

/** @type {(emulator: EmulatorState) => Phase} */
export function phaseOf(emulator) {
  if (!emulator.connected) return "disconnected";
  if (emulator.lockstep) return "lockstep";
  return emulator.run === "unknown" ? "disconnected" : emulator.run;
}

/**
 * Whether frames run only on request.
 * @type {(phase: Phase) => boolean}
 */
export function runsOnRequest(phase) {
  return phase === "paused" || phase === "lockstep";
}
