/** Tests for fixed bugs of the tools Snapshots and Recordings, named for the behaviour that each bug broke. */

import { Console, drop, openFiles, saved, shortenLimit } from "../support/console.ts";
import { demoCopies } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

test("Enter after a click on Load plays, and does not load again", async ({ console: page }) => {
  const panel = await page.tab("Snapshots");
  await panel.getByLabel("Name of the snapshot").fill("before the boss");
  await panel.getByRole("button", { name: "Save now" }).click();
  await expect(page.screen).toBeFocused();
  await panel.getByRole("button", { name: "Load before-the-boss" }).click();
  await expect(page.page.locator(".toast").last()).toContainText("Loaded before-the-boss");
  await expect(page.screen).toBeFocused();
  await page.page.keyboard.down("Enter");
  await page.expectLit("Start");
  await page.page.keyboard.up("Enter");
  const log = await page.tab("Log");
  await expect(log.getByRole("listitem").filter({ hasText: "Load snapshot" })).toHaveCount(1);
  await page.tab("Snapshots");
  await panel.getByRole("button", { name: "Save now" }).click();
  await expect(panel.getByRole("listitem").filter({ hasText: "snapshot-1" })).toBeVisible();
});

test("a snapshot may have spaces in its name, and has a short name if none is given", async ({
  console: page,
}) => {
  const panel = await page.tab("Snapshots");
  await panel.getByLabel("Name of the snapshot").fill("before the boss");
  await panel.getByRole("button", { name: "Save now" }).click();
  const names = panel.locator(".card strong");
  await expect(names).toHaveText(["before-the-boss"]);
  await panel.getByRole("button", { name: "Save now" }).click();
  await expect(names).toHaveText(["snapshot-1", "before-the-boss"]);
  const lines = await names.evaluateAll((all) => all.map((name) => name.getClientRects().length));
  expect(lines, "each name is one line").toEqual([1, 1]);
});

test("a second recording gets its own name, and a used name needs a confirmation", async ({
  console: page,
}) => {
  const panel = await page.tab("Recordings");
  for (const name of ["recording-1", "recording-2"]) {
    await panel.getByRole("button", { name: "Record", exact: true }).click();
    await expect(panel.getByText(`Recording ${name}`)).toBeVisible();
    await expect(panel.getByText("No recordings yet")).toBeHidden();
    await panel.getByRole("button", { name: "Stop" }).click();
    await expect(panel.getByRole("button", { name: `Delete ${name}` })).toBeVisible();
  }
  await panel.getByLabel("Name of the recording").fill("recording 1");
  await panel.getByRole("button", { name: "Record", exact: true }).click();
  await page.page.getByRole("dialog").getByRole("button", { name: "Replace" }).click();
  await expect(panel.getByText("Recording recording-1")).toBeVisible();
  await panel.getByRole("button", { name: "Stop" }).click();
});

test("while a replay runs, the page says so and Resume does nothing", async ({ console: page, server }) => {
  const panel = await page.tab("Recordings");
  await panel.getByRole("button", { name: "Record", exact: true }).click();
  await expect(panel.getByText("Recording recording-1")).toBeVisible();
  // The replay takes half a minute, so that it does not end before the test looks at the page.
  await server.json("/v1/pause", {});
  for (let part = 0; part < 3; part += 1) await server.batch({ op: "advance", frames: 600 });
  await server.json("/v1/resume", {});
  await expect
    .poll(async () => Number(/(\d+) frames/.exec(await panel.locator(".running").innerText())?.[1]))
    .toBeGreaterThan(1800);
  await panel.getByRole("button", { name: "Stop" }).click();
  await panel.getByRole("button", { name: "Replay recording-1" }).click();
  await expect(page.page.locator(".badge").first()).toContainText("Replaying");
  await expect(page.page.locator(".transport > button").first()).toHaveAttribute("title", /replay/);
  await panel.getByRole("button", { name: "Cancel" }).click();
  await expect(page.page.locator(".badge").first()).not.toContainText("Replaying");
});

