/** The timeline: going back in the history by pointer, key and touch. */

import type { Page } from "@playwright/test";
import { Console, refuseCalls } from "../support/console.ts";
import { expect, test } from "../support/test.ts";

const FRAME_OF_GAME = 0x0200_0008;

/** A point at half of the strip's height. Its distance from the strip's left end is this part of the strip's width. */
async function at(page: Page, part: number): Promise<[number, number]> {
  const box = await page.locator(".strip").boundingBox();
  if (!box) throw new Error("no strip");
  return [box.x + box.width * part, box.y + box.height / 2];
}

test("dragging goes back to a frame, and the game continues there", async ({ console: page, server }) => {
  await server.holdAt(1200);
  await expect(page.button("Resume")).toBeVisible();
  const slider = page.page.getByRole("slider", { name: "Timeline" });
  await expect(slider).toHaveValue("1200");
  await expect(page.page.locator(".strip img").first()).toHaveJSProperty("naturalWidth", 80);
  const log = await page.tab("Log");
  await page.page.mouse.move(...(await at(page.page, 0.98)));
  await page.page.mouse.down();
  await page.page.mouse.move(...(await at(page.page, 0.5)), { steps: 5 });
  await page.page.mouse.up();
  // The page already goes back while the pointer moves. When the pointer is released, the page goes to the frame once
  // more. Only this last request is in the log.
  await expect(log.getByRole("listitem").filter({ hasText: "Go back to frame" })).toHaveCount(1);
  await expect.poll(async () => (await server.state()).frame).toBeLessThan(700);
  const { frame } = await server.state();
  expect(frame).toBeGreaterThan(500);
  const seen = Number((await server.batch({ op: "read32", address: FRAME_OF_GAME }))[0]);
  await expect(page.page.locator(".timeline .time")).toHaveText(`-${((1200 - frame) / 60).toFixed(1)} s`);
  // The keyboard controls the game again.
  await expect(page.screen).toBeFocused();
  await page.button("Step").click();
  await expect.poll(async () => (await server.state()).frame).toBe(frame + 1);
  expect((await server.batch({ op: "read32", address: FRAME_OF_GAME }))[0]).toBe(seen + 1);
  // The later frames are now a branch. The button of the branch goes to its last frame.
  await page.button(/^Branch \d+, frame 1,200$/).click();
  await expect.poll(async () => (await server.state()).frame).toBe(1200);
});

test("a game runs on after a drag that ends where it began", async ({ console: page, server }) => {
  await expect.poll(async () => (await server.state()).frame).toBeGreaterThan(300);
  const slider = page.page.getByRole("slider", { name: "Timeline" });
  const badge = page.page.locator(".badge").first();
  await page.page.mouse.move(...(await at(page.page, 0.99)));
  await page.page.mouse.down();
  await page.page.mouse.move(...(await at(page.page, 0.5)), { steps: 5 });
  await expect(badge).toContainText("Paused");
  await page.page.mouse.move(...(await at(page.page, 1.1)), { steps: 5 });
  await page.page.mouse.up();
  await expect(badge).toContainText("Running");
  // The timeline is updated again.
  const max = await slider.getAttribute("max");
  await expect(slider).not.toHaveAttribute("max", String(max));
});

test("a running game goes back while Comma is held, and then runs on", async ({ console: page, server }) => {
  await expect.poll(async () => (await server.state()).frame).toBeGreaterThan(120);
  await expect(page.page.locator(".timeline")).toBeVisible();
  await page.screen.focus();
  const before = (await server.state()).frame;
  await page.page.keyboard.down("Comma");
  await expect.poll(async () => (await server.state()).frame).toBeLessThan(before - 30);
  expect((await server.state()).run).toBe("paused");
  await page.page.keyboard.up("Comma");
  await expect.poll(async () => (await server.state()).run).toBe("running");
  await expect
    .poll(async () => (await server.json<{ lines: { began: string }[] }>("/v1/timeline")).lines.at(-1)?.began)
    .toBe("rewind");
});

