/** Hotkeys, the command palette, dropped files, and undoing the loading of a state. */

import { readFileSync } from "node:fs";
import { Console, drop, openGameWithSave, saved } from "../support/console.ts";
import { demoTitled, repository } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

const SCORE = 0x0200_0044;

test("hotkeys pause, resume and step, and one fast-forwards while it is held", async ({
  console: page,
  server,
}) => {
  await page.screen.focus();
  await page.page.keyboard.press("Space");
  await expect.poll(async () => (await server.state()).run).toBe("paused");
  await expect(page.button("Resume")).toBeVisible();
  const { frame } = await server.state();
  await page.page.keyboard.press("Period");
  await expect.poll(async () => (await server.state()).frame).toBe(frame + 1);
  await page.page.keyboard.press("Space");
  await expect.poll(async () => (await server.state()).run).toBe("running");
  await page.page.keyboard.down("f");
  await expect.poll(async () => (await server.state()).speed).toBe("unlimited");
  await page.page.keyboard.up("f");
  await expect.poll(async () => (await server.state()).speed).toBe(1);
});

test("after a short tap of the key for fast forward, the old speed is set last", async ({
  console: page,
  server,
}) => {
  // The request for the higher speed takes longer than that for the old speed.
  const sent: string[] = [];
  await page.page.route("**/v1/speed*", async (route) => {
    const body = route.request().postData() ?? "";
    if (body.includes("unlimited")) await new Promise((resolve) => setTimeout(resolve, 300));
    await route.continue();
    sent.push(body);
  });
  await page.screen.focus();
  await page.page.keyboard.press("f");
  await expect.poll(() => sent.length).toBe(2);
  expect(sent[0]).toContain("unlimited");
  await expect.poll(async () => (await server.state()).speed).toBe(1);

  // The key is tapped, and pressed again before the request for the higher speed has ended.
  await page.page.keyboard.press("f");
  await page.page.keyboard.down("f");
  await expect.poll(async () => (await server.state()).speed).toBe("unlimited");
  await page.page.keyboard.up("f");
  await expect.poll(async () => (await server.state()).speed).toBe(1);
  expect(sent.length).toBe(4);
});

test("hotkeys are refused with the reason that their disabled buttons show", async ({
  console: page,
  server,
}) => {
  const toast = page.page.locator(".toast.bad");
  await page.screen.focus();
  await page.page.keyboard.press("Period");
  await expect(toast).toHaveText("Pause or use Lockstep first, to step frame by frame.");
  await expect(page.button("Step")).toHaveAttribute("title", await toast.innerText());
  // A second refusal does not repeat the message.
  await page.page.keyboard.press("Control+k");
  await page.page.getByRole("combobox", { name: "Search commands" }).fill("step one");
  await page.page.keyboard.press("Enter");
  await expect(toast).toHaveCount(1);
  expect((await server.state()).run).toBe("running");
});

test("no key or file ends a replay, so the game gets its earlier state back", async ({ page, server }) => {
  const opsSent: string[] = [];
  page.on("websocket", (socket) => {
    socket.on("framesent", ({ payload }) => opsSent.push(...(String(payload).match(/"op":"\w+"/g) ?? [])));
  });
  const opened = await Console.open(page, server);
  await server.holdAt(60);
  const state = new Uint8Array(await (await fetch(`${server.url}/v1/state`)).arrayBuffer());
  await server.json("/v1/snapshots", { name: "slot-1" });
  // The replay takes half a minute, so that it does not end before the test cancels it.
  await server.json("/v1/recordings", { name: "long" });
  for (let part = 0; part < 3; part += 1) await server.batch({ op: "advance", frames: 600 });
  await fetch(`${server.url}/v1/recording`, { method: "DELETE" });
  await server.holdAt(100);
  await server.batch({ op: "write32", address: SCORE, value: 4321 });
  const panel = await opened.tab("Recordings");
  await panel.getByRole("button", { name: "Replay long" }).click();
  await expect(page.locator(".badge").first()).toContainText("Replaying");

  const requests: string[] = [];
  page.on("request", (request) => {
    if (request.method() !== "GET") requests.push(request.url());
  });
  opsSent.length = 0;
  const refusal = page
    .locator(".toast.bad")
    .filter({ hasText: "A replay is running. Cancel it in Recordings." });
  const dismiss = async (): Promise<void> => {
    await expect(refusal).toHaveCount(1);
    await refusal.getByRole("button", { name: "Dismiss" }).click();
    await expect(refusal).toHaveCount(0);
  };
  for (const key of ["Space", "Period", "f", "1", "Comma", "x"]) {
    await opened.screen.focus();
    await page.keyboard.press(key);
    await dismiss();
  }
  await page.mouse.move(...(await opened.middle("B")));
  await page.mouse.down();
  await page.mouse.up();
  await dismiss();
  for (const name of ["game.ss1", "game.sav", "game.gba"]) {
    await drop(page, name, state);
    await dismiss();
  }
  const snapshots = await opened.tab("Snapshots");
  await snapshots.getByRole("button", { name: "Load slot-1" }).click();
  await dismiss();
  await expect(opened.button("Rewind")).toHaveAttribute("aria-disabled", "true");
  expect(requests).toEqual([]);
  expect(opsSent.filter((op) => op.includes("keys"))).toEqual([]);

  // A key that is still held when the replay ends is pressed then.
  await opened.screen.focus();
  await page.keyboard.down("x");
  await dismiss();
  expect(await server.json<{ over: boolean }>("/v1/replay")).toMatchObject({ over: false });
  await opened.tab("Recordings");
  await panel.getByRole("button", { name: "Cancel" }).click();
  await expect(panel.locator(".replay .outcome")).toContainText("was cancelled");
  await expect.poll(async () => (await server.batch({ op: "get_keys" }))[0]).toBe(1);
  // The game is paused, so the release of a short press would wait for the next frames.
  await page.waitForTimeout(200);
  await page.keyboard.up("x");
  await expect.poll(async () => (await server.batch({ op: "get_keys" }))[0]).toBe(0);
  expect((await server.state()).frame).toBe(100);
  expect(await server.batch({ op: "read32", address: SCORE })).toEqual([4321]);
});

