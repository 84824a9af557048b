"""The best known state of each cell, and how to reach it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from framewire.errors import InvalidData
from framewire.search._branches import Cell, Found, Job, Runner


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
        """The entries from the start (which is left out) to an entry."""
        way = []
        while (parent := self.entries[number].parent) is not None:
            way.append(number)
            number = parent
        return way[::-1]

    def rebuild(self, runner: Runner, numbers: Iterable[int]) -> int:
        """Restores entries whose states the runner has lost, by playing their branches again. Returns how many were lost.

        Raises:
            InvalidData: A branch has another score or another number of frames than before.
        """
        by_name = {state: number for number in numbers if number > 0 and (state := self.entries[number].state) is not None}
        lost = {name: by_name[name] for name in runner.states.lost(list(by_name))}
        ways = [self._way(number) for number in lost.values()]
        states: dict[int | None, bytes] = {0: runner.start}
        for depth in range(max(map(len, ways), default=0)):
            # The branches that are `depth` branches away from the start, without duplicates.
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
