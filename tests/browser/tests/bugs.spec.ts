/** Tests for bugs of the page that were fixed. Each test is named for the behaviour that the bug broke. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "@playwright/test";
import { Console, drop, goTo, openFiles, refuseCalls, saved } from "../support/console.ts";
import { gameBoyRom, serveGame } from "../support/gameboy.ts";
import { demoCopies, demoTitled, repository } from "../support/server.ts";
import { expect, test, troublesOf } from "../support/test.ts";

const SCRATCH = 0x0200_0100;

/** Collects the texts that an element shows from now on, even those that are visible only for a moment. */
async function textsOf(element: Locator): Promise<() => Promise<string[]>> {
  const texts = await element.evaluateHandle((shown) => {
    const all: string[] = [];
    new MutationObserver(() => {
      if (shown.textContent) all.push(shown.textContent);
    }).observe(shown, { characterData: true, childList: true, subtree: true });
    return all;
  });
  return () => texts.jsonValue();
}

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

test("the typed digit and a change of the selected byte are visible", async ({ console: page, server }) => {
  const panel = await page.tab("Memory");
  await goTo(panel, "02000100");
  const cell = panel.getByRole("gridcell").first();
  await expect(cell).toHaveText("00");
  const background = (): Promise<string> => cell.evaluate((byte) => getComputedStyle(byte).backgroundColor);
  const selected = await background();
  // A change is highlighted for less than a second, so the byte changes until the highlight is seen.
  let value = 0;
  const afterChange = async (): Promise<string> => {
    value = (value % 255) + 1;
    await server.batch({ op: "write8", address: SCRATCH, value });
    return background();
  };
  await expect.poll(afterChange, { intervals: [20] }).not.toBe(selected);
  await cell.click();
  await page.page.keyboard.press("a");
  await expect(cell).toHaveClass(/typing/);
  expect(await background()).not.toBe(selected);
  await page.page.keyboard.press("Escape");
});

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

test("an emulator that does not exist is named, with links to the others", async ({ page, server }) => {
  await page.goto(`${server.url}/?emulator=nobody`);
  await expect(page.locator(".veil")).toContainText('No emulator is called "nobody"');
  await expect(page.locator(".badge").first()).toContainText("No such emulator");
  await page.locator(".veil a").first().click();
  await expect(page.locator(".veil")).toBeHidden();
});

test("after a change of the emulator, nothing of the old one is visible", async ({ page, serve }) => {
  // Nothing listens on the port of the second emulator.
  const rom = repository("rom/framewire-demo.gba");
  const server = await serve(["--rom", `demo=${rom}`, "--attach", "gone=127.0.0.1:9"]);
  const opened = await Console.open(page, server, "/?emulator=demo");
  const panel = await opened.tab("Memory");
  await expect(panel.getByRole("gridcell").first()).toHaveText("46");
  await panel.getByLabel("Find in work RAM").fill("FWDEMO01");
  await panel.getByRole("button", { name: "Find", exact: true }).click();
  const found = panel.getByRole("button", { name: /^02000000/ });
  await expect(found).toBeVisible();
  const value = panel.locator(".inspector dd").first();
  await expect(value).toHaveText("70");
  await panel.getByLabel("New value").fill("70");
  await panel.getByRole("button", { name: "Freeze", exact: true }).click();
  const frozen = panel.getByRole("list", { name: "Frozen values" });
  await expect(frozen).toBeVisible();
  const watches = await opened.tab("Watches");
  await watches.getByLabel("Expression to watch").fill("u32[0x02000000]");
  await watches.getByRole("button", { name: "Watch", exact: true }).click();
  const watchedValue = watches.locator(".watch .value");
  await expect(watchedValue).toHaveText(/^\d+$/);
  const graphics = await opened.tab("Graphics");
  await expect(graphics.locator("canvas:visible").first()).toBeVisible();

  await page.getByLabel("Emulator", { exact: true }).selectOption("gone");
  await expect(page.locator(".veil")).toContainText("No emulator");
  await expect(graphics.locator("canvas:visible")).toHaveCount(0);
  await opened.tab("Memory");
  await expect(panel.getByRole("gridcell").first()).toHaveText("··");
  await expect(found).toHaveCount(0);
  await expect(value).toHaveText("–");
  await expect(frozen).toBeHidden();
  await expect(page.locator(".watched-values .value")).toHaveText("–");
  await opened.tab("Watches");
  await expect(watchedValue).toHaveText("–");
  expect(await opened.pixel(120, 120)).toEqual([0, 0, 0]);
});

