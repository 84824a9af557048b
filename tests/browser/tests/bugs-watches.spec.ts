/** Tests for fixed bugs of the tool Watches, named for the behaviour that each bug broke. */

import { writeFileSync } from "node:fs";
import type { Locator } from "@playwright/test";
import { Console, refuseCalls } from "../support/console.ts";
import { demoTitled } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

const SCRATCH = 0x0200_0100;

test("one wrong watch does not stop the others", async ({ console: page, server }) => {
  await page.page.evaluate(
    (address) =>
      localStorage.setItem("framewire.watches", JSON.stringify([`u32[${address}]`, "ball_y >", "score"])),
    SCRATCH,
  );
  await server.batch({ op: "write32", address: SCRATCH, value: 77 });
  await page.page.reload();
  const panel = await page.tab("Watches");
  const row = (text: string) => panel.getByRole("listitem").filter({ hasText: text });
  await expect(row(`u32[${SCRATCH}]`).locator(".value")).toHaveText("77");
  await expect(row("ball_y >")).toHaveClass(/refused/);
  await expect(row("ball_y >").locator(".range")).not.toContainText("watch[");
  await server.batch({ op: "write32", address: SCRATCH, value: 78 });
  await expect(row(`u32[${SCRATCH}]`).locator(".value")).toHaveText("78");
});

test("watches continue after another game is loaded", async ({ page, server }, info) => {
  const expression = `u32[${SCRATCH}]`;
  await page.addInitScript(
    (text) => localStorage.setItem("framewire.watches", JSON.stringify([text])),
    expression,
  );
  const opened = await Console.open(page, server);
  const panel = await opened.tab("Watches");
  const value = panel.getByRole("listitem").filter({ hasText: expression }).locator(".value");
  await server.batch({ op: "write32", address: SCRATCH, value: 5 });
  await expect(value).toHaveText("5");
  const path = info.outputPath("other.gba");
  writeFileSync(path, demoTitled("OTHER"));
  expect(await server.batch({ op: "load_rom", path })).toEqual([true]);
  await expect(page).toHaveTitle(/OTHER/);
  // The write is repeated until the page shows the value.
  const afterWrite = async (): Promise<string> => {
    await server.batch({ op: "write32", address: SCRATCH, value: 6 });
    return value.innerText();
  };
  await expect.poll(afterWrite).toBe("6");
});

test("watches that fail without an emulator begin later, and their error disappears", async ({
  page,
  server,
}) => {
  const expression = `u32[${SCRATCH}]`;
  await page.addInitScript(
    (text) => localStorage.setItem("framewire.watches", JSON.stringify([text])),
    expression,
  );
  let refusing = true;
  await refuseCalls(page, ({ method, params }) =>
    refusing && method === "subscribe" && params.watch
      ? { detail: "no mGBA is connected", status: 503 }
      : undefined,
  );
  const opened = await Console.open(page, server);
  const panel = await opened.tab("Watches");
  await expect(panel.locator(".problem")).toHaveText("No mGBA is connected");
  await server.batch({ op: "write32", address: SCRATCH, value: 9 });
  refusing = false;
  const row = panel.getByRole("listitem").filter({ hasText: expression });
  await expect(row.locator(".value")).toHaveText("9");
  await expect(panel.locator(".problem")).toHaveText("");
});

test("two tabs do not delete each other's watches", async ({ page, context, server }) => {
  const first = await (await Console.open(page, server)).tab("Watches");
  const second = await (await Console.open(await context.newPage(), server)).tab("Watches");
  const add = async (panel: Locator, expression: string): Promise<void> => {
    await panel.getByLabel("Expression to watch").fill(expression);
    await panel.getByRole("button", { name: "Watch", exact: true }).click();
  };
  await add(first, "score");
  await expect(second.locator(".watch .name")).toHaveText(["score"]);
  await add(second, "frame");
  await expect(first.locator(".watch .name")).toHaveText(["score", "frame"]);
  await page.reload();
  await expect(first.locator(".watch .name")).toHaveText(["score", "frame"]);
});

