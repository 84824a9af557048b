/** Gets the pictures of mGBA's own views of tiles, sprites and maps, which `views.c` writes. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repository, type Server } from "./server.ts";

export interface View {
  width: number;
  height: number;
  /** Red, green, blue and alpha of each pixel. All four are 0 in transparent pixels. */
  pixels: Buffer;
}

/** All views of the current state of the server's emulator. */
export async function viewsOf(server: Server, rom: string): Promise<Map<string, View>> {
  const folder = mkdtempSync(join(server.folder, "views-"));
  const program = join(folder, "views");
  const library = execFileSync(repository("tools/libmgba.sh"), { encoding: "utf8" }).trim();
  const linked = [join(library, "lib/libframewire_mgba.a"), "-lm", "-lpthread"];
  const source = join(__dirname, "views.c");
  execFileSync(process.env.CC ?? "cc", [
    ...["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", `-I${join(library, "include")}`],
    ...["-o", program, source, ...linked],
  ]);
  const state = join(folder, "state");
  writeFileSync(state, Buffer.from(await (await fetch(`${server.url}/v1/state`)).arrayBuffer()));
  const list = execFileSync(program, [rom, state, folder], { encoding: "utf8" });
  const views = new Map<string, View>();
  for (const line of list.trim().split("\n")) {
    const [name = "", width, height] = line.split(" ");
    const pixels = readFileSync(join(folder, `${name}.rgba`));
    for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] === 0) pixels.fill(0, at, at + 3);
    views.set(name, { width: Number(width), height: Number(height), pixels });
  }
  return views;
}