test("the symbols are those of the selected emulator, even if a late answer has others", async ({
  page,
  serve,
}) => {
  const rom = repository("rom/framewire-demo.gba");
  const server = await serve(["--rom", `first=${rom}`, "--rom", `second=${rom}`]);
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(/\/v1\/symbols/, async (route) => {
    const name = new URL(route.request().url()).searchParams.get("emulator") === "first" ? "old" : "new";
    if (name === "old") await released;
    const symbols = [{ name, address: 0x0200_0000, type: "u8", count: 1 }];
    await route.fulfill({ json: { symbols, more: false, variables: [] } });
  });
  const opened = await Console.open(page, server, "/?emulator=first");
  const panel = await opened.tab("Memory");
  await page.getByLabel("Emulator", { exact: true }).selectOption("second");
  const cell = panel.getByRole("gridcell").first();
  await expect(cell).toHaveAttribute("title", "new");
  const late = page.waitForResponse((response) => response.url().includes("emulator=first"));
  release();
  await (await late).finished();
  // Gives the page time to handle the late answer.
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
  await expect(cell).toHaveAttribute("title", "new");
});

test("a search of the emulator that was selected before does not appear, even if its answer is late", async ({
  page,
  serve,
}) => {
  const rom = repository("rom/framewire-demo.gba");
  const server = await serve(["--rom", `first=${rom}`, "--rom", `second=${rom}`]);
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(/\/v1\/search\?/, async (route) => {
    await released;
    await route.continue();
  });
  const opened = await Console.open(page, server, "/?emulator=first");
  const panel = await opened.tab("Memory");
  await panel.getByRole("button", { name: "Search", exact: true }).click();
  await page.getByLabel("Emulator", { exact: true }).selectOption("second");
  const late = page.waitForResponse((response) => response.url().includes("/v1/search?"));
  release();
  await (await late).finished();
  // Gives the page time to handle the late answer.
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 100)));
  await expect(panel.getByRole("button", { name: "Keep" })).toBeHidden();
  await expect(panel.getByText(/places? (is|are) left/)).toHaveCount(0);
});

test("an offset that begins like a symbol stays in its memory domain", async ({ page, serve }) => {
  const symbols = join(test.info().outputPath(), "short.sym");
  writeFileSync(symbols, "02000000 c\n");
  const server = await serve(["--rom", repository("rom/framewire-demo.gba"), "--symbols", symbols]);
  const opened = await Console.open(page, server);
  const panel = await opened.tab("Memory");
  // The first byte has a title as soon as the page has loaded the symbols.
  await expect(panel.getByRole("gridcell").first()).toHaveAttribute("title", /./);
  await panel.getByLabel("Memory domain").selectOption("wram");
  await goTo(panel, "c0");
  await expect(panel.locator(".inspector h2")).toContainText("00c0");
  await expect(panel.getByLabel("Memory domain")).toHaveValue("wram");
  await goTo(panel, "c+1");
  await expect(panel.getByLabel("Memory domain")).toHaveValue("");
});

test("copy mode moves nothing, and shows only the last message", async ({ console: page }) => {
  const top = async (): Promise<number> => (await page.canvas.boundingBox())?.y ?? -1;
  const before = await top();
  await page.button("curl").click();
  await expect(page.page.locator(".banner")).toBeVisible();
  expect(await top()).toBe(before);
  await page.button("Pause").click();
  await page.button("Reset").click();
  await expect(page.page.locator(".toast.copied")).toContainText("/v1/reset");
  await expect(page.page.locator(".toast.copied")).toHaveCount(1);
});

