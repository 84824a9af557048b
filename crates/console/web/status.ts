/** How the server and its emulators are, asked about once a second. */

import { type Api, ApiError } from "./api.ts";
import type { Rpc } from "./rpc.ts";
import { Store } from "./store.ts";
import { Subscription } from "./subscription.ts";

/** An emulator as `/v1/emulators` lists it. */
export interface EmulatorState {
  name: string;
  kind: "embedded" | "attached";
  connected: boolean;
  run: "running" | "paused" | "stalled" | "unknown";
  frames_per_second: number;
  frame: number;
  title: string | null;
  code: string | null;
  script_version: string | null;
  library_version: string | null;
  address: string | null;
  problem: string | null;
  /** Why what the game saves does not reach its file, if it does not. */
  save_problem?: string | null;
  /** A multiple of the console's speed; null or absent where it cannot be set. */
  speed?: number | "unlimited" | null;
  lockstep?: boolean;
}

/** What the page knows, in one word. */
export type Phase =
  | "loading"
  | "unreachable"
  | "locked"
  | "disconnected"
  | "stalled"
  | "paused"
  | "lockstep"
  | "running";

export interface Status {
  phase: Phase;
  emulators: readonly EmulatorState[];
  /** The chosen one. */
  emulator: EmulatorState | undefined;
}

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
  readonly status = new Store<Status>({ phase: "loading", emulators: [], emulator: undefined });
  readonly #api: Api;
  #looks = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Looks again as soon as the server tells of something: resets, states, pauses, stalls, connections. */
  listen(rpc: Rpc): void {
    // Without it the state is still asked for every second.
    new Subscription(rpc, this.#api, {
      wanted: () => ({ events: true }),
      told: ({ event }) => {
        if (HAPPENINGS.has(event)) void this.refresh();
      },
    });
  }

  start(): void {
    this.#api.emulator.follow(() => void this.refresh());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) void this.refresh();
    });
  }

  /** Asks now; after what may have changed the state. */
  async refresh(): Promise<void> {
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

  async #look(): Promise<Status> {
    try {
      const { emulators } = await this.#api.read<{ emulators: EmulatorState[] }>("/v1/emulators");
      const wanted = this.#api.emulator.value;
      const emulator = emulators.find(({ name }) => name === wanted) ?? emulators[0];
      return { phase: emulator ? phaseOf(emulator) : "disconnected", emulators, emulator };
    } catch (error) {
      const locked = error instanceof ApiError && error.status === 401;
      return { ...this.status.value, phase: locked ? "locked" : "unreachable" };
    }
  }
}

function phaseOf(emulator: EmulatorState): Phase {
  if (!emulator.connected) return "disconnected";
  if (emulator.lockstep) return "lockstep";
  return emulator.run === "unknown" ? "disconnected" : emulator.run;
}
