"""Plays many hours of game time, and watches the memory of this process.

    python benches/memory.py [--hours 24] [--envs 64] [--json FILE]

The environments play the scenario `pixels` of the demo game with random actions, so episodes end and begin all the
time. After each hour of game time, summed over the environments, the program prints its resident memory. It fails if
the memory grows by more than 1,024 kB after the first quarter of the run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import closing
from pathlib import Path

import framewire.envs

FRAMES_PER_HOUR = 3600 * 16_777_216 // 280_896
"""The number of seconds in an hour, times the console's clock rate, divided by the cycles in a frame."""
TOLERANCE = 1024
"""In kilobytes. With the default arguments, one leaked picture per step would add up to more than a gigabyte."""


def resident() -> int:
    """The resident memory of this process, in kilobytes. Linux only."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def play(hours: int, envs: int) -> tuple[list[int], int]:
    """Plays. Returns the memory at the start and after each hour, and the number of episodes that ended."""
    episodes = 0
    with closing(framewire.envs.make_vec(scenario="pixels", num_envs=envs)) as vector:
        vector.reset(seed=0)
        vector.action_space.seed(0)
        memory = [resident()]
        frames = 0
        for hour in range(1, hours + 1):
            while frames < hour * FRAMES_PER_HOUR:
                _, _, terminated, truncated, _ = vector.step(vector.action_space.sample())
                episodes += int((terminated | truncated).sum())
                # In this scenario, a step lasts four frames (`frame_skip` in demo.toml).
                frames += envs * 4
            memory.append(resident())
            print(f"{hour:3} hours: {memory[-1]:,} kB, {episodes:,} episodes", flush=True)
    return memory, episodes


def main() -> int:
    """Prints the memory, and writes it as JSON if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=int, default=24, help="at least 2, so that an hour follows the first quarter")
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.hours < 2 or options.envs < 1:
        parser.error(f"--hours is {options.hours} and --envs is {options.envs}; use at least 2 and 1")
    begin = time.perf_counter()
    memory, episodes = play(options.hours, options.envs)
    # After a quarter of the run, every environment has allocated all the memory that it keeps.
    growth = memory[-1] - memory[(options.hours + 3) // 4]
    report = {
        "command": f"python benches/memory.py --hours {options.hours} --envs {options.envs}",
        "frames": options.hours * FRAMES_PER_HOUR,
        "episodes": episodes,
        "seconds": round(time.perf_counter() - begin),
        "kilobytes_after_each_hour": memory,
        "growth_kilobytes_after_a_quarter": growth,
    }
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    if growth > TOLERANCE:
        print(f"the memory grew by {growth:,} kB; at most {TOLERANCE:,} kB are accepted", file=sys.stderr)
        return 1
    print(f"the memory grew by {growth:,} kB after the first quarter")
    return 0


if __name__ == "__main__":
    sys.exit(main())
