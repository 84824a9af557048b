"""Measures the environments and embedded cores: `make bench-python`, with PEERS=PYTHON to compare with other packages.

    python benches/envs.py BARE [--peers PYTHON] [--framewire PROGRAM] [--json FILE] [--seconds 2]

BARE is the program that `cargo build --release -p framewire-vecenv --example bare` builds. PYTHON is a Python
interpreter with the packages that `peers.py` needs. With PROGRAM, a LuaJIT client steps a core of `framewire serve`
over a channel.

The machine may be noisy, so the programs that are compared run in turn, in several rounds. Figures are medians, and
ratios are medians of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from peers import rate

import framewire
import framewire.envs

ROOT = Path(__file__).parents[2]
ROUNDS = 5
WARM_UP = 120
"""The number of frames until the demo game has begun."""
RAM = 0x02000000


class Figures:
    """Runs the measurements, and keeps the results of all rounds for each figure."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.rounds: dict[str, list[float]] = {}
        self.ratios: dict[str, float] = {}

    def compare(self, work: dict[str, Callable[[float], float]]) -> None:
        """Measures these rates in turn. Also computes the ratio of the first rate to each of the others."""
        for _ in range(ROUNDS):
            for name, measure in work.items():
                self.rounds.setdefault(name, []).append(measure(self.seconds))
        ours, *others = work
        for other in others:
            ratios = [a / b for a, b in zip(self.rounds[ours], self.rounds[other], strict=True)]
            self.ratios[f"{ours} / {other}"] = round(statistics.median(ratios), 3)

    def report(self) -> dict[str, Any]:
        """All figures, for a JSON file."""
        return {
            "per_second": {name: round(statistics.median(each)) for name, each in self.rounds.items()},
            "ratios": self.ratios,
            "rounds": {name: [round(rate) for rate in each] for name, each in self.rounds.items()},
        }


def timed(work: Callable[[], int]) -> Callable[[float], float]:
    """A function that measures the rate of `work` during a number of seconds."""
    return lambda seconds: rate(work, seconds)


@contextmanager
def channel(program: Path, rom: Path) -> Iterator[Callable[[float], float]]:
    """Yields a function that measures how fast a LuaJIT client steps a core over a channel.

    Each step runs a frame, and reads 64 bytes of memory and two pixels of the picture.
    """
    name = f"bench-{os.getpid()}"
    command: list[str | Path] = [program, "serve", "--quiet", "--rom", rom, "--channel", name, "--listen", "127.0.0.1:0"]
    steps: list[str | Path] = ["luajit", ROOT / "benches/luajit/steps.lua", name]

    def measure(seconds: float) -> float:
        # The client takes a number of frames instead of seconds. It runs about 7,000 frames per second.
        frames = str(int(7000 * seconds))
        return float(subprocess.run([*steps, frames], check=True, capture_output=True, text=True).stdout)

    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            yield measure
        finally:
            server.terminate()


def main() -> None:
    """Prints the figures, and writes them as JSON if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bare", type=Path)
    parser.add_argument("--peers", metavar="PYTHON")
    parser.add_argument("--framewire", metavar="PROGRAM", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    demo = framewire.envs.demo_game()
    figures = Figures(options.seconds)
    folder = tempfile.TemporaryDirectory()
    # Copy the ROMs to a temporary folder, because emulators write saves next to their ROMs.
    rom, gb = Path(folder.name, "framewire-demo.gba"), Path(folder.name, "clock.gb")
    for name in ("framewire-demo.gba", "memory-map.toml"):
        shutil.copy(demo.parent / name, folder.name)
    game = Path(folder.name, demo.name)
    game.write_text(with_maximum(demo.read_text()))
    subprocess.run([sys.executable, ROOT / "rom/clock/gb.py", gb], check=True)

    def peer(what: str) -> dict[str, Callable[[float], float]]:
        if options.peers is None:
            return {}
        command = [options.peers, Path(__file__).with_name("peers.py"), rom, gb, what]

        def measure(seconds: float) -> float:
            run = subprocess.run([*command, str(seconds)], check=True, capture_output=True, text=True)
            return float(run.stdout.splitlines()[-1])

        return {what: measure}

    def bare(seconds: float) -> float:
        command = [options.bare, rom, "64", str(os.cpu_count()), "4", str(seconds)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    vectors(figures, bare, game, peer)
    cores(figures, rom, gb, peer, options.framewire)
    folder.cleanup()
    report = {
        "command": "make bench-python",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        **figures.report(),
        "thousand": thousand(options.seconds),
        "outside_of_engine_microseconds_per_step_of_64": outside_of_engine(options.seconds),
    }
    print(json.dumps(report, indent=2))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


def with_maximum(game: str) -> str:
    """Changes the text of the demo's game file, so that pictures are the maximum of two frames, as in `peers.py`."""
    screen = "grey = true, stack = 4 }"
    if game.count(screen) != 1:
        raise ValueError(f"the demo's game file does not have one line with {screen!r}")
    return game.replace(screen, f"max = 2, {screen}")


