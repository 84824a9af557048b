/** A server that requires a token. After a login, the console works with a cookie. Pages of other origins cannot use it. */

import { writeFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { Console } from "../support/console.ts";
import { foreignSite } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

const FULL = "f".repeat(64);
const READ = "1".repeat(64);

/** Writes a full token and a read-only token to files, and returns the arguments for a server with these tokens. */
function tokens(): string[] {
  const file = (name: string, token: string): string => {
    const path = test.info().outputPath(name);
    writeFileSync(path, token, { mode: 0o600 });
    return path;
  };
  return ["--speed", "1", "--token-file", file("full", FULL), "--read-token-file", file("read", READ)];
}

async function logIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
}

test("a browser logs in, and the console works with its cookie", async ({ page, serve }) => {
  const server = await serve(tokens());
  const first = await page.goto(`${server.url}/`);
  expect(first?.status()).toBe(401);
  await logIn(page, "0".repeat(64));
  await expect(page.getByRole("status")).toContainText("not one of this server's");
  await logIn(page, FULL);
  const opened = new Console(page, server);
  await expect(page.locator(".veil")).toBeHidden();
  await opened.screen.focus();
  await opened.press();
  expect(await page.evaluate(() => document.cookie), "no script sees the cookie").toBe("");
  await page.evaluate(() => fetch("/v1/logout", { method: "POST" }));
  expect((await page.goto(`${server.url}/`))?.status()).toBe(401);
});

test("a read-only token shows the game and changes nothing", async ({ page, serve }) => {
  const server = await serve(tokens());
  await page.goto(`${server.url}/docs`);
  await logIn(page, READ);
  await expect(page).toHaveURL(`${server.url}/docs`);
  const status = (path: string, init?: RequestInit): Promise<number> =>
    page.evaluate(async ([path, init]) => (await fetch(path, init)).status, [path, init] as const);
  expect(await status("/v1/emulator")).toBe(200);
  expect(await status("/screen.png")).toBe(200);
  expect(await status("/v1/pause", { method: "POST" })).toBe(403);
  expect(await status("/core/write8?address=0x02000100&value=1", { method: "POST" })).toBe(403);
});

test("with a read-only token, the page says that it is only for viewing", async ({ page, serve }) => {
  const server = await serve(tokens());
  await page.goto(server.url);
  await logIn(page, READ);
  await expect(page.getByText("View only", { exact: true })).toBeVisible();
  await expect(page.getByRole("button", { name: "Pause" })).toHaveAttribute("title", /only viewing/);
  await page.keyboard.down("x");
  await expect(page.locator(".key.held")).toHaveCount(0);
  await page.keyboard.up("x");
});

test("a page on another port cannot use the cookie of a logged-in browser", async ({ page, serve }) => {
  const server = await serve(tokens());
  await page.goto(`${server.url}/docs`);
  await logIn(page, FULL);
  await expect(page).toHaveURL(`${server.url}/docs`);
  const { site, port } = await foreignSite();
  await page.goto(`http://127.0.0.1:${port}`);
  const outcomes = await page.evaluate(async (url) => {
    const write = "/core/write8?address=0x02000100&value=66";
    const ask = async (path: string, init: RequestInit): Promise<string> => {
      try {
        const response = await fetch(url + path, { credentials: "include", ...init });
        return response.ok ? "got it" : "refused";
      } catch {
        return "refused";
      }
    };
    const image = new Promise<string>((done) => {
      const made = new Image();
      made.onload = () => done("got it");
      made.onerror = () => done("refused");
      made.src = `${url}/screen.png`;
    });
    const socket = new Promise<string>((done) => {
      const made = new WebSocket(`${url.replace("http", "ws")}/v1/ws`);
      made.onopen = () => done("got it");
      made.onerror = () => done("refused");
    });
    const events = new Promise<string>((done) => {
      const made = new EventSource(`${url}/v1/events`, { withCredentials: true });
      made.onopen = () => done("got it");
      made.onerror = () => done("refused");
    });
    return Promise.all([
      ask("/v1/emulator", {}),
      ask(write, { method: "POST" }),
      ask(write, { method: "POST", mode: "no-cors" }),
      image,
      socket,
      events,
    ]);
  }, server.url);
  expect(outcomes.filter((outcome) => outcome !== "refused")).toEqual([]);
  site.close();
  const authorization = `Bearer ${READ}`;
  const scratch = await fetch(`${server.url}/core/read8?address=0x02000100`, { headers: { authorization } });
  expect(await scratch.text()).toBe("0");
});