test("Stop and Cancel stay the same buttons while their line changes", async ({ console: page, server }) => {
  const panel = await page.tab("Recordings");
  // Waits for two changes of a text, and checks that the button is still on the page.
  const stays = async (name: string, text: string): Promise<void> => {
    const button = await panel.getByRole("button", { name, exact: true }).elementHandle();
    const shown = panel.locator(text);
    for (let change = 0; change < 2; change += 1) {
      const before = await shown.innerText();
      await expect(shown).not.toHaveText(before);
    }
    expect(await button?.evaluate((element) => element.isConnected)).toBe(true);
  };
  await panel.getByRole("button", { name: "Record", exact: true }).click();
  await stays("Stop", ".running .about span");
  // The replay takes longer than the check.
  await server.json("/v1/pause", {});
  for (let part = 0; part < 3; part += 1) await server.batch({ op: "advance", frames: 600 });
  await server.json("/v1/resume", {});
  await panel.getByRole("button", { name: "Stop" }).click();
  await panel.getByRole("button", { name: "Replay recording-1" }).click();
  await stays("Cancel", ".replay span >> nth=0");
  await panel.getByRole("button", { name: "Cancel" }).click();
});

test("a recording keeps its Stop button while requests for its state fail", async ({ console: page }) => {
  const panel = await page.tab("Recordings");
  await panel.getByRole("button", { name: "Record", exact: true }).click();
  const stop = panel.getByRole("button", { name: "Stop" });
  await expect(stop).toBeVisible();
  let failed = 0;
  await page.page.route(/\/v1\/recording(\?|$)/, (route) => {
    failed += 1;
    return route.abort();
  });
  await expect.poll(() => failed).toBeGreaterThan(1);
  await page.page.unrouteAll();
  await expect(stop).toBeVisible();
  await stop.click();
  await expect(page.page.locator(".toast").last()).toContainText("Recorded");
});

test("a replay is followed and cancelled after another emulator is selected", async ({
  page,
  serve,
}, info) => {
  const server = await serve(demoCopies(info.outputPath(), ["one", "two"]));
  const opened = await Console.open(page, server);
  const panel = await opened.tab("Recordings");
  await panel.getByRole("button", { name: "Record", exact: true }).click();
  await expect(panel.getByText("Recording recording-1")).toBeVisible();
  // The replay takes longer than the test.
  await server.json("/v1/pause?emulator=one", {});
  for (let part = 0; part < 6; part += 1)
    await server.json("/v1/batch?emulator=one", { ops: [{ op: "advance", frames: 600 }] });
  await server.json("/v1/resume?emulator=one", {});
  await panel.getByRole("button", { name: "Stop" }).click();
  await panel.getByRole("button", { name: "Replay recording-1" }).click();
  const badge = page.locator(".badge").first();
  await expect(badge).toContainText("Replaying");
  await page.getByLabel("Emulator", { exact: true }).selectOption("two");
  await expect(badge).toContainText("Running");
  const progress = panel.locator(".replay span").first();
  for (let change = 0; change < 2; change += 1) {
    const before = await progress.innerText();
    await expect(progress).not.toHaveText(before);
  }
  await panel.getByRole("button", { name: "Cancel" }).click();
  await expect(panel.locator(".replay .outcome")).toContainText("was cancelled");
  await expect(page.locator(".toast.bad")).toHaveCount(0);
});

