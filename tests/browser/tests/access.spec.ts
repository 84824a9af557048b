/** Accessibility: axe, keyboard only, small screens, touch, reduced motion. */

import { AXE, violations } from "../support/axe.ts";
import { Console, TABS } from "../support/console.ts";
import { demoCopies } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

for (const [size, viewport] of [
  ["a desktop", { width: 1440, height: 900 }],
  ["a phone", { width: 360, height: 740 }],
  ["a phone in landscape", { width: 844, height: 390 }],
] as const) {
  test.describe(`on ${size}`, () => {
    test.use({ viewport });

    test("axe finds no violation in any panel, in both themes", async ({ page, serve }) => {
      test.setTimeout(360_000);
      const roms = demoCopies(test.info().outputPath(), ["one", "two"]);
      const opened = await Console.open(page, await serve(roms));
      await page.evaluate(AXE);
      for (const name of [...TABS, "Emulators"]) {
        const panel = await opened.tab(name);
        if (name === "Graphics") await expect(panel.getByText(/^Frame/)).toBeVisible();
        await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
        expect(await violations(page), name).toEqual([]);
        await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
        expect(await violations(page), `${name}, dark`).toEqual([]);
      }
      for (const name of ["Reset", "Commands"]) {
        await opened.button(name).click();
        for (const colorScheme of ["light", "dark"] as const) {
          await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
          expect(await violations(page), `dialog of ${name}, ${colorScheme}`).toEqual([]);
        }
        await page.keyboard.press("Escape");
      }
    });
  });
}

test("Tab reaches everything in order, with a visible focus, and leaves the page", async ({
  page,
  console: opened,
}) => {
  await opened.button("Pause").evaluate((button) => (button as HTMLElement).blur());
  const stops: string[] = [];
  for (let press = 0; press < 80; press += 1) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return "";
      const style = getComputedStyle(element);
      const visible = style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth) >= 2;
      const name = element.getAttribute("aria-label") ?? element.textContent?.trim() ?? "";
      return `${visible ? "" : "INVISIBLE "}${element.tagName.toLowerCase()} ${name || element.id}`;
    });
    if (stop === "" && stops.length > 0) break;
    if (stop !== "") stops.push(stop);
  }
  expect(stops.filter((stop) => stop.startsWith("INVISIBLE"))).toEqual([]);
  expect(stops.length, stops.join("\n")).toBeGreaterThan(25);
  expect(stops.length, "the focus leaves the page").toBeLessThan(80);
  const place = (part: string): number => stops.findIndex((stop) => stop.includes(part));
  expect(place("Skip to the tools")).toBe(0);
  expect(place("Game screen")).toBeGreaterThan(place("curl"));
  expect(place("Pause")).toBeGreaterThan(place("Game screen"));
  expect(place("button A")).toBeGreaterThan(place("Pause"));
  expect(place("Memory")).toBeGreaterThan(place("button A"));
});

test("the keyboard alone can play, pause, go to a tool and use it", async ({ page, console: opened }) => {
  await opened.screen.focus();
  await opened.press("Enter", "Start");
  // Enter on a focused button presses the button.
  await page.keyboard.press("Tab");
  await expect(opened.button("Pause")).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(opened.button("Resume")).toBeFocused();
  // A button whose request is not answered yet ignores a second press.
  await expect(opened.button("Resume")).not.toHaveAttribute("aria-busy", "true");
  await page.keyboard.press("Space");
  await expect(opened.button("Pause")).toBeFocused();
  await opened.expectLit();

  const button = page.locator(".pad [data-key=B]");
  await button.focus();
  await opened.press("Space", "B");

  await page.getByRole("tab", { name: "Memory" }).focus();
  await page.keyboard.press("ArrowRight");
  await expect(page.getByRole("tab", { name: "Graphics" })).toBeFocused();
  await page.keyboard.press("End");
  await expect(page.getByRole("tab", { name: "Log" })).toBeFocused();
  await page.keyboard.press("Home");
  await page.getByRole("gridcell").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await expect(page.getByRole("gridcell").nth(17)).toBeFocused();
  await opened.expectLit();
});

test.describe("at 360 pixels, with touch", () => {
  test.use({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });

  test("nothing overflows in any panel, and touch targets are large enough", async ({
    page,
    console: opened,
  }) => {
    for (const name of TABS) {
      await opened.tab(name);
      const width = await page.evaluate(() => document.scrollingElement?.scrollWidth);
      expect(width, name).toBeLessThanOrEqual(360);
    }
    const small = await page.locator("button:visible").evaluateAll((buttons) =>
      buttons
        .map((button) => ({
          name: button.getAttribute("aria-label") ?? button.textContent,
          box: button.getBoundingClientRect(),
        }))
        .filter(({ box }) => box.width < 32 || box.height < 32)
        .map(({ name, box }) => `${name}: ${box.width} x ${box.height}`),
    );
    expect(small).toEqual([]);
  });

  test("two thumbs press keys, and a thumb rolls over the cross", async ({ page, console: opened }) => {
    const client = await page.context().newCDPSession(page);
    await page.locator(".pad").scrollIntoViewIfNeeded();
    const touch = async (type: "touchStart" | "touchMove" | "touchEnd", ...keys: string[]): Promise<void> => {
      const places = await Promise.all(keys.map((key) => opened.middle(key)));
      const touchPoints = places.map(([x, y], id) => ({ x, y, id }));
      await client.send("Input.dispatchTouchEvent", { type, touchPoints });
    };
    await touch("touchStart", "Left");
    await opened.expectLit("Left");
    await touch("touchStart", "Left", "A");
    await opened.expectLit("A", "Left");
    await touch("touchMove", "Down", "A");
    await opened.expectLit("A", "Down");
    await touch("touchEnd");
    await opened.expectLit();
  });
});

test("nothing moves if the user prefers reduced motion", async ({ page, console: opened }) => {
  await page.emulateMedia({ reducedMotion: "reduce" });
  const moving = (): Promise<number> =>
    page.evaluate(() => document.getAnimations().filter(({ playState }) => playState === "running").length);
  await expect.poll(moving).toBe(0);
  await expect(opened.screen).toBeVisible();
});
