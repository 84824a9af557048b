/** The page when the server or the emulator is missing, stops, or does not answer. */

import { writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import type { WebSocket } from "@playwright/test";
import { Console } from "../support/console.ts";
import { freePort, listen, type Server } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

test("the page says that the server does not answer, and reconnects", async ({ page, serve }) => {
  // While the server is gone, no outgoing connection takes a port of `freePort`.
  const port = await freePort();
  const server = await serve(["--speed", "1"], `127.0.0.1:${port}`);
  const opened = await Console.open(page, server);
  await server.kill();
  await expect(page.locator(".veil")).toContainText("The server does not answer");
  await expect(page.locator(".badge").first()).toContainText("Server gone");
  await serve(["--speed", "1"], `127.0.0.1:${port}`);
  await expect(page.locator(".veil")).toBeHidden();
  await opened.press();
});

test("after the server is started again, the page has its symbols and its pictures", async ({
  page,
  serve,
}) => {
  const symbols = test.info().outputPath("game.sym");
  const start = async (text: string): Promise<Server> => {
    writeFileSync(symbols, text);
    const started = await serve(["--speed", "1", "--symbols", symbols]);
    await started.holdAt(300);
    return started;
  };
  let server = await start("02000000 before\n");
  // The page reaches the second server only after `start` has put its game into the same frame as the first game.
  const proxy = createServer((client) => {
    const onward = connect(server.port, "127.0.0.1");
    client.pipe(onward).pipe(client);
    client.on("error", () => onward.destroy());
    onward.on("error", () => client.destroy());
  });
  const port = await listen(proxy);
  await page.addInitScript(() => localStorage.setItem("framewire.watches", '["u8[after]"]'));
  await page.goto(`http://127.0.0.1:${port}/#tool=watches`);
  const panel = page.getByRole("tabpanel", { name: "Watches" });
  await expect(panel.locator(".refused")).toBeVisible();
  const picture = page.locator(".strip img").first();
  await expect(picture).toHaveJSProperty("naturalWidth", 80);
  const old = await picture.getAttribute("src");
  await server.kill();
  server = await start("02000000 after\n");
  await expect(panel.locator(".value")).toHaveText(/^\d+$/);
  await expect(panel.locator(".refused")).toHaveCount(0);
  await expect(picture).not.toHaveAttribute("src", String(old));
  await expect(picture).toHaveJSProperty("naturalWidth", 80);
  proxy.close();
});

test("a connection without an answer is replaced", async ({ page, server }) => {
  let swallowed = 0;
  const proxy = createServer((client) => {
    client.once("data", (head) => {
      if (head.includes("GET /v1/video") && swallowed === 0) {
        swallowed += 1;
        return;
      }
      const onward = connect(server.port, "127.0.0.1");
      onward.write(head);
      client.pipe(onward).pipe(client);
      onward.on("error", () => client.destroy());
    });
    client.on("error", () => {});
  });
  const port = await listen(proxy);
  await page.goto(`http://127.0.0.1:${port}/`);
  await expect(page.locator(".veil")).toContainText("Waiting for the picture");
  await expect(page.locator(".veil")).toBeHidden();
  expect(swallowed).toBe(1);
  proxy.close();
});

test("a connection that dies without a close is replaced", async ({ page, server }) => {
  const connections: [Socket, Socket][] = [];
  const proxy = createServer((client) => {
    const onward = connect(server.port, "127.0.0.1");
    client.pipe(onward).pipe(client);
    client.on("error", () => onward.destroy());
    onward.on("error", () => client.destroy());
    connections.push([client, onward]);
  });
  const port = await listen(proxy);
  let sounds = 0;
  page.on("websocket", (socket) => {
    if (socket.url().includes("/v1/audio")) socket.once("framereceived", () => sounds++);
  });
  await page.goto(`http://127.0.0.1:${port}/`);
  await expect(page.locator(".veil")).toHaveAttribute("hidden");
  await page.getByRole("button", { name: "Sound", exact: true }).click();
  await expect.poll(() => sounds).toBe(1);
  // From now on, these connections stay open but carry nothing.
  for (const [client, onward] of connections.splice(0)) {
    client.unpipe(onward).resume();
    onward.unpipe(client).resume();
  }
  await expect(page.locator(".veil")).toContainText("The server does not answer", { timeout: 20_000 });
  await expect(page.locator(".veil")).toBeHidden({ timeout: 30_000 });
  // The sound comes over a new connection too.
  await expect.poll(() => sounds).toBe(2);
  proxy.close();
});

test("the page says that there is no emulator, and what to do about it", async ({ page, serve }) => {
  const port = await freePort();
  const server = await serve(["--attach", `127.0.0.1:${port}`]);
  await page.goto(server.url);
  await expect(page.locator(".veil")).toContainText("No emulator");
  await expect(page.locator(".veil")).toContainText(String(port));
  for (const name of ["Pause", "Step", "Lockstep", "Reset"]) {
    const button = page.getByRole("button", { name, exact: true });
    await expect(button).toHaveAttribute("aria-disabled", "true");
    await expect(button).toHaveAttribute("title", /No emulator/);
  }
});

test("the picture of a paused game stays, without a message", async ({ console: page, server }) => {
  await server.batch({ op: "pause" });
  await expect(page.page.locator(".badge").first()).toContainText("Paused");
  await expect(page.page.locator(".veil")).toBeHidden();
  await page.page.reload();
  await expect(page.page.locator(".veil")).toBeHidden();
});

test("a hidden page requests no pictures until it is shown again", async ({ console: page }) => {
  const hide = (hidden: boolean): Promise<void> =>
    page.page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => value });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  const frame = (): Promise<string> =>
    page.canvas.evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());
  const pictures = (): Promise<WebSocket> =>
    page.page.waitForEvent("websocket", { predicate: (socket) => socket.url().includes("/v1/video") });
  const opened = pictures();
  await page.open();
  const closed = (await opened).waitForEvent("close");
  const reopened = pictures();
  await hide(true);
  await closed;
  // Pictures that have already come are drawn in the next two display frames.
  await page.page.evaluate(
    () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))),
  );
  const still = await frame();
  await page.page.waitForFunction(() => document.hidden);
  await page.page.waitForTimeout(500);
  expect(await frame()).toBe(still);
  await hide(false);
  await reopened;
  await expect.poll(frame).not.toBe(still);
});

test("a page that is opened in a hidden tab requests no pictures until it is shown", async ({
  page,
  server,
}) => {
  await page.addInitScript(() =>
    Object.defineProperty(document, "hidden", { configurable: true, get: () => true }),
  );
  const paths: string[] = [];
  page.on("websocket", (socket) => paths.push(new URL(socket.url()).pathname));
  await page.goto(server.url);
  await expect.poll(() => paths).toContain("/v1/ws");
  await page.waitForTimeout(500);
  expect(paths).not.toContain("/v1/video");
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => false });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await expect.poll(() => paths).toContain("/v1/video");
});