test("a replay still counts as running after another one has begun on another emulator", async ({
  page,
  serve,
}, info) => {
  const server = await serve(demoCopies(info.outputPath(), ["one", "two"]));
  const opened = await Console.open(page, server);
  // The replays take longer than the test.
  await server.json("/v1/pause?emulator=one", {});
  await server.json("/v1/recordings?emulator=one", { name: "long" });
  for (let part = 0; part < 6; part += 1)
    await server.json("/v1/batch?emulator=one", { ops: [{ op: "advance", frames: 600 }] });
  await fetch(`${server.url}/v1/recording?emulator=one`, { method: "DELETE" });
  const panel = await opened.tab("Recordings");
  const badge = page.locator(".badge").first();
  for (const name of ["one", "two"]) {
    await page.getByLabel("Emulator", { exact: true }).selectOption(name);
    await panel.getByRole("button", { name: "Replay long" }).click();
    await expect(badge).toContainText("Replaying");
  }
  await page.getByLabel("Emulator", { exact: true }).selectOption("one");
  await expect(badge).toContainText("Replaying");
  const cancel = panel.getByRole("button", { name: "Cancel" });
  await expect(cancel).toHaveCount(2);
  await expect(panel.locator(".replay")).toContainText(["long on one", "long on two"]);
  await cancel.first().click();
  await expect(badge).toContainText("Paused");
  await page.getByLabel("Emulator", { exact: true }).selectOption("two");
  await expect(badge).toContainText("Replaying");
});

test("a recording that another client begins is shown and can be stopped", async ({
  console: page,
  server,
}) => {
  const panel = await page.tab("Recordings");
  await expect(panel.getByText("No recordings yet.")).toBeVisible();
  await server.json("/v1/recordings", { name: "theirs" });
  await expect(panel.getByText("Recording theirs")).toBeVisible();
  await panel.getByRole("button", { name: "Stop" }).click();
  await expect(page.page.locator(".toast").last()).toContainText("theirs");
});

test("a state that is opened together with a battery save is loaded after it", async ({
  console: page,
  server,
}) => {
  await server.holdAt(120);
  const state = Buffer.from(await (await fetch(`${server.url}/v1/state`)).arrayBuffer());
  await server.batch({ op: "advance", frames: 30 });
  await openFiles(page.page, await page.tab("Snapshots"), {
    "a.ss1": state,
    "b.sav": Buffer.alloc(0x8000, 1),
  });
  await page.page.getByRole("dialog").getByRole("button", { name: "Load" }).click();
  await expect(page.page.locator(".toast")).toContainText([
    "Loaded the battery save b.sav.",
    "Loaded the state a.ss1.",
  ]);
  expect((await server.state()).frame).toBe(120);
});

test("a dropped recording replaces one with its name only after a confirmation", async ({
  console: page,
  server,
}) => {
  const record = async (frames: number): Promise<Uint8Array> => {
    await server.json("/v1/recordings", { name: "run", replace: true });
    await server.batch({ op: "advance", frames });
    await fetch(`${server.url}/v1/recording`, { method: "DELETE" });
    return new Uint8Array(await (await fetch(`${server.url}/v1/recordings/run/file`)).arrayBuffer());
  };
  const frames = async (): Promise<number> =>
    (await server.json<{ frames: number }>("/v1/recordings/run")).frames;
  await server.holdAt(60);
  const first = await record(10);
  await record(20);
  const dialog = page.page.getByRole("dialog", { name: "Replace run?" });
  await drop(page.page, "run.fwr", first);
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await expect(dialog).toHaveCount(0);
  expect(await frames()).toBe(20);
  await drop(page.page, "run.fwr", first);
  await dialog.getByRole("button", { name: "Replace" }).click();
  await expect(page.page.locator(".toast")).toContainText("Added the recording run.");
  expect(await frames()).toBe(10);
});

test("a snapshot replaces one with its name only after a confirmation", async ({ console: page, server }) => {
  const panel = await page.tab("Snapshots");
  const save = async (): Promise<void> => {
    await panel.getByLabel("Name of the snapshot").fill("here");
    await panel.getByRole("button", { name: "Save now" }).click();
  };
  await server.holdAt(100);
  await save();
  await expect(panel.getByText("frame 100")).toBeVisible();
  await server.batch({ op: "advance", frames: 30 });
  const dialog = page.page.getByRole("dialog", { name: "Replace here?" });
  await save();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await expect(panel.getByText("frame 100")).toBeVisible();
  await save();
  await dialog.getByRole("button", { name: "Replace" }).click();
  await expect(panel.getByText("frame 130")).toBeVisible();
});

