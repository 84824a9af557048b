/** The page that describes the HTTP interface. */

import { writeFileSync } from "node:fs";
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

test("several expressions are sent, with their spaces and commas", async ({ page, server }) => {
  await page.goto(`${server.url}/docs#watch`);
  const operation = page.locator("form[data-path='/v1/watch']");
  await operation.locator("[name=watch]").fill("u16[0x02000038] > 100; text[0x02000000, 8]");
  const asked = page.waitForRequest(/\/v1\/watch\?/);
  await operation.getByRole("button", { name: "Send" }).click();
  const { searchParams } = new URL((await asked).url());
  expect(searchParams.getAll("watch")).toEqual(["u16[0x02000038] > 100", "text[0x02000000, 8]"]);
  await operation.getByRole("button", { name: "Stop" }).click();
});

test("a copied program has a token if the server needs one", async ({ page, serve }) => {
  const token = "f".repeat(64);
  const path = test.info().outputPath("token");
  writeFileSync(path, token, { mode: 0o600 });
  const server = await serve(["--speed", "1", "--token-file", path]);
  await page.goto(`${server.url}/docs`);
  await page.getByLabel("Token").fill(token);
  // After the login, the page sends a request without its cookie. The status 401 shows that the server needs
  // a token.
  const probed = page.waitForResponse(
    (response) => response.url().endsWith("/v1/emulators") && response.status() === 401,
    { timeout: 10_000 },
  );
  await page.getByRole("button", { name: "Log in" }).click();
  await probed;
  const operation = page.locator("#pause");
  await operation.locator("> summary").click();
  await operation.getByRole("button", { name: "Copy", exact: true }).click();
  await expect(operation.locator("output pre")).toContainText("Authorization: Bearer $FRAMEWIRE_TOKEN");
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
