// Uses the client that openapi-generator (typescript-fetch) generated. The first argument is the server's URL.

import assert from "node:assert/strict";
import { BatchApi, Configuration, InputApi, MediaApi, MemoryApi, ResponseError } from "./client/index.js";

const configuration = new Configuration({ basePath: process.argv[2] });

const done = await new BatchApi(configuration).batch({
  batch: {
    ops: [
      { op: "write", address: "scratch", value: 7 },
      { op: "read", address: "scratch" },
      { op: "tap", keys: ["B"], frames: 2 },
    ],
  },
});
const values = done.results.map((result) => ("value" in result ? result.value : undefined));
assert.deepEqual(values.slice(0, 2), [null, 7]);

await assert.rejects(
  new BatchApi(configuration).batch({ batch: { ops: [{ op: "read", address: "nothing" }] } }),
  (error: unknown) => error instanceof ResponseError && error.response.status === 400,
);

const played = await new InputApi(configuration).tap({ wait: true, tap: { keys: ["A", "Right"], frames: 3 } });
assert.equal(played.over?.frame, played.last);

await new MemoryApi(configuration).writeMemory({ address: "scratch", newContent: { value: "0x2a" } });
assert.equal((await new MemoryApi(configuration).readMemory({ address: "scratch" })).value, 42);

const picture = await new MediaApi(configuration).screenshot();
assert.deepEqual([...new Uint8Array(await picture.arrayBuffer()).slice(1, 4)], [0x50, 0x4e, 0x47]);
