"""Search on the demo game."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

import framewire
from framewire import search
from framewire.errors import InvalidData, InvalidRequest
from framewire.search import Explorer, GoExplore, Job, Rollout, Solution
from tests.servers import DEMO, SYMBOLS

GOAL = "bricks_left < 56"
"""A goal that a short search reaches."""


def explorer(threads: int = 0, goal: str | None = GOAL) -> Explorer:
    return Explorer(
        scenario="memory",
        score="-bricks_left",
        goal=goal,
        cell=["bricks_left", "ball_dy > 0", "ball_x / 640"],
        threads=threads,
    )


def small(runner: Explorer, seed: int = 3) -> Solution:
    """Runs a short search."""
    return search.go_explore(runner, seed=seed, batch=16, steps=12)


def test_an_explorer_starts_no_more_threads_than_there_are_processors() -> None:
    def threads() -> set[Path]:
        found = set()
        for name in Path("/proc/self/task").glob("*/comm"):
            with suppress(OSError):  # the thread has ended
                if name.read_text().startswith("search-"):
                    found.add(name)
        return found

    before = threads()
    many = explorer(threads=1024)
    assert 1 <= len(threads() - before) <= len(os.sched_getaffinity(0))
    del many


def test_an_interrupted_batch_does_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed, interrupted = (GoExplore(explorer(goal=None), seed=1, batch=8) for _ in range(2))
    rollouts = Explorer.rollouts

    def interrupt(runner: Explorer, jobs: Sequence[Job]) -> list[Rollout]:
        rollouts(runner, jobs)
        raise KeyboardInterrupt

    for _ in range(3):
        undisturbed.step()
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Explorer, "rollouts", interrupt)
            interrupted.step()
        interrupted.step()
    assert interrupted.archive.entries == undisturbed.archive.entries
    assert (interrupted.branches, interrupted.played) == (undisturbed.branches, undisturbed.played)


def test_a_search_finds_the_same_solution_again_with_any_number_of_threads() -> None:
    runner = explorer()
    solution = small(runner)
    assert solution.reached
    assert solution.score == -55
    solution.verify(explorer(threads=1))
    assert small(runner) == small(explorer(threads=1)) == small(explorer(threads=7)) == solution
    assert small(runner, seed=4) != solution


def test_a_solution_becomes_a_recording(tmp_path: Path) -> None:
    runner = explorer()
    solution = search.beam(runner, width=4, branches=3, steps=10, seed=1)
    runner.record(solution, tmp_path / "solution.fwr")
    with framewire.load(DEMO, symbols=SYMBOLS) as core:
        core.recordings.add("solution", (tmp_path / "solution.fwr").read_bytes())
        report = core.replay("solution")
        assert (report.equal, report.played) == (True, solution.frames)
        assert core.read("bricks_left") == -solution.score


def test_restarts_and_beam_search_reach_the_goal() -> None:
    runner = explorer()
    for solution in (
        search.restarts(runner, branches=64, steps=150, seed=1),
        search.beam(runner, width=4, branches=3, steps=10, seed=1),
    ):
        assert solution.reached
        solution.verify(runner)
        assert len(solution.actions) * 4 - 3 <= solution.frames <= len(solution.actions) * 4


def test_without_a_goal_the_best_score_is_returned() -> None:
    runner = Explorer(scenario="memory", score="u32[frame]")
    solution = search.restarts(runner, branches=3, steps=5)
    assert not solution.reached
    assert solution.frames == 20
    solution.verify(runner)
    wrong = Solution(solution.actions, solution.presses, 20, 0.0, False, solution.hash)
    with pytest.raises(InvalidData, match=r"score 0.0, but playing it again gives"):
        wrong.verify(runner)


def test_branches_continue_where_others_ended() -> None:
    runner = explorer(goal=None)
    one, two = (3, 1, 1, 2), (2, 2, 0)
    (first,) = runner.rollouts([Job(runner.start, one, keep=True)])
    assert first.state is not None
    (second,) = runner.rollouts([Job(first.state, two)])
    (both,) = runner.rollouts([Job(runner.start, one + two)])
    assert (second.hash, second.frames) == (both.hash, both.frames) == (both.hash, 28)


def test_known_cells_are_found_only_if_they_are_better() -> None:
    runner = explorer(goal=None)
    job = Job(runner.start, (0,) * 30, find=True)
    (first,) = runner.rollouts([job])
    assert first.found
    runner.learn((found.cell, found.score, found.frames) for found in first.found)
    assert not runner.rollouts([job])[0].found
    runner.forget()
    assert runner.rollouts([job])[0].found == first.found


def test_a_saved_search_continues_as_if_it_had_not_been_interrupted(tmp_path: Path) -> None:
    whole = GoExplore(explorer(goal=None), seed=5, batch=8, steps=10)
    for _ in range(4):
        whole.step()
    half = GoExplore(explorer(goal=None), seed=5, batch=8, steps=10)
    half.step()
    half.step()
    half.save(tmp_path / "search.zip")
    rest = GoExplore.load(tmp_path / "search.zip", explorer(goal=None))
    rest.run(max_frames=rest.played)  # begins no step, because the limit has been reached
    rest.step()
    rest.step()
    assert rest.solution() == whole.solution()
    assert rest.archive.best == whole.archive.best
    assert [path.name for path in tmp_path.iterdir()] == ["search.zip"]

    other = Explorer(scenario="pixels", cell="bricks_left")
    assert other.fingerprint == whole._runner.fingerprint, "observations must not change the fingerprint"
    (tmp_path / "search.zip").write_bytes(b"nothing")
    with pytest.raises(InvalidData, match="not a saved search"):
        GoExplore.load(tmp_path / "search.zip", explorer())


def test_a_damaged_search_is_refused(tmp_path: Path) -> None:
    runner = explorer(goal=None)
    saved = GoExplore(runner, seed=5, batch=8, steps=10)
    saved.step()
    file = tmp_path / "search.zip"
    saved.save(file)
    content = file.read_bytes()
    with zipfile.ZipFile(file) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    head = json.loads(parts["search.json"])
    head["entries"][1][1] = "high"
    for text in ("[" * 100_000, "9" * 5000, json.dumps(head)):
        with zipfile.ZipFile(file, "w") as other:
            for name, part in (parts | {"search.json": text}).items():
                other.writestr(name, part)
        with pytest.raises(InvalidData, match="is not a saved search, or is damaged"):
            GoExplore.load(file, runner)
    with zipfile.ZipFile(file, "w") as other:
        other.writestr("search.json", parts["search.json"])
        directory = other.start_dir
    # The version of zip that the part needs, its flag for encryption, and how it is compressed.
    wrong_heads = []
    for offset, value in ((6, 99), (8, 1), (10, zipfile.ZIP_DEFLATED), (10, zipfile.ZIP_BZIP2), (10, 99)):
        head = bytearray(file.read_bytes())
        head[directory + offset] = value
        wrong_heads.append(bytes(head))
    for damaged in (content[:100] + content[200:], *wrong_heads):
        file.write_bytes(damaged)
        with pytest.raises(InvalidData, match="is not a saved search, or is damaged"):
            GoExplore.load(file, runner)
    with pytest.raises(FileNotFoundError):
        GoExplore.load(tmp_path / "none.zip", runner)


def test_a_search_with_a_used_explorer_is_like_one_with_a_new_explorer(tmp_path: Path) -> None:
    def play(runner: Explorer) -> GoExplore:
        search = GoExplore(runner, seed=6, batch=8, steps=10)
        for _ in range(3):
            search.step()
        return search

    runner = explorer(goal=None)
    used = GoExplore(runner, seed=5, batch=8, steps=10)
    used.step()
    used.save(tmp_path / "search.zip")
    used.step()
    rest = GoExplore.load(tmp_path / "search.zip", runner)
    rest.step()
    assert rest.archive.best == used.archive.best
    assert play(runner).archive.best == play(explorer(goal=None)).archive.best


def test_an_explorer_can_be_sent_to_another_process() -> None:
    runner = explorer()
    again = pickle.loads(pickle.dumps(runner))
    job = Job(runner.start, None, 7, 20)
    assert again.rollouts([job]) == runner.rollouts([job])
    assert pickle.loads(pickle.dumps(job)) == job


def test_bad_input_says_what_is_accepted() -> None:
    with pytest.raises(InvalidRequest, match=r"goal: .*did you mean"):
        Explorer(scenario="memory", goal="levle > 1")
    with pytest.raises(InvalidRequest, match=r"score: delta.* compares frames"):
        Explorer(scenario="memory", score="delta(score)")
    with pytest.raises(InvalidRequest, match="has no cells"):
        search.go_explore(Explorer(scenario="memory"))
    runner = explorer()
    with pytest.raises(InvalidRequest, match="no action 9; use a number from 0 to 3"):
        runner.rollouts([Job(runner.start, (9,))])
    with pytest.raises(InvalidData, match="not the state of an environment"):
        runner.rollouts([Job(b"nothing", (1,))])
    with pytest.raises(InvalidData, match="damaged"):
        runner.rollouts([Job(runner.start[:2000], (1,))])
    with pytest.raises(InvalidRequest, match=r"width is 0"):
        search.beam(runner, width=0)
    with pytest.raises(InvalidRequest, match=r"batch is 0"):
        search.restarts(runner, batch=0)
    with pytest.raises(InvalidRequest, match=r"repeat is 2;"):
        runner.rollouts([Job(runner.start, None, 1, 5, 2.0)])


def test_two_searches_on_one_explorer_do_not_disturb_each_other() -> None:
    def steps(search: GoExplore) -> None:
        for _ in range(3):
            search.step()

    alone = GoExplore(explorer(goal=None), seed=5, batch=8, steps=10)
    steps(alone)
    steps(alone)
    runner = explorer(goal=None)
    first, second = (GoExplore(runner, seed=seed, batch=8, steps=10) for seed in (5, 6))
    steps(first)
    steps(second)
    steps(first)
    assert first.archive.best == alone.archive.best
    assert first.solution() == alone.solution()
