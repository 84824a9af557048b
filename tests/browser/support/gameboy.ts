/** Makes a game for the Game Boy or the Game Boy Color. The game fills video memory once and does nothing else. */

import { writeFileSync } from "node:fs";
import { test } from "@playwright/test";
import type { Server } from "./server.ts";

/** What the game writes to video memory and to registers. Parts that are missing are 0. */
export interface Scene {
  colour: boolean;
  /** Both banks; the Game Boy has only the first. */
  vram?: Uint8Array;
  oam?: Uint8Array;
  /** Sixteen palettes of four 15-bit colours, for the Game Boy Color. */
  palettes?: Uint8Array;
  /** The low byte of each register's address, and its value, in the order in which they are written. */
  registers: readonly (readonly [register: number, value: number])[];
}

const SIZE = 0x8000;
const CODE = 0x150;
const VRAM = 0x1000;
const BANK = 0x2000;
const OAM = 0x5000;
const PALETTES = 0x5100;

export function gameBoyRom({ colour, vram, oam, palettes, registers }: Scene): Uint8Array {
  const rom = new Uint8Array(SIZE);
  rom.set([0x00, 0xc3, CODE & 0xff, CODE >> 8], 0x100);
  // The beginning of the logo, by which libmgba recognises a cartridge.
  rom.set([0xce, 0xed, 0x66, 0x66], 0x104);
  rom.set(Buffer.from("GRAPHICS"), 0x134);
  if (colour) rom[0x143] = 0x80;
  rom[0x14d] = -rom.subarray(0x134, 0x14d).reduce((sum, byte) => sum + byte + 1, 0) & 0xff;
  rom.set(vram ?? [], VRAM);
  rom.set(oam ?? [], OAM);
  rom.set(palettes ?? [], PALETTES);
  rom.set(program(colour, registers), CODE);
  return rom;
}

/** Serves a game from a file with this name in the folder of the test. */
export async function serveGame(serve: typeof Server.start, name: string, rom: Uint8Array): Promise<Server> {
  const path = test.info().outputPath(name);
  writeFileSync(path, rom);
  return serve(["--speed", "1", path]);
}

function program(colour: boolean, registers: Scene["registers"]): number[] {
  const set = (register: number, value: number): number[] => [0x3e, value, 0xe0, register];
  const word = (value: number): number[] => [value & 0xff, value >> 8];
  // hl = from, de = to, bc = length; a = [hl++], [de++] = a, until bc is 0
  const copy = (from: number, to: number, length: number): number[] => [
    ...[0x21, ...word(from), 0x11, ...word(to), 0x01, ...word(length)],
    ...[0x2a, 0x12, 0x13, 0x0b, 0x78, 0xb1, 0x20, 0xf8],
  ];
  // Writes eight palettes through a pair of registers: the index of a byte, which increases by itself, and the byte.
  const palettesTo = (from: number, index: number): number[] => [
    ...set(index, 0x80),
    ...[0x21, ...word(from), 0x0e, 0x40, 0x2a, 0xe0, index + 1, 0x0d, 0x20, 0xfa],
  ];
  return [
    0xf3, // di
    ...[0xf0, 0x44, 0xfe, 0x90, 0x20, 0xfa], // wait for line 144
    ...set(0x40, 0), // the screen is off, so that all of video memory can be written
    ...copy(VRAM, 0x8000, BANK),
    ...(colour ? [...set(0x4f, 1), ...copy(VRAM + BANK, 0x8000, BANK), ...set(0x4f, 0)] : []),
    ...copy(OAM, 0xfe00, 160),
    ...(colour ? [...palettesTo(PALETTES, 0x68), ...palettesTo(PALETTES + 0x40, 0x6a)] : []),
    ...registers.flatMap(([register, value]) => set(register, value)),
    ...[0x18, 0xfe], // loop forever
  ];
}
