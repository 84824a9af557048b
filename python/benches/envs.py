"""Measures the environments: python benches/envs.py BARE [--json FILE] [--seconds N]

BARE is the program of `cargo build --release -p framewire-vecenv --example bare`. Rounds with and without environments
alternate, and medians are compared, because the machine may be noisy.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import framewire
import framewire.envs

ROUNDS = 5
WARM_UP = 120
"""Frames after which the demo game plays."""


def rate(work: Callable[[], int], seconds: float) -> float:
    """How much `work` does per second; it returns how much it did."""
    done = 0
    begin = time.perf_counter()
    while (now := time.perf_counter()) - begin < seconds:
        done += work()
    return done / (now - begin)


def main() -> None:
    """Prints the figures, and writes them as JSON if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bare", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    cores = os.cpu_count() or 1
    rom = framewire.envs.demo_game().parent / "framewire-demo.gba"

    vector = framewire.envs.make_vec(scenario="pixels", num_envs=64)
    vector.reset(seed=0)
    actions = np.ones(64, dtype=np.int64)

    def step() -> int:
        vector.step(actions)
        return 64 * 4

    with_envs, bare = [], []
    for _ in range(ROUNDS):
        command = [options.bare, rom, "64", str(cores), "4", str(options.seconds)]
        bare.append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        with_envs.append(rate(step, options.seconds))
    ratios = [ours / theirs for ours, theirs in zip(with_envs, bare, strict=True)]

    begin = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    many = framewire.envs.make_vec(scenario="pixels", num_envs=1000)
    many.reset(seed=0)
    start_seconds = time.perf_counter() - begin
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000
    thousand = np.ones(1000, dtype=np.int64)

    def step_many() -> int:
        many.step(thousand)
        return 1000 * 4

    of_many = rate(step_many, 2 * options.seconds)
    many.close()

    single = framewire.envs.make(scenario="pixels")
    single.reset(seed=0)

    def step_single() -> int:
        single.step(1)
        return 1

    of_single = rate(step_single, options.seconds)

    with framewire.load(rom, symbols=rom.with_name("memory-map.toml")) as core:
        core.advance(WARM_UP)

        def read() -> int:
            for _ in range(1000):
                core.read("score")
            return 1000

        reads = rate(read, options.seconds)
        state = core.save_state()

        def save_and_load() -> int:
            core.load_state(core.save_state())
            return 1

        states = rate(save_and_load, options.seconds)

    figures = {
        "cores": cores,
        "vector_64_frames_per_second": round(statistics.median(with_envs)),
        "bare_64_frames_per_second": round(statistics.median(bare)),
        "vector_to_bare": round(statistics.median(ratios), 3),
        "vector_to_bare_rounds": [round(ratio, 3) for ratio in ratios],
        "vector_1000_frames_per_second": round(of_many),
        "vector_1000_start_seconds": round(start_seconds, 2),
        "vector_1000_kilobytes_each": round(memory),
        "single_steps_per_second": round(of_single),
        "core_reads_per_second": round(reads),
        "core_states_saved_and_loaded_per_second": round(states),
        "core_state_bytes": len(state),
    }
    for name, value in figures.items():
        print(f"{name}: {value}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
