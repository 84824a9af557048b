"""Fleets and searches on a Ray cluster of two nodes, which are processes on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from gymnasium.vector import AutoresetMode
from ray.cluster_utils import Cluster
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import framewire
import framewire.envs
from framewire import search
from framewire.errors import InvalidData, InvalidRequest, RomError, StatesLost
from framewire.ray import Fleet, FleetError, FleetExplorer, _actors, _connection, _metrics
from framewire.ray import fleet as fleet_module
from framewire.ray._nodes import Place
from framewire.search import Explorer, GoExplore, Job
from tests import test_envs
from tests.clusters import STORE, Filler, interrupt_next_message, small_cluster
from tests.games import demo_scenario

# Ray's own code causes warnings, including some about sockets that it leaves open for its processes.
pytestmark = [pytest.mark.filterwarnings("ignore")]

ENVS = 4


@ray.remote
class Other:
    """An actor that does not belong to Framewire."""

    def answer(self) -> int:
        return 1


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with small_cluster() as cluster:
        yield cluster


@pytest.fixture
def second(cluster: Cluster) -> Any:
    """A second node, which a test may kill. The next test then gets a new one."""
    nodes = [node for node in cluster.worker_nodes if node.any_processes_alive()]
    return nodes[0] if nodes else cluster.add_node(num_cpus=1, object_store_memory=STORE)


def actions(step: int, count: int = ENVS) -> np.ndarray[Any, Any]:
    return (np.arange(count) * 3 + step // 4) % 4


def play(vector: Any, steps: int, seed: int = 5) -> list[Any]:
    """Plays steps. Returns the results of each step, and the hashes of the states at the end."""
    return [*test_envs.play(vector, steps, seed), vector.state_hashes()]


def assert_same(left: list[Any], right: list[Any]) -> None:
    assert len(left) == len(right)
    for step, (one, other) in enumerate(zip(left, right, strict=True)):
        for a, b in zip(one, other, strict=True):
            assert np.array_equal(a, b), f"step {step}"


def test_a_fleet_has_the_same_results_as_one_process(second: Any) -> None:
    vector = framewire.envs.make_vec(scenario="pixels", num_envs=ENVS)
    with Fleet(None, "pixels", num_envs=ENVS) as fleet:
        expected = play(vector, 60)
        found = play(fleet, 60)
        assert_same(found, expected)
        assert len(fleet.stats()) == 2
        assert sum(stats.steps for stats in fleet.stats()) == 61 * ENVS


def test_episodes_end_as_in_one_process(second: Any, short: Path) -> None:
    none = np.zeros((3, 10), dtype=np.int8)
    for mode in AutoresetMode:
        vector = framewire.envs.make_vec(short, num_envs=3, autoreset_mode=mode)
        with Fleet(short, num_envs=3, autoreset_mode=mode) as fleet:
            vector.reset(seed=1)
            fleet.reset(seed=1)
            # The last environment begins later, so that the ends differ.
            for _ in range(4):
                vector.step(none)
                fleet.step(none)
            mask = np.array([False, False, True])
            expected = vector.reset(options={"reset_mask": mask})
            assert np.array_equal(fleet.reset(options={"reset_mask": mask})[0], expected[0])
            for _ in range(6):
                *expected_arrays, expected_info = vector.step(none)
                *arrays, info = fleet.step(none)
                assert_same([arrays], [expected_arrays])
            assert arrays[3].tolist() == [True, True, False]
            assert sorted(info) == sorted(expected_info)
            assert info["game_frame"].tolist() == expected_info["game_frame"].tolist()
            if mode is AutoresetMode.SAME_STEP:
                assert info["_final_obs"].tolist() == [True, True, False]
                assert info["final_obs"][2] is None
                assert np.array_equal(info["final_obs"][1], expected_info["final_obs"][1])
                assert info["final_info"]["game_frame"][0] == expected_info["final_info"]["game_frame"][0]
            if mode is AutoresetMode.DISABLED:
                before = fleet.state_hashes()
                with pytest.raises(InvalidRequest, match="environment 0 has ended; reset it first"):
                    fleet.step(none)
                assert fleet.state_hashes() == before
                fleet.reset(options={"reset_mask": ~mask})
                # The last observations of the episodes that have ended stay.
                assert_same([arrays], [expected_arrays])
                fleet.step(none)
            with pytest.raises(InvalidRequest, match="seed is -1"):
                fleet.reset(seed=[-1, 0, 0])
            assert np.array_equal(fleet.reset(seed=2)[0], vector.reset(seed=2)[0])


def test_environments_without_a_seed_begin_as_in_one_process(second: Any, tmp_path: Path) -> None:
    game = demo_scenario(
        tmp_path,
        "noops",
        """
