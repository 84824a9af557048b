/** Daily use of the memory panel: scrolling, selecting, columns, symbols, banks, searches and comparisons. */

import { Console, goTo } from "../support/console.ts";
import { gameBoyRom, serveGame } from "../support/gameboy.ts";
import { expect, test } from "../support/test.ts";

const SCRATCH = 0x0200_0100;

test("the wheel and the scroll bar move through memory", async ({ page, console: opened }) => {
  const panel = await opened.tab("Memory");
  const head = panel.getByRole("rowheader").first();
  await expect(head).toHaveText("02000000");
  await panel.getByRole("gridcell").first().hover();
  await page.mouse.wheel(0, 100);
  await expect(head).toHaveText("02000030");
  await page.mouse.wheel(0, -100);
  await expect(head).toHaveText("02000000");
  // The scroll bar covers the work RAM, which has 256 KiB.
  const bar = panel.getByLabel("Position in memory");
  await expect(bar).toHaveAttribute("max", String((0x4_0000 - 0x100) / 16));
  await bar.focus();
  await page.keyboard.press("End");
  await expect(head).toHaveText("0203ff00");
  await panel.getByLabel("Memory domain").selectOption("iwram");
  await expect(bar).toHaveAttribute("max", String((0x8000 - 0x100) / 16));
  await panel.getByRole("gridcell").first().hover();
  await page.mouse.wheel(0, -100);
  await expect(head).toHaveText("00000000");
});

test("a tall screen shows twice as many rows", async ({ page, console: opened }) => {
  const panel = await opened.tab("Memory");
  const rows = panel.getByRole("rowheader");
  await expect(rows).toHaveCount(16);
  await page.setViewportSize({ width: 2560, height: 1440 });
  await expect(rows).toHaveCount(32);
  await expect(rows.last()).toHaveText("020001f0");
  await page.setViewportSize({ width: 1440, height: 900 });
  await expect(rows).toHaveCount(16);
});

test("bytes are selected and copied", async ({ page, server, console: opened }) => {
  const clipboard = (): Promise<string> => page.evaluate(() => navigator.clipboard.readText());
  const panel = await opened.tab("Memory");
  const data = Buffer.from("00112233445566778899aabbccddeeff", "hex").toString("base64");
  await server.batch({ op: "write_range", address: SCRATCH, data });
  await goTo(panel, "02000100");
  const cells = panel.getByRole("gridcell");
  await expect(cells.nth(15)).toHaveText("ff");
  await cells.nth(2).click();
  await cells.nth(5).click({ modifiers: ["Shift"] });
  await expect(panel.locator("[aria-selected=true]")).toHaveText(["22", "33", "44", "55"]);
  await page.keyboard.press("Control+c");
  await expect.poll(clipboard).toBe("22 33 44 55");
  await page.keyboard.press("Shift+ArrowRight");
  await panel.getByRole("button", { name: "Copy the selected bytes" }).click();
  await expect.poll(clipboard).toBe("22 33 44 55 66");
  // A selection can be larger than the panel. Only its visible bytes are copied.
  await cells.nth(2).click();
  await page.keyboard.press("Shift+PageDown");
  await panel.getByRole("button", { name: "Copy the selected bytes" }).click();
  const copied = (): Promise<number> => clipboard().then((text) => text.split(" ").length);
  await expect.poll(copied).not.toBe(5);
  await expect(page.locator(".toast.copied").last()).toContainText(`Bytes copied: ${await copied()}.`);
  await goTo(panel, "02000100");
  // Dragging with the pointer also selects bytes.
  await cells.nth(8).hover();
  await page.mouse.down();
  await cells.nth(9).hover();
  await page.mouse.up();
  await expect(panel.locator("[aria-selected=true]")).toHaveText(["88", "99"]);
});

