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

export class Console {
  readonly page: Page;
  readonly server: Server;

  constructor(page: Page, server: Server) {
    this.page = page;
    this.server = server;
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

  /** Opens one of the tabs. */
  async tab(name: string): Promise<Locator> {
    await this.page.getByRole("tab", { name }).click();
    return this.page.getByRole("tabpanel", { name });
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole("button", { name, exact: typeof name === "string" });
  }

  /** The colour of a pixel of the game. */
  async pixel(x: number, y: number): Promise<number[]> {
    return this.canvas.evaluate(
      (canvas: HTMLCanvasElement, at) => {
        const data = canvas.getContext("2d")?.getImageData(at.x, at.y, 1, 1).data ?? [];
        return [...data].slice(0, 3);
      },
      { x, y },
    );
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

  /** Waits until exactly these lamps are lit. */
  async expectLit(...keys: string[]): Promise<void> {
    await expect
      .poll(
        async () => {
          const lit: string[] = [];
          for (const [key, lamp] of LAMPS) {
            if ((await this.pixel(lamp.x, lamp.y)).every((part, index) => part === lamp.lit[index]))
              lit.push(key);
          }
          return lit.sort();
        },
        { message: "lamps that are lit", intervals: [20] },
      )
      .toEqual(keys.sort());
  }
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
