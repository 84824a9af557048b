/** Pages of other origins, and pages whose host name was rebound to this machine, cannot read or change anything. */

import { chromium, type Page } from "@playwright/test";
import { TABS } from "../support/console.ts";
import { foreignSite, type Server } from "../support/server.ts";
import { expect, test, troublesOf } from "../support/test.ts";

const SCRATCH = 0x0200_0100;
/** A host name that does not exist. A browser option maps it to this machine. */
const FOREIGN = "evil.test";

/** An attempt of a hostile page to read or change something, with its outcome. */
interface Attempt {
  name: string;
  outcome: string;
}

/**
 * Runs in the hostile page. It tries to read and change something on the server at `url` in many ways. Only outcomes
 * that begin with "got" are breaches.
 */
async function attack(url: string): Promise<Attempt[]> {
  const socketUrl = url.replace("http", "ws");
  const write = JSON.stringify({ ops: [{ op: "write32", address: 0x0200_0100, value: 666 }] });
  const settle = (name: string, work: () => Promise<string>): Promise<Attempt> => {
    const late = new Promise<string>((done) => setTimeout(done, 2000, "nothing came"));
    return Promise.race([work(), late]).then(
      (outcome) => ({ name, outcome }),
      () => ({ name, outcome: "refused" }),
    );
  };
  const read = async (path: string, init?: RequestInit): Promise<string> => {
    const response = await fetch(url + path, init);
    // Only a successful response that the page can see discloses something.
    return response.ok && response.type !== "opaque"
      ? `got ${(await response.text()).slice(0, 60)}`
      : `status ${response.status}`;
  };
  const socket = (path: string, say?: string): Promise<string> =>
    new Promise((done, refuse) => {
      const opened = new WebSocket(socketUrl + path);
      opened.onopen = () => {
        if (say !== undefined) opened.send(say);
        done("got a connection");
      };
      opened.onerror = () => refuse(new Error());
    });
  const element = (tag: "img" | "script" | "iframe", path: string): Promise<string> =>
    new Promise((done, refuse) => {
      const made = document.createElement(tag) as HTMLImageElement;
      made.onload = () =>
        done(tag === "iframe" ? frameContent(made as unknown as HTMLIFrameElement) : "got it shown");
      made.onerror = () => refuse(new Error());
      made.src = url + path;
      document.body.append(made);
    });
  const frameContent = (frame: HTMLIFrameElement): string => {
    try {
      return frame.contentDocument?.querySelector(".screen") ? "got the page framed" : "an error page";
    } catch {
      return "nothing to see";
    }
  };
  const form = (path: string, fields: Record<string, string>, enctype: string): Promise<string> =>
    new Promise((done) => {
      const target = document.createElement("iframe");
      target.name = `target-${path}-${enctype}`;
      const made = document.createElement("form");
      Object.assign(made, { method: "POST", action: url + path, enctype, target: target.name });
      for (const [name, value] of Object.entries(fields)) {
        const input = document.createElement("input");
        Object.assign(input, { name, value });
        made.append(input);
      }
      document.body.append(target, made);
      target.onload = () => done("sent");
      made.submit();
    });
  const events = (path: string): Promise<string> =>
    new Promise((done, refuse) => {
      const source = new EventSource(url + path);
      source.onopen = () => done("got the events");
      source.onerror = () => {
        source.close();
        refuse(new Error());
      };
    });
  const post = { method: "POST", body: write };
  const plain = { "Content-Type": "text/plain" };
  const json = { "Content-Type": "application/json" };
  return Promise.all([
    settle("read the state", () => read("/v1/emulators")),
    settle("read the page", () => read("/")),
    settle("read memory with a route of mGBA-http", () => read("/core/read32?address=0x02000000")),
    settle("read with no-cors", () => read("/v1/emulators", { mode: "no-cors" })),
    settle("write by JSON", () => read("/v1/batch", { ...post, headers: json })),
    settle("write by plain text", () => read("/v1/batch", { ...post, headers: plain })),
    settle("write with no-cors", () => read("/v1/batch", { ...post, headers: plain, mode: "no-cors" })),
    settle("write with cookies", () =>
      read("/v1/batch", { ...post, headers: plain, mode: "no-cors", credentials: "include" }),
    ),
    settle("write with a route of mGBA-http", () =>
      read("/core/write32?address=0x02000100&value=666", { method: "POST", mode: "no-cors" }),
    ),
    settle("pause", () => read("/v1/pause", { method: "POST", mode: "no-cors" })),
    settle("reset", () => read("/v1/reset", { method: "POST", mode: "no-cors" })),
    settle("delete input", () => read("/v1/input", { method: "DELETE" })),
    settle("send a beacon", async () =>
      navigator.sendBeacon(`${url}/v1/batch`, write) ? "sent" : "refused",
    ),
    settle("JSON-RPC", () =>
      socket(
        "/v1/ws",
        JSON.stringify({
          jsonrpc: "2.0",
          id: 1,
          method: "write32",
          params: { address: 0x0200_0100, value: 666 },
        }),
      ),
    ),
    settle("pictures", () => socket("/v1/video")),
    settle("sound", () => socket("/v1/audio")),
    settle("events", () => events("/v1/events")),
    settle("watch", () => events("/v1/watch?watch=u8%5B0x02000000%5D")),
    settle("image", () => element("img", "/screen.png")),
    settle("moving image", () => element("img", "/v1/video.mjpeg")),
    settle("script", () => element("script", "/docs/page.js")),
    settle("frame", () => element("iframe", "/")),
    settle("form", () =>
      form(
        "/v1/batch",
        { '{"ops":[{"op":"write32","address":33554688,"value":666}],"x":"': '"}' },
        "text/plain",
      ),
    ),
    settle("form for a route of mGBA-http", () =>
      form("/core/write32?address=0x02000100&value=666", {}, "application/x-www-form-urlencoded"),
    ),
    settle("log in", () => form("/v1/login", { token: "guess" }, "application/x-www-form-urlencoded")),
  ]);
}

