/** A server that requires a token. After a login, the console works with its cookie, but other pages cannot use it. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { Console } from "../support/console.ts";
import { expect, test } from "../support/test.ts";

const FULL = "f".repeat(64);
const READ = "1".repeat(64);

/** The settings for a server with a full and a read-only token. */
function tokens(): { folder: string; args: string[] } {
  const folder = mkdtempSync(join(tmpdir(), "framewire-tokens-"));
  const file = (name: string, token: string): string => {
    writeFileSync(join(folder, name), token, { mode: 0o600 });
    return join(folder, name);
  };
  const args = ["--speed", "1", "--token-file", file("full", FULL), "--read-token-file", file("read", READ)];
  return { folder, args };
}

async function logIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
}

test("a browser logs in, and the console works with its cookie", async ({ page, serve }) => {
  const { folder, args } = tokens();
  const server = await serve(args);
  const first = await page.goto(`${server.url}/`);
  expect(first?.status()).toBe(401);
  await logIn(page, "0".repeat(64));
  await expect(page.getByRole("status")).toContainText("not one of this server's");
  await logIn(page, FULL);
  const opened = new Console(page, server);
  await expect(page.locator(".veil")).toBeHidden();
  await opened.screen.focus();
  await page.keyboard.down("x");
  await opened.expectLit("A");
  await page.keyboard.up("x");
  await opened.expectLit();
  expect(await page.evaluate(() => document.cookie), "no script sees the cookie").toBe("");
  await page.evaluate(() => fetch("/v1/logout", { method: "POST" }));
  expect((await page.goto(`${server.url}/`))?.status()).toBe(401);
  rmSync(folder, { recursive: true });
});

test("a read-only token shows the game and changes nothing", async ({ page, serve }) => {
  const { folder, args } = tokens();
  const server = await serve(args);
  await page.goto(`${server.url}/docs`);
  await logIn(page, READ);
  await expect(page).toHaveURL(`${server.url}/docs`);
  const status = (path: string, init?: RequestInit): Promise<number> =>
    page.evaluate(async ([path, init]) => (await fetch(path, init)).status, [path, init] as const);
  expect(await status("/v1/emulator")).toBe(200);
  expect(await status("/screen.png")).toBe(200);
  expect(await status("/v1/pause", { method: "POST" })).toBe(403);
  expect(await status("/core/write8?address=0x02000100&value=1", { method: "POST" })).toBe(403);
  rmSync(folder, { recursive: true });
});

test("a page on another port cannot use the cookie of a logged-in browser", async ({ page, serve }) => {
  const { folder, args } = tokens();
  const server = await serve(args);
  await page.goto(`${server.url}/docs`);
  await logIn(page, FULL);
  await expect(page).toHaveURL(`${server.url}/docs`);
  const site = createServer((_, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end("<!doctype html><body></body>");
  });
  await new Promise<void>((ready) => site.listen(0, "127.0.0.1", ready));
  await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}`);
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
  rmSync(folder, { recursive: true });
});