test("Escape in a dialog does not end copy mode", async ({ console: page }) => {
  await page.button("curl").click();
  await page.page.keyboard.press("Control+k");
  await expect(page.page.locator("dialog[open]")).toBeVisible();
  await page.page.keyboard.press("Escape");
  await expect(page.page.locator("dialog[open]")).toHaveCount(0);
  await expect(page.page.locator(".banner")).toBeVisible();
  await page.page.keyboard.press("Escape");
  await expect(page.page.locator(".banner")).toBeHidden();
});

test("the memory panel accepts offsets in the form in which it shows them", async ({ console: page }) => {
  const panel = await page.tab("Memory");
  const title = panel.locator(".inspector h2");
  await goTo(panel, "0200001a");
  await expect(title).toHaveText(/0200001a\s*presses\+10/i);
  await goTo(panel, "presses");
  await expect(title).toContainText("02000010");
  await goTo(panel, "presses+10");
  await expect(title).toHaveText(/0200001a\s*presses\+10/i);
});

test("a key that is held in copy mode is not sent when the connection is back", async ({ page, server }) => {
  let close = async (): Promise<void> => {};
  let sent: string[] = [];
  await page.routeWebSocket(/\/v1\/ws/, (socket) => {
    const onward = socket.connectToServer();
    close = () => socket.close();
    sent = [];
    socket.onMessage((message) => {
      sent.push(String(message));
      onward.send(message);
    });
  });
  const opened = await Console.open(page, server);
  await opened.button("curl").click();
  await page.keyboard.down("x");
  await expect(page.locator(".toast.copied")).toBeVisible();
  const before = sent;
  await close();
  await expect.poll(() => sent !== before).toBe(true);
  // On a new connection, the page repeats its keys. Then it asks, with `clear_keys`, whether it may control the emulator.
  await expect.poll(() => sent.some((message) => message.includes("clear_keys"))).toBe(true);
  expect(sent.filter((message) => message.includes("add_keys"))).toEqual([]);
  await page.keyboard.up("x");
});

test("a list of frozen values that cannot be read gives a message", async ({ page, server }) => {
  const troubles = troublesOf(page);
  let lost = false;
  await refuseCalls(page, ({ method }) =>
    lost && method === "frozenMemory" ? { detail: "the list is lost" } : undefined,
  );
  const opened = await Console.open(page, server);
  const panel = await opened.tab("Memory");
  await goTo(panel, "02000100");
  await panel.getByLabel("New value").fill("5");
  lost = true;
  await panel.getByRole("button", { name: "Freeze", exact: true }).click();
  await expect(page.locator(".toast.bad").first()).toContainText("The list is lost");
  expect(troubles).toEqual([]);
});

test("the page says that an answer was cut off", async ({ console: opened, page }) => {
  await page.evaluate(() => {
    const real = window.fetch;
    window.fetch = async (target, init) => {
      if (!String(target).includes("/v1/pause")) return real(target, init);
      const body = new ReadableStream({ start: (stream) => stream.error(new Error("cut off")) });
      return new Response(body, { headers: { "Content-Type": "application/json" } });
    };
  });
  await opened.button("Pause").click();
  await expect(page.locator(".toast.bad").first()).toContainText("The server's answer was cut off");
});

