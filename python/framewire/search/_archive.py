"""The archive of a search: the best known state of each cell, and the actions that reach it."""

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
        state: The state, or its name in `Runner.states`; None after a better state has replaced it in the cell.
        parent: The number of the entry at which its branch began; None for the start.
        actions: The actions from the parent to this state.
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
    """The best known state of each cell, and the actions that reach it.

    Attributes:
        entries: All entries. Entries that are no longer the best of their cell are kept, because they can be parents.
        best: The number of the best entry of each cell.
    """

    def __init__(self, start: bytes) -> None:
        self.entries: list[Entry] = [Entry((), -math.inf, 0, start)]
        self.best: dict[Cell, int] = {}
        self._unused: list[tuple[Cell, bytes]] = []

    def __len__(self) -> int:
        return len(self.best)

    def add(self, found: Found, parent: int, actions: tuple[int, ...]) -> bool:
        """Adds a state if it is better than the best known state of its cell. Returns whether it was added."""
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
        """The states that `add` has rejected or replaced since the last call."""
        # Two branches can find the same state. Then the second one is rejected, but the state is still in use.
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
        """The numbers of the entries on the way from the start to an entry, without the start."""
        way = []
        while (parent := self.entries[number].parent) is not None:
            way.append(number)
            number = parent
        return way[::-1]

    def rebuild(self, runner: Runner, numbers: Iterable[int]) -> int:
        """Restores states that were lost, for example with the node that stored them. Returns how many were lost.

        Replays the branches that lead to them. `numbers` are the entries whose states are checked.

        Raises:
            InvalidData: A branch now has a different score or number of frames.
        """
        by_name = {state: number for number in numbers if number > 0 and (state := self.entries[number].state) is not None}
        lost = {name: by_name[name] for name in runner.states.lost(list(by_name))}
        ways = [self._way(number) for number in lost.values()]
        states: dict[int | None, bytes] = {0: runner.start}
        for depth in range(max(map(len, ways), default=0)):
            # The entries that are `depth + 1` branches away from the start, without duplicates.
            level = list(dict.fromkeys(way[depth] for way in ways if depth < len(way)))
            entries = [self.entries[number] for number in level]
            jobs = [Job(states[entry.parent], entry.actions, keep=True) for entry in entries]
            for number, entry, rollout in zip(level, entries, runner.rollouts(jobs), strict=True):
                if rollout.state is None or (rollout.score, rollout.frames) != (entry.score, entry.frames):
                    raise InvalidData(
                        f"the state of the cell {entry.cell} was lost, and the way to it has the score {rollout.score} "
                        f"after {rollout.frames} frames; it was {entry.score} after {entry.frames} when the state was "
                        "found. Builds of Framewire can have different results, so use the same wheel on every node"
                    )
                states[number] = rollout.state
        runner.states.restore({name: states[number] for name, number in lost.items()})
        return len(lost)

    def choose(self, rng: random.Random, count: int, greed: float) -> list[int]:
        """Chooses `count` entries at which branches will begin, and returns their numbers. `rng` makes the random choices.

        Entries that were chosen less often are more probable. With the probability `greed`, a choice is made only among
        the best tenth of the cells.
        """
        if not self.best:
            return [0] * count
        numbers = sorted(self.best.values())
        by_score = sorted(numbers, key=lambda at: (-self.entries[at].score, self.entries[at].frames))
        top = by_score[: max(1, len(numbers) // 10)]
        greedy = sum(rng.random() < greed for _ in range(count))
        chosen: list[int] = []
        for group, wanted in ((top, greedy), (numbers, count - greedy)):
            weights = [1 / math.sqrt(self.entries[at].chosen + 1) for at in group]
            chosen += rng.choices(group, weights, k=wanted)
        for at in chosen:
            self.entries[at].chosen += 1
        return chosen

    def forget_choice(self, numbers: Iterable[int]) -> None:
        """Undoes the last call of `choose`, which returned these numbers."""
        # While there are no cells, `choose` does not count.
        for at in numbers if self.best else ():
            self.entries[at].chosen -= 1