/** Attacks the server at `url` from `page`, and checks that the attack reads and changes nothing. */
async function expectNoEffect(page: Page, server: Server, url: string): Promise<void> {
  await server.batch({ op: "write32", address: SCRATCH, value: 1 });
  const before = await server.state();
  const attempts = await page.evaluate(attack, url);
  expect(attempts.length).toBeGreaterThan(20);
  expect(attempts.filter(({ outcome }) => outcome.startsWith("got"))).toEqual([]);
  // Requests whose answers the page cannot see may still reach the server. This request gives the server time to handle
  // them.
  await server.state();
  expect(await server.batch({ op: "read32", address: SCRATCH }, { op: "get_keys" })).toEqual([1, 0]);
  const after = await server.state();
  expect(after.run).toBe("running");
  expect(after.frame, "the game was not reset").toBeGreaterThanOrEqual(before.frame);
}

test("a page of another origin cannot read or change anything", async ({ page, server }) => {
  const { site, port } = await foreignSite();
  for (const origin of [`http://127.0.0.1:${port}`, `http://localhost:${port}`]) {
    await page.goto(origin);
    await expectNoEffect(page, server, server.url);
  }
  site.close();
});

test("a page under a rebound host name cannot read or change anything", async ({ server }) => {
  const { executablePath, args = [] } = test.info().project.use.launchOptions ?? {};
  const browser = await chromium.launch({
    ...(executablePath === undefined ? {} : { executablePath }),
    args: [...args, `--host-resolver-rules=MAP ${FOREIGN} 127.0.0.1`],
  });
  const page = await browser.newPage();
  const url = `http://${FOREIGN}:${server.port}`;
  // The page seems to come from a foreign server. Later, requests to the same name reach this machine.
  await page.route(`${url}/`, (route) =>
    route.fulfill({ contentType: "text/html", body: "<!doctype html><body></body>" }),
  );
  await page.goto(url);
  await page.unroute(`${url}/`);
  await expectNoEffect(page, server, url);
  const response = await page.goto(url);
  expect(response?.status()).toBe(403);
  await browser.close();
});

test("the page sends requests only to its own server, and does not violate its policy", async ({
  page,
  server,
  console: opened,
}) => {
  const asked: string[] = [];
  const troubles = troublesOf(page);
  page.on("request", (request) => asked.push(request.url()));
  page.on("websocket", (socket) => asked.push(socket.url()));
  await page.reload();
  for (const name of TABS) await opened.tab(name);
  await expect(page.locator(".veil")).toBeHidden();
  expect(asked.some((url) => url.startsWith("ws://"))).toBe(true);
  expect(asked.some((url) => url.startsWith("http://"))).toBe(true);
  const own = new URL(server.url).host;
  // The URL of a picture that the page keeps in memory begins with `blob:` and contains the origin of the page.
  expect(asked.filter((url) => new URL(url.replace(/^blob:/, "")).host !== own)).toEqual([]);
  expect(troubles).toEqual([]);
});

test("the page's policy blocks code and markup made from strings", async ({ page, server }) => {
  await page.goto(server.url);
  const ran = await page.evaluate(() => {
    const attempts = [
      () => {
        const script = document.createElement("script");
        script.text = "window.broken = true";
        document.body.append(script);
      },
      () => document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.broken = true'>"),
      () => document.body.setAttribute("onclick", "window.broken = true"),
    ];
    for (const attempt of attempts) {
      try {
        attempt();
      } catch {
        // The policy has blocked the attempt.
      }
    }
    document.body.click();
    return "broken" in window;
  });
  expect(ran).toBe(false);
});
