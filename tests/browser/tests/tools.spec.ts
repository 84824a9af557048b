/** The tool panels and the toolbar, each with its effect on the emulator. */

import { execFileSync } from "node:child_process";
import type { Locator } from "@playwright/test";
import { goTo, saved } from "../support/console.ts";
import { repository } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

const SCORE = 0x0200_0044;
const SCRATCH = 0x0200_0100;

test("the toolbar pauses, steps, begins lockstep and sets the speed", async ({ console: page, server }) => {
  await expect(page.button("Step")).toHaveAttribute("aria-disabled", "true");
  await page.button("Pause").click();
  await expect(page.button("Resume")).toBeVisible();
  expect((await server.state()).run).toBe("paused");
  const { frame } = await server.state();
  await page.button("Step").click();
  await expect.poll(async () => (await server.state()).frame).toBe(frame + 1);
  // A button whose request is not answered yet ignores a second press.
  await expect(page.button("Step")).not.toHaveAttribute("aria-busy");
  await page.page.getByLabel("Frames to step").fill("30");
  await page.button("Step").click();
  await expect.poll(async () => (await server.state()).frame).toBe(frame + 31);
  await page.button("Resume").click();
  await expect.poll(async () => (await server.state()).run).toBe("running");
  await page.page.getByLabel("Speed", { exact: true }).selectOption("2");
  await expect.poll(async () => (await server.state()).speed).toBe(2);
  await page.page.getByLabel("Speed", { exact: true }).selectOption("Max");
  await expect.poll(async () => (await server.state()).speed).toBe("unlimited");
  await page.page.getByLabel("Speed", { exact: true }).selectOption("1");
  await page.button("Lockstep").click();
  await expect.poll(async () => (await server.state()).lockstep).toBe(true);
  await expect(page.button("Step")).not.toHaveAttribute("aria-disabled", "true");
  await expect(page.button("Lockstep")).not.toHaveAttribute("aria-busy");
  await page.button("Lockstep").click();
  await expect.poll(async () => (await server.state()).lockstep).toBe(false);
});

test("a reset asks for a confirmation", async ({ console: page, server }) => {
  await server.batch({ op: "pause" }, { op: "advance", frames: 600 });
  const frame = async (): Promise<number> => (await server.state()).frame;
  const before = await frame();
  await page.button("Reset").click();
  await page.page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  expect(await frame()).toBe(before);
  await page.button("Reset").click();
  await page.page.getByRole("dialog").getByRole("button", { name: "Reset" }).click();
  await expect.poll(frame).toBeLessThan(before);
});

/** The first `count` bytes in the memory panel. */
async function shown(panel: Locator, count: number): Promise<string> {
  const cells = await panel.getByRole("gridcell").allTextContents();
  return cells.slice(0, count).join("");
}

test("memory is shown, edited, highlighted where it changes, and found by symbol", async ({
  console: page,
  server,
}) => {
  const panel = await page.tab("Memory");
  await expect.poll(() => shown(panel, 8)).toBe(Buffer.from("FWDEMO01").toString("hex"));
  await expect(panel.locator(".changed").first()).toBeVisible();

  await goTo(panel, "02000100");
  await server.batch({
    op: "write_range",
    address: SCRATCH,
    data: Buffer.from("11223344", "hex").toString("base64"),
  });
  await expect.poll(() => shown(panel, 4)).toBe("11223344");
  await panel.getByRole("gridcell").first().click();
  await page.page.keyboard.type("beef");
  await expect
    .poll(async () => (await server.batch({ op: "read32", address: SCRATCH }))[0])
    .toBe(0x4433_efbe);
  await expect.poll(() => shown(panel, 4)).toBe("beef3344");

  await panel.getByRole("gridcell").first().click();
  await panel.getByLabel("Type").selectOption("u32");
  await panel.getByLabel("New value").fill("0x01020304");
  await panel.getByRole("button", { name: "Write" }).click();
  await expect.poll(() => shown(panel, 4)).toBe("04030201");
  await expect(panel.locator(".values")).toContainText("16909060");

  // After a number was refused as too large for one type, it can be written with a larger type.
  await panel.getByLabel("Type").selectOption("u8");
  await panel.getByLabel("New value").fill("300");
  await panel.getByRole("button", { name: "Write" }).click();
  await panel.getByLabel("Type").selectOption("u16");
  await panel.getByRole("button", { name: "Write" }).click();
  await expect.poll(() => shown(panel, 4)).toBe("2c010201");

  await goTo(panel, "ball_x+2");
  await expect(panel.locator(".inspector h2")).toHaveText(/0200003a\s*ball_y/);

  await goTo(panel, "nonsense");
  await expect(page.page.locator(".toast.bad")).toContainText("neither an address");

  const domains = panel.getByLabel("Memory domain");
  const labels = await domains.locator("option").allTextContents();
  const ram = labels.find((label) => label.includes("256 KiB"));
  await domains.selectOption({ label: ram ?? "no work RAM" });
  await expect.poll(() => shown(panel, 8)).toBe(Buffer.from("FWDEMO01").toString("hex"));
});

