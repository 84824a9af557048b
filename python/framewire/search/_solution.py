"""The progress of a search, and its solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from framewire.errors import InvalidData
from framewire.search._branches import Job, Rollout, Runner


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a search.

    Attributes:
        branches: How many branches were played.
        frames: How many frames were played.
        score: The best score so far.
        cells: How many cells are known; always 0 in `restarts` and `beam`, which have no cells.
    """

    branches: int
    frames: int
    score: float
    cells: int


@dataclass(frozen=True, slots=True)
class Solution:
    """The best actions that a search found.

    Attributes:
        actions: The actions, from the start of the episode.
        presses: The actions as text with keys and frames, such as `"Left:8 .:4 A:4"`, which `Emulator.play` accepts.
        frames: How many frames the actions take.
        score: The score after the last action.
        reached: Whether the actions reach the goal.
        hash: The SHA-256 of the console's state after the last action, without the sound unit, in hexadecimal digits.
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
        """Plays the actions again from the start of the episode, and compares frames, score, goal and state.

        Raises:
            InvalidData: One of them differs.
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


def rank(rollout: Rollout) -> tuple[bool, float, int]:
    """A rank to compare branches; greater is better. The goal counts first, then the score, then fewer frames."""
    return rollout.reached, rollout.score, -rollout.frames