test("keys for the game or for a field are not hotkeys", async ({ console: page, server }) => {
  await page.page.getByLabel("Frames to step").focus();
  await page.page.keyboard.press("2");
  await page.tab("Input");
  await page.page.getByRole("group", { name: "Keyboard keys" }).locator("[data-map=A]").click();
  await page.page.keyboard.press("Space");
  await page.screen.focus();
  await page.page.keyboard.down("Space");
  await page.expectLit("A");
  await page.page.keyboard.up("Space");
  expect((await server.state()).run).toBe("running");
  await expect(page.page.locator(".toast")).toHaveCount(0);
});

test("the keys are listed, and the palette finds commands by name", async ({ console: page, server }) => {
  await page.screen.focus();
  await page.page.keyboard.press("?");
  const help = page.page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await expect(help).toContainText("Fast forward while held");
  await page.page.keyboard.press("Escape");
  await expect(help).toHaveCount(0);
  await page.page.keyboard.press("Control+k");
  // A command for a held key cannot be started in the palette.
  await page.page.getByRole("combobox", { name: "Search commands" }).fill("fast forward");
  await expect(page.page.locator(".palette [role=option]")).toHaveCount(0);
  await page.page.getByRole("combobox", { name: "Search commands" }).fill("open watch");
  await expect(page.page.locator(".palette [role=option]")).toHaveCount(1);
  await page.page.keyboard.press("Enter");
  await expect(page.page.getByRole("tabpanel", { name: "Watches" })).toBeVisible();
  await page.page.keyboard.press("Control+k");
  await page.page.getByRole("combobox", { name: "Search commands" }).fill("pause or");
  await page.page.keyboard.press("Enter");
  await expect.poll(async () => (await server.state()).run).toBe("paused");
});

test("the picture is drawn with the chosen filter, even after a reload", async ({ console: page }) => {
  const choose = async (name: string): Promise<void> => {
    await page.page.keyboard.press("Control+k");
    await page.page.getByRole("combobox", { name: "Search commands" }).fill(`picture: ${name}`);
    await page.page.keyboard.press("Enter");
  };
  await expect(page.canvas).toHaveCSS("image-rendering", "pixelated");
  await choose("smooth");
  await expect(page.canvas).toHaveCSS("image-rendering", "auto");
  await page.page.reload();
  await expect(page.canvas).toHaveCSS("image-rendering", "auto");
  await choose("gba");
  await expect(page.canvas).toHaveCSS("filter", /saturate/);
  await choose("sharp");
  await expect(page.canvas).toHaveCSS("filter", "none");
});

test.describe("on a phone", () => {
  test.use({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });

  test("the palette opens without a keyboard", async ({ console: page }) => {
    await page.button("Commands").tap();
    const palette = page.page.getByRole("dialog", { name: "Commands" });
    await palette.getByRole("combobox").fill("picture");
    await palette.getByRole("option", { name: "Picture: smooth" }).tap();
    await expect(palette).toHaveCount(0);
    await expect(page.canvas).toHaveCSS("image-rendering", "auto");
  });
});