test("only the main mouse button on Rewind goes back", async ({ console: page, server }) => {
  await server.holdAt(300);
  const slider = page.page.getByRole("slider", { name: "Timeline" });
  await expect(slider).toHaveValue("300");
  await page.button("Rewind").hover();
  for (const button of ["right", "middle"] as const) {
    await page.page.mouse.down({ button });
    await page.page.waitForTimeout(300);
    await page.page.mouse.up({ button });
  }
  await expect(slider).toHaveValue("300");
  expect((await server.state()).frame).toBe(300);
  await page.page.mouse.down();
  await expect.poll(async () => (await server.state()).frame).toBeLessThan(280);
  await page.page.mouse.up();
});

test("a running game runs on after Comma was held twice over a slow connection", async ({
  console: page,
  server,
}) => {
  await expect.poll(async () => (await server.state()).frame).toBeGreaterThan(240);
  await expect(page.page.locator(".timeline")).toBeVisible();
  await page.page.route(/\/v1\/(pause|rewind|resume)(\?|$)/, async (route) => {
    const response = await route.fetch();
    await new Promise((resolve) => setTimeout(resolve, 300));
    await route.fulfill({ response });
  });
  await page.screen.focus();
  await page.page.keyboard.down("Comma");
  await expect(page.page.locator(".badge").first()).toContainText("Paused");
  const resumed = page.page.waitForRequest(/\/v1\/resume/);
  await page.page.keyboard.up("Comma");
  await resumed;
  // The answer to this request comes while the key is held again.
  await page.page.keyboard.down("Comma");
  await page.page.waitForTimeout(900);
  await page.page.keyboard.up("Comma");
  await expect(page.page.locator(".badge").first()).toContainText("Running");
  await page.page.unrouteAll({ behavior: "wait" });
});

test("each short press of Comma goes back one step, even over a slow connection", async ({
  page,
  server,
}) => {
  let isSlow = false;
  await page.routeWebSocket(/\/v1\/ws/, (socket) => {
    const onward = socket.connectToServer();
    socket.onMessage(async (message) => {
      if (isSlow && String(message).includes('"history"'))
        await new Promise((resolve) => setTimeout(resolve, 300));
      onward.send(message);
    });
  });
  await server.holdAt(300);
  const opened = await Console.open(page, server);
  await expect(page.getByRole("slider", { name: "Timeline" })).toHaveValue("300");
  await opened.screen.focus();
  isSlow = true;
  await page.keyboard.press("Comma");
  await page.keyboard.press("Comma");
  await expect.poll(async () => (await server.state()).frame).toBe(276);
});

test("Comma in the memory grid does not go back", async ({ console: page, server }) => {
  await server.holdAt(300);
  await expect(page.page.getByRole("slider", { name: "Timeline" })).toHaveValue("300");
  const panel = await page.tab("Memory");
  await panel.getByRole("gridcell").first().click();
  let rewinds = 0;
  page.page.on("request", (request) => {
    if (request.url().includes("/v1/rewind")) rewinds += 1;
  });
  await page.page.keyboard.press("Comma");
  await page.page.waitForTimeout(300);
  expect(rewinds).toBe(0);
  expect((await server.state()).frame).toBe(300);
});

test("a mark of the timeline keeps the focus while the game runs", async ({ console: page, server }) => {
  await server.holdAt(300);
  await server.json("/v1/snapshots", { name: "corner" });
  await server.json("/v1/resume", {});
  const mark = page.button("Snapshot corner");
  await mark.focus();
  const max = (): Promise<string | null> => page.page.locator(".scrub").getAttribute("max");
  const before = await max();
  await expect.poll(max).not.toBe(before);
  await expect(mark).toBeFocused();
});

