/** The decoder of the video stream, with the same test vectors as the encoder. */

import { readFileSync } from "node:fs";
import { Decoder, PictureError } from "../../../crates/console/web/picture.js";
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
