"""Fleets and searches on a Ray cluster of two nodes, which are processes on this machine."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import io
import json
import os
import re
import signal
import socket
import threading
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# Do not send usage statistics to Ray's developers, and turn off some of Ray's warnings.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_DISABLE_IMPORT_WARNING"] = "1"
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"

import numpy as np
import pytest
import ray
import yaml  # type: ignore[import-untyped]
from gymnasium.vector import AutoresetMode
from ray.cluster_utils import Cluster
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import framewire
import framewire.envs
from framewire import search
from framewire.envs import GameEnv
from framewire.errors import GameFileError, InvalidData, InvalidRequest, RomError, StatesLost
from framewire.ray import Fleet, FleetError, FleetExplorer, _actors, _connection, _metrics, rllib, sizing
from framewire.ray import fleet as fleet_module
from framewire.ray._files import GameFiles
from framewire.ray._nodes import Node, Place
from framewire.ray._worker import Setup
from framewire.ray.explorer import _Branches
from framewire.search import Explorer, GoExplore, Job
from tests import test_envs
from tests.clusters import STORE, small_cluster
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
            # The new workers begin with the reset, and do not have the last results of the other environments.
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


def test_a_worker_accepts_its_program_if_the_secret_comes_in_parts() -> None:
    secret = b"s" * _connection.SECRET_BYTES
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        with socket.create_connection(listener.getsockname(), 30) as owner:
            owner.sendall(secret[:10])
            # The worker has probably begun to read when the rest comes.
            rest = threading.Timer(0.3, owner.sendall, [secret[10:]])
            rest.start()
            _connection.accept(listener, secret).close()
            rest.join()


def test_a_stranger_that_sends_nothing_does_not_delay_a_worker() -> None:
    secret = b"s" * _connection.SECRET_BYTES
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        listener.settimeout(30)
        with socket.create_connection(address, 30) as stranger:
            owner = _connection.connect(address, secret, 30)
            begin = time.monotonic()
            _connection.accept(listener, secret).close()
            assert time.monotonic() - begin < 15
            owner.close()
            assert stranger.recv(1) == b"", "the worker must end the other connection"
        listener.settimeout(0.2)
        with socket.create_connection(address, 30), pytest.raises(TimeoutError):
            _connection.accept(listener, secret)
        assert listener.gettimeout() == 0.2


def test_a_worker_accepts_only_its_program() -> None:
    secret = b"s" * _connection.SECRET_BYTES
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        address = listener.getsockname()
        stranger = _connection.connect(address, b"x" * _connection.SECRET_BYTES, 30)
        owner = _connection.connect(address, secret, 30)
        worker = _connection.accept(listener, secret)
        with pytest.raises(_connection.ConnectionLostError):
            stranger.receive()

        def perform(name: str, arguments: tuple[Any, ...]) -> Any:
            if name == "fail":
                raise RuntimeError("broken")
            return arguments[0] * 2

        thread = threading.Thread(target=_connection.serve, args=(worker, perform))
        thread.start()
        values = np.arange(5000)
        owner.send(("double", (values,)))
        place = np.empty(5000, np.int64)
        received = owner.receive([place.data.cast("B")]).value
        assert np.array_equal(received, values * 2)
        assert np.may_share_memory(received, place)
        owner.send(("fail", ()))
        assert "RuntimeError: broken" in owner.receive().error
        owner.close()
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Iterator[_actors.Link]:
    """A link to a worker that is a thread of this process. Its method `wait` sleeps, and then returns its arguments."""
    monkeypatch.setattr(_actors.Link, "has_ended", lambda _: False)
    secret = b"s" * _connection.SECRET_BYTES

    def perform(_: str, arguments: tuple[Any, ...]) -> Any:
        time.sleep(arguments[0])
        return arguments

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        owner = _connection.connect(listener.getsockname(), secret, 30)
        worker = _connection.accept(listener, secret)
    thread = threading.Thread(target=_connection.serve, args=(worker, perform))
    thread.start()
    options: dict[str, Any] = {"resources": None, "runtime_env": None, "start_timeout": 30, "call_timeout": 0.5}
    pool = _actors.Actors(Filler, timeout_name="step_timeout", **options)
    yield _actors.Link(pool, Node("id", "host", 1, ("host", 1)), None, owner)
    owner.close()
    thread.join(30)
    worker.close()


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next_one(link: _actors.Link) -> None:
    for _ in range(2):
        with pytest.raises(FleetError, match=r"did not answer within 0\.5 s"):
            link.call("wait", 0.8, "late")
    time.sleep(1)
    assert link.call("wait", 0, "next") == (0, "next")
    # The late answer comes while the next one is waited for.
    with pytest.raises(FleetError, match="did not answer"):
        link.call("wait", 0.7, "late")
    assert link.call("wait", 0, "next") == (0, "next")


def test_an_answer_that_was_cut_off_is_not_taken_for_the_next_one(
    link: _actors.Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_next_message(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        link.call("wait", 0, "cut")
    with pytest.raises(_connection.ConnectionLostError):
        link.call("wait", 0, "next")


def interrupt_next_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupts the program after it has received the head of a message, as Ctrl-C does."""
    receive = _connection.Connection._bytes

    def interrupted(connection: _connection.Connection, length: int) -> bytearray:
        data = receive(connection, length)
        if threading.current_thread() is not threading.main_thread():
            return data
        monkeypatch.setattr(_connection.Connection, "_bytes", receive)
        raise KeyboardInterrupt

    monkeypatch.setattr(_connection.Connection, "_bytes", interrupted)


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


