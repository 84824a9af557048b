/** The fixtures of the tests: a server for each test, and its page. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { type BrowserContext, test as base, type Page } from "@playwright/test";
import { Console } from "./console.ts";
import { repository, Server } from "./server.ts";
import { Window } from "./window.ts";

interface Fixtures {
  /** Starts servers; they end with the test. */
  serve: typeof Server.start;
  /** Starts a stock mGBA in a window; it ends with the test. */
  openWindow: () => Promise<Window>;
  /** Serves the demo game from an embedded core. */
  server: Server;
  /** The open console page, which shows the game. */
  console: Console;
}

export const test = base.extend<Fixtures>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the names of fixtures from the pattern.
  serve: async ({}, use) => {
    const started: Server[] = [];
    await use(async (...args) => {
      const server = await Server.start(...args);
      started.push(server);
      return server;
    });
    for (const server of started) await server.stop();
  },
  // biome-ignore lint/correctness/noEmptyPattern: as above.
  openWindow: async ({}, use) => {
    const opened: Window[] = [];
    await use(async () => {
      const window = await Window.open();
      opened.push(window);
      return window;
    });
    for (const window of opened) await window.close();
  },
  server: async ({ serve }, use) => {
    await use(await serve());
  },
  context: async ({ context }, use) => {
    if (process.env.FRAMEWIRE_CONSOLE_FILES) await serveFromCheckout(context);
    await use(context);
  },
  console: async ({ page, server }, use) => {
    const troubles = troublesOf(page);
    const opened = await Console.open(page, server);
    await use(opened);
    base.expect(troubles, "errors on the page").toEqual([]);
  },
});

/** Serves the files of the page from the checkout, so that a change to the page needs no build. */
async function serveFromCheckout(context: BrowserContext): Promise<void> {
  const web = repository("crates/console/web");
  await context.route(/\/console\//, async (route) => {
    const path = join(web, new URL(route.request().url()).pathname.replace("/console/", ""));
    // The page for logging in comes from the server, and names files by their hashes.
    if (existsSync(path)) await route.fulfill({ path });
    else await route.continue();
  });
  await context.route(
    (url) => url.pathname === "/",
    async (route) => {
      const response = await route.fetch();
      if (response.ok()) await route.fulfill({ response, path: join(web, "index.html") });
      else await route.fulfill({ response });
    },
  );
}

/** Collects the errors in a page. Lost connections and resources that fail to load do not count. */
export function troublesOf(page: Page): string[] {
  const troubles: string[] = [];
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("console", (message) => {
    const expected = /Failed to load resource|WebSocket connection|ERR_CONNECTION/.test(message.text());
    if (message.type() === "error" && !expected) troubles.push(message.text());
  });
  return troubles;
}

export { expect } from "@playwright/test";
