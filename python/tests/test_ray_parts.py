"""Parts of fleets that need no Ray cluster: connections to workers, the files that nodes get, and sizes of clusters."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import pickle
import re
import socket
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml  # type: ignore[import-untyped]
from gymnasium.vector import AutoresetMode

import framewire
import framewire.envs
from framewire.envs import GameEnv
from framewire.errors import GameFileError, InvalidRequest, RomError
from framewire.ray import FleetError, _actors, _connection, rllib, sizing
from framewire.ray._files import GameFiles
from framewire.ray._nodes import Node
from framewire.ray._worker import Call, Setup, Worker, _Environments
from framewire.ray.explorer import _Branches
from framewire.search import Explorer, Job
from tests.clusters import Filler, interrupt_next_message

# Ray's own code causes warnings.
pytestmark = [pytest.mark.filterwarnings("ignore")]


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


def test_a_single_environment_of_rllib_keeps_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = GameFiles.collect(framewire.envs.demo_game(), "memory", None, None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    env = rllib._environment(files, "memory", {"render_mode": "rgb_array"})
    assert isinstance(env, GameEnv)
    env.reset(seed=1)
    assert env.emulator.read("lives") == 3
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert other.render_mode == "rgb_array"
        assert np.array_equal(other.step(1)[0], copy.deepcopy(env).step(1)[0])
        assert other.emulator.read("lives") == 3
    # Ray can kill the process at any time.
    assert not list(tmp_path.iterdir())


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


def test_a_new_worker_has_the_same_results_after_episodes_that_ended_in_the_same_step(short: Path) -> None:
    def new() -> Worker:
        worker = Worker()
        worker._vector = _Environments(short, num_envs=2, autoreset_mode=AutoresetMode.SAME_STEP)
        worker._vector.share([])
        worker._masks = {"_game_frame"}
        return worker

    step = Call("step", (np.zeros((2, 10), dtype=np.int8),))
    first, second = new(), new()
    # The episodes end in different steps.
    first.replay([Call("reset", ([1, 2], None)), step, step, Call("reset", ([None, None], np.array([False, True])))])
    first.replay([step] * 12)
    assert second.restore(first.save().states) == first.hashes()
    assert first.replay([step] * 20) == second.replay([step] * 20)


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
