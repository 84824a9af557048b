"""Search: find the key presses that reach a goal, by trying many branches from saved states.

An `Explorer` plays branches of a scenario (docs/game-file.md) on all processors. `restarts`, `beam` and `go_explore` choose
the branches. All of them return a `Solution`: a list of inputs, which `verify` plays again. The same seed finds the same
solution, with any number of threads. docs/search.md is the guide.
"""

from __future__ import annotations

import json
import math
import os
import random
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from framewire._data import demo_game
from framewire.errors import FramewireError, InvalidData, InvalidRequest, StatesLost

__all__ = [
    "Archive",
    "Cell",
    "Entry",
    "Explorer",
    "Found",
    "GoExplore",
    "Job",
    "Progress",
    "Rollout",
    "Runner",
    "Solution",
    "States",
    "beam",
    "go_explore",
    "restarts",
]

Cell: TypeAlias = tuple[int, ...]
"""The values of the expressions `cell`, rounded down."""

_T = TypeVar("_T")

# How many states are in memory at the same time while a search is saved or loaded, and how often work is tried again whose
# states are lost.
_STATES_AT_ONCE = 256
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Job:
    """A branch to play.

    Attributes:
        state: Where it begins: `Runner.start`, a state of an earlier branch, or its name.
        actions: The actions to play; None for random ones.
        seed: Decides the random actions.
        steps: How many random actions.
        repeat: The probability that a random step repeats the action of the step before.
        keep: Whether to return the state at the end.
        find: Whether to return states in new cells, and states that are better than the best known ones of their cells.
    """

    state: bytes = field(repr=False)
    actions: tuple[int, ...] | None = None
    seed: int = 0
    steps: int = 0
    repeat: float = 0.0
    keep: bool = False
    find: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A state in a new cell, or one that is better than the best known state of its cell.

    Attributes:
        cell: Its cell.
        score: Its score.
        frames: Frames since the start of the episode.
        steps: How many of the branch's actions lead to it.
        state: The state, or its name in `Runner.states`.
    """

    cell: Cell
    score: float
    frames: int
    steps: int
    state: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Rollout:
    """What a branch did.

    Attributes:
        actions: The actions that were played; fewer than asked for if the episode ended or the goal was reached.
        last_frames: The frames of the last action, which the end of the episode and the goal can cut short.
        frames: Frames since the start of the episode.
        score: The score at its end.
        reached: Whether it reached the goal.
        over: Whether the episode ended without reaching it.
        found: States worth keeping, in the order of their steps.
        state: The state at its end, if the job asked for it and the episode has not ended.
        hash: The SHA-256 of the console's state at its end, in hexadecimal digits.
    """

    actions: tuple[int, ...]
    last_frames: int
    frames: int
    score: float
    reached: bool
    over: bool
    found: tuple[Found, ...]
    state: bytes | None = field(repr=False)
    hash: str

    def played(self, frame_skip: int) -> int:
        """The frames that it played."""
        return (len(self.actions) - 1) * frame_skip + self.last_frames if self.actions else 0


class States(Protocol):
    """Where a runner keeps the states that its branches found. Each has a name, at which jobs can begin."""

    def add(self, states: Sequence[tuple[Cell, bytes]]) -> list[bytes]:
        """Keeps the states of some cells, and returns their names."""

    def get(self, names: Sequence[bytes]) -> list[bytes]:
        """The states with these names.

        Raises:
            StatesLost: Some are lost.
        """

    def lost(self, names: Sequence[bytes]) -> list[bytes]:
        """Those of the names whose states are lost."""

    def restore(self, states: Mapping[bytes, bytes]) -> None:
        """Takes lost states again, by their names."""

    def remove(self, names: Sequence[bytes]) -> None:
        """Removes states at which no branch begins any more."""


class _OwnNames:
    """The states of one machine: the name of a state is the state itself, so there is nothing else to keep."""

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


class Runner(Protocol):
    """An object that plays branches: an `Explorer`, or a `framewire.ray` explorer on several machines."""

    @property
    def states(self) -> States:
        """The states that its branches found."""

    @property
    def start(self) -> bytes:
        """The state in which episodes begin."""

    @property
    def fingerprint(self) -> str:
        """Equal for runners whose states and actions can be exchanged."""

    @property
    def frame_skip(self) -> int:
        """The frames of an action."""

    def rollouts(self, jobs: Sequence[Job]) -> list[Rollout]:
        """Plays branches; the results are in the order of the jobs.

        Raises:
            StatesLost: Some begin at states that are lost.
        """

    def learn(self, cells: Iterable[tuple[Cell, float, int]]) -> None:
        """Takes the best known states of some cells, each as cell, score and frames.

        `rollouts` then returns only states that are better.
        """

    def forget(self) -> None:
        """Forgets all cells."""

    def action_name(self, action: int) -> str:
        """The keys of an action, such as `Up+B`; `.` without keys."""


class Explorer:
    """Plays branches of a scenario on the processors of this machine.

    Branches have no random frames at the start and no sticky actions, even if the scenario does. Expressions have the
    names and the syntax of the game file; `delta` and other functions that compare frames are not accepted.

    Args:
        game: The game file; the demo game's if left out.
        scenario: The name of a scenario in it. It can be left out if there is only one.
        score: How good a state is; the sum of the scenario's rewards if left out.
        goal: A branch that reaches a frame in which this is true ends there, with success.
        cell: One or several expressions. States with the same values, rounded down, belong to the same cell.
        rom: The ROM, in place of the path in the game file.
        threads: How many threads; 0 is one for each processor.
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

        game = demo_game() if game is None else game
        self.cells = [cell] if isinstance(cell, str) else list(cell)
        self._arguments: dict[str, Any] = {
            "game": os.fspath(game),
            "scenario": scenario,
            "score": score,
            "goal": goal,
            "cell": self.cells,
            "rom": None if rom is None else os.fspath(rom),
            "threads": threads,
        }
        self._native = _native.Explorer(**self._arguments)
        self.goal = goal
        self.states: States = _OwnNames()
        self.start = self._native.start()
        self.fingerprint = self._native.fingerprint()
        self.frame_skip = self._native.frame_skip

    def rollouts(self, jobs: Sequence[Job]) -> list[Rollout]:
        """Plays branches at the same time. The results are in the order of the jobs."""
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
        """Takes the best known states of some cells, each as cell, score and frames."""
        self._native.learn([(list(cell), score, frames) for cell, score, frames in cells])

    def forget(self) -> None:
        """Forgets all cells."""
        self._native.forget()

    def action_name(self, action: int) -> str:
        """The keys of an action, such as `Up+B`; `.` without keys."""
        return self._native.action_name(action)

    def record(self, solution: Solution, path: str | os.PathLike[str]) -> None:
        """Writes a recording of a solution, which `framewire replay` and `Emulator.replay` play and compare."""
        from framewire.core import load

        with load(self._native.rom()) as core:
            core.load_state(self._native.machine())
            with core.record("solution", note="found by framewire.search"):
                end = core.frame() + solution.frames
                if any(press[0] != "." for press in solution.presses.split()):
                    core.play(solution.presses, wait=True)
                if core.frame() < end:
                    core.advance(end - core.frame())
            Path(path).write_bytes(core.recordings.file("solution"))

    def __reduce__(self) -> tuple[Callable[..., Explorer], tuple[dict[str, Any]]]:
        return _explorer, (self._arguments,)


