"""Searches in rounds: random episodes, and beam search."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from framewire._arguments import check_counts
from framewire.search._branches import Job, Rollout, Runner
from framewire.search._solution import Progress, Solution, rank, replay


class _Counter:
    """Counts the branches and frames that a search has played."""

    def __init__(self, runner: Runner, progress: Callable[[Progress], None] | None) -> None:
        self.runner = runner
        self.progress = progress
        self.branches = 0
        self.frames = 0

    def rollouts(self, jobs: Sequence[Job]) -> list[Rollout]:
        rollouts = self.runner.rollouts(jobs)
        self.branches += len(rollouts)
        self.frames += sum(each.played(self.runner.frame_skip) for each in rollouts)
        return rollouts

    def report(self, score: float) -> None:
        if self.progress is not None:
            self.progress(Progress(self.branches, self.frames, score, 0))

    def solution(self, actions: Sequence[int]) -> Solution:
        """Plays the actions again from the start, and makes a solution from the result."""
        return replace(replay(self.runner, actions), branches=self.branches, played=self.frames)


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
        repeat: The probability that a step repeats the action of the previous step.
        seed: The seed of the random actions.
        batch: How many episodes are played at a time. The search can end only after a whole batch.
        progress: Called after each batch.
    """
    check_counts(branches=branches, steps=steps, batch=batch)
    rng = random.Random(seed)
    counter = _Counter(runner, progress)
    best: Rollout | None = None
    while counter.branches < branches and not (best and best.reached):
        count = min(batch, branches - counter.branches)
        jobs = [Job(runner.start, None, rng.getrandbits(63), steps, repeat) for _ in range(count)]
        for rollout in counter.rollouts(jobs):
            if best is None or rank(rollout) > rank(best):
                best = rollout
        assert best is not None
        counter.report(best.score)
    assert best is not None
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
    """Beam search: in each round, plays some branches from each kept state, and keeps the best states that they reach.

    Args:
        runner: Plays the branches.
        width: How many states are kept in each round.
        branches: How many branches begin at each of these states.
        steps: The number of random steps in a branch.
        repeat: The probability that a step repeats the action of the previous step.
        rounds: The largest number of rounds.
        seed: The seed of the random actions.
        progress: Called after each round.
    """
    check_counts(width=width, branches=branches, steps=steps, rounds=rounds)
    rng = random.Random(seed)
    counter = _Counter(runner, progress)
    kept: list[tuple[bytes, tuple[int, ...]]] = [(runner.start, ())]
    # The best branch: its rank (goal reached, score, -frames), and all actions from the start to its end.
    best: tuple[tuple[bool, float, int], tuple[int, ...]] | None = None
    for _ in range(rounds):
        origins = [each for each in kept for _ in range(branches)]
        jobs = [Job(state, None, rng.getrandbits(63), steps, repeat, keep=True) for state, _ in origins]
        ends: list[tuple[tuple[bool, float, int], bytes | None, tuple[int, ...], str]] = []
        for (_, before), rollout in zip(origins, counter.rollouts(jobs), strict=True):
            actions = before + rollout.actions
            if best is None or rank(rollout) > best[0]:
                best = (rank(rollout), actions)
            ends.append((rank(rollout), rollout.state, actions, rollout.hash))
        assert best is not None
        counter.report(best[0][1])
        if best[0][0]:
            break
        # Keep only one of several equal states, so that there is room for different ones.
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
