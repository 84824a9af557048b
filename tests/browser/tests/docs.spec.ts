/** The page that describes the HTTP interface. */

import { AXE, violations } from "../support/axe.ts";
import { expect, test } from "../support/test.ts";

test("the side bar leads to a group, and an operation shows its fields and replies", async ({
  page,
  server,
}) => {
  await page.goto(`${server.url}/docs`);
  await page.getByRole("navigation", { name: "Groups" }).getByRole("link", { name: "search" }).click();
  await expect(page.getByRole("heading", { name: "search", exact: true })).toBeInViewport();
  const operation = page.locator("#narrowSearch");
  await operation.locator("> summary").click();
  await operation.getByText("Replies").click();
  await expect(operation.getByText("undoable", { exact: true })).toBeVisible();
  // The search also finds words in nested parts. It hides only operations that do not contain the words.
  await page.getByLabel("Find").fill("undoable");
  await expect(operation).toBeVisible();
  await expect(page.locator("#pause")).toBeHidden();
});

test("a request is copied in four languages", async ({ page, server }) => {
  await page.goto(`${server.url}/docs#hold`);
  const operation = page.locator("#hold");
  await operation.locator("textarea").fill('{"keys": ["A"]}');
  const output = operation.locator("output pre");
  for (const [language, part] of [
    ["curl", `curl ${server.url}/v1/hold -H`],
    ["Python", "urllib.request.Request("],
    ["JavaScript", "await fetch("],
    ["Lua", 'require "framewire.http"'],
  ] as const) {
    await page.getByLabel("Copy as").selectOption(language);
    await operation.getByRole("button", { name: "Copy", exact: true }).click();
    await expect(output).toContainText(part);
    await expect(output).toContainText("/v1/hold");
  }
  await operation.locator("textarea").fill("{");
  await operation.getByRole("button", { name: "Copy", exact: true }).click();
  await expect(output).toContainText("The body is not JSON");
});

for (const colorScheme of ["light", "dark"] as const) {
  test(`axe finds no violation in the ${colorScheme} theme`, async ({ page, server }) => {
    await page.emulateMedia({ colorScheme });
    await page.goto(`${server.url}/docs#narrowSearch`);
    await page.locator("#narrowSearch").getByText("Replies").click();
    await page.evaluate(AXE);
    expect(await violations(page)).toEqual([]);
  });
}
