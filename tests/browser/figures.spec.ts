/**
 * Measures the cost of the console page and prints it as JSON: the first load, an idle page, sound, pictures that are
 * not drawn on time, the processor time of two tools, going back, and the size of the OpenAPI document.
 *
 *     FRAMEWIRE_BIN=../../target/release/framewire npx playwright test --config figures.config.ts
 *
 * FIGURES can name a file to which the JSON is also written. COMMIT is the commit that the JSON names.
 */

import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { type Browser, type Page, test } from "@playwright/test";
import { PROGRAM, Server } from "./support/server.ts";

/** For how long the requests of an idle page are counted. */
const IDLE_MS = 20_000;
/** How many first loads are measured, each in a new browser context. */
const LOADS = 9;
/** How long the drawing of pictures is measured, and the processor time of each tool. */
const RUN_MS = 15_000;
/** The expressions that the tool Watches shows. */
const WATCHES = ["frame", "ball_x", "ball_y", "paddle_x", "score", "bricks_left"];

/** The network traffic of a page. */
interface Traffic {
  requests: number;
  /** Bytes of the replies as they go over the network, with their headers. */
  bytes: number;
  /** Bytes of the messages that each WebSocket received, by path. */
  sockets: Record<string, number>;
}

/** Counts the traffic of the page from now on. */
async function count(page: Page): Promise<Traffic> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  const traffic: Traffic = { requests: 0, bytes: 0, sockets: {} };
  const paths = new Map<string, string>();
  const local = new Set<string>();
  session.on("Network.requestWillBeSent", ({ request, requestId }) => {
    if (request.url.startsWith("blob:")) local.add(requestId);
    else traffic.requests += 1;
  });
  session.on("Network.loadingFinished", ({ encodedDataLength, requestId }) => {
    if (!local.has(requestId)) traffic.bytes += encodedDataLength;
  });
  session.on("Network.webSocketCreated", ({ requestId, url }) => {
    paths.set(requestId, new URL(url).pathname);
  });
  session.on("Network.webSocketFrameReceived", ({ requestId, response }) => {
    const path = paths.get(requestId) ?? "";
    const size =
      response.opcode === 1
        ? response.payloadData.length
        : Buffer.from(response.payloadData, "base64").length;
    traffic.sockets[path] = (traffic.sockets[path] ?? 0) + size;
  });
  return traffic;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** Opens the page with this tool, and waits for its first picture. */
async function open(browser: Browser, server: Server, tool: string): Promise<Page> {
  const page = await browser.newPage();
  await page.addInitScript(
    ([tab, watches]) => {
      localStorage.setItem("framewire.tab", JSON.stringify(tab));
      localStorage.setItem("framewire.watches", JSON.stringify(watches));
    },
    // Other tools also show the values of watches, so they are measured without watches.
    [tool, tool === "watches" ? WATCHES : []] as const,
  );
  await load(page, server);
  return page;
}

async function load(page: Page, server: Server): Promise<void> {
  await page.goto(server.url);
  await page.waitForFunction(() => document.querySelector(".veil")?.hasAttribute("hidden"));
}

interface Load {
  requests: number;
  bytes: number;
  milliseconds: number;
}

async function firstLoad(browser: Browser, server: Server): Promise<Load> {
  const page = await browser.newPage();
  const traffic = await count(page);
  const begun = Date.now();
  await load(page, server);
  const milliseconds = Date.now() - begun;
  await page.waitForTimeout(1000);
  const { requests, bytes } = traffic;
  await page.close();
  return { requests, bytes, milliseconds };
}

/** Requests per second of a page that nobody uses. */
async function idleRequests(browser: Browser, server: Server): Promise<number> {
  const page = await open(browser, server, "memory");
  await page.waitForTimeout(5000);
  const traffic = await count(page);
  await page.waitForTimeout(IDLE_MS);
  await page.close();
  return traffic.requests / (IDLE_MS / 1000);
}

/** Bytes of sound per second. */
async function soundBytes(browser: Browser, server: Server): Promise<number> {
  const page = await browser.newPage();
  const traffic = await count(page);
  await load(page, server);
  await page.getByRole("button", { name: /^Sound/ }).click();
  await page.waitForTimeout(2000);
  const bytes = (): number => traffic.sockets["/v1/audio"] ?? 0;
  const before = bytes();
  await page.waitForTimeout(10_000);
  const rate = (bytes() - before) / 10;
  await page.close();
  return Math.round(rate);
}

interface Pacing {
  display_frames: number;
  without_picture: number;
  /** Pictures that nobody could see: they were not drawn, or a newer one was drawn in the same display frame. */
  unseen: number;
}

