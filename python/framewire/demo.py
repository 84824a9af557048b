"""Plays the demo game in this process, and saves its last picture: `python -m framewire.demo`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from framewire._data import DATA
from framewire.core import Core, load
from framewire.errors import FramewireError

SERVE = 0
"""The state of the game in which the ball waits on the paddle."""


def load_demo() -> Core:
    """Starts the demo game, which is part of the package."""
    return load(DATA / "framewire-demo.gba", symbols=DATA / "memory-map.toml")


def play(game: Core, frames: int) -> None:
    """Keeps the paddle under the ball. Reads the positions of both from memory."""
    while frames > 0:
        # Positions are in sixteenths of a pixel.
        target, paddle, state = game.read_many(["ball_x", "paddle_x", "state"])
        if state == SERVE:
            game.press("A")
        elif abs(target - paddle) > 160:
            game.press("R" if target > paddle else "L")  # faster than Right and Left
        elif abs(target - paddle) > 40:
            game.press("Right" if target > paddle else "Left")
        # One frame with the key, and one without it.
        now = min(frames, 2)
        game.advance(now)
        frames -= now


def main(arguments: Sequence[str] | None = None) -> int:
    """Plays the game and prints the result."""
    parser = argparse.ArgumentParser(prog="python -m framewire.demo", description=__doc__)
    parser.add_argument("--frames", type=int, default=3600, help="frames to play; 3600 is about a minute of game time")
    parser.add_argument("--output", type=Path, default=Path("framewire-demo.png"), help="the file of the last picture")
    chosen = parser.parse_args(arguments)
    if chosen.frames < 1:
        parser.error(f"--frames is {chosen.frames}; use a whole number of at least 1")
    try:
        with load_demo() as game:
            begun = time.perf_counter()
            play(game, chosen.frames)
            seconds = time.perf_counter() - begun
            game.screen().save(chosen.output)
            score, level, lives = game.read_many(["score", "level", "lives"])
            title = game.info().title
    except (FramewireError, OSError) as error:
        print(f"framewire.demo: {error}", file=sys.stderr)
        return 1
    print(f"{title}: {chosen.frames:,} frames in {seconds:.1f} s, {chosen.frames / seconds:,.0f} frames per second")
    print(f"score {score}, level {level}, lives {lives}")
    print(f"picture: {chosen.output.resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
