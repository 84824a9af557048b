/** One visit to the page, in which a person uses many of its parts: on a desktop, and on a phone. */

import { execFileSync } from "node:child_process";
import { drop, saved } from "../support/console.ts";
import { demoTitled } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

const SCORE = 0x0200_0044;

for (const [name, viewport, hasTouch] of [
  ["desktop", { width: 1440, height: 900 }, false],
  ["phone", { width: 390, height: 844 }, true],
] as const) {
  test.describe(name, () => {
    test.use({ viewport, hasTouch });

    test(`a visit on a ${name}: play, go back, search, freeze, copy, record, replay, share, and another game`, async ({
      console: page,
      server,
    }) => {
      const score = async (): Promise<unknown> => (await server.batch({ op: "read32", address: SCORE }))[0];

      await test.step("play", async () => {
        await expect.poll(async () => (await server.state()).frame).toBeGreaterThan(150);
        const key = page.page.locator(".pad [data-key=A]");
        if (hasTouch) await key.tap();
        else {
          await page.screen.focus();
          await page.page.keyboard.down("x");
          await page.expectLit("A");
          await page.page.keyboard.up("x");
        }
        // The game counts the presses of A at this address.
        await expect
          .poll(async () => (await server.batch({ op: "read32", address: 0x0200_0010 }))[0])
          .toBe(1);
      });

      await test.step("go back", async () => {
        // After going back, the game runs on. Without these frames, it could reach `before` again at once.
        await server.batch({ op: "advance", frames: 600 });
        const before = (await server.state()).frame;
        await expect(page.page.locator(".strip")).toBeVisible();
        const box = await page.page.locator(".strip").boundingBox();
        if (!box) throw new Error("no strip");
        const [x, y] = [box.x + box.width * 0.2, box.y + box.height / 2];
        if (hasTouch) await page.page.touchscreen.tap(x, y);
        else await page.page.mouse.click(x, y);
        await expect.poll(async () => (await server.state()).frame).toBeLessThan(before);
        await expect.poll(async () => (await server.state()).run).toBe("running");
      });

      await test.step("find the score by search", async () => {
        const panel = await page.tab("Memory");
        await panel.getByLabel("Search for a number").selectOption("u32");
        await panel.getByRole("button", { name: "Search", exact: true }).click();
        const left = panel.getByText(/place(s are| is) left\./);
        /** Keeps the places that contain the current score. */
        const keep = async (): Promise<void> => {
          await panel.getByLabel("Keep the places whose number").selectOption("equal");
          await panel.getByLabel("Value", { exact: true }).fill(String(await score()));
          // Wait for the reply, not for a new count: places such as high_score change with the score, so the count can
          // stay the same.
          const kept = page.page.waitForResponse(/\/v1\/search\/\w+/);
          await panel.getByRole("button", { name: "Keep", exact: true }).click();
          expect((await kept).status()).toBe(200);
        };
        await expect(left).toBeVisible();
        await server.json("/v1/pause", {});
        await keep();
        await server.json("/v1/resume", {});
        const first = await score();
        await expect.poll(score, { timeout: 20_000 }).not.toBe(first);
        await server.json("/v1/pause", {});
        await keep();
        const found = panel.getByRole("list", { name: "Candidates" });
        const place = found.getByRole("listitem").filter({ hasText: "02000044" });
        await expect(place).toContainText(String(await score()));
        await server.json("/v1/resume", {});
        await place.getByRole("button", { name: /^Watch/ }).click();
        const watches = await page.tab("Watches");
        await expect(watches.getByRole("button", { name: /^Stop watching/ })).toHaveCount(1);
        await page.tab("Memory");
        await place.getByRole("button").first().click();
        await panel.getByRole("button", { name: "End", exact: true }).click();
      });

      await test.step("freeze the score", async () => {
        const panel = await page.tab("Memory");
        await expect(panel.locator(".inspector")).toContainText("02000044");
        await panel.getByLabel("Type").selectOption("u32");
        await panel.getByLabel("New value").fill("99999");
        await panel.getByRole("button", { name: "Freeze", exact: true }).click();
        await expect(panel.getByRole("list", { name: "Frozen values" })).toContainText("99999");
        await expect.poll(score).toBe(99999);
        // A recording contains only keys, so no value may be frozen while it runs.
        await panel.getByRole("button", { name: /^Unfreeze/ }).click();
      });

      await test.step("copy an action as Python, and run it", async () => {
        await page.button("Pause").click();
        await expect(page.button("Resume")).toBeVisible();
        const log = await page.tab("Log");
        await log.getByLabel("Copy as").selectOption("Python");
        await server.json("/v1/resume", {});
        await expect(page.button("Pause")).toBeVisible();
        await log.getByRole("button", { name: 'Copy "Pause" as Python' }).first().click();
        const clipboard = (): Promise<string> => page.page.evaluate(() => navigator.clipboard.readText());
        await expect.poll(clipboard).toContain("/v1/pause");
        execFileSync("python3", ["-c", await clipboard()]);
        expect((await server.state()).run).toBe("paused");
        await page.button("Resume").click();
        await expect.poll(async () => (await server.state()).run).toBe("running");
      });

      await test.step("record and replay", async () => {
        const panel = await page.tab("Recordings");
        await panel.getByLabel("Name of the recording").fill("visit");
        await panel.getByRole("button", { name: "Record", exact: true }).click();
        const recorded = async (): Promise<number> =>
          Number(/(\d+) frames/.exec(await panel.locator(".running").innerText())?.[1]);
        await expect.poll(recorded).toBeGreaterThan(70);
        await panel.getByRole("button", { name: "Stop" }).click();
        await panel.getByLabel("Replay speed").selectOption("Max");
        await panel.getByRole("button", { name: "Replay visit" }).click();
        await expect(panel.getByText(/Replay matches/)).toBeVisible();
      });

      await test.step("share a clip", async () => {
        const panel = await page.tab("Share");
        await panel.getByLabel("The last").selectOption("5 seconds");
        const { bytes } = await saved(page.page, panel.getByRole("button", { name: "GIF" }));
        const clip = Buffer.from(bytes);
        expect(clip.subarray(0, 6).toString()).toBe("GIF89a");
        expect(clip.length).toBeGreaterThan(1000);
        await expect(panel.getByText(/^Saved clip\.gif/)).toBeVisible();
      });

      await test.step("drop another game", async () => {
        await drop(page.page, "another.gba", demoTitled("ANOTHER"));
        await expect.poll(async () => (await server.state()).title).toMatch(/^ANOTHER/);
      });
    });
  });
}