test("a recording that ends by itself says why", async ({ console: page, server }) => {
  const panel = await page.tab("Recordings");
  await panel.getByRole("button", { name: "Record", exact: true }).click();
  await expect(panel.getByText("Recording recording-1")).toBeVisible();
  await server.batch({ op: "reset" });
  await expect(page.page.locator(".toast.bad")).toContainText(
    "The recording recording-1 has ended: the console was reset",
  );
});

test("the running recording is that of the selected emulator, even if an answer is late", async ({
  page,
  serve,
}, info) => {
  const server = await serve(demoCopies(info.outputPath(), ["one", "two"]));
  let isHolding = false;
  let answer: (() => void) | undefined;
  await page.route(/\/v1\/recording$/, async (route) => {
    if (isHolding) await new Promise<void>((resolve) => (answer = resolve));
    await route.continue();
  });
  const opened = await Console.open(page, server);
  const panel = await opened.tab("Recordings");
  const running = panel.locator(".running");
  await server.json("/v1/recordings?emulator=one", { name: "ours" });
  await expect(running).toContainText("Recording ours");
  isHolding = true;
  await expect.poll(() => answer).toBeDefined();
  await page.getByLabel("Emulator", { exact: true }).selectOption("two");
  await expect(running).toBeHidden();
  const late = page.waitForResponse(/\/v1\/recording$/);
  answer?.();
  await (await late).finished();
  await page.evaluate(() => new Promise(requestAnimationFrame));
  expect(await running.isVisible()).toBe(false);
});

test("the download of a recording may take longer than other requests", async ({ console: page, server }) => {
  await server.json("/v1/recordings", { name: "run" });
  await fetch(`${server.url}/v1/recording`, { method: "DELETE" });
  await shortenLimit(page.page);
  await page.page.route(/\/v1\/recordings\/run\/file/, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 3000));
    await route.continue();
  });
  const panel = await page.tab("Recordings");
  const { name } = await saved(page.page, panel.getByRole("button", { name: "Download run" }));
  expect(name).toBe("run.fwr");
});

test("Rewind goes back from the current frame, just after a state was loaded", async ({
  console: page,
  server,
}) => {
  await server.holdAt(300);
  await server.json("/v1/snapshots", { name: "slot-1" });
  await server.batch({ op: "advance", frames: 200 });
  await expect(page.page.getByRole("slider", { name: "Timeline" })).toHaveValue("500");
  const frame = async (): Promise<number> => (await server.state()).frame;
  await page.screen.focus();
  await page.page.keyboard.press("Digit1");
  await expect.poll(frame, { intervals: [20] }).toBe(300);
  await server.batch({ op: "advance", frames: 30 });
  await page.page.keyboard.press("Comma");
  await expect.poll(frame).toBe(318);
  await page.button("Rewind").press("Enter");
  await expect.poll(frame).toBe(306);
});

test("an entry of a list keeps the focus while other clients add entries", async ({
  console: page,
  server,
}) => {
  const record = async (name: string): Promise<void> => {
    await server.json("/v1/recordings", { name });
    await fetch(`${server.url}/v1/recording`, { method: "DELETE" });
  };
  for (const [tool, verb, add] of [
    ["Snapshots", "Rename", async (name: string) => void (await server.json("/v1/snapshots", { name }))],
    ["Recordings", "Download", record],
  ] as const) {
    await add("ours");
    const panel = await page.tab(tool);
    const button = panel.getByRole("button", { name: `${verb} ours` });
    await button.focus();
    await add("theirs");
    await expect(panel.getByRole("listitem").first()).toContainText("theirs");
    await expect(button).toBeFocused();
  }
});
