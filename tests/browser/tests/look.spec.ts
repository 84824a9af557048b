/** The look of the page, compared with reviewed pictures. The game is held in a frame that is always the same. */

import { expect, test } from "../support/test.ts";

/** Content that differs every time. */
const MOVING = ".badge .number, .timeline .branches, .strip .pictures";

for (const [name, colorScheme, width, height] of [
  ["desktop-light", "light", 1440, 900],
  ["desktop-dark", "dark", 1440, 900],
  ["phone-light", "light", 360, 740],
  ["phone-dark", "dark", 360, 740],
] as const) {
  test(`looks as it did: ${name}`, async ({ page, server, console: opened }) => {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await server.holdAt(300);
    await expect(opened.button("Resume")).toBeVisible();
    await expect.poll(() => opened.pixel(120, 60).then(String)).not.toBe("0,0,0");
    // No byte is highlighted as changed.
    await expect(page.locator(".changed")).toHaveCount(0);
    await expect(page.getByRole("gridcell").first()).toHaveText("46");
    await page.mouse.move(0, 0);
    await page.locator(MOVING).evaluateAll((numbers) => {
      for (const number of numbers) number.style.visibility = "hidden";
    });
    await expect(page).toHaveScreenshot(`${name}.png`, { fullPage: true });
  });
}

test("the picture is drawn in sharp pixels", async ({ server, console: opened }) => {
  await server.holdAt(300);
  await expect(opened.button("Resume")).toBeVisible();
  await expect(opened.canvas).toHaveScreenshot("game.png", { maxDiffPixelRatio: 0, threshold: 0.02 });
});