def _explorer(arguments: dict[str, Any]) -> Explorer:
    return Explorer(**arguments)


@dataclass(frozen=True, slots=True)
class Solution:
    """The best inputs that a search found.

    Attributes:
        actions: The actions, from the start of the episode.
        presses: The same as keys and frames: `"Left:8 .:4 A:4"`, which `Emulator.play` accepts.
        frames: How many frames they take.
        score: The score at their end.
        reached: Whether they reach the goal.
        hash: The SHA-256 of the console's state at their end.
        branches: How many branches the search played.
        played: How many frames the search played.
    """

    actions: tuple[int, ...]
    presses: str
    frames: int
    score: float
    reached: bool
    hash: str
    branches: int = 0
    played: int = 0

    def verify(self, runner: Runner) -> None:
        """Plays the inputs again from the start of the episode, and compares score, frames and state.

        Raises:
            InvalidData: Something differs.
        """
        again = replay(runner, self.actions)
        for name in ("frames", "score", "reached", "hash"):
            own, other = getattr(self, name), getattr(again, name)
            if own != other:
                raise InvalidData(
                    f"the solution ends with {name} {own}, but playing it again gives {other}; use the ROM and the game "
                    "file of the search"
                )


def replay(runner: Runner, actions: Sequence[int]) -> Solution:
    """Plays actions from the start of the episode."""
    (rollout,) = runner.rollouts([Job(runner.start, tuple(actions))])
    if len(rollout.actions) < len(actions):
        raise InvalidData(
            f"the episode ends after {len(rollout.actions)} of {len(actions)} actions; use the ROM and the game file "
            "of the search"
        )
    return Solution(
        rollout.actions,
        _presses(runner, rollout.actions, rollout.last_frames),
        rollout.frames,
        rollout.score,
        rollout.reached,
        rollout.hash,
    )


