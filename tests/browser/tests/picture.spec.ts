/** The decoder of the video stream, and clips of the stream, with the same test vectors as the encoder. */

import { readFileSync } from "node:fs";
import { Clip } from "../../../crates/console/web/clip.js";
import { Decoder, isKeyPicture, PictureError } from "../../../crates/console/web/picture.js";
import { repository } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

interface Vectors {
  streams: {
    name: string;
    messages: string[];
    pictures: { width: number; height: number; frame: number; tick: number; rgb: string }[];
  }[];
  refused: { name: string; before: string[]; message: string }[];
}

const vectors = JSON.parse(readFileSync(repository("crates/media/vectors/video.json"), "utf8")) as Vectors;

function bytes(hex: string): ArrayBuffer {
  return Uint8Array.from(Buffer.from(hex, "hex")).buffer;
}

function rgb(decoder: Decoder): string {
  return Buffer.from(decoder.pixels.filter((_, index) => index % 4 < 3)).toString("hex");
}

test("streams decode to their pictures", () => {
  expect(vectors.streams.length).toBeGreaterThan(3);
  for (const { name, messages, pictures } of vectors.streams) {
    const decoder = new Decoder();
    messages.forEach((message, index) => {
      decoder.decode(bytes(message));
      const { width, height, frame, tick } = decoder;
      expect({ width, height, frame, tick, rgb: rgb(decoder) }, `${name}, picture ${index}`).toEqual(
        pictures[index],
      );
    });
  }
});

test("malformed messages are rejected", () => {
  expect(vectors.refused.length).toBeGreaterThan(3);
  for (const { name, before, message } of vectors.refused) {
    const decoder = new Decoder();
    for (const good of before) decoder.decode(bytes(good));
    expect(() => decoder.decode(bytes(message)), name).toThrow(PictureError);
  }
});

test("a clip that is saved slowly does not contain pictures that come later", () => {
  // Each key picture begins a segment of the clip. The newest segment grows while an older one is read.
  const isKey = (message: string): boolean => isKeyPicture(bytes(message));
  const stream = vectors.streams.find(({ messages }) => messages.filter(isKey).length > 2);
  if (!stream) throw new Error("no stream has three key pictures");
  const [decoder, clip] = [new Decoder(), new Clip()];
  const add = (message: string): void => {
    decoder.decode(bytes(message));
    clip.add(bytes(message), decoder);
  };
  const later = stream.messages.findLastIndex((message) => !isKey(message));
  stream.messages.slice(0, later).forEach(add);
  const last = decoder.tick;
  const frames = clip.frames(30, 1);
  const ticks = [frames.next().value?.tick];
  add(stream.messages[later] ?? "");
  for (const { tick } of frames) ticks.push(tick);
  expect(ticks.at(-1)).toBe(last);
  expect(decoder.tick).toBeGreaterThan(last);
});

test("a clip of a paused game keeps only its newest picture", () => {
  const stream = vectors.streams.find(({ messages }) => messages.length > 1);
  const [first, second] = (stream?.messages ?? []).map(bytes);
  if (!first || !second) throw new Error("no stream has two pictures");
  const tick = new DataView(first).getUint32(12, true);
  new DataView(second).setUint32(12, tick, true);
  const [decoder, clip] = [new Decoder(), new Clip()];
  for (const message of [first, second]) {
    decoder.decode(message);
    clip.add(message, decoder);
  }
  const pictures = [...clip.frames(30, 1)].map(({ pixels }) => Buffer.from(pixels.buffer).toString("hex"));
  expect(pictures).toEqual([Buffer.from(decoder.pixels).toString("hex")]);
});

test("a clip of a game that ran and is paused ends with its newest picture", () => {
  const stream = vectors.streams.find(({ messages }) => messages[2] && isKeyPicture(bytes(messages[2])));
  const [first, second, third] = (stream?.messages ?? []).map(bytes);
  if (!first || !second || !third) throw new Error("no stream has a key picture in the third place");
  new DataView(third).setUint32(12, new DataView(second).getUint32(12, true), true);
  const [decoder, clip] = [new Decoder(), new Clip()];
  for (const message of [first, second, third]) {
    decoder.decode(message);
    clip.add(message, decoder);
  }
  const pictures = [...clip.frames(30, 1)].map(({ pixels }) => Buffer.from(pixels.buffer).toString("hex"));
  expect(pictures).toHaveLength(2);
  expect(pictures[1]).toBe(Buffer.from(decoder.pixels).toString("hex"));
});
