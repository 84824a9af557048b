// Plays the demo game by the official TypeScript SDK of MCP over streamable HTTP, and counts the tokens of the lists of tools.

import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { encode } from "gpt-tokenizer/encoding/o200k_base";

const url = process.argv[2];

async function connect(query: string, mode: "legacy" | { pin: string }) {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp${query}`)));
  return client;
}

type Schema = { type?: string; properties?: Record<string, Schema>; items?: Schema; additionalProperties?: unknown };

// What clients with strict rules demand of each part of a schema.
function check(place: string, schema: Schema) {
  assert.ok(typeof schema.type === "string", `${place} has no type`);
  if (schema.type === "object") {
    assert.ok("additionalProperties" in schema, `${place} says nothing about further properties`);
  }
  for (const [name, part] of Object.entries(schema.properties ?? {})) {
    check(`${place}.${name}`, part);
  }
  if (schema.items) {
    check(`${place}[]`, schema.items);
  }
}

// Names, descriptions, schemas and annotations, as models get them.
async function tokens(query: string, most: number) {
  const client = await connect(query, "legacy");
  const { tools } = await client.listTools();
  for (const tool of tools) {
    check(tool.name, tool.inputSchema as Schema);
  }
  const count = encode(JSON.stringify(tools)).length;
  console.log(`${tools.length} tools${query}: ${count} tokens`);
  assert.ok(count < most, `${tools.length} tools take ${count} tokens; ${most} are allowed`);
  await client.close();
}

for (const mode of ["legacy" as const, { pin: "2026-07-28" }]) {
  const client = await connect("", mode);
  const reply = await client.callTool({ name: "act", arguments: { keys: "A:2 .:3", values: ["lives"], picture: {} } });
  const [text, image] = reply.content as { type: string; text?: string; mimeType?: string }[];
  assert.equal(image.mimeType, "image/png");
  const result = JSON.parse(text.text ?? "");
  assert.equal(result.frames, 5);
  // The game runs by itself between calls.
  assert.ok(Number.isInteger(result.values.lives), text.text);
  const refused = await client.callTool({ name: "read", arguments: { address: "scroe" } });
  assert.ok(refused.isError && /score/.test(JSON.stringify(refused.content)));
  await client.close();
}
await tokens("", 5000);
await tokens("?toolsets=play", 2500);
