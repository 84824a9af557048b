#!/usr/bin/env python3
"""Measures how long a call of the MCP tool `act` takes over stdio.

The call plays 60 frames, and returns values and a picture.

    latency.py PROGRAM ROM [--attach HOST:PORT] [--calls N]

Without --attach, the game runs in an embedded core, which is paused between calls and plays as fast as it can. With
--attach, an mGBA window runs the game all the time at its own speed, and a call waits for 60 of its frames. Prints
JSON. For a window, `max_frames` is the largest number of frames between two replies, and `frames_per_second` is the
window's speed during the test. `real_time_ms` is the time of 60 frames at the console's speed. `most_ms` is the
time of 62 frames: every call should take less.
"""

import argparse
import itertools
import json
import platform
import subprocess
import sys
import time

FRAMES = 60
# The frames per second of a Game Boy Advance.
RATE = 16777216 / 280896


class Server:
    """A process of `framewire mcp`, which gets one request at a time. `runs`: whether the game also runs between calls."""

    def __init__(self, command, runs):
        self.runs = runs
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number = 0
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "latency", "version": "1"}}
        self.request("initialize", about)
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        reply = json.loads(self.process.stdout.readline())
        if "error" in reply:
            sys.exit(f"{method}: {reply['error']}")
        return reply["result"]

    def call(self, tool, **arguments):
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            sys.exit(f"{tool}: {result['content'][0]['text']}")
        return result["content"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(server, calls, **picture):
    """Makes calls, and returns statistics of their times in ms. For a window, also returns figures about its frames."""
    times, frames, moments = [], [], []
    for number in range(calls):
        keys = f"{'Left' if number % 2 else 'Right'}:{FRAMES // 2} .:{FRAMES // 2}"
        values = ["frame", "u32[0x02000008]", "u16[0x02000038]", "u8[0x02000004]"]
        begun = time.perf_counter()
        content = server.call("act", keys=keys, values=values, picture={"always": True, **picture})
        moments.append(time.perf_counter())
        times.append((moments[-1] - begun) * 1000)
        reply = json.loads(content[0]["text"])
        frames.append(reply["frame"])
        if reply["frames"] != FRAMES or len(reply["values"]) != len(values) or content[1]["type"] != "image":
            sys.exit(f"the reply is not complete: {reply}")
    times.sort()
    result = {
        "calls": calls,
        "median_ms": round(times[calls // 2], 2),
        "p99_ms": round(times[calls * 99 // 100], 2),
        "max_ms": round(times[-1], 2),
    }
    if server.runs:
        # Each call begins when the previous call has returned, so this counts all frames between two replies.
        result["max_frames"] = max(after - before for before, after in itertools.pairwise(frames))
        result["frames_per_second"] = round((frames[-1] - frames[0]) / (moments[-1] - moments[0]), 2)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program")
    parser.add_argument("rom")
    parser.add_argument("--attach", metavar="HOST:PORT")
    parser.add_argument("--calls", type=int, default=200)
    args = parser.parse_args()
    where = ["--attach", args.attach] if args.attach else [args.rom]
    server = Server([args.program, "mcp", *where], args.attach is not None)
    kind = "window" if args.attach else "embedded"
    if args.attach:
        server.call("control", action="resume")
    server.call("act", keys=f".:{FRAMES}")
    result = {"emulator": kind, "frames": FRAMES, "machine": platform.machine(), "pictures": {}}
    if args.attach:
        result["real_time_ms"] = round(1000 * FRAMES / RATE, 2)
        result["most_ms"] = round(1000 * (FRAMES + 2) / RATE, 2)
    pictures = {"whole": {}, "half, grey": {"scale": 0.5, "grey": True}}
    for name, picture in pictures.items():
        result["pictures"][name] = measure(server, args.calls, **picture)
    server.close()
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