def vectors(figures: Figures, bare: Callable[[float], float], game: Path, peer: Callable[[str], dict[str, Any]]) -> None:
    """Measures the frames per second of 64 environments. A step has four frames; four grey 84x84 pictures are observed."""

    def frames(game: Path | None) -> Callable[[float], float]:
        def measure(seconds: float) -> float:
            with closing(framewire.envs.make_vec(game, scenario="pixels", num_envs=64)) as vector:
                vector.reset(seed=0)
                actions = np.ones(64, dtype=np.int64)

                def step() -> int:
                    vector.step(actions)
                    return 64 * 4

                return rate(step, seconds)

        return measure

    figures.compare({"vector_64": frames(None), "bare_64": bare})
    figures.compare({"vector_64_maximum": frames(game), **peer("retro_vector_2"), **peer("retro_vector_64")})


def cores(figures: Figures, rom: Path, gb: Path, peer: Callable[[str], dict[str, Any]], program: Path | None) -> None:
    """Measures embedded cores, one at a time."""
    symbols = rom.with_name("memory-map.toml")
    with framewire.load(rom, symbols=symbols) as core, framewire.load(gb) as game_boy:
        core.advance(WARM_UP)
        game_boy.advance(WARM_UP)

        def step() -> int:
            core.advance()
            core.read_bytes(RAM, 64)
            core.screen()
            return 1

        def read() -> int:
            for _ in range(1000):
                core.read("score")
            return 1000

        def save_and_load() -> int:
            core.load_state(core.save_state())
            return 1

        def game_boy_frames(frames: int, render: bool) -> Callable[[float], float]:
            def tick() -> int:
                game_boy.advance(frames, draw=render)
                if render:
                    game_boy.screen()
                return frames

            return timed(tick)

        if program is None:
            figures.compare({"step": timed(step), **peer("retro_step")})
        else:
            with channel(program, rom) as steps:
                figures.compare({"step": timed(step), "luajit_channel_step": steps, **peer("retro_step")})
        figures.compare({"read": timed(read), **peer("pyboy_read")})
        figures.compare({"save_and_load": timed(save_and_load)})
        for what, (frames, render) in {"rendered": (1, True), "every_fourth": (4, True), "unrendered": (4, False)}.items():
            figures.compare({f"game_boy_{what}": game_boy_frames(frames, render), **peer(f"pyboy_{what}")})


def thousand(seconds: float) -> dict[str, float]:
    """Measures a thousand environments in this process."""
    begin = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with closing(framewire.envs.make_vec(scenario="pixels", num_envs=1000)) as vector:
        vector.reset(seed=0)
        start = time.perf_counter() - begin
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000
        actions = np.ones(1000, dtype=np.int64)

        def step() -> int:
            vector.step(actions)
            return 1000 * 4

        frames = statistics.median(rate(step, seconds) for _ in range(3))
    return {"start_seconds": round(start, 2), "kilobytes_each": round(memory), "frames_per_second": round(frames)}


class TimedEngine:
    """Wraps the engine, which is the native part of a vector of environments, and measures the time of its steps."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.inside = 0.0

    def step(self, actions: Any, batch: Any) -> None:
        """Plays a step, and adds its time to `inside`."""
        begin = time.perf_counter()
        self.engine.step(actions, batch)
        self.inside += time.perf_counter() - begin

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


def outside_of_engine(seconds: float) -> float:
    """The time that a step of 64 environments takes outside of the engine, in microseconds.

    It is the median over the steps. A mean would also count interruptions by other programs.
    """
    with closing(framewire.envs.make_vec(scenario="pixels", num_envs=64)) as vector:
        vector.reset(seed=0)
        engine = TimedEngine(vector._native)
        vars(vector)["_native"] = engine
        actions = np.ones(64, dtype=np.int64)
        outside: list[float] = []
        end = time.perf_counter() + seconds
        while (begin := time.perf_counter()) < end:
            engine.inside = 0.0
            vector.step(actions)
            outside.append(time.perf_counter() - begin - engine.inside)
        return round(statistics.median(outside) * 1e6, 1)


if __name__ == "__main__":
    main()
