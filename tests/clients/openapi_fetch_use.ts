// Uses the types that openapi-typescript generated, with openapi-fetch. The first argument is the server's URL.

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

// Restricts the types of replies and errors to JSON. Otherwise they include the text and the bytes of other formats.
type Json = "application/json" | "application/problem+json";
const client = createClient<paths, Json>({ baseUrl: process.argv[2] });

const batch = await client.POST("/v1/batch", {
  body: {
    ops: [
      { op: "write", address: "scratch", value: 7 },
      { op: "read", address: "scratch" },
      { op: "read_many", addresses: ["scratch", 0x02000100] },
      { op: "tap", keys: ["B"], frames: 2 },
    ],
  },
});
assert.ok(batch.data, JSON.stringify(batch.error));
const values = batch.data.results.map((result) => ("value" in result ? result.value : result.error.detail));
assert.deepEqual(values.slice(0, 3), [null, 7, [7, 7]]);

const refused = await client.POST("/v1/batch", { body: { ops: [{ op: "read", address: "nothing" }] } });
assert.equal(refused.error?.op, 0);
assert.match(refused.error?.detail ?? "", /nothing/);

const tap = await client.POST("/v1/tap", {
  params: { query: { wait: true } },
  body: { keys: ["A", "Right"], frames: 3 },
});
assert.equal(tap.data?.over?.frame, tap.data?.last);
assert.deepEqual(tap.data?.presses[0]?.keys, ["A", "Right"]);

await client.PUT("/v1/memory/{address}", { params: { path: { address: "scratch" } }, body: { value: "0x2a" } });
const read = await client.GET("/v1/memory/{address}", { params: { path: { address: "scratch" } } });
assert.equal(read.data?.value, 42);

const picture = await client.GET("/v1/screen", { parseAs: "arrayBuffer" });
assert.deepEqual([...new Uint8Array(picture.data as ArrayBuffer).slice(1, 4)], [..."PNG"].map((c) => c.charCodeAt(0)));