actions = "buttons"
max_noops = 20
[scenario.noops.observe]
memory = ["frame"]
""",
    )
    some = {"reset_mask": np.array([True, False, True, False])}
    for first in ({"seed": None}, {"seed": [5, None, None, 6]}, {"seed": 1, "options": some}):
        vector = framewire.envs.make_vec(game, num_envs=ENVS)
        with Fleet(game, num_envs=ENVS) as fleet:
            for arguments in (first, {}, {}):
                assert np.array_equal(fleet.reset(**arguments)[0], vector.reset(**arguments)[0]), first
        vector.close()


def test_no_step_is_lost_or_repeated_when_nodes_are_lost(cluster: Cluster, second: Any) -> None:
    # With FLEET_STEPS=10000, the run is as long as that of `make bench-fleet`.
    steps = int(os.environ.get("FLEET_STEPS", "100"))
    expected = play(framewire.envs.make_vec(scenario="memory", num_envs=ENVS), steps)
    with Fleet(None, "memory", num_envs=ENVS, checkpoint_every=25) as fleet:
        undisturbed = play(fleet, steps)
        assert_same(undisturbed, expected)

        found: list[Any] = [fleet.reset(seed=5)[0].copy()]
        # The same array is sent in every step, so the fleet must keep copies of the actions.
        reused = np.empty(ENVS, dtype=np.int64)
        for step in range(steps):
            # Lose workers in the middle of a step: one early (with 100 steps, before states are saved for the first time),
            # and two later. The last one is lost with its node.
            reused[:] = actions(step)
            fleet.send(reused)
            if step == steps // 10:
                kill_process(fleet._groups[0])
            if step == steps * 55 // 100:
                kill_process(fleet._groups[1])
            if step == steps * 70 // 100:
                kill_node(cluster, second, fleet._groups)
            found.append(received(fleet))
        found.append(fleet.state_hashes())
        assert_same(found, undisturbed)
        stats = fleet.stats()
        assert sum(each.restarts for each in stats) == 3
        assert sum(each.mismatches for each in stats) == 0
        assert sum(each.steps for each in stats) == 2 * (steps + 1) * ENVS


def test_environments_move_to_nodes_that_are_added(cluster: Cluster) -> None:
    for node in list(cluster.worker_nodes):
        cluster.remove_node(node)
    expected = play(framewire.envs.make_vec(scenario="memory", num_envs=ENVS), 40)
    with Fleet(None, "memory", num_envs=ENVS) as fleet:
        found: list[Any] = [fleet.reset(seed=5)[0].copy()]
        for step in range(40):
            if step == 20:
                added = cluster.add_node(num_cpus=1, object_store_memory=STORE)
                assert fleet.rescale() == 2
                head: Any = cluster.head_node
                assert {group.place.node.id for group in fleet._groups} == {head.node_id, added.node_id}
            if step == 30:
                assert fleet.rescale(workers=1) == 1
            observation, reward, terminated, truncated, info = fleet.step(actions(step))
            found.append((observation.copy(), reward.copy(), terminated.copy(), truncated.copy(), info["score"].copy()))
        found.append(fleet.state_hashes())
        assert_same(found, expected)


def test_environments_survive_a_rescale_whose_workers_do_not_start(second: Any) -> None:
    expected = play(framewire.envs.make_vec(scenario="memory", num_envs=ENVS), 20)
    with Fleet(None, "memory", num_envs=ENVS) as fleet:
        found: list[Any] = [fleet.reset(seed=5)[0].copy()]
        for step in range(20):
            if step == 11:
                timeout, fleet._pool._start_timeout = fleet._pool._start_timeout, 0.0
                with pytest.raises(FleetError, match="did not start within"):
                    fleet.rescale()
                with pytest.raises(InvalidRequest, match="call rescale again"):
                    fleet.step(actions(step))
                with pytest.raises(InvalidRequest, match="call rescale again"):
                    fleet.send(actions(step, 2), [0, 1])
                fleet._pool._start_timeout = timeout
                assert fleet.rescale() == 2
            observation, reward, terminated, truncated, info = fleet.step(actions(step))
            found.append((observation.copy(), reward.copy(), terminated.copy(), truncated.copy(), info["score"].copy()))
        found.append(fleet.state_hashes())
        assert_same(found, expected)


def test_workers_are_received_one_by_one(second: Any) -> None:
    expected = play(framewire.envs.make_vec(scenario="memory", num_envs=ENVS), 20)
    with Fleet(None, "memory", num_envs=ENVS) as fleet:
        fleet.send_reset(seed=5)
        steps = {group.rows.start: -1 for group in fleet._groups}
        before: dict[int, tuple[Any, Any]] = {}
        assert len(steps) == 2
        while min(steps.values()) < 20:
            found, *_, info = fleet.recv()
            numbers = info["env_id"]
            first = int(numbers[0])
            steps[first] += 1
            observations = expected[0] if steps[first] == 0 else expected[steps[first]][0]
            assert np.array_equal(found, observations[numbers])
            # Observations do not change during the next step.
            assert np.array_equal(*before.get(first, (0, 0)))
            before[first] = (found, found.copy())
            if steps[first] < 20:
                fleet.send(actions(steps[first])[numbers], numbers)
        assert fleet.state_hashes() == expected[-1]

        with pytest.raises(InvalidRequest, match="no step was begun"):
            fleet.recv()
        with pytest.raises(InvalidRequest, match=r"use info\[.env_id.\] of recv"):
            fleet.send([0], [1])
        fleet.send([0, 0], numbers)
        with pytest.raises(InvalidRequest, match="call recv first"):
            fleet.send([0, 0], numbers)
        with pytest.raises(InvalidRequest, match="call recv until all are received"):
            fleet.step([0, 0, 0, 0])


def test_observations_have_the_same_order_with_and_without_shared_memory(
    second: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = demo_scenario(
        tmp_path,
        "both",
        """