test("snapshots and held keys are on the timeline", async ({ console: page, server }) => {
  await server.holdAt(300);
  await server.json("/v1/input", { sequence: "Right:60" });
  await server.json("/v1/snapshots", { name: "corner" });
  await server.batch({ op: "advance", frames: 120 });
  await expect(page.page.locator(".strip .held span")).toHaveCount(1);
  await page.button("Snapshot corner").click();
  await expect.poll(async () => (await server.state()).frame).toBe(300);
});

test("a change just after an update of the timeline is shown too", async ({ console: page, server }) => {
  await server.holdAt(300);
  const slider = page.page.getByRole("slider", { name: "Timeline" });
  await expect(slider).toHaveValue("300");
  await server.batch({ op: "advance", frames: 10 });
  await expect(slider).toHaveValue("310");
});

test("the oldest state that is shown is not taken for the beginning of the game", async ({
  console: page,
  server,
}) => {
  await server.holdAt(300);
  for (const frames of [3600, 3600, 300]) await server.batch({ op: "advance", frames });
  const slider = page.page.getByRole("slider", { name: "Timeline" });
  await expect(slider).toHaveValue("7800");
  await expect(slider).not.toHaveAttribute("min", "0");
  // There is no mark such as "Game loaded", which would say that the game began there.
  await expect(page.page.locator(".mark.event")).toHaveCount(0);
});

test("a refused request to go back is shown, and the game continues", async ({ console: page, server }) => {
  await expect.poll(async () => (await server.state()).frame).toBeGreaterThan(60);
  await expect(page.page.locator(".timeline")).toBeVisible();
  await server.json("/v1/recordings", { name: "run" });
  await page.page.mouse.click(...(await at(page.page, 0.3)));
  await expect(page.page.locator(".toast.bad").first()).toContainText("recorded or replayed");
  await expect.poll(async () => (await server.state()).run).toBe("running");
});

test("a server that refuses the history is asked less and less often", async ({ page, server }) => {
  let asked = 0;
  await refuseCalls(page, ({ method }) => {
    if (method !== "history") return undefined;
    asked += 1;
    return { status: 500, detail: "broken" };
  });
  await page.goto(server.url, { waitUntil: "commit" });
  // The second request comes 1.5 seconds after the first one, so the first one must be noticed soon.
  await expect.poll(() => asked, { intervals: [20] }).toBe(1);
  // Without refusals, the page would ask five times: at once, and after 1.5, 3, 4.5 and 6 seconds. With refusals, it
  // asks at once, and after 1.5 and 4.5 seconds.
  await page.waitForTimeout(6500);
  expect(asked).toBeGreaterThanOrEqual(2);
  expect(asked).toBeLessThanOrEqual(3);
});

test("a server that refuses the history slowly is asked less and less often too", async ({
  page,
  server,
}) => {
  let asked = 0;
  await refuseCalls(page, ({ method }) => {
    if (method !== "history") return undefined;
    asked += 1;
    // Longer than the shortest time between two requests.
    return new Promise((answer) => setTimeout(answer, 2000, { status: 504, detail: "broken" }));
  });
  await page.goto(server.url, { waitUntil: "commit" });
  await expect.poll(() => asked, { intervals: [20] }).toBe(1);
  // Without refusals, the page would ask seven times: at once, and then every 1.5 seconds.
  await page.waitForTimeout(10_000);
  expect(asked).toBeGreaterThanOrEqual(2);
  expect(asked).toBeLessThanOrEqual(5);
});

test.describe("on a phone", () => {
  test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });

  test("a tap on the strip goes back", async ({ console: page, server }) => {
    await server.holdAt(1200);
    await expect(page.page.getByRole("slider", { name: "Timeline" })).toHaveValue("1200");
    await page.page.locator(".strip").scrollIntoViewIfNeeded();
    await page.page.touchscreen.tap(...(await at(page.page, 0.25)));
    await expect.poll(async () => (await server.state()).frame).toBeLessThan(400);
  });
});