/** Counts, for `RUN_MS`, the display frames without a new picture, and the pictures that nobody could see. */
async function pacing(browser: Browser, server: Server): Promise<Pacing> {
  const page = await browser.newPage();
  await page.addInitScript(() => {
    const seen = { draws: 0, messages: 0 };
    Object.assign(window, { seen });
    const prototype = CanvasRenderingContext2D.prototype;
    const put = prototype.putImageData;
    prototype.putImageData = function (this: CanvasRenderingContext2D, ...rest: unknown[]) {
      if (this.canvas.closest(".screen")) seen.draws += 1;
      Reflect.apply(put, this, rest);
    };
    const Native = WebSocket;
    window.WebSocket = class extends Native {
      constructor(url: string | URL, protocols?: string | string[]) {
        super(url, protocols);
        if (!new URL(url, location.href).pathname.endsWith("/v1/video")) return;
        this.addEventListener("message", () => {
          seen.messages += 1;
        });
      }
    };
  });
  await load(page, server);
  await page.waitForTimeout(3000);
  const measured = await page.evaluate(async (duration) => {
    const { seen } = window as unknown as { seen: { draws: number; messages: number } };
    const frame = (): Promise<number> => new Promise(requestAnimationFrame);
    // In each display frame, the page draws before or after this callback. The number of draws between two callbacks is
    // the same in both cases.
    const begun = await frame();
    const first = { ...seen };
    let [drawn, frames, without] = [seen.draws, 0, 0];
    let now = begun;
    while (now < begun + duration) {
      now = await frame();
      frames += 1;
      if (seen.draws === drawn) without += 1;
      drawn = seen.draws;
    }
    const shown = frames - without;
    return {
      display_frames: frames,
      without_picture: without,
      unseen: seen.messages - first.messages - shown,
    };
  }, RUN_MS);
  await page.close();
  return { ...measured, unseen: Math.max(0, measured.unseen) };
}

/** The processor time of all processes of the browser while a page shows a tool, in percent of one core. */
async function processorTime(browser: Browser, server: Server, tool: string): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const seconds = async (): Promise<number> => {
    const { processInfo } = await session.send("SystemInfo.getProcessInfo");
    return processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
  };
  const page = await open(browser, server, tool);
  await page.waitForTimeout(3000);
  const before = await seconds();
  const begun = performance.now();
  await page.waitForTimeout(RUN_MS);
  const share = (100_000 * ((await seconds()) - before)) / (performance.now() - begun);
  await page.close();
  await session.detach();
  return Math.round(share * 10) / 10;
}

/** How many times the game goes back. */
const REWINDS = 20;
/** How many frames it goes back: 20 seconds. */
const REWIND_FRAMES = 1200;

/** The median time from a request to go back until the page shows another picture, in milliseconds. */
async function rewindTime(browser: Browser, server: Server): Promise<number> {
  const page = await browser.newPage();
  await load(page, server);
  await server.holdAt(300);
  const times: number[] = [];
  for (let number = 0, frame = 300; number < REWINDS; number += 1) {
    await server.batch({ op: "advance", frames: REWIND_FRAMES + 60 });
    frame += 60;
    await page.waitForTimeout(500);
    const time = await page.evaluate(async (frame) => {
      const context = document.querySelector<HTMLCanvasElement>(".screen canvas")?.getContext("2d");
      if (!context) throw new Error("there is no picture");
      const shown = (): number =>
        new Uint32Array(context.getImageData(0, 0, 240, 160).data.buffer).reduce(
          (hash, pixel) => (hash * 31 + pixel) | 0,
          0,
        );
      const before = shown();
      const begun = performance.now();
      const headers = { "content-type": "application/json" };
      const back = fetch("/v1/rewind", { method: "POST", headers, body: JSON.stringify({ frame }) });
      while (shown() === before) await new Promise(requestAnimationFrame);
      const time = performance.now() - begun;
      const { exact } = await (await back).json();
      if (!exact) throw new Error(`frame ${frame} was not reached`);
      return time;
    }, frame);
    times.push(time);
  }
  await page.close();
  return Math.round(median(times) * 10) / 10;
}

test("figures of the console page", async ({ browser }) => {
  test.setTimeout(300_000);
  const server = await Server.start();
  const loads: Load[] = [];
  for (let number = 0; number < LOADS; number += 1) loads.push(await firstLoad(browser, server));
  const idle = await idleRequests(browser, server);
  const sound = await soundBytes(browser, server);
  const pictures = await pacing(browser, server);
  const log = await processorTime(browser, server, "activity");
  const watches = await processorTime(browser, server, "watches");
  const rewind = await rewindTime(browser, server);
  const described = await fetch(`${server.url}/openapi.json`, { headers: { "accept-encoding": "gzip" } });
  const figures = {
    command: "npx playwright test --config figures.config.ts",
    commit: process.env.COMMIT,
    browser: browser.version(),
    processor: `${cpus().length} x ${cpus()[0]?.model}`,
    loads: LOADS,
    first_load_requests: median(loads.map(({ requests }) => requests)),
    first_load_bytes: median(loads.map(({ bytes }) => bytes)),
    first_picture_ms: median(loads.map(({ milliseconds }) => milliseconds)),
    idle_requests_per_second: idle,
    sound_bytes_per_second: sound,
    ...pictures,
    judder_percent:
      Math.round((1000 * (pictures.without_picture + pictures.unseen)) / pictures.display_frames) / 10,
    browser_percent_log: log,
    browser_percent_six_watches: watches,
    rewind_20_s_ms: rewind,
    openapi_bytes: Number(
      described.headers.get("content-length") ?? (await described.arrayBuffer()).byteLength,
    ),
  };
  await server.stop();
  const text = `${JSON.stringify(figures, null, 2)}\n`;
  console.log(`${PROGRAM}\n${text}`);
  if (process.env.FIGURES) writeFileSync(process.env.FIGURES, text);
});
