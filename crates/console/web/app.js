/** What all parts of the page share. */

import { ApiError, Copied } from "./api.js";
import { toast } from "./toast.js";

/**
 * @import { Api } from "./api.js"
 * @import { Controller } from "./controller.js"
 * @import { Action } from "./curl.js"
 * @import { Marks } from "./marks.js"
 * @import { Rpc } from "./rpc.js"
 * @import { Status, StatusPoller } from "./status.js"
 * @import { Store } from "./store.js"
 */

/**
 * @typedef {object} App
 * @property {Api} api
 * @property {Rpc} rpc
 * @property {Controller} controller
 * @property {StatusPoller} poller
 * @property {Store<Status>} status
 * @property {Marks} marks
 */

/**
 * Runs a user's action, and shows the error if it fails. Returns `undefined` after an error, or if the action was copied
 * as a command instead of being sent.
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T | undefined>}
 */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Copied)) toast(textOf(error), "bad");
    return undefined;
  }
}

/**
 * Performs a user's action. If it succeeds, fetches the emulator's status again; if it fails, shows the error.
 * @param {App} app
 * @param {Action} action
 */
export function act({ api, poller }, action) {
  return attempt(async () => {
    await api.act(action);
    await poller.refresh();
  });
}

/**
 * The name of the selected emulator, for an action that is sent later. By then, another one may be selected.
 * @type {(app: App) => string | undefined}
 */
export function selectedName({ api, status }) {
  return api.emulator.value ?? status.value.emulator?.name;
}

/**
 * The action for this emulator, even if another one is selected when it is sent.
 * @type {(action: Action, emulator: string | undefined) => Action}
 */
export function aimed(action, emulator) {
  return { ...action, query: { ...action.query, emulator } };
}

/**
 * Reads something about the selected emulator. Asks over the WebSocket if it is open, because the server logs HTTP
 * requests, but not calls over a WebSocket.
 * @template T
 * @param {App} app
 * @param {string} method
 * @param {string} path
 * @param {Record<string, number>} [params]
 * @returns {Promise<T>}
 */
export function readQuietly({ api, rpc }, method, path, params = {}) {
  if (!rpc.socket.connected.value) return api.read(path, params);
  return rpc.callSelected(method, params);
}

/**
 * The message of an error, with a capital letter at the beginning. An error that is not an `ApiError` also goes to the
 * browser's console.
 * @type {(error: unknown) => string}
 */
export function textOf(error) {
  if (error instanceof ApiError) return sentence(error.message);
  console.error(error);
  return sentence(error instanceof Error ? error.message : String(error));
}

/** @type {(text: string) => string} */
function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
