/** A server with several emulators. */

import type { Page } from "@playwright/test";
import { Console, goTo, LAMPS, openGameWithSave } from "../support/console.ts";
import { demoCopies, type Server } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

test("the page shows and controls the selected emulator", async ({ page, serve }) => {
  const server = await serve(demoCopies(test.info().outputPath(), ["left", "right"]));
  const opened = await Console.open(page, server);
  const presses = async (emulator: string): Promise<unknown> => {
    const body = { ops: [{ op: "read32", address: 0x0200_0010 }] };
    const done = await server.json<{ results: { value: unknown }[] }>(`/v1/batch?emulator=${emulator}`, body);
    return done.results[0]?.value;
  };
  const press = async (): Promise<void> => {
    await opened.screen.focus();
    await opened.press();
  };
  await press();
  expect([await presses("left"), await presses("right")]).toEqual([1, 0]);

  await page.getByLabel("Emulator", { exact: true }).selectOption("right");
  await expect(page).toHaveURL(/\?emulator=right$/);
  await expect(page.locator(".veil")).toBeHidden();
  await press();
  expect([await presses("left"), await presses("right")]).toEqual([1, 1]);
  await opened.button("Pause").click();
  await expect(opened.button("Resume")).toBeVisible();
  const run = async (name: string): Promise<string> =>
    (await server.json<{ run: string }>(`/v1/emulator?emulator=${name}`)).run;
  expect([await run("left"), await run("right")]).toEqual(["running", "paused"]);

  // The URL contains the name of the selected emulator.
  await page.reload();
  await expect(page.getByLabel("Emulator", { exact: true })).toHaveValue("right");
  await expect(opened.button("Resume")).toBeVisible();
});

test("the tool Emulators shows all emulators live, and a click selects one", async ({ page, serve }) => {
  const server = await serve(demoCopies(test.info().outputPath(), ["one", "two", "three"]));
  const opened = await Console.open(page, server);
  const wall = await opened.tab("Emulators");
  await expect(wall.getByRole("listitem")).toHaveCount(3);
  const two = wall.getByRole("button", { name: /^two/ });
  await expect(two).toContainText(/Running, \d+ fps/);
  await expect(wall.getByRole("button", { name: /^one/ })).toHaveAttribute("aria-pressed", "true");
  // The lamp of a key that only the second emulator holds is lit only in its picture.
  await server.json("/v1/batch?emulator=two", { ops: [{ op: "add_keys", keys: 1 }] });
  const lamp = LAMPS.get("A");
  if (!lamp) throw new Error("the demo game has no lamp for A");
  const lit = (name: string): Promise<number[]> => {
    const button = wall.getByRole("button", { name: new RegExp(`^${name}`) });
    return opened.pixel(lamp.x, lamp.y, button.locator("canvas"));
  };
  await expect.poll(() => lit("two")).toEqual(lamp.lit);
  expect(await lit("three")).not.toEqual(lamp.lit);
  await two.click();
  await expect(page).toHaveURL(/\?emulator=two#tool=emulators$/);
  await opened.button("Pause").click();
  await expect(two).toContainText("Paused");
  // In copy mode, a key copies a command for the selected emulator.
  await opened.button("curl").click();
  await page.keyboard.press("x");
  await expect(page.locator(".toast.copied")).toContainText("emulator=two");
  await opened.button("curl").click();
  // After a reload, the tool opens again as soon as the page has learned that there are several emulators.
  await page.reload();
  await expect(wall.getByRole("listitem")).toHaveCount(3);
  await expect(page.getByRole("tab", { name: "Emulators" })).toHaveAttribute("aria-selected", "true");
});

test("with one emulator, the tool Emulators is hidden", async ({ console: opened, page }) => {
  await expect(opened.button("Pause")).toBeVisible();
  await expect(page.getByRole("tab", { name: "Emulators" })).toBeHidden();
});

/** Opens the page of a server with the emulators `one`, which is selected, and `two`. */
async function openTwo(page: Page, serve: typeof Server.start): Promise<Console> {
  const server = await serve([...demoCopies(test.info().outputPath(), ["one", "two"]), "--speed", "1"]);
  return Console.open(page, server);
}

/** The state of an emulator. */
function stateOf({ server }: Console, name: string): Promise<{ frame: number; run: string; speed: unknown }> {
  return server.json(`/v1/emulator?emulator=${name}`);
}

test("the old speed is set where fast forward began, after another emulator is selected", async ({
  page,
  serve,
}) => {
  const opened = await openTwo(page, serve);
  await opened.screen.focus();
  await page.keyboard.down("f");
  await expect.poll(async () => (await stateOf(opened, "one")).speed).toBe("unlimited");
  await page.getByLabel("Emulator", { exact: true }).selectOption("two");
  await opened.screen.focus();
  await page.keyboard.up("f");
  await expect.poll(async () => (await stateOf(opened, "one")).speed).toBe(1);
});

test("Undo goes back where the state was loaded, after another emulator is selected", async ({
  page,
  serve,
}) => {
  const opened = await openTwo(page, serve);
  const ops = [{ op: "pause" }, { op: "reset" }, { op: "advance", frames: 300 }];
  for (const name of ["one", "two"]) await opened.server.json(`/v1/batch?emulator=${name}`, { ops });
  await opened.screen.focus();
  await page.keyboard.press("Shift+Digit1");
  await expect
    .poll(async () => (await opened.server.json<{ snapshots: unknown[] }>("/v1/snapshots")).snapshots)
    .toHaveLength(1);
  const more = [{ op: "advance", frames: 100 }];
  for (const name of ["one", "two"]) await opened.server.json(`/v1/batch?emulator=${name}`, { ops: more });
  await page.keyboard.press("Digit1");
  await expect.poll(async () => (await stateOf(opened, "one")).frame).toBe(300);
  await opened.server.json("/v1/batch?emulator=two", { ops: more });
  await page.getByLabel("Emulator", { exact: true }).selectOption("two");
  await opened.button("Undo").click();
  await expect.poll(async () => (await stateOf(opened, "one")).frame).toBe(400);
  expect((await stateOf(opened, "two")).frame).toBe(500);
});

test("a game that is rewound runs on after another emulator is selected", async ({ page, serve }) => {
  const opened = await openTwo(page, serve);
  await expect.poll(async () => (await stateOf(opened, "one")).frame).toBeGreaterThan(120);
  await expect(page.locator(".timeline")).toBeVisible();
  await opened.screen.focus();
  await page.keyboard.down("Comma");
  await expect.poll(async () => (await stateOf(opened, "one")).run).toBe("paused");
  const rewound: (string | null)[] = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.pathname === "/v1/rewind") rewound.push(url.searchParams.get("emulator"));
  });
  await page.getByLabel("Emulator", { exact: true }).selectOption("two");
  await expect.poll(async () => (await stateOf(opened, "one")).run).toBe("running");
  await page.keyboard.up("Comma");
  expect((await stateOf(opened, "two")).run).toBe("running");
  expect(rewound).not.toContain("two");
});