class Filler:
    """Fills the object store of its node."""

    def __init__(self) -> None:
        self.held: list[Any] = []

    def fill(self) -> str:
        # Ray cannot move arrays to the disk as long as they are in use.
        with pytest.raises(FleetError) as failure:
            while len(self.held) < 1000:
                self.held.append(ray.get(_actors.put(np.zeros(4 << 20, dtype=np.uint8))))
        return str(failure.value)

    def has_room(self) -> bool:
        """Whether the store has room for a large ROM."""
        try:
            ray.get(_actors.put(np.zeros(20 << 20, dtype=np.uint8)))
        except FleetError:
            return False
        return True


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
        fleet.reset(seed=1)
        before = fleet.state_hashes()
        with pytest.raises(InvalidRequest, match="there is no action 4; use a number from 0 to 3"):
            fleet.step([0, 0, 0, 4])
        with pytest.raises(InvalidRequest, match=r"actions has the shape \(2,\); use \(4,\)"):
            fleet.step([0, 0])
        for kind in (np.float64, np.bool_):
            with pytest.raises(InvalidRequest, match=f"actions has the type {np.dtype(kind)}"):
                fleet.step(np.ones(ENVS, dtype=kind))
        assert fleet.state_hashes() == before
    with pytest.raises(InvalidRequest, match="the fleet is closed"):
        fleet.reset()


def test_rllib_gets_one_environment_or_a_vector() -> None:
    files = GameFiles.collect(framewire.envs.demo_game(), "memory", None, None)
    # RLlib passes the number of environments in the configuration.
    vector = rllib._environment(files, "memory", {"num_envs": 3, "threads": 2})
    assert isinstance(vector, framewire.envs.GameVectorEnv)
    assert vector.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    kept = vector.reset(seed=1)[0]
    before = kept.copy()
    for _ in range(30):
        vector.step([2, 2, 2])
    assert np.array_equal(kept, before)
    single = rllib._environment(files, "memory", {})
    assert isinstance(single, framewire.envs.GameEnv)
    single.reset(seed=1)
    single.step(2)
    # The emulator and copies read the files again.
    assert single.emulator.read("lives") == 3
    copy.deepcopy(single).close()


def test_a_game_file_without_a_rom_is_refused(tmp_path: Path) -> None:
    game = tmp_path / "game.toml"
    game.write_text('[game]\nname = "Test"\n')
    with pytest.raises(InvalidRequest, match="names no ROM"):
        GameFiles.collect(game, None, None, None)
    for text, problem in [("", "missing field `game`"), ("[game]\n", "missing field `name`")]:
        game.write_text(text)
        with pytest.raises(GameFileError, match=rf"game\.toml:1:1: {problem}"):
            GameFiles.collect(game, None, None, None)


def test_files_without_an_end_are_refused(short: Path) -> None:
    with pytest.raises(InvalidRequest, match="/dev/zero is too large; use a file of at most 16777216 bytes"):
        GameFiles.collect("/dev/zero", None, None, None)
    with pytest.raises(RomError, match="/dev/zero is not a file"):
        GameFiles.collect(short, None, "/dev/zero", None)
    short.write_text(short.read_text().replace("actions =", 'start = { state = "/dev/zero" }\nactions =', 1))
    with pytest.raises(InvalidRequest, match="/dev/zero is too large; use a file of at most 67108864 bytes"):
        GameFiles.collect(short, None, None, None)


