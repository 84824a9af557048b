/** What all parts of the page share. */

import { type Api, ApiError, Copied } from "./api.ts";
import type { Controller } from "./controller.ts";
import type { Rpc } from "./rpc.ts";
import type { Status, StatusWatch } from "./status.ts";
import type { Store } from "./store.ts";
import { toast } from "./toast.ts";

export interface App {
  readonly api: Api;
  readonly rpc: Rpc;
  readonly controller: Controller;
  readonly watch: StatusWatch;
  readonly status: Store<Status>;
}

/** Does something for the user and says so if it fails; returns `undefined` then, or if it was copied instead. */
export async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Copied)) toast(textOf(error), "bad");
    return undefined;
  }
}

/** An error as a sentence. */
export function textOf(error: unknown): string {
  if (error instanceof ApiError) return sentence(error.message);
  console.error(error);
  return sentence(error instanceof Error ? error.message : String(error));
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