actions = [".", "Left", "Right", "A"]
observe.screen = { size = [84, 84], grey = true }
observe.memory = ["ball_x", "paddle_x"]
""",
    )
    vector = framewire.envs.make_vec(both, num_envs=ENVS)
    expected = [vector.reset(seed=2)[0], *(vector.step(actions(step))[0] for step in range(20))][-1]
    for is_shared in (True, False):
        if not is_shared:
            # Without `memfd_create`, no memory is shared, as if the worker were on another machine.
            monkeypatch.delattr(os, "memfd_create")
        with Fleet(both, num_envs=ENVS) as fleet:
            assert (fleet._setup.memory is not None) == is_shared
            before = fleet.reset(seed=2)[0]
            first = {name: values.copy() for name, values in before.items()}
            fleet.step(actions(0))
            # The arrays of a step do not change during the next one.
            assert all(np.array_equal(before[name], first[name]) for name in before)
            for step in range(1, 20):
                found = fleet.step(actions(step))[0]
            assert sorted(found) == ["memory", "screen"]
            for name, values in found.items():
                assert np.array_equal(values, expected[name]), (is_shared, name)


def test_a_reset_of_some_environments_survives_the_loss_of_nodes(second: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    masks = [np.array([True, False, False, True]), np.array([False, True, False, False])]
    for is_shared in (True, False):
        if not is_shared:
            monkeypatch.delattr(os, "memfd_create")
        vector = framewire.envs.make_vec(scenario="memory", num_envs=ENVS)
        vector.reset(seed=1)
        with Fleet(None, "memory", num_envs=ENVS) as fleet:
            fleet.reset(seed=1)
            for step in range(90):
                expected = vector.step(actions(step))
                fleet.send(actions(step))
                assert np.array_equal(received(fleet)[0], expected[0])
            assert expected[-1]["lives"].all()
            # The new workers begin with the reset. The last results of the other environments are in their saved states.
            fleet.checkpoint()
            for group in fleet._groups:
                kill_process(group)
            expected_rows, expected_info = vector.reset(options={"reset_mask": masks[0]})
            rows, info = fleet.reset(options={"reset_mask": masks[0]})
            assert np.array_equal(rows, expected_rows), is_shared
            assert info["lives"].tolist() == expected_info["lives"].tolist()
            # The next workers play the reset again.
            for group in fleet._groups:
                kill_process(group)
            assert_same([fleet.step(actions(0))[:4]], [vector.step(actions(0))[:4]])
            assert fleet.rescale(workers=1) == 1
            fleet.send_reset(mask=masks[1])
            rows, *_, info = fleet.recv()
            expected_rows, expected_info = vector.reset(options={"reset_mask": masks[1]})
            assert np.array_equal(rows, expected_rows), is_shared
            assert info["lives"].tolist() == expected_info["lives"].tolist()


def test_rewards_are_not_taken_for_observations(second: Any, tmp_path: Path) -> None:
    # Rewards and observations both have eight bytes per environment. The observations are in shared memory, so the first
    # large array of a reply is that of the rewards.
    game = demo_scenario(
        tmp_path,
        "two",
        """
