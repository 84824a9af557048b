/** The console page, for tests. */

import { readFileSync } from "node:fs";
import { expect, type Locator, type Page } from "@playwright/test";
import { repository, type Server } from "./server.ts";

/** A lamp in the demo game's picture. It is lit while its key is held. */
export interface Lamp {
  x: number;
  y: number;
  /** The colour of the lit lamp: red, green and blue. */
  lit: readonly number[];
}

/** The names of the tools that every page shows. The tool Emulators is hidden unless the server has several emulators. */
export const TABS = "Memory Graphics Watches Snapshots Recordings Input Share Link Log".split(" ");

export class Console {
  readonly page: Page;
  readonly server: Server;

  constructor(page: Page, server: Server) {
    this.page = page;
    this.server = server;
  }

  /** Makes a `Console` for this page and this server, and opens it with `open`. */
  static async open(page: Page, server: Server, path?: string): Promise<Console> {
    const opened = new Console(page, server);
    await opened.open(path);
    return opened;
  }

  get canvas(): Locator {
    return this.page.locator(".screen canvas");
  }

  get screen(): Locator {
    return this.page.getByRole("application");
  }

  /** Opens the page and waits until it shows the game and can send keys. */
  async open(path = "/"): Promise<void> {
    const answered = new Promise<void>((resolve) => {
      this.page.on("websocket", (socket) => {
        if (new URL(socket.url()).pathname === "/v1/ws") socket.on("framereceived", () => resolve());
      });
    });
    await this.page.goto(this.server.url + path);
    // `toBeHidden` would also accept an overlay that does not exist yet, or has no size yet.
    await expect(this.page.locator(".veil")).toHaveAttribute("hidden");
    await answered;
  }

  /** Opens one of the tabs, and returns its panel. */
  async tab(name: string): Promise<Locator> {
    await this.page.getByRole("tab", { name }).click();
    return this.page.getByRole("tabpanel", { name });
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole("button", { name, exact: typeof name === "string" });
  }

  /** The colour of a pixel of the game, or of another canvas. */
  async pixel(x: number, y: number, canvas = this.canvas): Promise<number[]> {
    return canvas.evaluate(
      (canvas: HTMLCanvasElement, at) => {
        const data = canvas.getContext("2d")?.getImageData(at.x, at.y, 1, 1).data ?? [];
        return [...data].slice(0, 3);
      },
      { x, y },
    );
  }

  /** The middle of a key of the on-screen controller. */
  async middle(key: string): Promise<[x: number, y: number]> {
    const box = await this.page.locator(`.pad [data-key=${key}]`).boundingBox();
    if (!box) throw new Error(`no key ${key}`);
    return [box.x + box.width / 2, box.y + box.height / 2];
  }

  /** Waits until the page shows the current picture of the paused game. */
  async expectPicture(): Promise<void> {
    const response = await fetch(`${this.server.url}/v1/screen?format=rgba`);
    const wanted = Buffer.from(await response.arrayBuffer()).toString("base64");
    const isShown = (): Promise<boolean> =>
      this.canvas.evaluate((canvas: HTMLCanvasElement, base64: string) => {
        const bytes = atob(base64);
        const data = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data;
        const parts = [...(data ?? [])];
        return parts.length === bytes.length && parts.every((part, at) => part === bytes.charCodeAt(at));
      }, wanted);
    await expect.poll(isShown, { message: "the page shows the current picture" }).toBe(true);
  }

  /** Holds a key of the keyboard until only this lamp is lit. Then releases the key and waits until no lamp is lit. */
  async press(key = "x", lamp = "A"): Promise<void> {
    await this.page.keyboard.down(key);
    await this.expectLit(lamp);
    await this.page.keyboard.up(key);
    await this.expectLit();
  }

  /** Waits until exactly these lamps are lit. */
  async expectLit(...keys: string[]): Promise<void> {
    const lit = (): Promise<string[]> =>
      this.canvas.evaluate(
        (canvas: HTMLCanvasElement, lamps) => {
          const context = canvas.getContext("2d");
          const isLit = ({ x, y, lit }: Lamp): boolean => {
            const data = context?.getImageData(x, y, 1, 1).data;
            return lit.every((part, index) => data?.[index] === part);
          };
          return lamps
            .filter(([, lamp]) => isLit(lamp))
            .map(([key]) => key)
            .sort();
        },
        [...LAMPS],
      );
    await expect.poll(lit, { message: "lamps that are lit", intervals: [20] }).toEqual(keys.sort());
  }
}