test("columns of 16 and 32 bits are shown and written", async ({ page, server, console: opened }) => {
  const panel = await opened.tab("Memory");
  const data = Buffer.from("0011223344556677", "hex").toString("base64");
  await server.batch({ op: "write_range", address: SCRATCH, data });
  await goTo(panel, "02000100");
  const cells = panel.getByRole("gridcell");
  await panel.getByLabel("Columns").selectOption("16 bits");
  await expect(cells.first()).toHaveText("1100");
  await expect(cells).toHaveCount(128);
  await panel.getByLabel("Columns").selectOption("32 bits");
  await expect(cells.nth(1)).toHaveText("77665544");
  await cells.nth(1).click();
  await page.keyboard.type("0badcafe");
  await expect
    .poll(async () => (await server.batch({ op: "read32", address: SCRATCH + 4 }))[0])
    .toBe(0x0bad_cafe);
  await expect(cells.nth(1)).toHaveText("0badcafe");
  await expect(panel.locator(".inspector h2")).toContainText("02000108");
});

test("symbols are coloured bands with their names", async ({ console: opened }) => {
  const panel = await opened.tab("Memory");
  const cells = panel.getByRole("gridcell");
  // `magic` has 8 bytes; `frame` follows.
  await expect(cells.nth(7)).toHaveAttribute("title", "magic");
  await expect(cells.nth(8)).toHaveAttribute("title", "frame");
  await expect(cells.nth(8)).toHaveClass(/first/);
  const colour = (index: number): Promise<string> =>
    cells.nth(index).evaluate((cell) => getComputedStyle(cell).backgroundColor);
  expect(await colour(7)).not.toBe(await colour(8));
});

test("a Game Boy's memory is shown with the console's addresses and banks", async ({ page, serve }) => {
  const rom = gameBoyRom({
    colour: true,
    vram: Uint8Array.from({ length: 0x4000 }, (_, at) => (at < 0x2000 ? 0xa0 : 0xb1)),
    registers: [[0x40, 0x91]],
  });
  const server = await serveGame(serve, "banks.gbc", rom);
  await server.batch({ op: "pause" }, { op: "advance", frames: 30 });
  const opened = await Console.open(page, server);
  const panel = await opened.tab("Memory");
  const head = panel.getByRole("rowheader").first();
  await expect(head).toHaveText("c000");
  await panel.getByLabel("Memory domain").selectOption("vram");
  await expect(head).toHaveText("00:8000");
  await expect(panel.getByRole("gridcell").first()).toHaveText("a0");
  await goTo(panel, "1:8010");
  await expect(head).toHaveText("01:8010");
  await expect(panel.getByRole("gridcell").first()).toHaveText("b1");
  // An address that the domain does not contain is refused.
  const selected = panel.locator(".inspector h2");
  await goTo(panel, "c000");
  await expect(page.locator(".toast.bad")).toContainText(
    "ends before c000. For an address on the bus, choose Bus.",
  );
  await expect(selected).toHaveText("00002010");
  // Memory without banks has the addresses of the bus.
  await panel.getByLabel("Memory domain").selectOption("oam");
  await goTo(panel, "fe10");
  await expect(selected).toHaveText("00000010");
  await expect(panel.locator("[aria-selected=true]")).toHaveAttribute("data-index", "16");
});

test("a bank that the Game Boy does not have is refused", async ({ page, serve }) => {
  const server = await serveGame(serve, "banks.gb", gameBoyRom({ colour: false, registers: [] }));
  const opened = await Console.open(page, server);
  const panel = await opened.tab("Memory");
  const head = panel.getByRole("rowheader").first();
  const domain = panel.getByLabel("Memory domain");
  await expect(head).toHaveText("c000");
  await expect.poll(() => domain.locator("option").count()).toBeGreaterThan(3);
  const [size] = await server.batch({ op: "domain_size", domain: "wram" });
  const banks = Number(size) / 0x1000;
  const name = (bank: number): string => bank.toString(16).padStart(2, "0");
  await goTo(panel, `${name(banks - 1)}:d000`);
  await expect(head).toHaveText(`${name(banks - 1)}:d000`);
  await goTo(panel, `${name(banks)}:d000`);
  await expect(page.locator(".toast.bad")).toContainText(
    `ends before ${name(banks)}:d000. Its last bank is ${name(banks - 1)}.`,
  );
  await expect(panel.locator(".inspector h2")).toHaveText(
    ((banks - 1) * 0x1000).toString(16).padStart(8, "0"),
  );
  await expect(head).toHaveText(`${name(banks - 1)}:d000`);
});