test("a value is frozen, listed, and unfrozen", async ({ console: page, server }) => {
  const panel = await page.tab("Memory");
  const read = async (): Promise<unknown> => (await server.batch({ op: "read16", address: SCRATCH }))[0];
  await goTo(panel, "02000100");
  await panel.getByLabel("Type").selectOption("u16");
  await panel.getByLabel("New value").fill("513");
  await panel.getByRole("button", { name: "Freeze", exact: true }).click();
  const frozen = panel.getByRole("list", { name: "Frozen values" });
  await expect(frozen).toContainText("u16 = 513");
  await server.batch({ op: "write16", address: SCRATCH, value: 7 });
  await expect.poll(read).toBe(513);
  await frozen.getByRole("button", { name: /^Unfreeze/ }).click();
  await expect(frozen).toBeHidden();
  await server.batch({ op: "write16", address: SCRATCH, value: 7 }, { op: "advance", frames: 3 });
  expect(await read()).toBe(7);
});

test("a write that the emulator refuses is reported", async ({ console: page }) => {
  await page.page.route(/\/v1\/memory\//, (route) =>
    route.fulfill({
      status: 501,
      contentType: "application/problem+json",
      json: { detail: "this script cannot write there" },
    }),
  );
  const panel = await page.tab("Memory");
  await goTo(panel, "02000100");
  await panel.getByLabel("New value").fill("5");
  await panel.getByRole("button", { name: "Write", exact: true }).click();
  await expect(page.page.locator(".toast")).toContainText("This script cannot write there");
});

test("texts and bytes are found, shown and watched", async ({ console: page }) => {
  const panel = await page.tab("Memory");
  await panel.getByLabel("Find in work RAM").fill("DEMO01");
  await panel.getByRole("button", { name: "Find", exact: true }).click();
  await panel.getByRole("button", { name: /^02000002/ }).click();
  await expect(panel.locator(".inspector h2")).toContainText("02000002");
  await panel.getByLabel("What to find").selectOption("Bytes in hex");
  await panel.getByLabel("Find in work RAM").fill("46 57 44 45");
  await panel.getByRole("button", { name: "Find", exact: true }).click();
  await panel.getByRole("button", { name: "Watch bytes[0x2000000, 4]" }).click();
  const watches = await page.tab("Watches");
  await expect(watches.getByRole("listitem").filter({ hasText: "bytes[0x2000000, 4]" })).toBeVisible();
});

test("watches show values, and errors in expressions", async ({ console: page, server }) => {
  const panel = await page.tab("Watches");
  const input = panel.getByLabel("Expression to watch");
  await input.fill(`u32[${SCRATCH}] + 1`);
  await input.press("Enter");
  const row = panel.getByRole("listitem").filter({ hasText: `u32[${SCRATCH}] + 1` });
  for (const value of [0, 41, 99]) {
    await server.batch({ op: "write32", address: SCRATCH, value });
    await expect(row.locator(".value")).toHaveText(String(value + 1));
  }
  await expect(row).toContainText("1 … 100");
  // The plot goes from the smallest value up to the largest one.
  await expect(row.locator(".plot path")).toHaveAttribute("d", /^M\S+ 200V95H\S+V5H1200V200$/);
  await input.fill("u32[");
  await input.press("Enter");
  // The invalid expression is rejected and stays in the field, so that the user can correct it.
  await expect(panel.getByRole("alert")).not.toBeEmpty();
  await expect(input).toHaveValue("u32[");
  await server.batch({ op: "write32", address: SCRATCH, value: 6 });
  await expect(row.locator(".value")).toHaveText("7");

  // The watches are still there after a reload.
  await page.page.reload();
  await expect(row.locator(".value")).toHaveText("7");
  await row.getByRole("button").click();
  await expect(panel).toContainText("No watches yet");
});

test("a number is added to the watches from the memory panel", async ({ console: page }) => {
  const memory = await page.tab("Memory");
  await goTo(memory, SCORE.toString(16));
  await memory.getByLabel("Type").selectOption("u32");
  await memory.getByRole("button", { name: "Watch" }).click();
  const watches = await page.tab("Watches");
  await expect(watches.locator(".watch .name")).toHaveText(/score|u32\[0x02000044\]/);
});

