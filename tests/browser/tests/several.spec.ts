/** A server with several emulators. */

import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Console } from "../support/console.ts";
import { repository } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

test("the page shows and controls the selected emulator", async ({ page, serve }) => {
  const folder = mkdtempSync(join(tmpdir(), "framewire-roms-"));
  const args = ["left", "right"].flatMap((name) => {
    const rom = join(folder, `${name}.gba`);
    copyFileSync(repository("rom/framewire-demo.gba"), rom);
    return ["--rom", `${name}=${rom}`];
  });
  const server = await serve(args);
  const opened = new Console(page, server);
  await opened.open();
  const presses = async (emulator: string): Promise<unknown> => {
    const body = { ops: [{ op: "read32", address: 0x0200_0010 }] };
    const done = await server.json<{ results: { value: unknown }[] }>(`/v1/batch?emulator=${emulator}`, body);
    return done.results[0]?.value;
  };
  const press = async (): Promise<void> => {
    await opened.screen.focus();
    await page.keyboard.down("x");
    await opened.expectLit("A");
    await page.keyboard.up("x");
    await opened.expectLit();
  };
  await press();
  expect([await presses("left"), await presses("right")]).toEqual([1, 0]);

  await page.getByLabel("Emulator").selectOption("right");
  await expect(page).toHaveURL(/\?emulator=right$/);
  await expect(page.locator(".veil")).toBeHidden();
  await press();
  expect([await presses("left"), await presses("right")]).toEqual([1, 1]);
  await opened.button("Pause").click();
  await expect(opened.button("Resume")).toBeVisible();
  const run = async (name: string): Promise<string> =>
    (await server.json<{ run: string }>(`/v1/emulator?emulator=${name}`)).run;
  expect([await run("left"), await run("right")]).toEqual(["running", "paused"]);

  // The address names the selected emulator.
  await page.reload();
  await expect(page.getByLabel("Emulator")).toHaveValue("right");
  await expect(opened.button("Resume")).toBeVisible();
  rmSync(folder, { recursive: true });
});