test("slots are saved and loaded by key, and loading can be undone", async ({ console: page, server }) => {
  await server.holdAt(200);
  await server.batch({ op: "write32", address: SCORE, value: 111 });
  await page.screen.focus();
  await page.page.keyboard.press("Shift+Digit2");
  await expect
    .poll(async () => (await server.json<{ snapshots: { name: string }[] }>("/v1/snapshots")).snapshots)
    .toHaveLength(1);
  await server.batch({ op: "write32", address: SCORE, value: 222 }, { op: "advance", frames: 60 });
  const score = async (): Promise<unknown> => (await server.batch({ op: "read32", address: SCORE }))[0];
  const later = await score();
  await page.page.keyboard.press("Digit2");
  await expect(page.page.locator(".toast")).toContainText("Loaded slot 2.");
  await expect.poll(score).toBe(111);
  await page.button("Undo").click();
  await expect.poll(score).toBe(later);
  expect((await server.state()).frame).toBe(260);
});

test("a dropped game, state and recording are loaded", async ({ console: page, server }) => {
  const rom = readFileSync(repository("rom/framewire-demo.gba"));
  await drop(page.page, "My game (v2).gba", demoTitled("DROPPED"));
  await expect(page.page.locator(".toast")).toContainText("Playing My-game-v2.gba.");
  await expect.poll(async () => (await server.state()).title).toMatch(/^DROPPED/);
  // Another game of that name replaces it only if the user agrees.
  await drop(page.page, "My game (v2).gba", rom);
  await page.page.getByRole("dialog").getByRole("button", { name: "Replace" }).click();
  await expect.poll(async () => (await server.state()).title).toBe("FRAMEWIRE");
  await server.holdAt(120);
  const state = new Uint8Array(await (await fetch(`${server.url}/v1/state`)).arrayBuffer());
  await server.batch({ op: "advance", frames: 30 });
  await drop(page.page, "game.ss1", state);
  await expect.poll(async () => (await server.state()).frame).toBe(120);
  await server.json("/v1/recordings", { name: "run" });
  await server.batch({ op: "advance", frames: 20 });
  await fetch(`${server.url}/v1/recording`, { method: "DELETE" });
  const recorded = new Uint8Array(await (await fetch(`${server.url}/v1/recordings/run/file`)).arrayBuffer());
  await drop(page.page, "from a friend.fwr", recorded);
  await expect(page.page.locator(".toast").last()).toContainText("Added the recording from-a-friend.");
  await drop(page.page, "notes.txt", new Uint8Array(3));
  await expect(page.page.locator(".toast.bad")).toContainText("use a game");
});

test("the battery save can be downloaded, and loaded from a file", async ({ console: page, server }) => {
  await server.holdAt(60);
  const panel = await page.tab("Snapshots");
  const { name, bytes } = await saved(page.page, panel.getByRole("button", { name: "Battery save" }));
  expect(name).toBe("game.sav");
  const save = Buffer.from(bytes);
  expect(save.length).toBe(0x8000);
  save[100] = 0x5a;
  const choosing = page.page.waitForEvent("filechooser");
  await panel.getByRole("button", { name: "Open a file" }).click();
  const other = { name: "other.sav", mimeType: "application/octet-stream", buffer: save };
  await (await choosing).setFiles(other);
  await page.page.getByRole("dialog").getByRole("button", { name: "Load" }).click();
  await expect(page.page.locator(".toast")).toContainText("Loaded the battery save other.sav.");
  expect(await server.batch({ op: "read8", address: 0x0e00_0064 })).toEqual([0x5a]);
});

test("a battery save that is opened together with its game is loaded into this game", async ({
  console: page,
}) => {
  const asked: string[] = [];
  await page.page.route(/\/v1\/(rom|save)(\?|$)/, async (route) => {
    const path = new URL(route.request().url()).pathname;
    // A game is usually far larger than its save, so its request takes longer.
    if (path === "/v1/rom") await new Promise((resolve) => setTimeout(resolve, 1500));
    asked.push(path);
    await route.continue();
  });
  await openGameWithSave(page.page, await page.tab("Snapshots"));
  expect(asked).toEqual(["/v1/rom", "/v1/save"]);
});

test("an open page sends no HTTP requests while nobody uses it", async ({ console: page, server }) => {
  const requests: string[] = [];
  let last = Date.now();
  page.page.on("request", (request) => {
    // The page gets the timeline's small pictures over the WebSocket and shows them with `blob:` URLs, which are
    // reported here but are not HTTP requests.
    if (request.url().startsWith("blob:")) return;
    requests.push(request.url());
    last = Date.now();
  });
  // The page may still be sending its first requests.
  await expect.poll(() => Date.now() - last, { timeout: 30_000 }).toBeGreaterThan(3000);
  requests.length = 0;
  await page.page.waitForTimeout(5000);
  expect(requests).toEqual([]);
  // Even so, the page shows what the emulator does.
  await server.json("/v1/pause", {});
  await expect(page.button("Resume")).toBeVisible();
  expect(requests).toEqual([]);
});
