/** The graphics panel, compared with mGBA's own views. */

import type { Locator, Page } from "@playwright/test";
import { Console, saved, sizeOf } from "../support/console.ts";
import { gameBoyRom, serveGame } from "../support/gameboy.ts";
import { repository, type Server } from "../support/server.ts";
import { expect, test } from "../support/test.ts";
import { type View, viewsOf } from "../support/views.ts";

const DEMO = repository("rom/framewire-demo.gba");
const IO = 0x0400_0000;

/** Pseudo-random bytes. They are the same each time. */
function noise(length: number, seed: number): Uint8Array {
  let state = seed;
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state >>> 16;
  });
}

/** The pixels of a canvas. */
async function pixelsOf(canvas: Locator): Promise<View> {
  await expect(canvas).toHaveCount(1);
  const [view] = await allPixels(canvas);
  if (!view) throw new Error("the canvas has been removed");
  return view;
}

/** The pixels of each of these canvases. */
async function allPixels(canvases: Locator): Promise<View[]> {
  const views = await canvases.evaluateAll((elements) =>
    (elements as HTMLCanvasElement[]).map((element) => {
      const image = element.getContext("2d")?.getImageData(0, 0, element.width, element.height);
      let text = "";
      for (const byte of image?.data ?? []) text += String.fromCharCode(byte);
      return { width: element.width, height: element.height, data: btoa(text) };
    }),
  );
  return views.map(({ data, ...size }) => ({ ...size, pixels: Buffer.from(data, "base64") }));
}

/** A description of the first difference between two pictures; an empty string if they are equal. */
function difference(seen: View, wanted: View | undefined): string {
  if (!wanted) return "mGBA has no such picture";
  if (seen.width !== wanted.width || seen.height !== wanted.height)
    return `${seen.width}x${seen.height}, and mGBA's has ${wanted.width}x${wanted.height}`;
  for (let at = 0; at < wanted.pixels.length; at += 4) {
    if (seen.pixels.readUInt32BE(at) === wanted.pixels.readUInt32BE(at)) continue;
    const place = `${(at / 4) % wanted.width}, ${Math.floor(at / 4 / wanted.width)}`;
    const [is, expected] = [seen, wanted].map(({ pixels }) => pixels.subarray(at, at + 4).toString("hex"));
    return `at ${place} is ${is}, and mGBA has ${expected}`;
  }
  return "";
}

/** Compares everything that the panel shows with mGBA's views. Returns the number of pictures, without the palettes. */
async function compare(page: Page, panel: Locator, views: Map<string, View>): Promise<number> {
  let compared = 0;
  const equal = (name: string, seen: View): void => {
    expect(difference(seen, views.get(name)), name).toBe("");
    compared += 1;
  };
  const view = async (name: string): Promise<Locator> => {
    await panel.getByRole("button", { name, exact: true }).click();
    return panel.locator(".view:visible");
  };
  const values = async (list: Locator): Promise<string[]> =>
    list.locator("option").evaluateAll((all) => all.map((option) => (option as HTMLOptionElement).value));

  const palettes = await view("Palettes");
  const shown = await pixelsOf(palettes.locator("canvas"));
  const all = views.get("palettes");
  // The Game Boy has only three palettes. In mGBA's list, they are at these places.
  const rows = shown.height === 3 ? [0, 8, 9] : [...Array(shown.height).keys()];
  const length = shown.width * 4;
  expect(shown.pixels).toEqual(
    Buffer.concat(
      rows.map((row) => all?.pixels.subarray(row * length, (row + 1) * length) ?? Buffer.alloc(0)),
    ),
  );

  const tiles = await view("Tiles");
  for (const set of await values(tiles.getByLabel("Tiles of"))) {
    await tiles.getByLabel("Tiles of").selectOption(set);
    for (const [index, palette] of (await values(tiles.getByLabel("Palette"))).entries()) {
      await tiles.getByLabel("Palette").selectOption(palette);
      const view = await pixelsOf(tiles.locator("canvas"));
      equal(`tiles-${set}-${rows.length === 3 ? rows[index] : palette}`, view);
    }
  }

  const maps = await view("Maps");
  const labels = await maps.getByLabel("Layer").locator("option").allTextContents();
  for (const [index, label] of labels.entries()) {
    await maps.getByLabel("Layer").selectOption({ label });
    equal(`map-${/\d/.exec(label)?.[0] ?? index}`, await pixelsOf(maps.locator("canvas")));
  }

  const sprites = await view("Sprites");
  await sprites.getByLabel("Also sprites").check();
  const buttons = sprites.getByRole("button", { name: /^Sprite \d+$/ });
  const names = await buttons.evaluateAll((all) => all.map((button) => button.getAttribute("aria-label")));
  const pictures = await allPixels(buttons.locator("canvas"));
  expect(pictures.length).toBe(names.length);
  const seen = new Map(names.map((name, index) => [name, pictures[index]]));
  for (const name of [...views.keys()].filter((key) => key.startsWith("sprite-"))) {
    const picture = seen.get(name.replace("sprite-", "Sprite "));
    if (!picture) throw new Error(`the panel does not show ${name}`);
    equal(name, picture);
  }
  await page.mouse.move(0, 0);
  return compared;
}

