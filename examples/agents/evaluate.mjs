// Plays level 1 of the demo game with MCP in two ways, and counts the calls, tokens and frames of each way:
//
//   act      each decision is one call of `act`: move under the ball until a condition holds, and return values
//   press    as with other servers, each decision is up to three calls: take a screenshot, press a key, sleep
//
//   npm install && node evaluate.mjs http://127.0.0.1:5000 [act|press|all] [seed] [FILE]
//
// The counts are also written to FILE as JSON. docs/performance/agents.json has the counts that docs/agents.md shows.
//
// No model is needed, because two scripted players make the decisions. The second player gets the positions that a
// model would see in the picture. The tokens of the calls' arguments and results are counted with the tokenizer
// o200k_base. A picture counts as width * height / 750 tokens. The tools' descriptions, which a model reads once, are
// not counted.

import { setMaxListeners } from "node:events";
import { writeFileSync } from "node:fs";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { encode } from "gpt-tokenizer/encoding/o200k_base";

const [url = "http://127.0.0.1:5000", only = "all", seed = "1", file] = process.argv.slice(2);
/** The longest game, in frames: half an hour. */
const LIMIT = 108_000;
/** The tokens for a picture of a Game Boy Advance. */
const PICTURE = Math.ceil((240 * 160) / 750);
/**
 * Where the middle of the ball can be, in sixteenths of a pixel: its leftmost and rightmost position, and its row when
 * it meets the paddle.
 */
const [LEFT, RIGHT, PADDLE] = [11 * 16, 229 * 16, 101 * 16];
/** If the paddle is farther than this from its target, it moves twice as fast, with L and R. */
const DASH = 500;

// The SDK adds a listener for each call of a connection.
setMaxListeners(0);
const client = new Client({ name: "evaluation", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));

let state = Number(seed);
/** A pseudorandom number from 0 up to, but not including, 1. The sequence depends only on the seed. */
function random() {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 32;
}

async function call(name, args) {
  const result = await client.callTool({ name, arguments: args });
  const text = result.content[0].text;
  if (result.isError) {
    throw new Error(`${name}: ${text}`);
  }
  return { text, json: JSON.parse(text) };
}

/** The position at which a ball that moves down will meet the paddle's row, after bouncing off the walls. */
function landing({ ball_x: x, ball_y: y, ball_dx: dx, ball_dy: dy }) {
  const width = RIGHT - LEFT;
  const path = x + (dx * (PADDLE - y)) / dy - LEFT;
  const folded = ((path % (2 * width)) + 2 * width) % (2 * width);
  return LEFT + (folded > width ? 2 * width - folded : folded);
}

/** What a player gets to see. In the game's `state`, 1 is a level that is being played, and 3 is the end of the game. */
const VALUES = ["ball_x", "ball_y", "ball_dx", "ball_dy", "paddle_x", "state", "level", "lives"];

/** Plays with one call per decision. */
async function playByAct(cost) {
  const count = async (args) => {
    const { text, json } = await call("act", { ...args, values: VALUES });
    cost.calls += 1;
    cost.tokens += encode(JSON.stringify({ ...args, values: VALUES })).length + encode(text).length;
    cost.frames += json.frames;
    return json.values;
  };
  const over = "state != 1";
  let seen = await count({ keys: ".:1" });
  while (seen.level === 1 && cost.frames < LIMIT) {
    cost.decisions += 1;
    if (seen.state !== 1) {
      const hold = seen.state === 3 ? "Start" : "A";
      seen = await count({ steps: [{ hold, frames: 2 }, { until: "state < 2", frames: 200 }] });
    } else if (seen.ball_dy <= 0) {
      seen = await count({ steps: [{ until: `ball_dy > 0 or ${over}`, frames: 600 }] });
    } else {
      const target = Math.round(landing(seen) + (random() - 0.5) * 200);
      const far = Math.abs(target - seen.paddle_x) > DASH;
      const [hold, reached] =
        target < seen.paddle_x ? [far ? "L" : "Left", `paddle_x <= ${target}`] : [far ? "R" : "Right", `paddle_x >= ${target}`];
      seen = await count({
        steps: [
          { hold, until: `${reached} or ball_dy < 0 or ${over}`, frames: 120 },
          { until: `ball_dy < 0 or ${over}`, frames: 300 },
          { until: `ball_dy > 0 or ${over}`, frames: 600 },
        ],
      });
    }
  }
  return seen.level > 1;
}

/**
 * Plays with up to three calls per decision: screenshot, press, sleep. There are 12 frames (0.2 s) between two
 * pictures. `observe` and `act` do the work of these calls, but the counts are those of the three calls of another
 * server.
 */
async function playByPress(cost) {
  const count = (args, result) => {
    cost.calls += 1;
    cost.tokens += encode(JSON.stringify(args)).length + encode(result).length;
  };
  let before = null;
  while (cost.frames < LIMIT) {
    cost.decisions += 1;
    const { json } = await call("observe", { values: VALUES });
    const seen = json.values;
    count({}, "");
    cost.tokens += PICTURE;
    if (seen.level > 1) {
      return true;
    }
    // The direction of the ball can be found only from two pictures.
    const known = before && seen.state === 1 && before.state === 1;
    const [dx, dy] = known ? [seen.ball_x - before.ball_x, seen.ball_y - before.ball_y] : [0, 0];
    const target = dy > 0 ? landing({ ...seen, ball_dx: dx, ball_dy: dy }) + (random() - 0.5) * 200 : seen.ball_x;
    const distance = Math.abs(target - seen.paddle_x);
    // The speed is in sixteenths of a pixel per frame.
    const [left, right, speed] = distance > DASH ? ["L", "R", 96] : ["Left", "Right", 48];
    const direction = target < seen.paddle_x ? left : right;
    const key = seen.state === 1 ? direction : seen.state === 3 ? "Start" : "A";
    const frames = seen.state === 1 ? Math.min(12, Math.round(distance / speed)) : 2;
    if (frames > 0) {
      count({ button: key, frames }, "ok");
    }
    count({ seconds: 0.2 }, "ok");
    const pause = 12 - frames;
    const keys = [frames > 0 ? `${key}:${frames}` : "", pause > 0 ? `.:${pause}` : ""].join(" ").trim();
    cost.frames += (await call("act", { keys })).json.frames;
    before = seen;
  }
  return false;
}

console.log("| way | cleared | decisions | calls | tokens | frames of the game | seconds of the game |");
console.log("| --- | --- | ---: | ---: | ---: | ---: | ---: |");
const results = { seed: Number(seed), tokenizer: "o200k_base", tokens_of_a_picture: PICTURE, ways: {} };
await call("control", { action: "pause" });
for (const [way, play] of [["act", playByAct], ["press", playByPress]]) {
  if (only !== "all" && only !== way) {
    continue;
  }
  await call("control", { action: "reset" });
  await call("wait", { until: "u32[0x02000008] > 0" });
  const cost = { decisions: 0, calls: 0, tokens: 0, frames: 0 };
  const cleared = await play(cost);
  // The console shows 16777216 / 280896 frames per second.
  const game_seconds = Math.round((cost.frames * 280896) / 16777216);
  results.ways[way] = { cleared, ...cost, game_seconds };
  const numbers = [cost.decisions, cost.calls, cost.tokens, cost.frames, game_seconds].map((number) => number.toLocaleString("en"));
  console.log(`| ${way} | ${cleared ? "yes" : "no"} | ${numbers.join(" | ")} |`);
}
await client.close();
if (file) {
  writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);
}
