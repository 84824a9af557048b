"""Measures the client over a local connection: `make bench-python`.

    python benches/client.py [--program target/release/framewire] [--json FILE] [--seconds 1]

It starts a server with the demo game and pauses the game, so that the machine has nothing else to do. Each figure is
the median of five rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import framewire
from framewire import aio

ROOT = Path(__file__).parents[2]
ROUNDS = 5
CALLS_IN_FLIGHT = 64


def rate(work: Callable[[], object], seconds: float) -> float:
    """How many times per second `work` can be called, one call after another."""
    done = 0
    begun = time.perf_counter()
    while (passed := time.perf_counter() - begun) < seconds:
        for _ in range(10):
            work()
        done += 10
    return done / passed


async def rate_in_flight(work: Callable[[], Awaitable[object]], seconds: float) -> float:
    """How many times per second `work` can be awaited, with 64 calls in flight at any time."""
    end = time.perf_counter() + seconds

    async def run() -> int:
        done = 0
        while time.perf_counter() < end:
            await work()
            done += 1
        return done

    begun = time.perf_counter()
    done = await asyncio.gather(*(run() for _ in range(CALLS_IN_FLIGHT)))
    return sum(done) / (time.perf_counter() - begun)


def figure(name: str, rates: Iterable[float], goal: int | None = None) -> dict[str, Any]:
    rounds = [round(each) for each in rates]
    result = {"name": name, "per_second": round(statistics.median(rounds)), "rounds": rounds, "goal": goal}
    against = "" if goal is None else f"  (goal: {goal:,})"
    print(f"{name:44} {result['per_second']:>9,}/s  {min(rounds):>8,} to {max(rounds):,}{against}", flush=True)
    return result


async def in_flight(url: str, seconds: float) -> list[dict[str, Any]]:
    async with await aio.connect(url) as client:
        reads = [await rate_in_flight(lambda: client.read("score"), seconds) for _ in range(ROUNDS)]
        writes = [await rate_in_flight(lambda: client.write("scratch", 1), seconds) for _ in range(ROUNDS)]
        return [
            figure(f"asynchronous read, {CALLS_IN_FLIGHT} in flight", reads, 15_000),
            figure(f"asynchronous write, {CALLS_IN_FLIGHT} in flight", writes),
        ]


def measure(url: str, seconds: float) -> list[dict[str, Any]]:
    with framewire.connect(url) as client:

        def batch() -> None:
            with client.batch() as batch:
                for _ in range(16):
                    batch.read("score")

        def rounds(work: Callable[[], object]) -> list[float]:
            return [rate(work, seconds) for _ in range(ROUNDS)]

        client.pause()
        sequential = [
            figure("synchronous read", rounds(lambda: client.read("score")), 5_000),
            figure("synchronous write, with idempotency key", rounds(lambda: client.write("scratch", 1))),
            figure("synchronous batch of 16 reads", rounds(batch)),
            figure("synchronous advance of a frame", rounds(client.advance)),
            figure("synchronous screen as an array", rounds(lambda: client.screen().array)),
        ]
        return [*sequential, *asyncio.run(in_flight(url, seconds))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/framewire")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rom = Path(folder, "demo.gba")
        rom.write_bytes((ROOT / "rom/framewire-demo.gba").read_bytes())
        command = [options.program, "serve", "--rom", rom, "--symbols", ROOT / "rom/memory-map.toml"]
        command += ["--listen", "127.0.0.1:0", "--data", Path(folder, "data")]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[-1]
            figures = measure(url, options.seconds)
        finally:
            server.terminate()
            server.wait()
    if options.json:
        report = {
            "command": "make bench-python",
            "python": platform.python_version(),
            "websockets": version("websockets"),
            "cores": os.cpu_count(),
            "machine": f"{platform.system()} {platform.machine()}",
            "figures": figures,
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