/** Opens the panel and waits until it shows the current frame. */
async function open(opened: Console, server: Server): Promise<Locator> {
  const { frame } = await server.state();
  const panel = await opened.tab("Graphics");
  await expect(panel.locator(".note").last()).toHaveText(`Frame ${frame.toLocaleString("en")}`);
  return panel;
}

test("the demo game's graphics equal mGBA's own views", async ({ page, server, console: opened }) => {
  await server.holdAt(300);
  const views = await viewsOf(server, DEMO);
  // 34 pictures of tiles: two sets, each with 16 palettes, and two sets of 256 colours. Then 4 maps and 128 sprites.
  expect(await compare(page, await open(opened, server), views)).toBe(34 + 4 + 128);
});

for (const [mode, layers] of [
  [0, 4],
  [1, 3],
  [2, 2],
  [3, 1],
  [4, 1],
  [5, 1],
] as const) {
  test(`noise in mode ${mode} looks as in mGBA's own views`, async ({ page, server, console: opened }) => {
    await server.holdAt(60);
    // All layers are on, the tiles of sprites have the two-dimensional arrangement, and the second bitmap is visible.
    const control = mode | 0x1f10;
    const registers = [0, 2, 4, 6].map((at, number) => ({
      op: "write16",
      address: IO + 8 + at,
      // The layers have maps of all four sizes, at different places. Their tiles begin at the start of video memory.
      // In mode 0, two layers have 16 colours and two have 256.
      value: (number << 14) | ((number * 7 + 1) << 8) | (number % 2 === 0 || mode > 0 ? 0x80 : 0),
    }));
    const oam = noise(0x400, 3);
    // No sprite has the prohibited shape, because mGBA's views do not draw it.
    for (let at = 1; at < oam.length; at += 8) if ((oam[at] ?? 0) >= 0xc0) oam[at] = (oam[at] ?? 0) & 0x3f;
    const write = (address: number, bytes: Uint8Array): object => ({
      op: "write_range",
      address,
      data: Buffer.from(bytes).toString("base64"),
    });
    await server.batch(
      write(0x0500_0000, noise(0x400, 1)),
      write(0x0600_0000, noise(0x1_8000, 2)),
      write(0x0700_0000, oam),
      { op: "write16", address: IO, value: control },
      ...registers,
    );
    const views = await viewsOf(server, DEMO);
    const panel = await open(opened, server);
    const sprites = [...views.keys()].filter((name) => name.startsWith("sprite-")).length;
    expect(sprites).toBeGreaterThan(100);
    expect(await compare(page, panel, views)).toBe(34 + layers + sprites);
  });
}

for (const [name, colour, control] of [
  ["Game Boy", false, 0xf3],
  ["Game Boy Color", true, 0xe7],
  ["Game Boy Color with its other map and tiles", true, 0xbb],
] as const) {
  test(`a game for the ${name} looks as in mGBA's own views`, async ({ page, serve }) => {
    const oam = noise(160, 6);
    // Tall sprites consist of pairs of tiles, and a pair begins with an even number.
    if (control & 4) for (let at = 2; at < oam.length; at += 4) oam[at] = (oam[at] ?? 0) & 0xfe;
    const rom = gameBoyRom({
      colour,
      vram: noise(0x4000, 5),
      oam,
      palettes: noise(128, 7).map((byte, at) => (at % 2 === 1 ? byte & 0x7f : byte)),
      registers: [
        [0x47, 0xe4],
        [0x48, 0x1b],
        [0x49, 0x6c],
        [0x42, 200],
        [0x43, 130],
        [0x4a, 40],
        [0x4b, 67],
        [0x40, control],
      ],
    });
    const file = colour ? "graphics.gbc" : "graphics.gb";
    const server = await serveGame(serve, file, rom);
    await server.batch({ op: "pause" }, { op: "advance", frames: 30 });
    const opened = await Console.open(page, server);
    const panel = await open(opened, server);
    const views = await viewsOf(server, test.info().outputPath(file));
    expect(await compare(page, panel, views)).toBe((colour ? 2 * 16 : 3) + 2 + 40);
  });
}