test("the banner of copy mode names the language that is chosen in Log", async ({ console: page }) => {
  await page.button("curl").click();
  const banner = page.page.locator(".banner");
  await expect(banner).toContainText("Clicks copy a request as");
  const panel = await page.tab("Log");
  await panel.getByRole("combobox").selectOption({ label: "Python" });
  await expect(banner).toContainText("as Python and send nothing");
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

test("a speed that was only copied is not shown as set", async ({ console: page }) => {
  await page.button("curl").click();
  const speed = page.page.getByLabel("Speed", { exact: true });
  await speed.selectOption("4");
  await expect(page.page.locator(".toast.copied")).toContainText("/v1/speed");
  await expect(speed).toHaveValue("1");
});

test("the toolbar does not move when the game is paused", async ({ console: page }) => {
  const left = async (): Promise<number> => (await page.button("Step").boundingBox())?.x ?? -1;
  const before = await left();
  await page.button("Pause").click();
  await expect(page.button("Resume")).toBeVisible();
  expect(await left()).toBe(before);
});

test("without a server, disabled controls say that it does not answer", async ({ console: page, server }) => {
  await server.kill();
  for (const name of ["Pause", "Save the picture"])
    await expect(page.button(name)).toHaveAttribute("title", /server does not answer/);
});

test("a Game Boy has no keys L and R, and no empty memory domain", async ({ page, serve }) => {
  const server = await serveGame(serve, "plain.gb", gameBoyRom({ colour: false, registers: [] }));
  const opened = await Console.open(page, server);
  await expect(page.locator(".pad [data-key=A]")).toBeVisible();
  for (const key of ["L", "R"]) await expect(page.locator(`.pad [data-key=${key}]`)).toBeHidden();
  const panel = await opened.tab("Memory");
  await expect(panel.getByRole("rowheader").first()).toHaveText("c000");
  // The list is empty until the page knows all domains.
  const domains = panel.getByLabel("Memory domain").locator("option");
  await expect.poll(() => domains.count()).toBeGreaterThan(3);
  expect((await domains.allTextContents()).filter((domain) => /\b0 (bytes|KiB)/.test(domain))).toEqual([]);
});

test("the frame rate is a mean, and is not shown before there is one", async ({ page, server }) => {
  // Makes the rate jump between 90 and 30, as it can just after a pause. `readings` counts the rates that were sent.
  let readings = 0;
  await page.routeWebSocket(/\/v1\/ws/, (socket) => {
    const onward = socket.connectToServer();
    onward.onMessage((message) => {
      const jumping = () => {
        readings += 1;
        return `"frames_per_second":${readings % 2 === 1 ? 90 : 30}`;
      };
      socket.send(
        typeof message === "string" ? message.replace(/"frames_per_second":[\d.]+/, jumping) : message,
      );
    });
  });
  const opened = await Console.open(page, server);
  await opened.button("Pause").click();
  await expect(opened.button("Resume")).toBeVisible();
  await page
    .locator("#badges .badge .number")
    .first()
    .evaluate((rate) => {
      const shown: string[] = [];
      Object.assign(window, { shown });
      new MutationObserver(() => shown.push(rate.textContent ?? "")).observe(rate, {
        characterData: true,
        childList: true,
        subtree: true,
      });
    });
  const before = readings;
  // A button whose request is not answered yet ignores a second press.
  await expect(opened.button("Resume")).not.toHaveAttribute("aria-busy");
  await opened.button("Resume").click();
  const shown = () => page.evaluate(() => (window as unknown as { shown: string[] }).shown);
  await expect.poll(() => readings, { timeout: 20_000 }).toBeGreaterThan(before + 6);
  await expect.poll(async () => (await shown()).length, { timeout: 20_000 }).toBeGreaterThan(0);
  const rates = (await shown()).map((text) => Number.parseFloat(text));
  expect(readings - before, "the first readings are not shown").toBeGreaterThan(rates.length + 1);
  for (const rate of rates) {
    expect(rate).toBeGreaterThan(30);
    expect(rate).toBeLessThan(90);
  }
});

test.describe("on a phone", () => {
  test.use({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });

  test("the names of the keys are in the middle of their buttons", async ({ page, console: opened }) => {
    await expect(opened.screen).toBeVisible();
    for (const key of ["Select", "Start", "A", "L"]) {
      const offset = await page.locator(`.pad [data-key=${key}]`).evaluate((button) => {
        const text = document.createRange();
        text.selectNodeContents(button.querySelector(".cap") ?? button);
        const [inner, outer] = [text.getBoundingClientRect(), button.getBoundingClientRect()];
        return inner.y + inner.height / 2 - (outer.y + outer.height / 2);
      });
      expect(Math.abs(offset), key).toBeLessThan(1.5);
    }
  });
});

/** Changes the page's limit of 20 s for requests to two seconds. */
async function shortenLimit(page: Page): Promise<void> {
  await page.evaluate(() => {
    const limit = AbortSignal.timeout.bind(AbortSignal);
    AbortSignal.timeout = (milliseconds) => limit(milliseconds / 10);
  });
}

test("a sequence that is longer than the page's time limit for requests is played to its end", async ({
  console: page,
}) => {
  // The sequence takes four seconds.
  await shortenLimit(page.page);
  const panel = await page.tab("Input");
  await panel.getByLabel("Sequence", { exact: true }).fill("A:240");
  await panel.getByRole("button", { name: "Play" }).click();
  await expect(panel.getByText(/Played from frame \d+ to \d+/)).toBeVisible();
  await expect(page.page.locator(".toast.bad")).toHaveCount(0);
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

test("a link to a Game Boy's bus address opens this address", async ({ page, serve }) => {
  const server = await serveGame(serve, "linked.gb", gameBoyRom({ colour: false, registers: [] }));
  await Console.open(page, server, "/#tool=memory&address=0000c100");
  const panel = page.getByRole("tabpanel", { name: "Memory" });
  // The address has four digits once the page knows that this is a Game Boy.
  await expect(panel.getByRole("rowheader").first()).toHaveText("c100");
  await expect(page).toHaveURL(/address=0000c100$/);
});

test("the selection stays inside a memory domain", async ({ page, console: opened }) => {
  const panel = await opened.tab("Memory");
  await panel.getByLabel("Memory domain").selectOption("iwram");
  await goTo(panel, "7ff0");
  const last = panel.getByRole("gridcell").last();
  await last.click();
  await page.keyboard.press("ArrowDown");
  await expect(last).toBeFocused();
  await expect(last).toHaveAttribute("aria-selected", "true");
  await panel.getByRole("button", { name: "Page down" }).click();
  await expect(last).toHaveAttribute("aria-selected", "true");
  await expect(panel.locator(".inspector h2")).toContainText("7fff");
});

test("the symbols are loaded again after a failure, and after another game is loaded", async ({
  page,
  server,
}, info) => {
  let name: string | undefined;
  let failures = 0;
  await page.route(/\/v1\/symbols/, async (route) => {
    if (name === undefined) {
      failures += 1;
      await route.abort();
      return;
    }
    const symbols = [{ name, address: 0x0200_0000, type: "u8", count: 1 }];
    await route.fulfill({ json: { symbols, more: false, variables: [] } });
  });
  const opened = await Console.open(page, server);
  const panel = await opened.tab("Memory");
  const cell = panel.getByRole("gridcell").first();
  await expect(panel.getByRole("rowheader").first()).toHaveText("02000000");
  await expect.poll(() => failures).toBeGreaterThan(1);
  name = "first";
  await expect(cell).toHaveAttribute("title", "first");
  name = "second";
  const path = info.outputPath("other.gba");
  writeFileSync(path, demoTitled("OTHER"));
  expect(await server.batch({ op: "load_rom", path })).toEqual([true]);
  await expect(cell).toHaveAttribute("title", "second");
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

test("disabled controls say that the page is still connecting, or that a token is needed", async ({
  page,
  server,
}) => {
  let answer = (): void => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route(/\/v1\/emulators/, async (route) => {
    await answered;
    await route.fulfill({ status: 401, json: { title: "a token is needed", status: 401 } });
  });
  await page.routeWebSocket(/\/v1\/ws/, (socket) => {
    socket.onMessage(async (message) => {
      await answered;
      const error = { code: -32_000, message: "a token is needed", data: { status: 401 } };
      socket.send(JSON.stringify({ jsonrpc: "2.0", id: JSON.parse(String(message)).id, error }));
    });
  });
  await page.goto(server.url);
  const pause = page.getByRole("button", { name: "Pause", exact: true });
  await expect(pause).toHaveAttribute("title", /still connecting/);
  answer();
  await expect(pause).toHaveAttribute("title", /requires a token/);
});

test("a key that is released without a connection is released when the connection is back", async ({
  page,
  server,
}) => {
  let open = true;
  let close = async (): Promise<void> => {};
  await page.routeWebSocket(/\/v1\/ws/, (socket) => {
    if (!open) {
      void socket.close();
      return;
    }
    socket.connectToServer();
    close = () => socket.close();
  });
  const opened = await Console.open(page, server);
  await opened.screen.focus();
  await page.keyboard.down("x");
  await opened.expectLit("A");
  open = false;
  await close();
  // Longer than a short press, and long enough for the page to notice that the connection is lost.
  await page.waitForTimeout(300);
  await page.keyboard.up("x");
  open = true;
  await opened.expectLit();
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

test("an error of the memory that was shown before is not shown", async ({ page, server }) => {
  let refuse: (() => void) | undefined;
  await refuseCalls(page, ({ params }) => {
    const [first] = params.ops ?? [];
    if (refuse || first?.op !== "domain_read_range" || first.domain !== "vram") return undefined;
    return new Promise((answer) => {
      refuse = () => answer({ status: 500, detail: "broken" });
    });
  });
  const opened = await Console.open(page, server);
  const panel = await opened.tab("Memory");
  const domains = panel.getByLabel("Memory domain");
  await expect.poll(() => domains.locator("option").count()).toBeGreaterThan(3);
  const notes = await textsOf(panel.locator(":scope > .note"));
  await domains.selectOption("vram");
  await expect.poll(() => refuse !== undefined).toBe(true);
  await domains.selectOption("iwram");
  refuse?.();
  await expect(panel.getByRole("gridcell").first()).not.toHaveText("··");
  expect(await notes()).toEqual([]);
});

test("an emulator that cannot freeze values gives no message in the memory panel", async ({
  page,
  server,
}) => {
  let asked = 0;
  await refuseCalls(page, ({ method }) => {
    if (method !== "frozenMemory") return undefined;
    asked += 1;
    return { status: 501, detail: "cannot freeze" };
  });
  const opened = await Console.open(page, server);
  const panel = await opened.tab("Memory");
  const notes = await textsOf(panel.locator(":scope > .note"));
  const before = asked;
  await expect.poll(() => asked).toBeGreaterThan(before + 1);
  expect(await notes()).toEqual([]);
});

test("the memory panel stays where it is while a Game Boy's emulator is not connected", async ({
  page,
  serve,
}) => {
  const server = await serveGame(serve, "plain.gb", gameBoyRom({ colour: false, registers: [] }));
  let lost = false;
  await page.routeWebSocket(/\/v1\/ws/, (socket) => {
    const onward = socket.connectToServer();
    onward.onMessage((message) => {
      const { result, ...rest } = JSON.parse(String(message));
      const [emulator] = result?.emulators ?? [];
      if (lost && emulator)
        Object.assign(emulator, { connected: false, run: "unknown", code: null, title: null });
      socket.send(JSON.stringify({ ...rest, result }));
    });
  });
  const opened = await Console.open(page, server);
  const panel = await opened.tab("Memory");
  await expect(panel.getByRole("rowheader").first()).toHaveText("c000");
  await goTo(panel, "d123");
  const title = panel.locator(".inspector h2");
  await expect(title).toContainText("d123");
  lost = true;
  await expect(page.locator(".veil")).toContainText("No emulator");
  await expect(page.locator(".pad [data-key=L]")).toBeHidden();
  lost = false;
  await expect(page.locator(".veil")).toBeHidden();
  await expect(title).toContainText("d123");
});

test("a browser without full screen says so", async ({ page, server }) => {
  await page.addInitScript(() =>
    Object.defineProperty(document, "fullscreenEnabled", { get: () => undefined }),
  );
  const opened = await Console.open(page, server);
  await expect(opened.button("Full screen")).toHaveAttribute("title", /cannot show/);
  await expect(opened.button("Full screen")).toHaveAttribute("aria-disabled", "true");
});

test("after a turn of the wheel, the focus is still on the selected byte of the memory grid", async ({
  page,
  console: opened,
}) => {
  const panel = await opened.tab("Memory");
  await goTo(panel, "02000100");
  await panel.getByRole("gridcell").nth(0x82).click();
  await page.mouse.wheel(0, 100);
  await expect(panel.getByRole("rowheader").first()).toHaveText("02000130");
  const focused = panel.locator("[role=gridcell]:focus");
  await expect(focused).toHaveAttribute("aria-selected", "true");
  await expect(focused).toHaveAttribute("data-index", String(0x52));
  // With half as many bytes in a row, the grid has other cells.
  await page.setViewportSize({ width: 360, height: 740 });
  await expect(panel.getByRole("gridcell")).toHaveCount(128);
  await expect(focused).toHaveAttribute("aria-selected", "true");
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

test("the names of 150,000 symbols are suggested", async ({ page, serve }, info) => {
  const path = info.outputPath("large.sym");
  const names = Array.from(
    { length: 150_000 },
    (_, index) => `${(0x0800_0000 + index * 4).toString(16)} name_${index}`,
  );
  writeFileSync(path, names.join("\n"));
  const server = await serve(["--speed", "1", "--symbols", path]);
  const troubles = troublesOf(page);
  const opened = await Console.open(page, server);
  const panel = await opened.tab("Memory");
  await expect(panel.locator("datalist option[value=name_149999]")).toHaveCount(1, { timeout: 60_000 });
  await goTo(panel, "name_149999");
  await expect(panel.locator(".inspector h2")).toContainText("name_149999");
  expect(troubles).toEqual([]);
});

test("the last byte that the memory grid shows has a value of every type", async ({
  console: opened,
  server,
}) => {
  const panel = await opened.tab("Memory");
  const data = Buffer.from("11223344", "hex").toString("base64");
  await server.batch({ op: "write_range", address: SCRATCH + 0xff, data });
  await goTo(panel, "02000100");
  const last = panel.getByRole("gridcell").last();
  await last.click();
  const values = panel.locator(".inspector .values dd");
  await expect(values).toHaveText(["17", "17", "8721", "8721", "1144201745", "1144201745"]);
  // There is no memory after the BIOS.
  await goTo(panel, "00003f00");
  await last.click();
  await expect(values).toHaveText([/\d/, /\d/, "–", "–", "–", "–"]);
});

test("a memory domain that appears while the game runs is listed", async ({ console: page, server }) => {
  const domains = (await page.tab("Memory")).getByLabel("Memory domain");
  await expect(domains).toContainText("EWRAM");
  await expect(domains).not.toContainText("SRAM");
  // The game's save memory has a kind now.
  await fetch(`${server.url}/v1/save`, { method: "PUT", body: Buffer.alloc(0x8000, 1) });
  await expect(domains).toContainText("SRAM");
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

test("found places of the game that was loaded before are not shown", async ({ console: page }) => {
  const panel = await page.tab("Memory");
  const found = panel.locator(".found").first().getByRole("listitem");
  await panel.getByLabel("Find in work RAM").fill("FWDEMO01");
  await panel.getByRole("button", { name: "Find", exact: true }).click();
  await expect(found).toHaveCount(1);
  await drop(page.page, "other.gba", demoTitled("OTHER"));
  await expect(page.page.locator(".toast")).toContainText("Playing other.gba.");
  await expect(found).toHaveCount(0);
});

test("the list of emulators selects none if the URL names one that does not exist", async ({
  page,
  serve,
}, info) => {
  const server = await serve(demoCopies(info.outputPath(), ["one", "two"]));
  await page.goto(`${server.url}/?emulator=three`);
  const list = page.getByLabel("Emulator", { exact: true });
  await expect(list).toHaveValue("");
  await list.selectOption("one");
  await expect(page.locator(".veil")).toBeHidden();
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

test("the memory grid shows the last bytes of the BIOS, after which there is no memory", async ({
  page,
  console: opened,
}) => {
  const panel = await opened.tab("Memory");
  await goTo(panel, "00003f00");
  const cells = panel.getByRole("gridcell");
  await cells.first().hover();
  await page.mouse.wheel(0, 100);
  await expect(panel.getByRole("rowheader").first()).toHaveText("00003f30");
  await expect(cells.nth(0xcf)).toHaveText(/^[0-9a-f]{2}$/);
  await expect(cells.nth(0xd0)).toHaveText("··");
  await expect(panel.locator(":scope > .note")).toHaveText("");
});

test("the memory of the selected emulator is shown although the one before does not answer", async ({
  page,
  serve,
}, info) => {
  const server = await serve(demoCopies(info.outputPath(), ["one", "two"]));
  let isSilent = false;
  await refuseCalls(page, ({ params }) => {
    const first = params.ops?.[0]?.op ?? "";
    return isSilent && params.emulator === undefined && first.includes("read_range")
      ? new Promise(() => {})
      : undefined;
  });
  const opened = await Console.open(page, server);
  for (const tool of ["Memory", "Graphics"]) {
    await page.goto(server.url);
    const panel = await opened.tab(tool);
    const shown = tool === "Memory" ? panel.getByRole("gridcell").first() : panel.getByText(/^Frame /);
    await expect(shown).toHaveText(/^([0-9a-f]{2}|Frame [\d,]+)$/);
    isSilent = true;
    await page.waitForTimeout(300);
    await page.getByLabel("Emulator", { exact: true }).selectOption("two");
    await expect(shown).toHaveText(/^([0-9a-f]{2}|Frame [\d,]+)$/, { timeout: 3000 });
    isSilent = false;
  }
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

test("Space that is pressed twice over a slow connection pauses and resumes", async ({
  console: page,
  server,
}) => {
  const sent: string[] = [];
  await page.page.route(/\/v1\/(pause|resume)$/, async (route) => {
    sent.push(new URL(route.request().url()).pathname);
    await new Promise((resolve) => setTimeout(resolve, 400));
    await route.continue();
  });
  await page.screen.focus();
  await page.page.keyboard.press("Space");
  await page.page.keyboard.press("Space");
  await expect.poll(() => sent).toEqual(["/v1/pause", "/v1/resume"]);
  await expect.poll(async () => (await server.state()).run).toBe("running");
});

test("long names do not make the page of a phone wider", async ({ page, server }) => {
  const name = "x".repeat(64);
  await server.json("/v1/snapshots", { name });
  await server.json("/v1/recordings", { name });
  await fetch(`${server.url}/v1/recording`, { method: "DELETE" });
  await page.setViewportSize({ width: 360, height: 740 });
  const watch = `${"u8[0x02000100]+".repeat(8)}1`;
  await page.addInitScript(
    (text) => localStorage.setItem("framewire.watches", JSON.stringify([text])),
    watch,
  );
  const opened = await Console.open(page, server);
  const width = (): Promise<number> => page.evaluate(() => document.documentElement.scrollWidth);
  await expect(page.locator(".watched-values")).toContainText(watch);
  expect(await width(), "watched values").toBe(360);
  const snapshots = await opened.tab("Snapshots");
  await expect(snapshots.getByLabel("Compare")).toHaveValue(name);
  expect(await width(), "snapshots").toBe(360);
  const recordings = await opened.tab("Recordings");
  await recordings.getByRole("button", { name: `Replay ${name}` }).click();
  await expect(recordings.locator(".outcome")).toContainText(name);
  expect(await width(), "recordings").toBe(360);
  const log = await opened.tab("Log");
  await expect(log).toContainText(`Replay ${name}`);
  expect(await width(), "log").toBe(360);
});

test("what is entered while an answer is on its way stays in the field", async ({
  page,
  console: opened,
}) => {
  await page.route(/\/v1\/(snapshots|recordings)$/, async (route) => {
    if (route.request().method() === "POST") await new Promise((resolve) => setTimeout(resolve, 500));
    await route.continue();
  });
  for (const [tool, label, button] of [
    ["Snapshots", "Name of the snapshot", "Save now"],
    ["Recordings", "Name of the recording", "Record"],
  ] as const) {
    const panel = await opened.tab(tool);
    const name = panel.getByLabel(label);
    await name.fill("first");
    const answered = page.waitForResponse((response) => response.request().method() === "POST");
    await panel.getByRole("button", { name: button, exact: true }).click();
    await name.fill("second");
    await (await answered).finished();
    await expect(panel.locator("strong", { hasText: "first" })).toBeVisible();
    await expect(name).toHaveValue("second");
  }
  await refuseCalls(page, ({ method }) =>
    method === "subscribe" ? new Promise((answer) => setTimeout(answer, 500, { detail: "" })) : undefined,
  );
  await page.reload();
  const panel = await opened.tab("Watches");
  const expression = panel.getByLabel("Expression to watch");
  await expression.fill("score");
  await panel.getByRole("button", { name: "Watch", exact: true }).click();
  await expression.fill("lives");
  await expect(panel.locator(".watch .name")).toHaveText(["score"]);
  await expect(expression).toHaveValue("lives");
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
