/** Tests for fixed bugs of the page that belong to no file bugs-TOOL.spec.ts, named for the behaviour that each bug broke. */

import { Console, refuseCalls, shortenLimit } from "../support/console.ts";
import { gameBoyRom, serveGame } from "../support/gameboy.ts";
import { demoCopies, repository } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

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

test("a browser without full screen says so", async ({ page, server }) => {
  await page.addInitScript(() =>
    Object.defineProperty(document, "fullscreenEnabled", { get: () => undefined }),
  );
  const opened = await Console.open(page, server);
  await expect(opened.button("Full screen")).toHaveAttribute("title", /cannot show/);
  await expect(opened.button("Full screen")).toHaveAttribute("aria-disabled", "true");
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

test("the speed is set back if the page ends while the key for fast forward is held", async ({
  console: page,
  server,
}) => {
  await page.screen.focus();
  await page.page.keyboard.down("f");
  await expect.poll(async () => (await server.state()).speed).toBe("unlimited");
  await page.page.reload();
  await expect.poll(async () => (await server.state()).speed).toBe(1);
});

test("the game runs on if the page ends while the key for Rewind is held", async ({
  console: page,
  server,
}) => {
  await expect.poll(async () => (await server.state()).frame).toBeGreaterThan(120);
  await expect(page.page.locator(".timeline")).toBeVisible();
  await page.screen.focus();
  await page.page.keyboard.down("Comma");
  await expect.poll(async () => (await server.state()).run).toBe("paused");
  await page.page.close();
  await expect.poll(async () => (await server.state()).run).toBe("running");
});