/** A JSON-RPC call that the page sends. */
interface Call {
  id: number;
  method: string;
  params: { emulator?: string; watch?: string[]; ops?: { op: string; domain?: string }[] };
}

/** The error of a call that is refused. */
interface Refusal {
  detail: string;
  status?: number;
}

/** Answers calls of the page with the errors that `refusalOf` returns. A call without an error goes to the server. */
export async function refuseCalls(
  page: Page,
  refusalOf: (call: Call) => Refusal | Promise<Refusal> | undefined,
): Promise<void> {
  await page.routeWebSocket(/\/v1\/ws/, (socket) => {
    const onward = socket.connectToServer();
    socket.onMessage(async (message) => {
      const call = JSON.parse(String(message)) as Call;
      const refusal = refusalOf(call);
      if (refusal === undefined) {
        onward.send(message);
        return;
      }
      const error = { code: -32_000, message: "Server error", data: await refusal };
      socket.send(JSON.stringify({ jsonrpc: "2.0", id: call.id, error }));
    });
  });
}

/** Goes to an address or a symbol in the memory panel. */
export async function goTo(panel: Locator, address: string): Promise<void> {
  await panel.getByLabel("Address or symbol").fill(address);
  await panel.getByLabel("Address or symbol").press("Enter");
}

/** Drops a file on the page, as a user does. */
export async function drop(page: Page, name: string, bytes: Uint8Array): Promise<void> {
  const data = await page.evaluateHandle(
    ({ name, bytes }) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([new Uint8Array(bytes)], name));
      return transfer;
    },
    { name, bytes: [...bytes] },
  );
  await page.dispatchEvent("main", "drop", { dataTransfer: data });
}

/** Opens files together, in this order, with the button of the tool Snapshots. */
export async function openFiles(
  page: Page,
  panel: Locator,
  files: Readonly<Record<string, Buffer>>,
): Promise<void> {
  const choosing = page.waitForEvent("filechooser");
  await panel.getByRole("button", { name: "Open a file" }).click();
  const mimeType = "application/octet-stream";
  const all = Object.entries(files).map(([name, buffer]) => ({ name, mimeType, buffer }));
  await (await choosing).setFiles(all);
}

/** Opens a game and a battery save for it, together, with the button of the tool Snapshots. */
export async function openGameWithSave(page: Page, panel: Locator): Promise<void> {
  await openFiles(page, panel, {
    "new.sav": Buffer.alloc(0x8000, 1),
    "new.gba": readFileSync(repository("rom/framewire-demo.gba")),
  });
  await page.getByRole("dialog").getByRole("button", { name: "Load" }).click();
  await expect(page.locator(".toast").last()).toContainText("Loaded the battery save new.sav.");
}

/** Clicks a button, and returns the file that the browser saves. */
export async function saved(page: Page, button: Locator): Promise<{ name: string; bytes: number[] }> {
  const waiting = page.waitForEvent("download");
  await button.click();
  const file = await waiting;
  return { name: file.suggestedFilename(), bytes: [...readFileSync(await file.path())] };
}

/** The width and the height of a picture in a file. */
export async function sizeOf(page: Page, bytes: number[]): Promise<number[]> {
  return page.evaluate(async (file) => {
    const image = await createImageBitmap(new Blob([Uint8Array.from(file)]));
    return [image.width, image.height];
  }, bytes);
}

/** The lamps of the demo game, from its memory map. */
export const LAMPS: ReadonlyMap<string, Lamp> = lamps();

function lamps(): Map<string, Lamp> {
  const map = readFileSync(repository("rom/memory-map.toml"), "utf8");
  const found = new Map<string, Lamp>();
  const entry = /\[\[lamp\]\]\s+key = "(\w+)"\s+x = (\d+)\s+y = (\d+)\s+lit = "#(\w{2})(\w{2})(\w{2})"/g;
  for (const [, key = "", x, y, ...lit] of map.matchAll(entry)) {
    found.set(key, { x: Number(x), y: Number(y), lit: lit.map((part) => Number.parseInt(part, 16)) });
  }
  return found;
}

/** Changes the page's limit of 20 s for requests to two seconds. */
export async function shortenLimit(page: Page): Promise<void> {
  await page.evaluate(() => {
    const limit = AbortSignal.timeout.bind(AbortSignal);
    AbortSignal.timeout = (milliseconds) => limit(milliseconds / 10);
  });
}