test("the symbol `frame` is watched, and not the frame counter", async ({ console: page, server }) => {
  await server.holdAt(60);
  const value = 123_456;
  await server.batch({ op: "write32", address: 0x0200_0008, value });
  const memory = await page.tab("Memory");
  await goTo(memory, "frame");
  await expect(memory.locator(".inspector h2")).toContainText("frame");
  await memory.getByRole("button", { name: "Watch" }).click();
  const watches = await page.tab("Watches");
  await expect(watches.locator(".watch .name")).toHaveText(["u32[0x02000008]"]);
  await expect(watches.locator(".watch .value")).toHaveText([String(value)]);
  // The button `frame` on the tab Watches adds the same watch.
  await watches.getByRole("button", { name: "Stop watching u32[0x02000008]" }).click();
  await watches.locator(".chips").getByRole("button", { name: "frame", exact: true }).click();
  await expect(watches.locator(".watch .name")).toHaveText(["u32[0x02000008]"]);
});

test("snapshots are saved with a picture, loaded, renamed and deleted", async ({ console: page, server }) => {
  const panel = await page.tab("Snapshots");
  await server.batch({ op: "pause" }, { op: "write32", address: SCRATCH, value: 1234 });
  await panel.getByLabel("Name of the snapshot").fill("first");
  await panel.getByRole("button", { name: "Save now" }).click();
  const card = panel.getByRole("listitem").filter({ hasText: "first" });
  await expect(card).toBeVisible();
  const picture = card.getByRole("img");
  await expect.poll(() => picture.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(240);

  await server.batch({ op: "write32", address: SCRATCH, value: 0 });
  await card.getByRole("button", { name: "Load first" }).click();
  await expect.poll(async () => (await server.batch({ op: "read32", address: SCRATCH }))[0]).toBe(1234);

  await card.getByRole("button", { name: "Rename first" }).click();
  await page.page.getByRole("dialog").getByLabel("New name").fill("second");
  await page.page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
  const renamed = panel.getByRole("listitem").filter({ hasText: "second" });
  await expect(renamed).toBeVisible();

  await panel.getByLabel("Name of the snapshot").fill("no/such name");
  await panel.getByRole("button", { name: "Save now" }).click();
  await expect(page.page.locator(".toast.bad")).toBeVisible();

  await renamed.getByRole("button", { name: "Delete second" }).click();
  await page.page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(panel).toContainText("No snapshots yet");
});

test("input is recorded and replayed, and the replay matches", async ({ console: page }) => {
  const panel = await page.tab("Recordings");
  await panel.getByLabel("Name of the recording").fill("run");
  await panel.getByRole("button", { name: "Record", exact: true }).click();
  await expect(panel.getByText("Recording run")).toBeVisible();
  for (const [key, lamp] of [
    ["ArrowLeft", "Left"],
    ["x", "A"],
    ["ArrowRight", "Right"],
  ] as const) {
    await page.screen.focus();
    await page.press(key, lamp);
  }
  // The recording has a hash of the picture each second.
  const recorded = async (): Promise<number> =>
    Number(/(\d+) frames/.exec(await panel.locator(".running").innerText())?.[1]);
  await expect.poll(recorded).toBeGreaterThan(70);
  await panel.getByRole("button", { name: "Stop" }).click();
  await panel.getByLabel("Replay speed").selectOption("Max");
  await panel.getByRole("button", { name: "Replay run" }).click();
  await expect(
    panel.getByText(/Replay matches: \d+ of \d+ frames of run are identical \(\d+ pictures?/),
  ).toBeVisible();
  const { name } = await saved(page.page, panel.getByRole("button", { name: "Download run" }));
  expect(name).toBe("run.fwr");
  await panel.getByRole("button", { name: "Delete run" }).click();
  await page.page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(panel).toContainText("No recordings yet");
});

test("a sequence is played frame by frame, and an invalid one is explained", async ({
  console: page,
  server,
}) => {
  const panel = await page.tab("Input");
  const presses = async (): Promise<unknown[]> =>
    server.batch({ op: "read32", address: 0x0200_0010 }, { op: "read32", address: 0x0200_0014 });
  const [a, b] = await presses();
  await panel.getByLabel("Sequence", { exact: true }).fill("A:2 .:3 A:2 .:3 B:1");
  await panel.getByRole("button", { name: "Play" }).click();
  await expect(panel.getByText(/Played from frame \d+ to \d+/)).toBeVisible();
  await expect.poll(presses).toEqual([Number(a) + 2, Number(b) + 1]);
  await panel.getByLabel("Sequence", { exact: true }).fill("A:x");
  await panel.getByRole("button", { name: "Play" }).click();
  await expect(page.page.locator(".toast.bad")).toBeVisible();
});

test("each action can be copied as a command that has the same effect", async ({ console: page, server }) => {
  const clipboard = (): Promise<string> => page.page.evaluate(() => navigator.clipboard.readText());
  await page.button("curl").click();
  await page.button("Pause").click();
  await expect.poll(clipboard).toBe(`curl -X POST ${server.url}/v1/pause`);
  expect((await server.state()).run).toBe("running");
  await page.page.locator(".pad [data-key=B]").click();
  await expect
    .poll(clipboard)
    .toBe(`curl ${server.url}/v1/tap -H 'Content-Type: application/json' -d '{"keys":["B"],"frames":2}'`);
  await page.page.keyboard.press("Escape");
  await page.button("Pause").click();
  await expect(page.button("Resume")).toBeVisible();

  const log = await page.tab("Log");
  await expect(log.getByRole("listitem")).toHaveCount(1);
  await expect(log.getByRole("listitem")).toContainText("POST /v1/pause");
  await log.getByRole("button", { name: 'Copy "Pause" as curl' }).click();
  await expect.poll(clipboard).toContain("/v1/pause");
});

test("each action in the log can be copied as a program that repeats it", async ({
  console: page,
  server,
}) => {
  const clipboard = (): Promise<string> => page.page.evaluate(() => navigator.clipboard.readText());
  const run = async (): Promise<string> => (await server.state()).run;
  await page.button("Pause").click();
  await page.button("Step").click();
  // Otherwise, the step could run after the game is resumed below.
  await expect(page.button("Step")).not.toHaveAttribute("aria-busy");
  const log = await page.tab("Log");
  const programs = {
    Python: (code: string) => execFileSync("python3", ["-c", code]),
    JavaScript: (code: string) => execFileSync(process.execPath, ["--input-type=module", "-e", code]),
    Lua: (code: string) => execFileSync("luajit", ["-e", code], { cwd: repository("luajit") }),
  };
  for (const [name, program] of Object.entries(programs)) {
    await log.getByLabel("Copy as").selectOption(name);
    await server.json("/v1/resume", {});
    await log.getByRole("button", { name: `Copy "Pause" as ${name}` }).click();
    await expect.poll(clipboard).toContain("/v1/pause");
    program(await clipboard());
    expect(await run(), name).toBe("paused");
    const { frame } = await server.state();
    await log.getByRole("button", { name: `Copy "Advance one frame" as ${name}` }).click();
    await expect.poll(clipboard).toContain("/v1/advance");
    expect(JSON.parse(String(program(await clipboard()))), name).toEqual({ frame: frame + 1 });
  }
});

test("the link panel measures the round trip to the emulator", async ({ console: page }) => {
  const panel = await page.tab("Link");
  await expect(panel.locator("dl")).toContainText(/Round trip\s*[\d.]+ ms/);
  await expect(panel.locator("dl")).toContainText(/FRAMEWIRE/);
  await expect(panel.locator("dl")).toContainText(/embedded in the server/);
});

test("after a replay, the game has its earlier state and battery save again", async ({
  console: page,
  server,
}) => {
  const panel = await page.tab("Recordings");
  await panel.getByLabel("Name of the recording").fill("run");
  await panel.getByRole("button", { name: "Record", exact: true }).click();
  await panel.getByRole("button", { name: "Stop" }).click();
  await expect(page.page.locator(".toast").last()).toContainText("Recorded");
  const mine = Buffer.alloc(0x8000, "S");
  await fetch(`${server.url}/v1/save`, { method: "PUT", body: mine });
  await server.holdAt(100);
  await panel.getByLabel("Replay speed").selectOption("Max");
  await panel.getByRole("button", { name: "Replay run" }).click();
  await expect(panel.getByText("Replay matches")).toBeVisible();
  const save = Buffer.from(await (await fetch(`${server.url}/v1/save`)).arrayBuffer());
  expect(save.equals(mine)).toBe(true);
  expect((await server.state()).frame).toBe(100);
});

test("a double click saves one snapshot", async ({ console: page }) => {
  const panel = await page.tab("Snapshots");
  const saves: string[] = [];
  page.page.on("request", (request) => {
    if (request.method() === "POST" && request.url().endsWith("/v1/snapshots")) saves.push(request.url());
  });
  // The request is still open at the second click.
  await page.page.route("**/v1/snapshots", async (route) => {
    if (route.request().method() === "POST") await new Promise((done) => setTimeout(done, 500));
    await route.continue();
  });
  await panel.getByRole("button", { name: "Save now" }).dblclick();
  await expect(page.page.locator(".toast")).toContainText("Saved snapshot-1.");
  expect(saves).toHaveLength(1);
});

test("a sequence that is refused while another one plays does not hide that one", async ({
  console: page,
}) => {
  const panel = await page.tab("Input");
  await panel.getByLabel("Sequence", { exact: true }).fill("A:3600");
  await panel.getByRole("button", { name: "Play" }).dblclick();
  await expect(page.page.locator(".toast.bad")).toBeVisible();
  await expect(panel.getByText("Playing…")).toBeVisible();
  await panel.getByRole("button", { name: "Cancel" }).click();
  await expect(panel.getByText(/^Cancelled at frame/)).toBeVisible();
});
