/** The look of the page, compared with reviewed pictures. The game is paused in the same frame each time. */

import type { Page } from "@playwright/test";
import type { Console } from "../support/console.ts";
import type { Server } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

/** Content that differs every time. */
const MOVING = ".badge .number, .strip .pictures";
/** Content that exists only if the game ran for a while before it was paused. */
const SOMETIMES = ".timeline .branches";

/** Pauses the game, waits until the page shows that, and hides the content that differs. */
async function hold(page: Page, server: Server, opened: Console): Promise<void> {
  await server.holdAt(300);
  await expect(opened.button("Resume")).toBeVisible();
  await expect.poll(() => opened.pixel(120, 60).then(String)).not.toBe("0,0,0");
  await opened.expectPicture();
  // The page updates the timeline only once in a while.
  await expect(page.locator(".scrub")).toHaveValue("300");
  await page.mouse.move(0, 0);
  await page.locator(MOVING).evaluateAll((numbers) => {
    for (const number of numbers) number.style.visibility = "hidden";
  });
  await page.locator(SOMETIMES).evaluateAll((parts) => {
    for (const part of parts) part.style.display = "none";
  });
}

// On the desktop, the whole page fits into the window. In screenshots larger than the window, Chromium sometimes moves
// elements with `position: sticky`.
for (const [name, colorScheme, width, height] of [
  ["desktop-light", "light", 1440, 1000],
  ["desktop-dark", "dark", 1440, 1000],
  ["phone-light", "light", 360, 740],
  ["phone-dark", "dark", 360, 740],
] as const) {
  test(`looks as reviewed: ${name}`, async ({ page, server, console: opened }) => {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await hold(page, server, opened);
    // No byte is highlighted as changed.
    await expect(page.locator(".changed")).toHaveCount(0);
    // The memory is shown. It begins with the text "FWDEMO01"; 46 is its "F".
    await expect(page.getByRole("gridcell").first()).toHaveText("46");
    await expect(page).toHaveScreenshot(`${name}.png`, { fullPage: true });
  });
}

for (const tool of ["Memory", "Graphics", "Input"]) {
  test(`looks as reviewed in forced colours: ${tool}`, async ({ page, server, console: opened }) => {
    await page.emulateMedia({ forcedColors: "active", reducedMotion: "reduce" });
    const panel = await opened.tab(tool);
    await hold(page, server, opened);
    if (tool === "Graphics") await expect(panel).toContainText("Frame 300");
    await expect(page.locator(".changed:visible")).toHaveCount(0);
    await expect(page).toHaveScreenshot(`forced-${tool.toLowerCase()}.png`);
  });

  test.describe("at 200% zoom", () => {
    // At 200% zoom, a window of 1440 x 900 has this size.
    test.use({ viewport: { width: 720, height: 450 }, deviceScaleFactor: 2 });

    test(`looks as reviewed at 200% zoom: ${tool}`, async ({ page, server, console: opened }) => {
      await page.emulateMedia({ reducedMotion: "reduce" });
      const panel = await opened.tab(tool);
      await hold(page, server, opened);
      if (tool === "Graphics") await expect(panel).toContainText("Frame 300");
      await expect(page.locator(".changed:visible")).toHaveCount(0);
      const wide = await page.evaluate(() => document.scrollingElement?.scrollWidth);
      expect(wide).toBeLessThanOrEqual(720);
      await page.locator("#tools").evaluate((tools) => tools.scrollIntoView());
      await expect(page).toHaveScreenshot(`zoom-${tool.toLowerCase()}.png`);
    });
  });
}

test("the picture is drawn in sharp pixels", async ({ server, console: opened }) => {
  await server.holdAt(300);
  await expect(opened.button("Resume")).toBeVisible();
  await opened.expectPicture();
  await expect(opened.canvas).toHaveScreenshot("game.png", { maxDiffPixelRatio: 0, threshold: 0.02 });
});
