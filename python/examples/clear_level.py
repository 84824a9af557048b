"""Finds a way to clear level 1 of the demo game, and verifies it.

    python examples/clear_level.py [solution.txt]

Every run finds the same inputs, because a search depends only on its seed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from framewire import search


def explorer(threads: int = 0) -> search.Explorer:
    """Creates an explorer of the demo game.

    The search puts similar states into one *cell*: here, states with the same numbers of bricks and lives, in which the
    ball moves in the same vertical direction and is at roughly the same horizontal position.
    """
    return search.Explorer(
        scenario="memory",
        score="-bricks_left - 70 * (lives < 3)",
        goal="level >= 2",
        cell=["bricks_left", "lives", "ball_dy > 0", "ball_x / 640"],
        threads=threads,
    )


def main() -> None:
    """Searches, prints the progress, and writes the solution."""
    begun = time.perf_counter()

    def show(progress: search.Progress) -> None:
        print(f"\r{progress.frames:,} frames, {progress.cells} cells, score {progress.score:.0f} ", end="", file=sys.stderr)

    runner = explorer()
    solution = search.go_explore(runner, seed=1, progress=show)
    print(file=sys.stderr)
    solution.verify(explorer(threads=1))
    seconds = time.perf_counter() - begun
    print(f"reached: {solution.reached}, in {solution.frames:,} frames of the game; state {solution.hash[:16]}")
    print(f"searched {solution.played:,} frames in {solution.branches:,} branches, {seconds:.0f} s")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(solution.presses + "\n")


if __name__ == "__main__":
    main()