test("the mark of found bytes goes when another domain is selected", async ({ server, console: opened }) => {
  await server.holdAt(60);
  const panel = await opened.tab("Memory");
  await panel.getByLabel("Find in work RAM").fill("FWDEMO");
  await panel.getByRole("button", { name: "Find", exact: true }).click();
  await panel.locator(".found button").first().click();
  const marked = panel.locator(".pointed");
  await expect(marked).not.toHaveCount(0);
  // The found bytes are at the start of the work RAM.
  await panel.getByLabel("Memory domain").selectOption("wram");
  await expect(marked).toHaveCount(0);
  await panel.getByLabel("Memory domain").selectOption("");
  await expect(panel.getByRole("rowheader").first()).toHaveText("02000000");
  await expect(marked).toHaveCount(0);
});

test("a value is found by its changes and can be watched", async ({ server, console: opened }) => {
  const panel = await opened.tab("Memory");
  await server.batch({ op: "pause" }, { op: "write32", address: SCRATCH, value: 123_456_789 });
  await panel.getByLabel("Search for a number").selectOption("u32");
  await panel.getByRole("button", { name: "Search", exact: true }).click();
  const keep = panel.getByLabel("Keep the places whose number");
  await keep.selectOption("is equal to");
  await panel.getByLabel("Value", { exact: true }).fill("123456789");
  await panel.getByRole("button", { name: "Keep", exact: true }).click();
  await expect(panel.getByText("1 place is left.")).toBeVisible();
  await server.batch({ op: "write32", address: SCRATCH, value: 123_456_799 });
  await keep.selectOption("has increased by");
  await panel.getByLabel("Value", { exact: true }).fill("10");
  await panel.getByRole("button", { name: "Keep", exact: true }).click();
  const candidates = panel.getByRole("list", { name: "Candidates" });
  await expect(candidates).toContainText("123456799");
  await candidates.getByRole("button", { name: /^02000100/ }).click();
  await expect(panel.locator(".pointed")).toHaveCount(4);
  await keep.selectOption("has decreased");
  await panel.getByRole("button", { name: "Keep", exact: true }).click();
  await expect(panel.getByText("0 places are left.")).toBeVisible();
  await panel.getByRole("button", { name: "Undo" }).click();
  await candidates.getByRole("button", { name: /^Watch/ }).click();
  await panel.getByRole("button", { name: "End" }).click();
  await expect(candidates).toBeEmpty();
  const watches = await opened.tab("Watches");
  await expect(watches.getByRole("listitem").first()).toContainText("123456799");
});

test("a snapshot is compared with the memory, and each difference can be shown and watched", async ({
  page,
  server,
  console: opened,
}) => {
  await server.batch({ op: "pause" }, { op: "write32", address: SCRATCH, value: 0 });
  const panel = await opened.tab("Snapshots");
  await panel.getByLabel("Name of the snapshot").fill("before");
  await panel.getByRole("button", { name: "Save now" }).click();
  await expect(panel.getByRole("listitem").filter({ hasText: "before" })).toBeVisible();
  await server.batch({ op: "write16", address: SCRATCH, value: 0xbeef });
  await panel.getByLabel("Compare", { exact: true }).selectOption("before");
  await panel.getByRole("button", { name: "Compare" }).click();
  await expect(panel.getByText("2 bytes differ.")).toBeVisible();
  const differences = panel.getByRole("list", { name: "Differences" });
  await expect(differences).toContainText("0000 → efbe");
  await differences.getByRole("button", { name: /^Watch/ }).click();
  await differences.getByRole("button", { name: /^02000100/ }).click();
  const memory = page.getByRole("tabpanel", { name: "Memory" });
  await expect(memory.locator(".pointed")).toHaveText(["ef", "be"]);
  const watches = await opened.tab("Watches");
  await expect(watches.getByRole("listitem").first()).toContainText("bytes[0x2000100, 2]");
});
