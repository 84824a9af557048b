/** Handles files that the user drops on the page. */

import { attempt } from "./app.js";

/** @import { App } from "./app.js" */

/**
 * Loads the files that are dropped anywhere on the page.
 * @param {App} app
 */
export function takeDroppedFiles(app) {
  /** @type {(event: DragEvent) => boolean} */
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files") ?? false;
  addEventListener("dragover", (event) => {
    if (hasFiles(event)) event.preventDefault();
  });
  addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    // The list is empty after the event.
    const files = [...(event.dataTransfer?.files ?? [])];
    void attempt(async () => {
      const { takeAll } = await import("./files.js");
      await takeAll(app, files);
    });
  });
}