def test_a_game_in_an_archive_is_sent_or_found_on_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game = framewire.envs.demo_game()
    rom = (game.parent / "framewire-demo.gba").read_bytes()
    with zipfile.ZipFile(tmp_path / "games.zip", "w") as archive:
        archive.writestr("demo.gba", rom)
        archive.writestr("more/other.gba", rom)
    monkeypatch.chdir(tmp_path)
    for path in ("games.zip/demo.gba", "games.zip/more/other.gba", str(tmp_path / "games.zip" / "demo.gba")):
        for sent, files in (
            (True, GameFiles.collect(game, "memory", path, None)),
            (False, GameFiles.collect(game, "memory", None, path)),
        ):
            assert files.is_sent is sent
            with files.unpacked() as (unpacked, found):
                GameEnv(unpacked, "memory", rom=found).close()
    for rom_path, node_rom in (("games.zip/no.gba", None), (None, "games.zip/no.gba")):
        files = GameFiles.collect(game, "memory", rom_path, node_rom)
        with files.unpacked() as (unpacked, found), pytest.raises(RomError, match=r"without no\.gba"):
            GameEnv(unpacked, "memory", rom=found)
    with pytest.raises(FileNotFoundError, match=r"none\.zip"):
        GameFiles.collect(game, "memory", "none.zip/demo.gba", None)


def test_a_game_file_in_toml_1_1_is_sent(tmp_path: Path) -> None:
    data = framewire.envs.demo_game().parent
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps" / 'ü"\\.toml').write_bytes((data / "memory-map.toml").read_bytes())
    game = tmp_path / "game.toml"
    # TOML 1.1 allows line breaks and a trailing comma in inline tables, and the escape \x.
    game.write_text(
        rf"""
[game]
name = "start.ss0"
rom = '{data / "framewire-demo.gba"}'
symbols = ["maps/\xfc\"\\.toml"]
[scenario.one]
start = {{
    state = "start.ss0", # from `save_state`
}}
actions = ["."]
observe.memory = ["lives", "score"]
[scenario.other]
start.state = 'missing.ss0'
actions = ["."]
observe.memory = ["lives"]
"""
    )
    with framewire.load(data / "framewire-demo.gba") as core:
        core.advance(30)
        (tmp_path / "start.ss0").write_bytes(core.save_state())
    files = GameFiles.collect(game, "one", None, None)
    assert b'name = "start.ss0"' in files.files["game.toml"]
    with files.unpacked() as (path, rom), contextlib.closing(GameEnv(path, "one", rom=rom)) as env:
        here = GameEnv(game, "one")
        assert np.array_equal(env.reset(seed=1)[0], here.reset(seed=1)[0])
        here.close()
    with pytest.raises(FileNotFoundError, match=r"missing\.ss0"):
        GameFiles.collect(game, None, None, None)


def test_a_killed_worker_of_a_search_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    explorer = Explorer(scenario="memory", cell=["frame"], threads=1)
    setup = Setup(framewire.__version__, "memory", "", explorer.fingerprint)
    worker = _Branches()
    files = GameFiles.collect(framewire.envs.demo_game(), "memory", None, None)
    worker.start(setup, files, {"cell": ["frame"]}, 4)
    # The worker can be killed at any time after its start.
    assert not list(tmp_path.iterdir())
    jobs = [Job(explorer.start, None, seed, 30) for seed in range(32)]
    assert worker._explorer.rollouts(jobs) == explorer.rollouts(jobs)


def test_a_game_file_with_a_byte_order_mark_is_sent(short: Path) -> None:
    short.write_bytes(b"\xef\xbb\xbf" + short.read_bytes())
    GameEnv(short).close()
    with GameFiles.collect(short, None, None, None).unpacked() as (game, rom):
        GameEnv(game, rom=rom).close()


def test_a_relative_path_of_a_rom_on_the_node_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game = framewire.envs.demo_game()
    (tmp_path / "node.gba").write_bytes((game.parent / "framewire-demo.gba").read_bytes())
    monkeypatch.chdir(tmp_path)
    files = GameFiles.collect(game, "memory", None, "node.gba")
    with files.unpacked() as (_, rom):
        assert Path(rom).samefile(tmp_path / "node.gba")


