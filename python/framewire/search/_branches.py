"""Branches of a scenario: the job, the result, and the interface of objects that play branches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

Cell: TypeAlias = tuple[int, ...]
"""The values of an explorer's `cell` expressions, rounded down."""


@dataclass(frozen=True, slots=True)
class Job:
    """A branch to play.

    Attributes:
        state: Where the branch begins: `Runner.start`, a state of an earlier branch, or the name of such a state.
        actions: The actions to play; None for random ones.
        seed: The seed of the random actions.
        steps: The number of random actions.
        repeat: The probability that a random step repeats the action of the previous step.
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
    """The result of a branch.

    Attributes:
        actions: The actions that were played; fewer than requested if the episode ended or the goal was reached.
        last_frames: The frames of the last action; fewer than usual if the episode ended or the goal was reached.
        frames: Frames since the start of the episode.
        score: The score at its end.
        reached: Whether it reached the goal.
        over: Whether the episode ended without reaching the goal.
        found: States in new cells, or better states in known cells, in the order of their steps.
        state: The state at its end, if the job asked for it and `over` is false.
        hash: The SHA-256 of the console's state at its end, without the sound unit, in hexadecimal digits.
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
        """The number of frames that the branch played."""
        return (len(self.actions) - 1) * frame_skip + self.last_frames if self.actions else 0


class States(Protocol):
    """Stores the states that the branches of a runner found. A `Job` can have a state's name instead of the state."""

    def add(self, states: Sequence[tuple[Cell, bytes]]) -> list[bytes]:
        """Stores states, each with its cell, and returns their names."""

    def get(self, names: Sequence[bytes]) -> list[bytes]:
        """The states with these names.

        Raises:
            StatesLost: Some of the states are lost.
        """

    def lost(self, names: Sequence[bytes]) -> list[bytes]:
        """Returns the names whose states are lost."""

    def restore(self, states: Mapping[bytes, bytes]) -> None:
        """Puts lost states back under their names."""

    def remove(self, names: Sequence[bytes]) -> None:
        """Removes states at which no branch will begin any more."""


class Runner(Protocol):
    """An object that plays branches: an `Explorer`, or a `framewire.ray.FleetExplorer` on several machines."""

    @property
    def states(self) -> States:
        """The states that its branches found."""

    @property
    def start(self) -> bytes:
        """The state in which episodes begin."""

    @property
    def fingerprint(self) -> str:
        """Two runners with the same fingerprint can use each other's states and actions."""

    @property
    def frame_skip(self) -> int:
        """The number of frames that an action lasts."""

    def rollouts(self, jobs: Sequence[Job]) -> list[Rollout]:
        """Plays branches; the results are in the order of the jobs.

        Raises:
            StatesLost: Some branches begin at states that are lost.
        """

    def learn(self, cells: Iterable[tuple[Cell, float, int]]) -> None:
        """Learns the score and the frames of the best known state of each of these cells.

        After that, `rollouts` returns a state of one of these cells only if it is better. New cells are not affected.
        """

    def forget(self) -> None:
        """Forgets all cells. Can also remove the states that branches found."""

    def action_name(self, action: int) -> str:
        """The keys of an action, such as `Up+B`; `.` if it has no keys."""
