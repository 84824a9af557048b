/** The layout at different sizes of the window. */

import { expect, test } from "../support/test.ts";

test("the page never scrolls sideways", async ({ console: page }) => {
  for (const width of [360, 480, 640, 672, 720, 800, 870, 960, 1000, 1180, 1280, 2560]) {
    await page.page.setViewportSize({ width, height: 800 });
    const wide = await page.page.evaluate(() => document.scrollingElement?.scrollWidth);
    expect(wide, `at ${width}`).toBeLessThanOrEqual(width);
  }
});

test("on wide screens, each game pixel covers a whole number of screen pixels", async ({ console: page }) => {
  for (const [width, height, scale] of [
    [1280, 720, 3],
    [1440, 900, 3],
    [1920, 1080, 4],
    [2560, 1440, 5],
  ] as const) {
    await page.page.setViewportSize({ width, height });
    const box = await page.canvas.boundingBox();
    expect([box?.width, box?.height], `at ${width}`).toEqual([240 * scale, 160 * scale]);
  }
});

test("wide windows have a rail of tabs, and very wide ones two open tools", async ({ console: page }) => {
  const list = page.page.getByRole("tablist", { name: "Tools" });
  await page.page.setViewportSize({ width: 1280, height: 720 });
  await expect(list).toHaveAttribute("aria-orientation", "horizontal");
  await page.page.setViewportSize({ width: 1440, height: 900 });
  await expect(list).toHaveAttribute("aria-orientation", "vertical");
  await page.tab("Watches");
  const panels = page.page.getByRole("tabpanel");
  await expect(panels).toHaveCount(1);
  const [rail, panel] = [await list.boundingBox(), await panels.boundingBox()];
  expect(panel?.x).toBeGreaterThanOrEqual((rail?.x ?? 0) + (rail?.width ?? 0));

  await page.page.setViewportSize({ width: 2560, height: 1440 });
  await expect(panels).toHaveCount(2);
  await page.tab("Graphics");
  await expect(page.page.getByRole("tabpanel", { name: "Watches" })).toBeVisible();
  await expect(page.page.getByRole("tabpanel", { name: "Graphics" })).toContainText("Frame");
  await expect(panels).toHaveCount(2);
});

test("with a mouse, the keys are in one row and can be clicked", async ({ console: page }) => {
  // The timeline appears above the keys and moves them.
  await expect(page.page.locator(".timeline")).toBeVisible();
  const pad = await page.page.locator(".pad").boundingBox();
  expect(pad?.height).toBeLessThan(80);
  expect((pad?.y ?? 900) + (pad?.height ?? 0)).toBeLessThanOrEqual(900);
  for (const key of ["Left", "Up", "Down", "Right"]) {
    await page.page.mouse.move(...(await page.middle(key)));
    await page.page.mouse.down();
    await expect(page.page.locator(`.pad [data-key=${key}]`)).toHaveClass(/held/);
    await expect(page.page.locator(".pad .held")).toHaveCount(1);
    await page.page.mouse.up();
    await expect(page.page.locator(".pad .held")).toHaveCount(0);
  }
});

test("watched values stay below the other tools", async ({ console: page }) => {
  const watches = await page.tab("Watches");
  await watches.getByLabel("Expression to watch").fill("frame");
  await watches.getByRole("button", { name: "Watch", exact: true }).click();
  const values = page.page.getByRole("list", { name: "Watched values" });
  await expect(values).toBeHidden();
  await page.tab("Memory");
  const value = values.locator(".value");
  await expect(value).toHaveText(/^\d+$/);
  const first = await value.textContent();
  await expect(value).not.toHaveText(first ?? "");
  await expect(value).toBeInViewport();
  await page.tab("Watches");
  await expect(values).toBeHidden();
});

test("full screen shows only the picture, at 95% of the height or more", async ({ console: page }) => {
  await page.page.setViewportSize({ width: 1440, height: 900 });
  await page.button("Full screen").click();
  await expect.poll(() => page.page.evaluate(() => document.fullscreenElement !== null)).toBe(true);
  const part = async (): Promise<number> => {
    const height = await page.page.evaluate(() => innerHeight);
    return ((await page.canvas.boundingBox())?.height ?? 0) / height;
  };
  await expect.poll(part).toBeGreaterThanOrEqual(0.95);
  await expect(page.page.locator(".pad")).toBeHidden();
});

test.describe("on a phone in landscape", () => {
  test.use({ viewport: { width: 844, height: 390 }, hasTouch: true, isMobile: true });

  test("the picture is large, with the keys at its sides", async ({ console: page }) => {
    const picture = await page.canvas.boundingBox();
    if (!picture) throw new Error("no picture");
    expect(picture.width).toBeGreaterThanOrEqual(520);
    expect(picture.y + picture.height).toBeLessThanOrEqual(390);
    const boxes = await page.page.locator(".pad [data-key]").evaluateAll((keys) =>
      keys.map((key) => {
        const { left, right, top, bottom } = key.getBoundingClientRect();
        return { name: key.getAttribute("data-key"), left, right, top, bottom };
      }),
    );
    expect(boxes.length).toBe(10);
    for (const { name, left, right, top, bottom } of boxes) {
      expect(Math.min(left, top), `${name}`).toBeGreaterThanOrEqual(0);
      expect(Math.max(right - 844, bottom - 390), `${name}`).toBeLessThanOrEqual(0);
      const isOutside = right <= picture.x + 1 || left >= picture.x + picture.width - 1;
      expect(isOutside, `${name} is next to the picture`).toBe(true);
    }
    await page.page.locator(".pad [data-key=A]").tap();
    const width = await page.page.evaluate(() => document.scrollingElement?.scrollWidth);
    expect(width).toBeLessThanOrEqual(844);
  });
});