test("watches show what requests change while the game is paused", async ({ console: page, server }) => {
  await server.holdAt(200);
  const watches = [`u8[${SCRATCH}]`, `bytes[${SCRATCH}, 2]`, "score"];
  await page.page.evaluate(
    (texts) => localStorage.setItem("framewire.watches", JSON.stringify(texts)),
    watches,
  );
  await page.page.reload();
  const panel = await page.tab("Watches");
  const value = panel.locator(".watch .value").first();
  await expect(value).toHaveText("0");
  const write = (value: number): Promise<unknown> => server.batch({ op: "write8", address: SCRATCH, value });
  await write(77);
  await expect(value).toHaveText("77");
  await server.json("/v1/snapshots", { name: "here" });
  await write(88);
  await expect(value).toHaveText("88");
  await server.json("/v1/snapshots/here/load", {});
  await expect(value).toHaveText("77");
  // The game itself writes to the byte of `held` in each frame. So the next frame takes back what was written.
  await page.page.evaluate(() => localStorage.setItem("framewire.watches", '["held"]'));
  await page.page.reload();
  await page.tab("Watches");
  await server.batch({ op: "write16", address: 0x0200_000c, value: 5 });
  await expect(value).toHaveText("5");
  await server.json("/v1/resume", {});
  await expect(value).toHaveText("0");
});

test("watches of bytes and texts show what requests change while the game is paused", async ({
  console: page,
  server,
}) => {
  await server.holdAt(200);
  const watches = [`bytes[${SCRATCH}, 2]`, `text[${SCRATCH}, 2]`, `u8[${SCRATCH}]`];
  await page.page.evaluate(
    (texts) => localStorage.setItem("framewire.watches", JSON.stringify(texts)),
    watches,
  );
  await page.page.reload();
  const values = (await page.tab("Watches")).locator(".watch .value");
  await expect(values).toHaveText(["AAA=", "", "0"]);
  const write = (data: string): Promise<unknown> =>
    server.batch({ op: "write_range", address: SCRATCH, data: btoa(data) });
  await write("AB");
  await expect(values).toHaveText(["QUI=", "AB", "65"]);
  await write("CD");
  await expect(values).toHaveText(["Q0Q=", "CD", "67"]);
  // A watch still reports the changes when the game runs on.
  await server.json("/v1/resume", {});
  await write("EF");
  await expect(values).toHaveText(["RUY=", "EF", "69"]);
});

test("a plot and its range show only the last 600 frames", async ({ console: page, server }) => {
  await server.holdAt(100);
  const panel = await page.tab("Watches");
  await panel.getByLabel("Expression to watch").fill(`u8[${SCRATCH}]`);
  await panel.getByRole("button", { name: "Watch", exact: true }).click();
  const range = panel.locator(".watch .range");
  await expect(range).toHaveText("0 … 0");
  const write = (value: number): Promise<unknown> =>
    server.batch({ op: "write8", address: SCRATCH, value }, { op: "advance", frames: 10 });
  await write(200);
  await write(3);
  await expect(range).toHaveText("0 … 200");
  await server.batch({ op: "advance", frames: 600 });
  await expect(range).toHaveText("3 … 3");
});

test("more watches than the server accepts do not stop the others", async ({ console: page }) => {
  await page.page.evaluate(() => {
    const texts = Array.from({ length: 66 }, (_, index) => `u8[${0x0200_0100 + index}]`);
    localStorage.setItem("framewire.watches", JSON.stringify(texts));
  });
  await page.page.reload();
  const rows = (await page.tab("Watches")).locator(".watch");
  // The page itself watches `frame`, too.
  await expect(rows.nth(62).locator(".value")).toHaveText("0");
  await expect(rows.nth(63)).toHaveClass(/refused/);
  await expect(rows.nth(63).locator(".range")).toContainText("at most 64");
  await expect(rows.nth(65)).toHaveClass(/refused/);
  for (let count = 66; count > 63; count -= 1) await rows.first().getByRole("button").click();
  await expect(rows.locator(".value")).toHaveText(Array(63).fill("0"));
});
