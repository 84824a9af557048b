"""Measures other Python packages: python benches/peers.py GBA_ROM GB_ROM WHAT SECONDS

Prints a rate. Run it with a Python that has stable-retro, PyBoy, Gymnasium and OpenCV; it does not need Framewire. WHAT
is one of the keys of `WORK`. The environments have the same observations as the scenario `pixels` of the demo game
with `max = 2`: a step has four frames, its picture is the maximum of the last two frames in grey at 84x84, and four such
pictures are stacked.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

GAME = "FramewireDemo-Gba-v0"


def rate(work: Callable[[], int], seconds: float) -> float:
    """How much `work` does per second. Each call of `work` returns how much it did."""
    work()
    done = 0
    begin = time.perf_counter()
    while (now := time.perf_counter()) - begin < seconds:
        done += work()
    return done / (now - begin)


def retro_env(folder: str) -> Any:
    """Creates an environment of stable-retro. The folder has an integration, which describes a game."""
    import stable_retro as retro

    retro.data.Integrations.add_custom_path(folder)
    return retro.make(GAME, inttype=retro.data.Integrations.ALL, render_mode="rgb_array")


def wrapped_env(folder: str) -> Any:
    """Creates the same environment, with the observations of `pixels` with `max = 2`."""
    from gymnasium import wrappers

    env = retro_env(folder)
    env = wrappers.MaxAndSkipObservation(env, skip=4)
    env = wrappers.GrayscaleObservation(env)
    env = wrappers.ResizeObservation(env, (84, 84))
    return wrappers.FrameStackObservation(env, 4)


def integrate(rom: Path, folder: str) -> None:
    """Writes the integration of a GBA game: one value of its memory, no reward and no end."""
    game = Path(folder, GAME)
    game.mkdir()
    data = rom.read_bytes()
    (game / "rom.gba").write_bytes(data)
    (game / "rom.sha").write_text(hashlib.sha1(data).hexdigest() + "\n")
    (game / "data.json").write_text(json.dumps({"info": {"first": {"address": 0x02000000, "type": "|u1"}}}))
    (game / "scenario.json").write_text(json.dumps({"done": {}, "reward": {}}))
    (game / "metadata.json").write_text("{}")


def retro_step(gba: Path, _gb: Path, seconds: float) -> float:
    """Measures steps of stable-retro's emulator: a frame and its picture.

    Unlike an environment of stable-retro, it reads no memory, so it is faster.
    """
    import stable_retro as retro

    emulator = retro.RetroEmulator(str(gba))
    for _ in range(120):
        emulator.step()

    def step() -> int:
        emulator.step()
        emulator.get_screen()
        return 1

    return rate(step, seconds)


def retro_vector(count: int) -> Callable[[Path, Path, float], float]:
    """Measures frames of `count` environments, each in its own process, with Gymnasium's AsyncVectorEnv."""

    def measure(gba: Path, _gb: Path, seconds: float) -> float:
        from gymnasium.vector import AsyncVectorEnv

        with tempfile.TemporaryDirectory() as folder:
            integrate(gba, folder)
            env = AsyncVectorEnv([lambda: wrapped_env(folder)] * count)
            env.reset()
            actions = env.action_space.sample() * 0

            def step() -> int:
                env.step(actions)
                return count * 4

            frames = rate(step, seconds)
            env.close()
            return frames

    return measure


def pyboy(gb: Path) -> Any:
    """Starts PyBoy without a window and without sound."""
    from pyboy import PyBoy

    emulator = PyBoy(str(gb), window="null", sound_emulated=False)
    emulator.set_emulation_speed(0)
    return emulator


def pyboy_frames(frames: int, render: bool) -> Callable[[Path, Path, float], float]:
    """Measures frames of PyBoy, with `frames` frames per call."""

    def measure(_gba: Path, gb: Path, seconds: float) -> float:
        emulator = pyboy(gb)

        def tick() -> int:
            emulator.tick(frames, render)
            return frames

        return rate(tick, seconds)

    return measure


def pyboy_reads(_gba: Path, gb: Path, seconds: float) -> float:
    """Measures reads of one byte with PyBoy."""
    emulator = pyboy(gb)
    emulator.tick(60, False)

    def read() -> int:
        for _ in range(1000):
            emulator.memory[0xC000]
        return 1000

    return rate(read, seconds)


WORK: dict[str, Callable[[Path, Path, float], float]] = {
    "retro_step": retro_step,
    "retro_vector_2": retro_vector(2),
    "retro_vector_64": retro_vector(64),
    "pyboy_rendered": pyboy_frames(1, True),
    "pyboy_every_fourth": pyboy_frames(4, True),
    "pyboy_unrendered": pyboy_frames(4, False),
    "pyboy_read": pyboy_reads,
}

if __name__ == "__main__":
    gba, gb, what, seconds = sys.argv[1:]
    print(WORK[what](Path(gba), Path(gb), float(seconds)))
