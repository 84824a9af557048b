/** Tests for fixed bugs of the tools Memory and Find, named for the behaviour that each bug broke. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator } from "@playwright/test";
import { Console, drop, goTo, refuseCalls } from "../support/console.ts";
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

test("after the server has dropped a search, the page can begin a new one and says so", async ({
  console: page,
  server,
}) => {
  const panel = await page.tab("Memory");
  const toast = page.page.locator(".toast.bad").last();
  for (const [number, name] of [
    [1, "Keep"],
    [2, "Undo"],
    [3, "End"],
  ] as const) {
    await panel.getByRole("button", { name: "Search", exact: true }).click();
    await expect(panel.getByText(/places are left/)).toBeVisible();
    await fetch(`${server.url}/v1/search/${number}`, { method: "DELETE" });
    await panel.getByLabel("Value", { exact: true }).fill("7");
    await panel.getByRole("button", { name, exact: true }).click();
    await expect(toast).toContainText(`There is no search ${number}; begin a new one.`);
    await expect(toast).not.toContainText("POST");
    await toast.getByRole("button", { name: "Dismiss" }).click();
  }
  await expect(panel.getByRole("button", { name: "Search", exact: true })).toBeVisible();
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