test("the graphics of a stock mGBA equal its own views", async ({ page, serve, openWindow }) => {
  test.setTimeout(240_000);
  const window = await openWindow();
  const server = await serve(["--attach", window.address]);
  await server.json("/v1/lockstep", { timeout: 60_000 });
  const opened = await Console.open(page, server);
  const views = await viewsOf(server, DEMO);
  expect(await compare(page, await open(opened, server), views)).toBe(34 + 4 + 128);
});

test("a sprite is marked in the picture, and its bytes in memory", async ({
  page,
  server,
  console: opened,
}) => {
  await server.holdAt(300);
  const panel = await open(opened, server);
  await panel.getByRole("button", { name: "Sprites", exact: true }).click();
  // Sprite 8 is the ball. The game also keeps the ball's place in its memory.
  const ball = panel.getByRole("button", { name: "Sprite 8", exact: true });
  const mark = page.locator(".marks .box");
  await expect(mark).toBeHidden();
  await ball.hover();
  await expect(mark).toBeVisible();
  const [x, y] = await server.batch(
    { op: "read16", address: 0x0200_0038 },
    { op: "read16", address: 0x0200_003a },
  );
  const box = await mark.boundingBox();
  const picture = await opened.canvas.boundingBox();
  if (!box || !picture) throw new Error("the mark or the picture is not visible");
  const scale = picture.width / 240;
  const middle = [(box.x + box.width / 2 - picture.x) / scale, (box.y + box.height / 2 - picture.y) / scale];
  expect(Math.abs((middle[0] ?? 0) - Number(x) / 16)).toBeLessThan(2);
  expect(Math.abs((middle[1] ?? 0) - Number(y) / 16)).toBeLessThan(2);
  await ball.click();
  await panel.getByRole("button", { name: "Sprite 07000040" }).click();
  const memory = page.getByRole("tabpanel", { name: "Memory" });
  await expect(memory.locator(".pointed")).toHaveCount(8);
  const [oam] = await server.batch({ op: "read_range", address: 0x0700_0040, length: 8 });
  await expect
    .poll(async () => (await memory.locator(".pointed").allTextContents()).join(""))
    .toBe(Buffer.from(String(oam), "base64").toString("hex"));
});

test("a sprite of a Super Game Boy game is marked inside the border", async ({ page, serve }) => {
  // A sprite in the upper left corner of the game's screen.
  const oam = Uint8Array.of(16, 8, 0, 0);
  const rom = gameBoyRom({ colour: false, oam, registers: [[0x40, 0x93]] });
  rom[0x146] = 3;
  rom[0x14b] = 0x33;
  // The checksum of the header.
  rom[0x14d] = (rom[0x14d] ?? 0) - 0x36;
  const server = await serveGame(serve, "super.gb", rom);
  await server.batch({ op: "pause" }, { op: "advance", frames: 30 });
  const opened = await Console.open(page, server);
  const panel = await open(opened, server);
  await expect(opened.canvas).toHaveJSProperty("width", 256);
  await panel.getByRole("button", { name: "Sprites", exact: true }).click();
  await panel.getByRole("button", { name: "Sprite 0", exact: true }).hover();
  const box = await page.locator(".marks .box").boundingBox();
  const picture = await opened.canvas.boundingBox();
  if (!box || !picture) throw new Error("the mark or the picture is not visible");
  const scale = picture.width / 256;
  expect((box.x - picture.x) / scale).toBeCloseTo(48, 0);
  expect((box.y - picture.y) / scale).toBeCloseTo(40, 0);
});

test("the visible picture can be saved as a PNG file, and the arrow keys choose a tile", async ({
  page,
  server,
  console: opened,
}) => {
  await server.holdAt(300);
  const panel = await open(opened, server);
  await panel.getByRole("button", { name: "Tiles", exact: true }).click();
  await panel.getByLabel("Tiles of").selectOption({ label: "Background, 256 colours" });
  const cells = panel.getByRole("group", { name: /^Tiles\./ });
  await cells.focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  await expect(panel.getByRole("heading", { name: "Tile 17", exact: true })).toBeVisible();
  await expect(panel.getByRole("button", { name: "Tile 06000440" })).toBeVisible();
  const { name, bytes } = await saved(page, panel.getByRole("button", { name: "PNG" }));
  expect(name).toBe("tiles.png");
  expect(await sizeOf(page, bytes)).toEqual([128, 512]);
});
