"""Go-Explore, which returns to known states and explores from there."""

from __future__ import annotations

import errno
import json
import math
import os
import random
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from framewire._arguments import check_counts
from framewire.errors import FramewireError, InvalidData, InvalidRequest, StatesLost
from framewire.search._archive import Archive, Entry
from framewire.search._branches import Cell, Job, Rollout, Runner
from framewire.search._solution import Progress, Solution, rank, replay

_T = TypeVar("_T")

# For each runner, the search whose cells it knows.
_taught: weakref.WeakKeyDictionary[Runner, weakref.ref[GoExplore]] = weakref.WeakKeyDictionary()

# How many states are in memory at the same time while a search is saved or loaded.
_STATES_AT_ONCE = 256

# How many times a piece of work is tried, if states that it needs get lost.
_ATTEMPTS = 5

# The exceptions that a damaged file causes. RuntimeError: a part seems to be encrypted, or to need a later version of zip.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    LookupError,
    OSError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
)


class GoExplore:
    """Go-Explore: returns to the best known state of a cell, and explores from there.

    Two states are in the same cell if the values of the runner's argument `cell`, rounded down, are equal.

    `step` plays one batch of branches; `run` plays until the goal is reached. With `save` and `load`, a search can be
    continued later, with the same result as without the interruption. If states are lost, for example because a machine
    failed, the search replays the branches that lead to them.

    Attributes:
        archive: The best known state of each cell.
        branches: How many branches were played.
        played: How many frames were played.

    Args:
        runner: Plays the branches. It must have been created with the argument `cell`.
        seed: The seed of all random choices.
        batch: How many branches are played before their states are added to the archive.
        steps: The number of random steps in a branch.
        repeat: The probability that a step repeats the action of the previous step.
        greed: The probability that the start of a branch is chosen only among the best tenth of the cells.
    """

    def __init__(
        self,
        runner: Runner,
        *,
        seed: int = 0,
        batch: int = 64,
        steps: int = 50,
        repeat: float = 0.8,
        greed: float = 0.5,
    ) -> None:
        if not getattr(runner, "cells", True):
            raise InvalidRequest(
                f"the explorer has no cells; give it some, such as {type(runner).__name__}(..., cell=['level', 'x / 16'])",
                parameter="cell",
            )
        check_counts(batch=batch, steps=steps)
        for name, part in (("repeat", repeat), ("greed", greed)):
            if not 0 <= part <= 1:
                raise InvalidRequest(f"{name} is {part}; use a number from 0.0 to 1.0", parameter=name)
        self._runner = runner
        self._options: dict[str, Any] = {"batch": batch, "steps": steps, "repeat": repeat, "greed": greed}
        self._rng = random.Random(seed)
        self.archive = Archive(runner.start)
        self.branches = 0
        self.played = 0
        # The rank of the best branch: whether it reached the goal, its score, and -frames.
        self._best: tuple[bool, float, int] = (False, -math.inf, 0)
        self._best_path: tuple[int, ...] = ()

    @property
    def reached(self) -> bool:
        """Whether a branch has reached the goal."""
        return self._best[0]

    @property
    def score(self) -> float:
        """The best score."""
        return self._best[1]

    def jobs(self) -> tuple[list[int], list[Job]]:
        """Chooses the next branches. Returns the numbers of the entries where they begin, and their jobs.

        Play the jobs, and pass the numbers and the results to `merge`.
        """
        self._teach()
        options = self._options
        numbers = self.archive.choose(self._rng, options["batch"], options["greed"])
        jobs = []
        for number in numbers:
            state = self.archive.entries[number].state
            assert state is not None
            seed = self._rng.getrandbits(63)
            jobs.append(Job(state, None, seed, options["steps"], options["repeat"], find=True))
        return numbers, jobs

    def merge(self, numbers: Sequence[int], rollouts: Sequence[Rollout]) -> list[tuple[Cell, float, int]]:
        """Adds the results of branches, in the order of the jobs. Returns the cells with new or better states."""
        news: list[tuple[Cell, float, int]] = []
        for number, rollout in zip(numbers, rollouts, strict=True):
            self.branches += 1
            self.played += rollout.played(self._runner.frame_skip)
            news.extend(
                (found.cell, found.score, found.frames)
                for found in rollout.found
                if self.archive.add(found, number, rollout.actions[: found.steps])
            )
            if rank(rollout) > self._best:
                self._best = rank(rollout)
                self._best_path = self.archive.path(number) + rollout.actions
        self._runner.states.remove(self.archive.take_unused())
        return news

    def step(self) -> None:
        """Plays one batch of branches. If this is interrupted, or fails, the next call plays the same batch."""
        before = self._rng.getstate()
        numbers, jobs = self.jobs()
        try:
            rollouts = self._with_states(numbers, lambda: self._runner.rollouts(jobs))
        except BaseException:
            self.archive.forget_choice(numbers)
            self._rng.setstate(before)
            raise
        self._runner.learn(self.merge(numbers, rollouts))

    def _teach(self) -> None:
        """Makes sure that the runner knows the cells of this search, and not those of another one.

        In the cells that it knows, a runner returns only better states. So if it knew the cells of another search, this
        search would miss states.
        """
        try:
            known = _taught.get(self._runner)
            if known is not None and known() is self:
                return
            _taught.pop(self._runner, None)
        except TypeError:
            pass  # A runner that cannot be a key is taught again each time.
        self._runner.forget()
        self._runner.learn(self.archive.known())
        with suppress(TypeError):
            _taught[self._runner] = weakref.ref(self)

    def _with_states(self, numbers: Sequence[int], work: Callable[[], _T]) -> _T:
        """Calls `work`, which needs the states of these entries. If some are lost, restores them and calls it again."""
        for attempt in range(_ATTEMPTS):
            try:
                if attempt > 0:
                    self.archive.rebuild(self._runner, numbers)
                return work()
            except StatesLost:
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _states(self) -> Iterator[tuple[int, bytes]]:
        """Yields the numbers and the states of the best entries. Loads only some at a time, to save memory."""
        entries = self.archive.entries
        for numbers in _parts(sorted(self.archive.best.values())):
            names = [state for number in numbers if (state := entries[number].state) is not None]
            yield from zip(numbers, self._with_states(numbers, partial(self._runner.states.get, names)), strict=True)

    def run(self, *, max_frames: int = 50_000_000, progress: Callable[[Progress], None] | None = None) -> Solution:
        """Plays until the goal is reached or `max_frames` frames have been played. Returns the best solution.

        Args:
            max_frames: No batch begins after all branches together have played this many frames. The last batch can
                exceed this number.
            progress: Called after each batch.
        """
        while not self.reached and self.played < max_frames:
            self.step()
            if progress is not None:
                progress(Progress(self.branches, self.played, self.score, len(self.archive)))
        return self.solution()

    def solution(self) -> Solution:
        """The best solution so far. Its actions are played again from the start of the episode."""
        return replace(replay(self._runner, self._best_path), branches=self.branches, played=self.played)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the search to a file. An existing file is replaced when the new one is complete."""
        version, internal, gauss = self._rng.getstate()
        head = {
            "format": 1,
            "fingerprint": self._runner.fingerprint,
            "options": self._options,
            "random": [version, list(internal), gauss],
            "branches": self.branches,
            "played": self.played,
            "best": [self._best[0], _finite(self._best[1]), self._best[2]],
            "best_path": self._best_path,
            "entries": [
                [each.cell, _finite(each.score), each.frames, each.parent, each.actions, each.chosen]
                for each in self.archive.entries
            ],
        }
        target = Path(path)
        unfinished = target.with_name(f"{target.name}.{os.getpid()}.part")
        try:
            with zipfile.ZipFile(unfinished, "w") as file:  # states are compressed already
                file.writestr("search.json", json.dumps(head))
                for number, state in self._states():
                    file.writestr(f"states/{number}", state)
            os.replace(unfinished, target)
        finally:
            unfinished.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str], runner: Runner) -> GoExplore:
        """Continues a search that `save` wrote.

        Raises:
            InvalidData: The file is damaged, or its search used another scenario or ROM.
        """
        try:
            with zipfile.ZipFile(path) as file:
                head = json.loads(file.read("search.json"))
                if head["format"] != 1:
                    raise InvalidData(f"{os.fspath(path)} has the format {head['format']}; this version reads format 1")
                if head["fingerprint"] != runner.fingerprint:
                    raise InvalidData(
                        f"the search in {os.fspath(path)} used another ROM, start, frame skip or list of actions; use "
                        "the same game file and scenario"
                    )
                search = cls(runner, **head["options"])
                version, internal, gauss = head["random"]
                search._rng.setstate((version, tuple(internal), gauss))
                search.branches, search.played = head["branches"], head["played"]
                reached, score, frames = head["best"]
                search._best = (reached, -math.inf if score is None else score, frames)
                search._best_path = tuple(head["best_path"])
                search.archive.entries = [
                    Entry(tuple(cell), -math.inf if score is None else score, frames, None, parent, tuple(actions), chosen)
                    for cell, score, frames, parent, actions, chosen in head["entries"]
                ]
                entries = search.archive.entries
                entries[0].state = runner.start
                # This comes before the states are added, because a fleet that forgets its cells removes all its states.
                search._teach()
                saved = (name.removeprefix("states/") for name in file.namelist() if name.startswith("states/"))
                for numbers in _parts(sorted(number for number in map(int, saved) if number > 0)):
                    states = [(entries[number].cell, file.read(f"states/{number}")) for number in numbers]
                    for number, name in zip(numbers, runner.states.add(states), strict=True):
                        entries[number].state = name
                        search.archive.best[entries[number].cell] = number
            runner.learn(search.archive.known())
        except _DAMAGE as error:
            # Two kinds of OSError mean damage. If bytes are missing, zipfile seeks to a place before the start of the
            # file, which fails with EINVAL. And bz2 raises an OSError without a number.
            of_system = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
            if isinstance(error, FramewireError) or of_system:
                raise
            raise InvalidData(f"{os.fspath(path)} is not a saved search, or is damaged: {error}") from None
        return search


def _parts(numbers: list[int]) -> Iterator[list[int]]:
    """Splits the numbers into parts of at most `_STATES_AT_ONCE`."""
    for begin in range(0, len(numbers), _STATES_AT_ONCE):
        yield numbers[begin : begin + _STATES_AT_ONCE]


def _finite(score: float) -> float | None:
    """The score for JSON, which has no infinity."""
    return None if math.isinf(score) else score


def go_explore(
    runner: Runner,
    *,
    seed: int = 0,
    batch: int = 64,
    steps: int = 50,
    repeat: float = 0.8,
    greed: float = 0.5,
    max_frames: int = 50_000_000,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Searches with `GoExplore` until the goal is reached or `max_frames` frames have been played.

    Args:
        runner: Plays the branches. It must have been created with the argument `cell`.
        seed: The seed of all random choices.
        batch: How many branches are played before their states are added to the archive.
        steps: The number of random steps in a branch.
        repeat: The probability that a step repeats the action of the previous step.
        greed: The probability that the start of a branch is chosen only among the best tenth of the cells.
        max_frames: No batch begins after all branches together have played this many frames. The last batch can exceed
            this number.
        progress: Called after each batch.
    """
    search = GoExplore(runner, seed=seed, batch=batch, steps=steps, repeat=repeat, greed=greed)
    return search.run(max_frames=max_frames, progress=progress)
