/** Checks the accessibility of a page with axe. */

import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import type { AxeResults } from "axe-core";

/** The code of axe. A page must run it before `violations` is called. */
export const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** The violations that axe finds, each as the name of the rule and the selectors of the elements. */
export async function violations(page: Page): Promise<string[]> {
  // Wait for the end of colour transitions. Otherwise, axe would check the colours in between.
  await page.waitForFunction(() =>
    document.getAnimations().every(({ playState }) => playState !== "running"),
  );
  const results = await page.evaluate(() => {
    const { axe } = window as unknown as { axe: { run(): Promise<AxeResults> } };
    return axe.run();
  });
  return results.violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`,
  );
}