actions = [".", "Left", "Right", "A"]
observe.memory = ["ball_x", "paddle_x"]
reward = "1"
""",
    )
    count = _connection.LARGE // 8
    vector = framewire.envs.make_vec(game, num_envs=count)
    vector.reset(seed=1)
    with Fleet(game, num_envs=count, workers=1) as fleet:
        fleet.reset(seed=1)
        expected, found = vector.step(actions(0, count)), fleet.step(actions(0, count))
        assert_same([found[:4]], [expected[:4]])
        assert found[1].all()
        assert fleet._groups[0].shares


def test_a_fleet_continues_after_late_answers_and_interrupts(second: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = play(framewire.envs.make_vec(scenario="memory", num_envs=ENVS), 12)
    with Fleet(None, "memory", num_envs=ENVS, step_timeout=3) as fleet:
        found: list[Any] = [fleet.reset(seed=5)[0].copy()]
        for step in range(12):
            if step == 4:
                process = fleet._groups[0].process
                os.kill(process, signal.SIGSTOP)
                with pytest.raises(FleetError, match="did not answer within 3 s"):
                    fleet.state_hashes()
                os.kill(process, signal.SIGCONT)
            fleet.send(actions(step))
            if step == 8:
                time.sleep(1)
                interrupt_next_message(monkeypatch)
                with pytest.raises(KeyboardInterrupt):
                    fleet.recv()
            found.append(received(fleet))
        found.append(fleet.state_hashes())
        assert_same(found, expected)
        assert sum(stats.restarts for stats in fleet.stats()) == 1


def test_progress_and_metrics_name_nodes_and_restarts(second: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[tuple[str, float, dict[str, str]]] = []

    class Metric:
        def __init__(self, name: str, _: str, tags: tuple[str, ...]) -> None:
            assert tags == ("node",)
            self.name = name

        def inc(self, value: float, tags: dict[str, str]) -> None:
            reported.append((self.name, value, tags))

        set = inc

    monkeypatch.setattr(_metrics, "Counter", Metric)
    monkeypatch.setattr(_metrics, "Gauge", Metric)
    monkeypatch.setattr(_metrics, "_EVERY", 1e-9)
    # Only the last line is written, even if the new worker takes a long time to start.
    monkeypatch.setattr("framewire.ray._progress._IN_FILE", 1e9)
    out = io.StringIO()
    with Fleet(None, "memory", num_envs=ENVS) as fleet:
        fleet.reset(seed=1)
        for step in fleet.progress(20, out):
            if step == 10:
                kill_process(fleet._groups[0])
            fleet.step(actions(step))
        nodes = {stats.node for stats in fleet.stats()}
        restarted = [stats.node for stats in fleet.stats() if stats.restarts]
    assert re.fullmatch(
        r"20/20 steps \(100%\), [\d,]+ environment steps/s, nodes: 2, restarts: 1, 0:00:00 left\n", out.getvalue()
    )
    steps = [value for name, value, _ in reported if name == "framewire_fleet_steps"]
    assert sum(steps) == 21 * ENVS
    assert {tags["node"] for name, _, tags in reported if name == "framewire_fleet_steps_per_second"} == nodes
    assert ("framewire_fleet_restarts", 1, {"node": restarted[0]}) in reported
    speeds = {tags["node"]: value for name, value, tags in reported if name == "framewire_fleet_steps_per_second"}
    assert set(speeds.values()) == {0.0}, "the speed must be 0 after the fleet has ended"


def test_the_loss_of_a_worker_leaves_the_speed_of_the_others_on_its_node(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_metrics, "_EVERY", 1e-9)
    node = cluster.add_node(num_cpus=2, object_store_memory=STORE)
    try:
        with Fleet(None, "memory", num_envs=2, workers=2, cores_per_worker=1) as fleet:
            assert {group.place.node.id for group in fleet._groups} == {node.node_id}
            fleet.reset(seed=1)
            speeds: list[float] = []
            monkeypatch.setattr(fleet._metrics._speed, "set", lambda value, _: speeds.append(value))
            kill_process(fleet._groups[0])
            for step in range(5):
                fleet.step(actions(step, 2))
            assert sum(stats.restarts for stats in fleet.stats()) == 1
            assert min(speeds) > 0, "the other worker still plays"
        assert speeds[-1] == 0.0
    finally:
        kill_node(cluster, node, [])


def test_a_node_with_different_results_ends_the_run(second: Any) -> None:
    fleet = Fleet(None, "memory", num_envs=ENVS)
    with fleet:
        fleet.reset(seed=1)
        fleet.step([1, 1, 1, 1])
        fleet._groups[0].log[-1].digest = 0
        kill_process(fleet._groups[0])
        with pytest.raises(FleetError, match="steps that were played again have other results"):
            fleet.step([1, 1, 1, 1])
        assert sum(stats.mismatches for stats in fleet.stats()) == 1
    with Fleet(None, "memory", num_envs=ENVS) as fleet:
        fleet.reset(seed=1)
        fleet.checkpoint()
        saved = fleet._groups[1].saved
        assert saved is not None
        fleet._groups[1].saved = saved._replace(hashes=saved.hashes[::-1])
        kill_process(fleet._groups[1])
        with pytest.raises(FleetError, match="states that were restored have other hashes"):
            fleet.step([1, 1, 1, 1])


def test_unsuitable_nodes_are_refused(second: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rom = framewire.envs.demo_game().parent / "framewire-demo.gba"
    moved = tmp_path / "only-here.gba"
    moved.write_bytes(rom.read_bytes())
    with Fleet(None, "memory", num_envs=ENVS, node_rom=str(moved)) as fleet:
        fleet.reset(seed=1)
        moved.unlink()
        kill_process(fleet._groups[0])
        with pytest.raises(RomError, match=r"node .*there is no ROM at .*only-here\.gba; copy it to this path on every"):
            fleet.step([1, 1, 1, 1])

    with monkeypatch.context() as patch:
        patch.setattr(framewire, "__version__", "9.9.9")
        with pytest.raises(FleetError, match=r"has Framewire 0\.1\.0, and this program has 9\.9\.9; install"):
            Fleet(None, "memory", num_envs=ENVS)
    with monkeypatch.context() as patch:
        patch.setattr(fleet_module, "start_hash", lambda *_: "0" * 64)
        with pytest.raises(FleetError, match="starts episodes in another state than this program"):
            Fleet(None, "memory", num_envs=ENVS)
    with pytest.raises(InvalidRequest, match="workers is 3; the cluster has cores for 2: 1 on"):
        Fleet(None, "memory", num_envs=ENVS, workers=3)
    with pytest.raises(InvalidRequest, match="cores_per_worker is 2; the largest node has 1"):
        Fleet(None, "memory", num_envs=ENVS, cores_per_worker=2)
    with pytest.raises(InvalidRequest, match="num_envs is 0; use a whole number of at least 1"):
        Fleet(None, "memory", num_envs=0)
    with pytest.raises(InvalidRequest, match="autoreset_mode is 'Never'; use one of NextStep, SameStep, Disabled"):
        Fleet(None, "memory", num_envs=ENVS, autoreset_mode="Never")
    with pytest.raises(FleetError, match="no node of the cluster has a CPU and the resources"):
        Fleet(None, "memory", num_envs=ENVS, resources={"lamps": 1})
    with (
        Fleet(None, "memory", num_envs=ENVS),
        pytest.raises(FleetError, match=r"did not start within 2 s; .*are in use by other actors"),
    ):
        Fleet(None, "memory", num_envs=ENVS, start_timeout=2)


def test_a_search_finds_the_same_solution_on_a_fleet_and_in_this_process(
    cluster: Cluster, second: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the last line of the progress is written, even if the search takes a long time.
    monkeypatch.setattr("framewire.ray._progress._IN_FILE", 1e9)
    options: dict[str, Any] = {
        "scenario": "memory",
        "score": "-bricks_left",
        "goal": "bricks_left < 54",
        "cell": ["bricks_left", "ball_dy > 0", "ball_x / 640"],
    }
    local = Explorer(**options)
    expected = search.go_explore(local, seed=3, batch=16, steps=12)
    assert expected.reached
    assert expected.branches > 3 * 16
    with FleetExplorer(**options) as explorer:
        running = GoExplore(explorer, seed=3, batch=16, steps=12)
        running.step()
        running.save(tmp_path / "search.zip")
        # Continue after a process was killed, and then after a whole node was killed.
        kill_process(explorer._workers[1])
        running.step()
        assert len(explorer._workers) == 2
        kill_node(cluster, second, explorer._workers)
        found = running.run()
        assert found == expected
        assert len(explorer._workers) == 1

        cluster.add_node(num_cpus=1, object_store_memory=STORE)
        for workers, problem in ((0, "workers is 0"), (999, "workers is 999")):
            with pytest.raises(InvalidRequest, match=problem):
                explorer.rescale(workers)
            assert len(explorer._workers) == 1, "nothing was done"
        assert explorer.rescale() == 2
        explorer.forget()
        resumed = GoExplore.load(tmp_path / "search.zip", explorer)
        assert resumed.run() == expected
        assert len(explorer.verify(expected)) == 2
        before = sum(stats.steps for stats in explorer.stats())
        with explorer.progress(out := io.StringIO()) as show:
            assert search.go_explore(explorer, seed=3, batch=16, steps=12, progress=show) == expected
        assert re.fullmatch(
            rf"{expected.branches} branches, [\d,]+ steps/s, best score -53, cells: \d+, nodes: 3, restarts: 1\n",
            out.getvalue(),
        )
        # A step has four frames, unless it is the last one of a branch.
        played = sum(stats.steps for stats in explorer.stats()) - before - len(expected.actions)
        assert expected.played <= 4 * played < expected.played + 4 * expected.branches
        with pytest.raises(InvalidData, match=r"node .*the solution ends with frames 7, but playing it again gives"):
            explorer.verify(dataclasses.replace(expected, frames=7))
        assert sum(stats.mismatches for stats in explorer.stats()) == 1
    with pytest.raises(InvalidRequest, match="the explorer is closed"):
        explorer.rollouts([])
    with pytest.raises(InvalidRequest, match="its states are gone; save a search before that"):
        running.save(tmp_path / "late.zip")


def test_a_worker_that_stalls_is_waited_for_only_once(cluster: Cluster) -> None:
    with FleetExplorer(None, "memory", workers=1, cell=["frame"], batch_timeout=5) as explorer:
        process = explorer._workers[0].process
        os.kill(process, signal.SIGSTOP)
        begin = time.monotonic()
        with pytest.raises(FleetError, match="batch_timeout"):
            explorer.rollouts([Job(explorer.start, None, 1, 30, find=True)])
        assert time.monotonic() - begin < 9
        os.kill(process, signal.SIGCONT)


def test_a_lost_worker_that_cannot_be_replaced_is_logged(
    second: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_actors, "ATTEMPTS", 2)
    monkeypatch.setattr(_actors, "PAUSE", 0.0)

    def ended(*_: Any) -> None:
        raise _connection.ConnectionLostError("it ended during its start")

    with FleetExplorer(None, "memory", workers=2, cell=["frame"]) as explorer:
        node = explorer._workers[1].place.node
        monkeypatch.setattr(explorer._pool, "started", ended)
        kill_process(explorer._workers[1])
        # Both workers get branches.
        assert len(explorer.rollouts([Job(explorer.start, None, seed, 30) for seed in range(8)])) == 8
        assert len(explorer._workers) == 1
    assert f"the worker on node {node} is lost (it ended during its start)" in caplog.text


def test_a_search_continues_if_other_actors_take_the_cores_of_a_lost_worker(
    second: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with FleetExplorer(None, "memory", workers=2, cell=["frame"]) as explorer:
        lost = explorer._workers[1]
        on_its_node = NodeAffinitySchedulingStrategy(lost.place.node.id, soft=False)
        # Ray starts this actor as soon as the worker has ended.
        other = Other.options(num_cpus=1, scheduling_strategy=on_its_node).remote()  # type: ignore[attr-defined]
        kill_process(lost)
        assert ray.get(other.answer.remote(), timeout=60) == 1
        explorer._pool._start_timeout = 2.0
        assert len(explorer.rollouts([Job(explorer.start, None, seed, 30) for seed in range(8)])) == 8
        assert len(explorer._workers) == 1
        ray.kill(other)
    assert "did not start within 2 s" in caplog.text


def test_a_fleet_continues_if_other_actors_take_the_cores_of_a_lost_worker(
    second: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = framewire.envs.make_vec(scenario="memory", num_envs=ENVS)
    with Fleet(None, "memory", num_envs=ENVS) as fleet:
        vector.reset(seed=1)
        fleet.reset(seed=1)
        lost = fleet._groups[1]
        on_its_node = NodeAffinitySchedulingStrategy(lost.place.node.id, soft=False)
        # Ray starts this actor as soon as the worker has ended.
        other = Other.options(num_cpus=1, scheduling_strategy=on_its_node).remote()  # type: ignore[attr-defined]
        kill_process(lost)
        assert ray.get(other.answer.remote(), timeout=60) == 1
        make = fleet._pool.make

        def limited(place: Place) -> Any:
            # Only the actor that waits for cores must be late. The next one is a guest, for which Ray reserves no
            # cores, but it needs time for its start.
            fleet._pool._start_timeout = 60.0 if place.is_guest else 2.0
            return make(place)

        monkeypatch.setattr(fleet._pool, "make", limited)
        actions = np.ones(ENVS, dtype=np.int64)
        expected = vector.step(actions)[0]
        assert np.array_equal(fleet.step(actions)[0], expected)
        ray.kill(other)
    assert "did not start within 2 s" in caplog.text


def test_the_archive_of_a_search_is_spread_over_the_nodes(cluster: Cluster, second: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"scenario": "memory", "score": "-bricks_left", "cell": ["ball_x / 640", "ball_y / 640"]}
    local = GoExplore(Explorer(**options), seed=4, batch=24, steps=30)
    for _ in range(6):
        local.step()
    with FleetExplorer(**options) as explorer:
        running = GoExplore(explorer, seed=4, batch=24, steps=30)
        for step in range(6):
            if step == 3:
                # When a branch begins at a lost state, the search first replays the actions that lead to that state.
                kill_node(cluster, second, explorer._workers)
            running.step()
        assert outline(running) == outline(local)

        # The two nodes store exactly the states of the best entries. The program has only their names.
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
        assert explorer.rescale() == 2
        numbers = list(running.archive.best.values())
        running.archive.rebuild(explorer, numbers)
        sizes = explorer.states.sizes()
        assert len(sizes) == 2
        assert min(size.states for size in sizes.values()) >= len(numbers) // 4
        assert sum(size.states for size in sizes.values()) == len(numbers)
        assert sum(size.size for size in sizes.values()) > len(numbers) * 5000
        assert all(len(running.archive.entries[number].state or b"") < 100 for number in numbers)

        # States are lost while the search is saved, and while it is loaded and continued. With `max_frames=0`, `run`
        # begins no step and only plays the best solution again.
        kill_shard(explorer, 0)
        running.save(tmp_path / "fleet.zip")
        again = GoExplore.load(tmp_path / "fleet.zip", Explorer(**options))
        again.run(max_frames=0)
        again.step()
        explorer.forget()
        kill_shard(explorer, 0)
        resumed = GoExplore.load(tmp_path / "fleet.zip", explorer)
        resumed.run(max_frames=0)
        kill_shard(explorer, 1)
        resumed.step()
        local.step()
        assert outline(again) == outline(resumed) == outline(local)

        # Only the search has the actions that lead to a state, so the explorer alone cannot reach that state again.
        kill_shard(explorer, 0)
        kill_shard(explorer, 1)
        name = next(entry.state for entry in reversed(resumed.archive.entries) if entry.state)
        with pytest.raises(StatesLost, match=r"the states of the search on node .* are lost"):
            explorer.rollouts([Job(name, (0,))])
        # If the actions lead to a state other than the lost one, that is an error.
        best = max(resumed.archive.best.values())
        resumed.archive.entries[best].actions = resumed.archive.entries[best].actions[:-1]
        with pytest.raises(
            InvalidData, match=r"was lost, and the way to it has the score -?\d+.0 after \d+ frames; it was"
        ):
            resumed.archive.rebuild(explorer, [best])


def outline(running: GoExplore) -> tuple[Any, ...]:
    """The results of a search, without its states, which may be names."""
    entries = [dataclasses.replace(entry, state=None) for entry in running.archive.entries]
    return entries, running.archive.best, running.branches, running.played, running.solution()


@contextlib.contextmanager
def without_disk(cluster: Cluster, nodes: int) -> Iterator[Cluster]:
    """Replaces the cluster of the other tests with one that cannot move objects to a disk."""
    node: dict[str, Any] = {"num_cpus": 2, "object_store_memory": 80 << 20}
    disk = {"local_fs_capacity_threshold": 0.001, "local_fs_monitor_interval_ms": 50}
    ray.shutdown()
    try:
        with small_cluster(**node, _system_config=disk) as small:
            for _ in range(1, nodes):
                small.add_node(**node)
            yield small
    finally:
        ray.init(address=cluster.address, log_to_driver=False)


def test_a_full_object_store_ends_the_run(cluster: Cluster) -> None:
    with (
        without_disk(cluster, nodes=1),
        Fleet(None, "memory", num_envs=ENVS, checkpoint_every=2, cores_per_worker=1, workers=1) as fleet,
    ):
        fleet.reset(seed=1)
        filler = Filler()
        with FleetExplorer(None, "memory", cores_per_worker=1, workers=1, cell=["frame"]) as explorer:
            jobs = [Job(explorer.start, None, seed, 30, find=True) for seed in range(64)]
            assert filler.fill().startswith("the object store of this node is full, and so is the disk")
            with pytest.raises(FleetError, match=r"the object store of node .* is full, and so is the disk"):
                explorer.rollouts(jobs)
        # Steps do not need the object store, and neither do saved states.
        for step in range(6):
            fleet.step(actions(step))
        fleet.checkpoint()


def test_nothing_starts_on_a_full_object_store(cluster: Cluster, tmp_path: Path) -> None:
    # The ROM is as large as those of ordinary games, because Ray sends small objects without the object store.
    rom = tmp_path / "large.gba"
    rom.write_bytes((framewire.envs.demo_game().parent / "framewire-demo.gba").read_bytes().ljust(16 << 20, b"\0"))

    def refused(where: str) -> None:
        message = rf"the object store of {where} is full, and so is the disk .*start Ray with a greater --object-store"
        times: list[float] = []
        # On a busy machine, Ray can take a long time to start the workers. Then measure again.
        while not times or times[-1] >= 60:
            assert len(times) < 5, f"the errors must not wait for start_timeout: {times}"
            begin = time.monotonic()
            with pytest.raises(FleetError, match=message):
                Fleet(None, "memory", num_envs=ENVS, rom=rom)
            with pytest.raises(FleetError, match=message):
                FleetExplorer(None, "memory", rom=rom, cell=["frame"])
            times.append(time.monotonic() - begin)

    with without_disk(cluster, nodes=2) as small:
        (other,) = small.worker_nodes
        on_other = NodeAffinitySchedulingStrategy(other.node_id, soft=False)
        far: Any = ray.remote(Filler).options(num_cpus=0, scheduling_strategy=on_other).remote()
        assert "is full" in ray.get(far.fill.remote())
        refused(rf"node .*\({other.node_id[:8]}\)")
        kill_actor(far)
        # Ray frees the arrays some time after the end of their actor.
        probe: Any = ray.remote(Filler).options(num_cpus=0, scheduling_strategy=on_other).remote()
        end = time.monotonic() + 60
        while not ray.get(probe.has_room.remote()) and time.monotonic() < end:
            time.sleep(0.1)
        kill_actor(probe)
        # The actors of the refused fleet have ended and use no cores, so this fleet can start.
        with Fleet(None, "memory", num_envs=ENVS, rom=rom) as fleet:
            fleet.reset(seed=1)
            assert len(fleet.stats()) == 2
        here = Filler()
        here.fill()
        refused("this node")


def test_the_examples_of_the_page_run(second: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).resolve().parents[2] / "docs" / "fleets.md"
    for example in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(example, str(page), "exec"), {})


def test_a_search_without_cells_is_refused(second: Any) -> None:
    with (
        FleetExplorer(scenario="memory") as explorer,
        pytest.raises(InvalidRequest, match=r"no cells; give it some, such as FleetExplorer\("),
    ):
        search.go_explore(explorer)


def test_wrong_arguments_change_nothing(second: Any) -> None:
    with Fleet(None, "memory", num_envs=ENVS) as fleet:
        with pytest.raises(InvalidRequest, match="call reset first"):
            fleet.step([0, 0, 0, 0])
        with pytest.raises(InvalidRequest, match="call reset first"):
            fleet.send([0, 0], [0, 1])
        with pytest.raises(InvalidRequest, match="seed has 1 values for 4 environments"):
            fleet.reset(seed=[1])
        fleet.reset(options={"reset_mask": [True, True, False, True]})
        with pytest.raises(InvalidRequest, match="environment 2 has not begun an episode; call reset first"):
            fleet.step([0, 0, 0, 0])
        fleet.reset(seed=1)
        before = fleet.state_hashes()
        with pytest.raises(InvalidRequest, match="there is no action 4; use a number from 0 to 3"):
            fleet.step([0, 0, 0, 4])
        with pytest.raises(InvalidRequest, match=r"actions has the shape \(2,\); use \(4,\)"):
            fleet.step([0, 0])
        for kind in (np.float64, np.bool_):
            with pytest.raises(InvalidRequest, match=f"actions has the type {np.dtype(kind)}"):
                fleet.step(np.ones(ENVS, dtype=kind))
        ragged: Any = [0, 0, 0, [0]]
        with pytest.raises(InvalidRequest, match="actions has the type object"):
            fleet.step(ragged)
        with pytest.raises(InvalidRequest, match="env_id does not name all environments of one worker"):
            fleet.send([0, 0], ragged[2:])
        with pytest.raises(InvalidRequest, match="reset_mask has lists of different lengths; use 4 times True or False"):
            fleet.reset(options={"reset_mask": [True, True, True, [False]]})
        assert fleet.state_hashes() == before
    with pytest.raises(InvalidRequest, match="the fleet is closed"):
        fleet.reset()


def received(fleet: Fleet) -> tuple[Any, ...]:
    """Receives one step of all environments, worker by worker."""
    batches = sorted((fleet.recv() for _ in fleet._groups), key=lambda batch: int(batch[-1]["env_id"][0]))
    parts = [(*batch[:-1], batch[-1]["score"]) for batch in batches]
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))


def kill_process(group: Any) -> None:
    # If the node is gone, the worker may have ended already.
    with contextlib.suppress(ProcessLookupError):
        os.kill(group.process, signal.SIGKILL)


def kill_shard(explorer: FleetExplorer, number: int) -> None:
    kill_actor(explorer.states._shards.actors[number])


def kill_actor(actor: Any) -> None:
    # `ray.kill` returns while the actor can still answer calls of other workers.
    os.kill(ray.get(actor.__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)


def kill_node(cluster: Cluster, node: Any, workers: Sequence[Any]) -> None:
    """Kills a node's Ray processes, and those of `workers` that run there, as if its machine had lost power."""
    cluster.remove_node(node, allow_graceful=False)
    for group in workers:
        if group.place.node.id == node.node_id:
            kill_process(group)