COSTS = sizing.Costs(
    step_seconds=8e-4,
    busy_step_seconds=1e-3,
    latency_seconds=1e-3,
    worker_seconds=0,
    call_seconds=2e-4,
    received_bytes_per_second=2e9,
)


def test_the_prediction_names_what_limits_a_fleet() -> None:
    small = sizing.predict(COSTS, sizing.Plan(8, 8, envs_per_core=32, observation_bytes=28_000))
    assert (small.workers, small.limit) == (1, "cores")
    assert small.steps_per_second_async == pytest.approx(8000)
    assert small.steps_per_second < 8000
    pictures = sizing.predict(COSTS, sizing.Plan(1000, 8, envs_per_core=32, observation_bytes=28_000))
    assert (pictures.workers, pictures.limit) == (125, "network")
    assert pictures.steps_per_second_async == pytest.approx(1.25e9 / 28_000)
    numbers = sizing.predict(COSTS, sizing.Plan(1000, 8, envs_per_core=32, observation_bytes=28))
    assert numbers.limit == "cores"
    assert numbers.efficiency == 1
    many = sizing.predict(COSTS, sizing.Plan(1000, 1, envs_per_core=1, observation_bytes=28))
    assert many.limit == "program"
    # With `machine_cores`, workers and program share the cores of one machine.
    own = sizing.predict(COSTS, sizing.Plan(4, 1, envs_per_core=32, network_bytes_per_second=None))
    one_machine = sizing.Plan(4, 1, envs_per_core=32, network_bytes_per_second=None, machine_cores=2)
    shared = sizing.predict(COSTS, one_machine)
    assert own.steps_per_second_async == pytest.approx(4000)
    # For 128 steps, each of the two cores works 64 ms for the workers and half of 4 x 0.2 ms for the program.
    assert shared.steps_per_second_async == pytest.approx(128 / 64.4e-3)
    assert shared.efficiency == pytest.approx(64 / 64.4)
    # One worker has a core to itself, and so does the program.
    alone = sizing.predict(COSTS, dataclasses.replace(one_machine, cores=1))
    assert alone.steps_per_second_async == pytest.approx(1250)
    slower = dataclasses.replace(COSTS, worker_seconds=1e-3)
    assert sizing.predict(slower, one_machine).steps_per_second_async == pytest.approx(128 / 66.4e-3)


def test_the_table_of_sizes_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fleets.json"
    file.write_text(json.dumps({"constants": vars(COSTS)}))
    monkeypatch.setattr("sys.argv", ["sizing", str(file), "--bytes", "28"])
    sizing.main()
    assert re.search(r"^ 1000 +125 +32000 +\d+ +1000000 +100% +cores$", capsys.readouterr().out, re.MULTILINE)
    file.write_text("{}")
    with pytest.raises(SystemExit):
        sizing.main()
    assert "has no constants (KeyError('constants')); `make bench-fleet` writes" in capsys.readouterr().err


def test_the_cluster_files_are_valid() -> None:
    from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr
    from ray.autoscaler._private.util import prepare_config, validate_config

    folder = Path(__file__).resolve().parents[2] / "docs" / "fleets"
    config = yaml.safe_load((folder / "cluster.yaml").read_text())
    validate_config(prepare_config(config))
    manifest = yaml.safe_load((folder / "kuberay.yaml").read_text())
    assert manifest["kind"] == "RayCluster"
    # Ray's autoscaler reads the manifest in this way, and refuses resources and numbers that it cannot read.
    manifest["metadata"]["namespace"] = "default"
    nodes = _derive_autoscaling_config_from_ray_cr(manifest)["available_node_types"]
    assert nodes["headgroup"]["resources"]["CPU"] == 0
    worker = nodes["emulation"]
    assert (worker["min_workers"], worker["max_workers"]) == (4, 4)
    assert (worker["resources"]["CPU"], worker["resources"]["emulation"]) == (8, 1)
    for group in (manifest["spec"]["headGroupSpec"], *manifest["spec"]["workerGroupSpecs"]):
        (container,) = group["template"]["spec"]["containers"]
        (volume,) = group["template"]["spec"]["volumes"]
        assert container["volumeMounts"] == [{"name": "shm", "mountPath": "/dev/shm"}]
        # Ray refuses an object store that is larger than the shared memory.
        store = int(group["rayStartParams"]["object-store-memory"])
        assert store <= int(volume["emptyDir"]["sizeLimit"].removesuffix("Gi")) << 30


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
