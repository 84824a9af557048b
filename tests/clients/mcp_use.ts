// Plays the demo game with the official TypeScript SDK of MCP over streamable HTTP, and counts the tokens of the tools'
// descriptions.

import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { encode } from "gpt-tokenizer/encoding/o200k_base";

const url = process.argv[2];

async function connect(query: string, mode: "legacy" | { pin: string }) {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp${query}`)));
  return client;
}

type Schema = {
  type?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  additionalProperties?: boolean | Schema;
};

// The only keywords that strict clients accept in schemas. The clients of some model vendors refuse anyOf, $ref, format
// and others.
const KEYWORDS = ["type", "description", "properties", "required", "items", "enum", "additionalProperties"];
const TYPES = ["object", "array", "string", "integer", "number", "boolean"];
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

// Checks that a part of a schema follows the rules of strict clients.
function check(place: string, schema: Schema) {
  const { type, properties = {}, required = [], items, additionalProperties } = schema;
  for (const keyword of Object.keys(schema)) {
    assert.ok(KEYWORDS.includes(keyword), `${place} has ${keyword}`);
  }
  assert.ok(type !== undefined && TYPES.includes(type), `${place} has the type ${type}`);
  assert.equal(type === "object", additionalProperties !== undefined, `${place}: additionalProperties`);
  assert.equal(type === "array", items !== undefined, `${place}: items`);
  assert.ok((schema.enum ?? []).every((value) => typeof value === "string"), `${place}: enum`);
  assert.ok(required.every((name) => name in properties), `${place}: required`);
  for (const [name, part] of Object.entries(properties)) {
    assert.match(name, NAME, place);
    check(`${place}.${name}`, part);
  }
  if (items) {
    check(`${place}[]`, items);
  }
  if (typeof additionalProperties === "object") {
    check(`${place}.*`, additionalProperties);
  }
}

// Checks the list of tools as models get it, and that it takes fewer than `most` tokens.
async function tokens(query: string, most: number) {
  const client = await connect(query, "legacy");
  const { tools } = await client.listTools();
  for (const tool of tools) {
    assert.match(tool.name, NAME);
    assert.ok(tool.description && tool.description.length <= 1024, tool.name);
    assert.equal(tool.inputSchema.type, "object", tool.name);
    check(tool.name, tool.inputSchema as Schema);
  }
  const count = encode(JSON.stringify(tools)).length;
  console.log(`${tools.length} tools${query}: ${count} tokens`);
  assert.ok(count < most, `${tools.length} tools take ${count} tokens; fewer than ${most} are allowed`);
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
await tokens("?toolsets=play,debug,files,script", 5000);
await tokens("?toolsets=play", 2500);
