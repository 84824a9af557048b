/** How the server and its emulators are, asked about once a second. */

import { type Api, ApiError } from "./api.ts";
import { Store } from "./store.ts";

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
  /** Thousandths of the console's speed; absent where it cannot be set, 0 or null for unlimited. */
  speed?: number | null;
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

const EVERY_MS = 1000;
const EVERY_MS_LOST = 500;

export class StatusWatch {
  readonly status = new Store<Status>({ phase: "loading", emulators: [], emulator: undefined });
  readonly #api: Api;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(api: Api) {
    this.#api = api;
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
    this.status.set(await this.#look());
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
