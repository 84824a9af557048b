"""The explorer, which plays branches on the processors of this machine. Branches are the attempts of a search."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from framewire._arguments import absolute, check_threads
from framewire._data import demo_game
from framewire.search._branches import Cell, Found, Job, Rollout, States
from framewire.search._solution import Solution


class _OwnNames:
    """The states of a search on one machine. The name of a state is the state itself, so nothing needs to be stored."""

    def add(self, states: Sequence[tuple[Cell, bytes]]) -> list[bytes]:
        return [state for _, state in states]

    def get(self, names: Sequence[bytes]) -> list[bytes]:
        return list(names)

    def lost(self, names: Sequence[bytes]) -> list[bytes]:
        del names
        return []

    def restore(self, states: Mapping[bytes, bytes]) -> None:
        pass

    def remove(self, names: Sequence[bytes]) -> None:
        pass


class Explorer:
    """Plays branches of a scenario on the processors of this machine.

    Branches have no random frames at the start and no sticky actions, even if the scenario has them. Expressions use
    the names and the syntax of the game file. `delta` and other functions that compare frames are not accepted.

    Attributes:
        cells: The expressions of `cell`, as a list.
        goal: The argument `goal`.
        states: The states that branches found. Here, the name of a state is the state itself.
        start: The state in which episodes begin.
        fingerprint: Equal for explorers whose states and actions can be exchanged.
        frame_skip: The number of frames that an action lasts.

    Args:
        game: The game file. The default is that of the demo game.
        scenario: The name of a scenario. It can be left out if there is only one.
        score: An expression: how good a state is. The default is the sum of the scenario's rewards.
        goal: An expression. A branch ends with success at the first frame in which it is true.
        cell: One or several expressions. States with the same values, rounded down, belong to the same cell.
        rom: The path of the ROM, instead of the one in the game file.
        threads: The largest number of threads. 0 means one for each processor; there are never more.
    """

    def __init__(
        self,
        game: str | os.PathLike[str] | None = None,
        scenario: str | None = None,
        *,
        score: str | None = None,
        goal: str | None = None,
        cell: str | Sequence[str] = (),
        rom: str | os.PathLike[str] | None = None,
        threads: int = 0,
    ) -> None:
        from framewire import _native

        check_threads(threads)
        game = demo_game() if game is None else game
        self.cells = [cell] if isinstance(cell, str) else list(cell)
        self._arguments: dict[str, Any] = {
            "game": absolute(game),
            "scenario": scenario,
            "score": score,
            "goal": goal,
            "cell": self.cells,
            "rom": None if rom is None else absolute(rom),
            "threads": threads,
        }
        self._native = _native.Explorer(**self._arguments)
        self.goal = goal
        self.states: States = _OwnNames()
        self.start = self._native.start()
        self.fingerprint = self._native.fingerprint()
        self.frame_skip = self._native.frame_skip

    def rollouts(self, jobs: Sequence[Job]) -> list[Rollout]:
        """Plays branches in parallel. The results are in the order of the jobs."""
        rows = [
            (
                job.state,
                None if job.actions is None else list(job.actions),
                job.seed,
                job.steps,
                job.repeat,
                job.keep,
                job.find,
            )
            for job in jobs
        ]
        return [
            Rollout(
                tuple(each.actions),
                each.last_frames,
                each.frames,
                each.score,
                each.reached,
                each.over,
                tuple(Found(tuple(cell), score, frames, steps, state) for cell, score, frames, steps, state in each.found),
                each.state,
                each.hash.hex(),
            )
            for each in self._native.run(rows)
        ]

    def learn(self, cells: Iterable[tuple[Cell, float, int]]) -> None:
        """Learns the score and the frames of the best known state of each of these cells."""
        self._native.learn([(list(cell), score, frames) for cell, score, frames in cells])

    def forget(self) -> None:
        """Forgets all cells."""
        self._native.forget()

    def action_name(self, action: int) -> str:
        """The keys of an action, such as `Up+B`; `.` if it has no keys."""
        return self._native.action_name(action)

    def record(self, solution: Solution, path: str | os.PathLike[str]) -> None:
        """Writes a recording of a solution. `framewire replay` and `Emulator.replay` can play and check it."""
        from framewire.core import load

        # With `clock`, the cartridge's clock follows the frames, as in an episode. The start state sets its time.
        with load(self._native.rom(), clock=datetime(2000, 1, 1, tzinfo=timezone.utc)) as core:
            core.load_state(self._native.start_savestate())
            with core.record("solution", note="found by framewire.search"):
                end = core.frame() + solution.frames
                # `play` refuses presses without any key. If there are no keys, `advance` below runs all frames.
                if any(press[0] != "." for press in solution.presses.split()):
                    core.play(solution.presses, wait=True)
                if core.frame() < end:
                    core.advance(end - core.frame())
            Path(path).write_bytes(core.recordings.file("solution"))

    def __reduce__(self) -> tuple[Callable[[], Explorer], tuple[()]]:
        return partial(Explorer, **self._arguments), ()