def _presses(runner: Runner, actions: Sequence[int], last_frames: int) -> str:
    names: dict[int, str] = {}
    runs: list[tuple[str, int]] = []
    for index, action in enumerate(actions):
        if action not in names:
            names[action] = runner.action_name(action)
        frames = last_frames if index == len(actions) - 1 else runner.frame_skip
        if runs and runs[-1][0] == names[action]:
            runs[-1] = (names[action], runs[-1][1] + frames)
        else:
            runs.append((names[action], frames))
    return " ".join(f"{keys}:{frames}" for keys, frames in runs)


class _Counter:
    """How much a search has played, and the end of its budget."""

    def __init__(self, runner: Runner, most: int | None, progress: Callable[[Progress], None] | None) -> None:
        self.runner = runner
        self.most = most
        self.progress = progress
        self.branches = 0
        self.frames = 0

    def rollouts(self, jobs: Sequence[Job]) -> list[Rollout]:
        rollouts = self.runner.rollouts(jobs)
        self.branches += len(rollouts)
        self.frames += sum(each.played(self.runner.frame_skip) for each in rollouts)
        return rollouts

    def is_spent(self) -> bool:
        return self.most is not None and self.frames >= self.most

    def report(self, score: float, cells: int = 0) -> None:
        if self.progress is not None:
            self.progress(Progress(self.branches, self.frames, score, cells))

    def solution(self, actions: Sequence[int]) -> Solution:
        """Plays the inputs again from the start, so that a solution is always one that was verified."""
        return replace(replay(self.runner, actions), branches=self.branches, played=self.frames)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a search.

    Attributes:
        branches: How many branches were played.
        frames: How many frames were played.
        score: The best score so far.
        cells: How many cells are known.
    """

    branches: int
    frames: int
    score: float
    cells: int


def _rank(rollout: Rollout) -> tuple[bool, float, int]:
    """Greater is better: the goal, then the score, then fewer frames."""
    return rollout.reached, rollout.score, -rollout.frames


def restarts(
    runner: Runner,
    *,
    branches: int = 1000,
    steps: int = 500,
    repeat: float = 0.8,
    seed: int = 0,
    batch: int = 64,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Plays random episodes from the start, and returns the best of them.

    Args:
        runner: Plays the branches.
        branches: The largest number of episodes.
        steps: The largest number of steps in an episode.
        repeat: The probability that a step repeats the action of the step before.
        seed: Decides the random actions.
        batch: How many episodes are played before the best is chosen.
        progress: Called after each batch.
    """
    chance = random.Random(seed)
    counter = _Counter(runner, None, progress)
    best: Rollout | None = None
    while counter.branches < branches and not (best and best.reached):
        count = min(batch, branches - counter.branches)
        jobs = [Job(runner.start, None, chance.getrandbits(63), steps, repeat) for _ in range(count)]
        for rollout in counter.rollouts(jobs):
            if best is None or _rank(rollout) > _rank(best):
                best = rollout
        assert best is not None
        counter.report(best.score)
    if best is None:
        raise InvalidRequest(f"branches is {branches}; use a whole number of at least 1", parameter="branches")
    return counter.solution(best.actions)


