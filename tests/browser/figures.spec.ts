/**
 * Measures what the console page costs: the first load, an idle page, and sound. Prints JSON.
 *
 *     FRAMEWIRE_BIN=target/release/framewire npx playwright test --config figures.config.ts
 */

import { writeFileSync } from "node:fs";
import { type CDPSession, type Page, test } from "@playwright/test";
import { PROGRAM, Server } from "./support/server.ts";

/** How long an idle page is watched. */
const IDLE_MS = 20_000;
const LOADS = 9;

/** What went over the network. */
interface Traffic {
  requests: number;
  bytes: number;
  /** Bytes of each WebSocket's messages, by path. */
  sockets: Record<string, number>;
}

/** Counts the bytes as they are on the wire, headers of replies included. */
async function count(page: Page): Promise<{ traffic: Traffic; session: CDPSession }> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  const traffic: Traffic = { requests: 0, bytes: 0, sockets: {} };
  const paths = new Map<string, string>();
  session.on("Network.requestWillBeSent", () => {
    traffic.requests += 1;
  });
  session.on("Network.loadingFinished", ({ encodedDataLength }) => {
    traffic.bytes += encodedDataLength;
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
  return { traffic, session };
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

test("figures of the console page", async ({ browser }) => {
  test.setTimeout(300_000);
  const server = await Server.start();
  const loads: { requests: number; bytes: number; milliseconds: number }[] = [];
  for (let load = 0; load < LOADS; load += 1) {
    const context = await browser.newContext();
    const page = await context.newPage();
    const { traffic } = await count(page);
    const begun = Date.now();
    await page.goto(server.url);
    await page.waitForFunction(() => document.querySelector(".veil")?.hasAttribute("hidden"));
    const milliseconds = Date.now() - begun;
    await page.waitForLoadState("networkidle").catch(() => {});
    loads.push({ requests: traffic.requests, bytes: traffic.bytes, milliseconds });
    await context.close();
  }
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(server.url);
  await page.waitForFunction(() => document.querySelector(".veil")?.hasAttribute("hidden"));
  await page.waitForTimeout(5000);
  const { traffic } = await count(page);
  await page.waitForTimeout(IDLE_MS);
  const idle = traffic.requests / (IDLE_MS / 1000);
  const sounding = await context.newPage();
  const sound = await count(sounding);
  await sounding.goto(server.url);
  await sounding.getByRole("button", { name: /^Sound/ }).click();
  await sounding.waitForTimeout(2000);
  const before = sound.traffic.sockets["/v1/audio"] ?? 0;
  await sounding.waitForTimeout(10_000);
  const soundRate = ((sound.traffic.sockets["/v1/audio"] ?? 0) - before) / 10;
  const described = await fetch(`${server.url}/openapi.json`, { headers: { "accept-encoding": "gzip" } });
  const figures = {
    command: "npx playwright test --config figures.config.ts",
    browser: browser.version(),
    loads: LOADS,
    first_load_requests: median(loads.map(({ requests }) => requests)),
    first_load_bytes: median(loads.map(({ bytes }) => bytes)),
    first_picture_ms: median(loads.map(({ milliseconds }) => milliseconds)),
    idle_requests_per_second: idle,
    sound_bytes_per_second: Math.round(soundRate),
    openapi_bytes: Number(
      described.headers.get("content-length") ?? (await described.arrayBuffer()).byteLength,
    ),
  };
  await server.stop();
  await context.close();
  const text = `${JSON.stringify(figures, null, 2)}\n`;
  console.log(`${PROGRAM}\n${text}`);
  if (process.env.FIGURES) writeFileSync(process.env.FIGURES, text);
});