test("an offset in a domain does not become an address on the bus of another emulator", async ({
  page,
  serve,
}) => {
  const opened = await openTwo(page, serve);
  const panel = await opened.tab("Memory");
  await panel.getByLabel("Memory domain").selectOption("vram");
  await goTo(panel, "2010");
  await expect(page).toHaveURL(/domain=vram&address=2010$/);
  await page.getByLabel("Emulator", { exact: true }).selectOption("two");
  await expect(panel.locator(".inspector h2")).toContainText("02000000");
  await expect(page).not.toHaveURL(/domain=/);
});

test("a game and its save that are opened together are loaded into the same emulator", async ({
  page,
  serve,
}) => {
  const opened = await openTwo(page, serve);
  const asked: string[] = [];
  await page.route(/\/v1\/(rom|save)(\?|$)/, async (route) => {
    const { pathname, searchParams } = new URL(route.request().url());
    asked.push(`${pathname} ${searchParams.get("emulator")}`);
    if (pathname === "/v1/rom") await page.getByLabel("Emulator", { exact: true }).selectOption("two");
    await route.continue();
  });
  await openGameWithSave(page, await opened.tab("Snapshots"));
  expect(asked).toEqual(["/v1/rom one", "/v1/save one"]);
});

test("the page asks for no sound while an mGBA window is selected", async ({ page, serve, openWindow }) => {
  const window = await openWindow();
  const server = await serve([
    ...demoCopies(test.info().outputPath(), ["core"]),
    "--attach",
    `window=${window.address}`,
  ]);
  const opened = await Console.open(page, server);
  const asked: (string | null)[] = [];
  page.on("websocket", (socket) => {
    const { pathname, searchParams } = new URL(socket.url());
    if (pathname === "/v1/audio") asked.push(searchParams.get("emulator"));
  });
  await opened.button("Sound").click();
  await expect.poll(() => asked.length).toBe(1);
  await page.getByLabel("Emulator", { exact: true }).selectOption("window");
  await expect(opened.button("Sound")).toHaveAttribute("aria-disabled", "true");
  const before = asked.length;
  // Long enough for several attempts to connect.
  await page.waitForTimeout(2000);
  expect(asked.length).toBe(before);
  await page.getByLabel("Emulator", { exact: true }).selectOption("core");
  await expect.poll(() => asked.slice(before)).toEqual(["core"]);
});