def beam(
    runner: Runner,
    *,
    width: int = 32,
    branches: int = 4,
    steps: int = 16,
    repeat: float = 0.8,
    rounds: int = 500,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Beam search: keeps the best states, plays some branches from each, keeps the best of these, and so on.

    Args:
        runner: Plays the branches.
        width: How many states are kept in each round.
        branches: How many branches begin at each of them.
        steps: The random steps of a branch.
        repeat: The probability that a step repeats the action of the step before.
        rounds: The largest number of rounds.
        seed: Decides the random actions.
        progress: Called after each round.
    """
    for name, value in (("width", width), ("branches", branches), ("steps", steps), ("rounds", rounds)):
        if value < 1:
            raise InvalidRequest(f"{name} is {value}; use a whole number of at least 1", parameter=name)
    chance = random.Random(seed)
    counter = _Counter(runner, None, progress)
    kept: list[tuple[bytes, tuple[int, ...]]] = [(runner.start, ())]
    best: tuple[tuple[bool, float, int], tuple[int, ...]] | None = None
    for _ in range(rounds):
        origins = [each for each in kept for _ in range(branches)]
        jobs = [Job(state, None, chance.getrandbits(63), steps, repeat, keep=True) for state, _ in origins]
        ends: list[tuple[tuple[bool, float, int], bytes | None, tuple[int, ...], str]] = []
        for (_, before), rollout in zip(origins, counter.rollouts(jobs), strict=True):
            actions = before + rollout.actions
            if best is None or _rank(rollout) > best[0]:
                best = (_rank(rollout), actions)
            ends.append((_rank(rollout), rollout.state, actions, rollout.hash))
        assert best is not None
        counter.report(best[0][1])
        if best[0][0]:
            break
        # Equal states would only take places from different ones.
        ends.sort(key=lambda end: end[0], reverse=True)
        seen: set[str] = set()
        kept = []
        for _, state, actions, digest in ends:
            if state is not None and digest not in seen:
                seen.add(digest)
                kept.append((state, actions))
            if len(kept) == width:
                break
        if not kept:
            break
    assert best is not None
    return counter.solution(best[1])


@dataclass(slots=True)
class Entry:
    """A state of an `Archive`.

    Attributes:
        cell: Its cell.
        score: Its score.
        frames: Frames since the start of the episode.
        state: The state or its name; None after a better one took its place in the cell.
        parent: The number of the entry in which its branch began; None for the start.
        actions: The actions from there.
        chosen: How many branches began at this state.
    """

    cell: Cell
    score: float
    frames: int
    state: bytes | None = field(repr=False)
    parent: int | None = None
    actions: tuple[int, ...] = ()
    chosen: int = 0


class Archive:
    """The best known state of each cell, and how to reach it.

    Attributes:
        entries: All entries, including those that are no longer the best of their cell, because others began at them.
        best: The number of the best entry of each cell.
    """

    def __init__(self, start: bytes) -> None:
        self.entries: list[Entry] = [Entry((), -math.inf, 0, start)]
        self.best: dict[Cell, int] = {}
        self._unused: list[tuple[Cell, bytes]] = []

    def __len__(self) -> int:
        return len(self.best)

    def add(self, found: Found, parent: int, actions: tuple[int, ...]) -> bool:
        """Takes a state if it is better than the one of its cell; returns whether it did."""
        old = self.best.get(found.cell)
        if old is not None:
            known = self.entries[old]
            if (found.score, -found.frames) <= (known.score, -known.frames):
                self._unused.append((found.cell, found.state))
                return False
            assert known.state is not None
            self._unused.append((found.cell, known.state))
            known.state = None
        self.best[found.cell] = len(self.entries)
        self.entries.append(Entry(found.cell, found.score, found.frames, found.state, parent, actions))
        return True

    def take_unused(self) -> list[bytes]:
        """The states, since the last call, that were not taken or are no longer the best of their cells."""
        # Two branches can find the same state, of which the second one is not taken.
        unused = {state: None for cell, state in self._unused if state != self.entries[self.best[cell]].state}
        self._unused = []
        return list(unused)

    def known(self) -> list[tuple[Cell, float, int]]:
        """Cell, score and frames of each best entry, for `Runner.learn`."""
        return [(cell, self.entries[at].score, self.entries[at].frames) for cell, at in self.best.items()]

    def path(self, number: int) -> tuple[int, ...]:
        """The actions from the start of the episode to an entry."""
        return tuple(action for each in self._way(number) for action in self.entries[each].actions)

    def _way(self, number: int) -> list[int]:
        """The entries from the start, without it, to an entry."""
        way = []
        while (parent := self.entries[number].parent) is not None:
            way.append(number)
            number = parent
        return way[::-1]

    def rebuild(self, runner: Runner, numbers: Iterable[int]) -> int:
        """Plays the branches again that lead to entries whose states the runner has lost, and returns how many these are.

        Raises:
            InvalidData: A branch has another score or another number of frames than before.
        """
        by_name = {state: number for number in numbers if number > 0 and (state := self.entries[number].state) is not None}
        lost = {name: by_name[name] for name in runner.states.lost(list(by_name))}
        ways = [self._way(number) for number in lost.values()]
        states: dict[int | None, bytes] = {0: runner.start}
        for depth in range(max(map(len, ways), default=0)):
            # Branches with the same number of branches before them, each once.
            level = list(dict.fromkeys(way[depth] for way in ways if depth < len(way)))
            entries = [self.entries[number] for number in level]
            jobs = [Job(states[entry.parent], entry.actions, keep=True) for entry in entries]
            for number, entry, rollout in zip(level, entries, runner.rollouts(jobs), strict=True):
                if rollout.state is None or (rollout.score, rollout.frames) != (entry.score, entry.frames):
                    raise InvalidData(
                        f"the state of the cell {entry.cell} was lost, and the way to it has the score {rollout.score} "
                        f"after {rollout.frames} frames; it was {entry.score} after {entry.frames}. Use the same wheel on "
                        "every node"
                    )
                states[number] = rollout.state
        runner.states.restore({name: states[number] for name, number in lost.items()})
        return len(lost)

    def choose(self, chance: random.Random, count: int, greed: float) -> list[int]:
        """The numbers of entries to begin branches at.

        Entries that were chosen less often are more probable. `greed` is the fraction of choices that are made among the
        tenth of the cells with the best scores.
        """
        if not self.best:
            return [0] * count
        numbers = sorted(self.best.values())
        by_score = sorted(numbers, key=lambda at: (-self.entries[at].score, self.entries[at].frames))
        top = by_score[: max(1, len(numbers) // 10)]
        greedy = sum(chance.random() < greed for _ in range(count))
        chosen: list[int] = []
        for group, wanted in ((top, greedy), (numbers, count - greedy)):
            weights = [1 / math.sqrt(self.entries[at].chosen + 1) for at in group]
            chosen += chance.choices(group, weights, k=wanted)
        for at in chosen:
            self.entries[at].chosen += 1
        return chosen


class GoExplore:
    """Go-Explore: returns to the best known state of some cell, and explores from there.

    `step` plays one batch of branches; `run` plays until the goal is reached. `save` and `load` continue a search later,
    with the same result as without the interruption. States that are lost with a machine are played again.

    Args:
        runner: Plays the branches. It needs cells.
        seed: Decides all random choices.
        batch: How many branches are played before the archive takes their states.
        steps: The random steps of a branch.
        repeat: The probability that a step repeats the action of the step before.
        greed: The fraction of the branches that begin in the tenth of the cells with the best scores.
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
        for name, value in (("batch", batch), ("steps", steps)):
            if value < 1:
                raise InvalidRequest(f"{name} is {value}; use a whole number of at least 1", parameter=name)
        for name, part in (("repeat", repeat), ("greed", greed)):
            if not 0 <= part <= 1:
                raise InvalidRequest(f"{name} is {part}; use a number from 0.0 to 1.0", parameter=name)
        self._runner = runner
        self._options: dict[str, Any] = {"batch": batch, "steps": steps, "repeat": repeat, "greed": greed}
        self._chance = random.Random(seed)
        self.archive = Archive(runner.start)
        self.branches = 0
        self.played = 0
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
        """The entries at which the next branches begin, and the branches. Play them, and give both to `merge`."""
        options = self._options
        numbers = self.archive.choose(self._chance, options["batch"], options["greed"])
        jobs = []
        for number in numbers:
            state = self.archive.entries[number].state
            assert state is not None
            seed = self._chance.getrandbits(63)
            jobs.append(Job(state, None, seed, options["steps"], options["repeat"], find=True))
        return numbers, jobs

    def merge(self, numbers: Sequence[int], rollouts: Sequence[Rollout]) -> list[tuple[Cell, float, int]]:
        """Takes what the branches found, in the order of the jobs. Returns the cells that are new or better."""
        news: list[tuple[Cell, float, int]] = []
        for number, rollout in zip(numbers, rollouts, strict=True):
            self.branches += 1
            self.played += rollout.played(self._runner.frame_skip)
            news.extend(
                (found.cell, found.score, found.frames)
                for found in rollout.found
                if self.archive.add(found, number, rollout.actions[: found.steps])
            )
            if _rank(rollout) > self._best:
                self._best = _rank(rollout)
                self._best_path = self.archive.path(number) + rollout.actions
        self._runner.states.remove(self.archive.take_unused())
        return news

    def step(self) -> None:
        """Plays one batch of branches."""
        numbers, jobs = self.jobs()
        rollouts = self._with_states(numbers, lambda: self._runner.rollouts(jobs))
        self._runner.learn(self.merge(numbers, rollouts))

    def _with_states(self, numbers: Sequence[int], work: Callable[[], _T]) -> _T:
        """Does work that needs the states of entries. If the runner has lost some, they are played again."""
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
        """The numbers and the states of the best entries, some at a time, as all of them may not fit in memory."""
        entries = self.archive.entries
        for numbers in _parts(sorted(self.archive.best.values())):
            names = [state for number in numbers if (state := entries[number].state) is not None]
            yield from zip(numbers, self._with_states(numbers, partial(self._runner.states.get, names)), strict=True)

    def run(self, *, max_frames: int = 50_000_000, progress: Callable[[Progress], None] | None = None) -> Solution:
        """Plays until the goal is reached, or `max_frames` frames were played. Returns the best inputs.

        Args:
            max_frames: The largest number of frames of all branches together.
            progress: Called after each batch.
        """
        self._runner.learn(self.archive.known())
        while not self.reached and self.played < max_frames:
            self.step()
            if progress is not None:
                progress(Progress(self.branches, self.played, self.score, len(self.archive)))
        return self.solution()

    def solution(self) -> Solution:
        """The best inputs so far, played again from the start."""
        return replace(replay(self._runner, self._best_path), branches=self.branches, played=self.played)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the search to a file. An earlier file is replaced when the new one is complete."""
        version, internal, gauss = self._chance.getstate()
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
                search._chance.setstate((version, tuple(internal), gauss))
                search.branches, search.played = head["branches"], head["played"]
                reached, score, frames = head["best"]
                search._best = (reached, -math.inf if score is None else score, frames)
                search._best_path = tuple(head["best_path"])
                search.archive.entries = [
                    Entry(
                        tuple(cell),
                        -math.inf if score is None else score,
                        frames,
                        None,
                        parent,
                        tuple(actions),
                        chosen,
                    )
                    for cell, score, frames, parent, actions, chosen in head["entries"]
                ]
                entries = search.archive.entries
                entries[0].state = runner.start
                saved = (name.removeprefix("states/") for name in file.namelist() if name.startswith("states/"))
                for numbers in _parts(sorted(number for number in map(int, saved) if number > 0)):
                    states = [(entries[number].cell, file.read(f"states/{number}")) for number in numbers]
                    for number, name in zip(numbers, runner.states.add(states), strict=True):
                        entries[number].state = name
                        search.archive.best[entries[number].cell] = number
        except (zipfile.BadZipFile, KeyError, IndexError, ValueError, TypeError) as error:
            if isinstance(error, FramewireError):
                raise
            raise InvalidData(f"{os.fspath(path)} is not a saved search, or is damaged: {error}") from None
        return search


def _parts(numbers: list[int]) -> Iterator[list[int]]:
    """Some numbers at a time."""
    for begin in range(0, len(numbers), _STATES_AT_ONCE):
        yield numbers[begin : begin + _STATES_AT_ONCE]


def _finite(score: float) -> float | None:
    """JSON has no infinity."""
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
    """Searches with `GoExplore` until the goal is reached, or `max_frames` frames were played.

    Args:
        runner: Plays the branches. It needs cells.
        seed: Decides all random choices.
        batch: How many branches are played before the archive takes their states.
        steps: The random steps of a branch.
        repeat: The probability that a step repeats the action of the step before.
        greed: The fraction of the branches that begin in the tenth of the cells with the best scores.
        max_frames: The largest number of frames of all branches together.
        progress: Called after each batch.
    """
    runner.forget()
    search = GoExplore(runner, seed=seed, batch=batch, steps=steps, repeat=repeat, greed=greed)
    return search.run(max_frames=max_frames, progress=progress)
