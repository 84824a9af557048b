/** Pictures, clips, links and programs that users can share. */

import { execFileSync } from "node:child_process";
import { type Console, goTo, saved, sizeOf } from "../support/console.ts";
import type { Server } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

/** Opens the page, waits until it has received more than this many pictures, and pauses the game. */
async function play(opened: Console, server: Server, pictures: number): Promise<void> {
  let got = 0;
  opened.page.on("websocket", (socket) => {
    if (new URL(socket.url()).pathname === "/v1/video") socket.on("framereceived", () => (got += 1));
  });
  await opened.open();
  await expect.poll(() => got).toBeGreaterThan(pictures);
  await server.batch({ op: "pause" });
  await expect(opened.button("Resume")).toBeVisible();
  await opened.expectPicture();
}

test("the picture is saved at the chosen scale", async ({ page, server, console: opened }) => {
  await server.holdAt(60);
  const panel = await opened.tab("Share");
  await panel.getByLabel("Scale of the picture").selectOption("3×");
  const { name, bytes } = await saved(page, panel.getByRole("button", { name: "PNG" }));
  expect(name).toBe("screen.png");
  expect(await sizeOf(page, bytes)).toEqual([720, 480]);
});

test("the last seconds are saved as a GIF file that shows the game's pictures", async ({
  page,
  server,
  console: opened,
}) => {
  await play(opened, server, 90);
  const panel = await opened.tab("Share");
  await panel.getByLabel("Scale of the clip").selectOption("1×");
  await panel.getByLabel("The last").selectOption("5 seconds");
  const { name, bytes } = await saved(page, panel.getByRole("button", { name: "GIF" }));
  expect(name).toBe("clip.gif");
  const decoded = await page.evaluate(async (gif) => {
    const decoder = new ImageDecoder({ data: Uint8Array.from(gif), type: "image/gif" });
    await decoder.tracks.ready;
    await decoder.completed;
    const count = decoder.tracks.selectedTrack?.frameCount ?? 0;
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [240, 160];
    const context = canvas.getContext("2d");
    let milliseconds = 0;
    for (let frameIndex = 0; frameIndex < count; frameIndex += 1) {
      const { image } = await decoder.decode({ frameIndex });
      milliseconds += (image.duration ?? 0) / 1000;
      context?.drawImage(image, 0, 0);
      image.close();
    }
    return { count, milliseconds, last: [...(context?.getImageData(0, 0, 240, 160).data ?? [])] };
  }, bytes);
  expect(decoded.count).toBeGreaterThan(20);
  // Of this time, the last picture takes half a second, and the pictures before it take the rest.
  expect(decoded.milliseconds).toBeGreaterThan(1500);
  const shown = await opened.canvas.evaluate((canvas: HTMLCanvasElement) => [
    ...(canvas.getContext("2d")?.getImageData(0, 0, 240, 160).data ?? []),
  ]);
  const different = decoded.last.filter((part, at) => part !== shown[at]).length;
  // The clip has only every second picture, so its last picture may be one frame older. Little moves in one frame.
  expect(different / shown.length).toBeLessThan(0.02);
});

test("the last seconds are saved as a WebM file that plays", async ({ page, server, console: opened }) => {
  await play(opened, server, 60);
  const panel = await opened.tab("Share");
  await panel.getByLabel("The last").selectOption("5 seconds");
  const { name, bytes } = await saved(page, panel.getByRole("button", { name: "WebM" }));
  expect(name).toBe("clip.webm");
  await expect(panel.getByText(/Saved clip\.webm: \d+ KB/)).toBeVisible();
  expect(bytes.slice(0, 4)).toEqual([0x1a, 0x45, 0xdf, 0xa3]);
  expect(bytes.length).toBeGreaterThan(2000);
});

test("a WebM file of a game that is paused all the time shows its picture", async ({
  page,
  context,
  server,
  console: opened,
}) => {
  await server.holdAt(60);
  // The page has only the picture of the paused game.
  await opened.open();
  await opened.expectPicture();
  const panel = await opened.tab("Share");
  const { bytes } = await saved(page, panel.getByRole("button", { name: "WebM" }));
  await expect(panel.getByText(/Saved clip\.webm/)).toBeVisible();
  // The policy of the console page allows no videos, so an empty page plays this one.
  const player = await context.newPage();
  const size = await player.evaluate(async (file) => {
    const video = document.createElement("video");
    video.src = URL.createObjectURL(new Blob([Uint8Array.from(file)], { type: "video/webm" }));
    return new Promise<string>((resolve) => {
      video.addEventListener("error", () => resolve(`error: ${video.error?.message}`));
      video.addEventListener("loadeddata", () => resolve(`${video.videoWidth} x ${video.videoHeight}`));
    });
  }, bytes);
  expect(size).toBe("480 x 320");
});

test("a link opens the same tool and address", async ({ page, server, console: opened }) => {
  const panel = await opened.tab("Memory");
  // This byte has a title as soon as the page has loaded the symbols.
  await expect(panel.getByRole("gridcell").nth(8)).toHaveAttribute("title", "frame");
  await goTo(panel, "score");
  await expect(page).toHaveURL(/#tool=memory&address=02000044$/);
  const link = page.url();
  await opened.tab("Graphics");
  await expect(page).toHaveURL(/#tool=graphics$/);
  // The link must also work in a browser that has not stored anything about the page.
  await page.evaluate(() => localStorage.clear());
  await page.goto("about:blank");
  await page.goto(link);
  await expect(page.locator(".inspector h2")).toHaveText(/02000044\s*score/);
  await page.goto("about:blank");
  await page.goto(`${server.url}/#tool=memory&domain=iwram&address=0100`);
  await expect(page.getByLabel("Memory domain")).toHaveValue("iwram");
  await expect(page.locator(".inspector h2")).toContainText("00000100");
  // If a link leads to memory that this game does not have, the page shows an error, and no other memory.
  await page.goto("about:blank");
  await page.goto(`${server.url}/#tool=memory&domain=hram&address=0010`);
  await expect(page.locator(".toast.bad")).toContainText("no memory domain hram");
  await expect(page.locator(".inspector h2")).not.toContainText("00000010");
});

test("the log is saved as a program that repeats all actions", async ({ page, server, console: opened }) => {
  await opened.button("Pause").click();
  for (let step = 0; step < 2; step += 1) {
    await opened.button("Step").click();
    await expect(opened.button("Step")).not.toHaveAttribute("aria-busy");
  }
  const log = await opened.tab("Log");
  await expect(log.getByRole("listitem")).toHaveCount(3);
  const programs: Record<string, { file: string; run: (code: string) => unknown }> = {
    curl: { file: "log.sh", run: (code) => execFileSync("sh", ["-c", code]) },
    Python: { file: "log.py", run: (code) => execFileSync("python3", ["-c", code]) },
    JavaScript: {
      file: "log.mjs",
      run: (code) => execFileSync(process.execPath, ["--input-type=module", "-e", code]),
    },
  };
  for (const [name, { file, run }] of Object.entries(programs)) {
    await log.getByLabel("Copy as").selectOption(name);
    const { name: suggested, bytes } = await saved(
      page,
      log.getByRole("button", { name: "Save as a program" }),
    );
    expect(suggested).toBe(file);
    await server.json("/v1/resume", {});
    run(Buffer.from(bytes).toString());
    const { frame } = await server.state();
    run(Buffer.from(bytes).toString());
    const after = await server.state();
    expect([after.run, after.frame], name).toEqual(["paused", frame + 2]);
  }
});
