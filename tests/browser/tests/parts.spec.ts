/** Tests of parts of the page that need no browser. */

import { code } from "../../../crates/console/web/code.js";
import { curl } from "../../../crates/console/web/curl.js";
import { DEFAULT_BUTTONS, keysFor, partNames, partsHeld } from "../../../crates/console/web/gamepad.js";
import { keysOf, maskOf } from "../../../crates/console/web/keys.js";
import { direction } from "../../../crates/console/web/pad.js";
import { Series } from "../../../crates/console/web/series.js";
import { StatusPoller } from "../../../crates/console/web/status.js";
import { Store } from "../../../crates/console/web/store.js";
import { expect, test } from "../support/test.ts";

test("masks have the bits of the console's keys", () => {
  expect(maskOf(["A", "L"])).toBe(0x201);
  expect(keysOf(0x201)).toEqual(["A", "L"]);
  expect(maskOf([])).toBe(0);
});

test("the D-pad has eight directions and a dead zone in the middle", () => {
  expect(direction(0, 0.1)).toEqual([]);
  expect(direction(0.9, 0)).toEqual(["Right"]);
  expect(direction(-0.9, 0.1)).toEqual(["Left"]);
  expect(direction(0, -0.9)).toEqual(["Up"]);
  expect(direction(0.1, 0.9)).toEqual(["Down"]);
  expect(new Set(direction(0.7, -0.7))).toEqual(new Set(["Up", "Right"]));
  expect(new Set(direction(-0.7, 0.7))).toEqual(new Set(["Down", "Left"]));
});

test("a gamepad's buttons are mapped by position, and its stick by direction", () => {
  const buttons = (...down: number[]): GamepadButton[] =>
    Array.from({ length: 17 }, (_, index) => ({ pressed: down.includes(index), touched: false, value: 0 }));
  const keysHeld = (pad: Pick<Gamepad, "buttons" | "axes">): Set<string> =>
    keysFor(partsHeld(pad), DEFAULT_BUTTONS);
  expect(keysHeld({ buttons: buttons(1, 0, 12), axes: [0, 0] })).toEqual(new Set(["A", "B", "Up"]));
  expect(keysHeld({ buttons: buttons(), axes: [-0.9, 0.6] })).toEqual(new Set(["Left", "Down"]));
  expect(keysHeld({ buttons: buttons(), axes: [] })).toEqual(new Set());
  expect(partNames("A", DEFAULT_BUTTONS)).toBe("1, 3");
  expect(partNames("Up", { "a3-": "Up" })).toBe("stick 2 ↑");
});

test("the state is shown while polls begin faster than answers come", async () => {
  Object.assign(globalThis, { document: { hidden: false } });
  const answers: (() => void)[] = [];
  const call = (): Promise<unknown> =>
    new Promise((resolve) => answers.push(() => resolve({ emulators: [] })));
  const rpc = { socket: { connected: new Store(true) }, call };
  const api = { emulator: new Store(undefined) };
  const poller = new StatusPoller(api as never, rpc as never);
  void poller.refresh();
  void poller.refresh();
  answers[0]?.();
  // The answer lists no emulator, which is shown as `disconnected`.
  await expect.poll(() => poller.status.value.phase).toBe("disconnected");
});

test("commands are quoted for a shell", () => {
  const origin = "http://127.0.0.1:5000";
  expect(curl({ title: "", method: "POST", path: "/v1/pause" }, origin, false)).toBe(
    "curl -X POST http://127.0.0.1:5000/v1/pause",
  );
  const named = {
    title: "",
    method: "POST",
    path: "/v1/snapshots",
    query: { emulator: "b c" },
    json: { name: "it's" },
  } as const;
  expect(curl(named, origin, true)).toBe(
    `curl -H "Authorization: Bearer $FRAMEWIRE_TOKEN" 'http://127.0.0.1:5000/v1/snapshots?emulator=b+c' ` +
      `-H 'Content-Type: application/json' -d '{"name":"it'\\''s"}'`,
  );
});

test("Lua code keeps a text that contains brackets and quotes", () => {
  const json = { name: 'a]==]"b' };
  const action = { title: "", method: "POST", path: "/v1/snapshots", json } as const;
  const written = code("lua", action, "http://127.0.0.1:5000", false);
  expect(written).toContain(String.raw`body = "{\"name\":\"a]==]\\\"b\"}"`);
});

test("a series keeps the last points, and starts again when time goes back", () => {
  const series = new Series(3);
  for (const at of [1, 2, 3, 4]) series.add(at, at * 10);
  expect(series.points.map(({ value }) => value)).toEqual([20, 30, 40]);
  expect(series.range()).toEqual({ least: 20, most: 40 });
  series.add(1, 5);
  expect(series.points).toEqual([{ at: 1, value: 5 }]);
});

test("a series keeps one point for each time", () => {
  const series = new Series(2);
  series.add(1, 10);
  for (const value of [20, 30, 40]) series.add(2, value);
  expect(series.points).toEqual([
    { at: 1, value: 10 },
    { at: 2, value: 40 },
  ]);
});
