"""The same seed and the same actions give the same states and observations, however the actions are played."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import pytest

import framewire
from framewire import Emulator, Screen
from framewire.envs import GameEnv, GameVectorEnv
from framewire.envs._spaces import rows_of
from tests.servers import DEMO, SYMBOLS, serve

LENGTH = 7 * 4096
"""How many bytes are compared in each of the two work RAMs, which begin at 0x02000000 and 0x03000000."""

STATE = 2 | 8
"""mGBA's flags for states with the battery save and the cartridge's clock."""

START = datetime(2000, 1, 1, tzinfo=timezone.utc)
"""The time of the cartridge's clock at the start of an episode. States include the clock."""

ENVS = 6
STEPS = 40
ACTIONS = (".", "Left", "Right", "A")


def action(env: int, step: int) -> int:
    return (env * 3 + step // 5) % len(ACTIONS)


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A game file with two scenarios: `plain` observes the picture and memory, and `random` uses random numbers."""
    folder = tmp_path_factory.mktemp("determinism")
    with framewire.load(DEMO, symbols=SYMBOLS, clock=START) as core:
        core.advance(90)
        (folder / "start.state").write_bytes(core.save_state())
    ranges = [f"bytes[{start + at:#x}, 4096]" for start in (0x02000000, 0x03000000) for at in range(0, LENGTH, 4096)]
    scenario = f"""
start = {{ state = "start.state" }}
actions = {list(ACTIONS)}
frame_skip = 3
reward = "delta(score)"
terminated = "lives == 0"
"""
    (folder / "game.toml").write_text(
        f"""
[game]
name = "Determinism"
rom = "{DEMO}"
symbols = ["{SYMBOLS}"]

[scenario.plain]
{scenario}
[scenario.plain.observe]
screen = {{}}
memory = {json.dumps(ranges)}

[scenario.random]
{scenario}
sticky = 0.25
max_noops = 20
[scenario.random.observe]
screen = {{ size = [84, 84], grey = true, stack = 4, max = 2 }}
"""
    )
    return folder / "game.toml"


def digest(*arrays: object) -> str:
    hashed = hashlib.sha256()
    for array in arrays:
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()


def hash_of(observation: object) -> str:
    if isinstance(observation, dict):
        return digest(observation["screen"], observation["memory"].astype(np.float32))
    return digest(observation)


Played = tuple[list[list[str]], list[str]]
"""For each environment: the hashes of its observations; and the hash of its last state."""


def by_steps(vector: GameVectorEnv) -> Played:
    """Plays with `step`."""
    observations, _ = vector.reset(seed=11)
    hashes = [[hash_of(rows_of(observations, env))] for env in range(ENVS)]
    for step in range(STEPS):
        observations = vector.step([action(env, step) for env in range(ENVS)])[0]
        for env in range(ENVS):
            hashes[env].append(hash_of(rows_of(observations, env)))
    states = vector.state_hashes()
    vector.close()
    return hashes, states


def by_sending(vector: GameVectorEnv) -> Played:
    """Plays with `send` and `recv`, so that environments can be at different steps."""
    observations, _ = vector.reset(seed=11)
    hashes = [[hash_of(rows_of(observations, env))] for env in range(ENVS)]
    vector.send([action(env, 0) for env in range(ENVS)], np.arange(ENVS))
    left = ENVS * STEPS
    while left:
        under_way = sum(len(each) <= STEPS for each in hashes)
        count = min(vector.batch_size, under_way)
        observations, *_, info = vector.recv(count)
        left -= count
        again = []
        for index, env in enumerate(info["env_id"].tolist()):
            hashes[env].append(hash_of(rows_of(observations, index)))
            if len(hashes[env]) <= STEPS:
                again.append(env)
        vector.send([action(env, len(hashes[env]) - 1) for env in again], again)
    states = vector.state_hashes()
    vector.close()
    return hashes, states


def alone(game: Path, scenario: str) -> Played:
    """Plays each environment as a `GameEnv` of its own."""
    hashes: list[list[str]] = []
    states: list[str] = []
    for index in range(ENVS):
        env = GameEnv(game, scenario)
        hashes.append([hash_of(env.reset(seed=11 + index)[0])])
        hashes[-1] += [hash_of(env.step(action(index, step))[0]) for step in range(STEPS)]
        states.append(env.state_hash())
        env.close()
    return hashes, states


@pytest.mark.parametrize("scenario", ["plain", "random"])
def test_threads_and_interfaces_agree(game: Path, scenario: str) -> None:
    expected = by_steps(GameVectorEnv(game, scenario, num_envs=ENVS, threads=1))
    assert len(set(expected[1])) > 1
    for threads in (2, 64):
        assert by_steps(GameVectorEnv(game, scenario, num_envs=ENVS, threads=threads)) == expected
    for threads, batch_size in ((1, 2), (2, 3), (64, 1)):
        vector = GameVectorEnv(game, scenario, num_envs=ENVS, threads=threads, batch_size=batch_size)
        assert by_sending(vector) == expected
    assert alone(game, scenario) == expected


def observed(screen: Screen, memory: bytes) -> str:
    """The hash of what the scenario `plain` observes."""
    return digest(screen.array, np.frombuffer(memory, np.uint8).astype(np.float32))


def with_an_emulator(game: Path, emulator: Emulator, env: int) -> list[str]:
    """Plays the actions of one environment with the methods of an emulator. Returns the hashes of the observations."""

    def now() -> str:
        memory = emulator.read_bytes(0x02000000, LENGTH) + emulator.read_bytes(0x03000000, LENGTH)
        return observed(emulator.screen(), memory)

    emulator.release()
    emulator.load_state((game.parent / "start.state").read_bytes())
    emulator.advance()
    hashes = [now()]
    for step in range(STEPS):
        keys = ACTIONS[action(env, step)]
        emulator.release()
        if keys != ".":
            emulator.hold(keys)
        emulator.advance(3)
        hashes.append(now())
    return hashes


def test_a_server_and_a_core_agree_with_environments(game: Path, tmp_path: Path) -> None:
    expected, _ = alone(game, "plain")
    with framewire.load(DEMO) as core:
        assert with_an_emulator(game, core, 1) == expected[1]
    with serve(tmp_path / "server") as server, framewire.connect(server.url) as client, client.pause():
        assert with_an_emulator(game, client, 1) == expected[1]
        assert with_an_emulator(game, client, 2) == expected[2]


class Batches:
    """Plays the game of an embedded server with `POST /v1/batch` only."""

    def __init__(self, url: str) -> None:
        self._url = url

    def perform(self, *operations: dict[str, Any]) -> list[Any]:
        """Performs a batch and returns its results."""
        body = json.dumps({"ops": operations}).encode()
        request = Request(f"{self._url}/v1/batch", body, {"content-type": "application/json"})
        with urlopen(request, timeout=60) as reply:
            return [result["value"] for result in json.load(reply)["results"]]

    def observe(self, *before: dict[str, Any]) -> str:
        """Performs these operations, and returns the hash of the observation after them."""
        *_, first, second, picture = self.perform(
            *before,
            {"op": "read_range", "address": 0x02000000, "length": LENGTH},
            {"op": "read_range", "address": 0x03000000, "length": LENGTH},
            {"op": "screenshot"},
        )
        return observed(Screen.from_png(b64decode(picture)), b64decode(first) + b64decode(second))

    def play(self, start: bytes, env: int) -> tuple[list[str], bytes]:
        """Plays the actions of an environment. Returns the hashes of the observations, and the last state."""
        hashes = [
            self.observe(
                {"op": "set_keys", "keys": []},
                {"op": "load_state", "data": b64encode(start).decode(), "flags": STATE},
                {"op": "advance", "frames": 1},
            )
        ]
        for step in range(STEPS):
            keys = [key for key in [ACTIONS[action(env, step)]] if key != "."]
            hashes.append(self.observe({"op": "set_keys", "keys": keys}, {"op": "advance", "frames": 3}))
        (state,) = self.perform({"op": "save_state", "flags": STATE})
        return hashes, b64decode(state)


def test_an_embedded_server_over_http_agrees_in_observations_and_states(game: Path, tmp_path: Path) -> None:
    expected, expected_states = by_steps(GameVectorEnv(game, "plain", num_envs=ENVS, threads=2))
    start = (game.parent / "start.state").read_bytes()
    hasher = GameEnv(game, "plain")
    with serve(tmp_path / "server", "--clock", START.isoformat()) as server:
        batches = Batches(server.url)
        batches.perform({"op": "pause"})
        for env in range(ENVS):
            hashes, state = batches.play(start, env)
            assert hashes == expected[env], env
            # The hash leaves out parts of the state, so an environment must compute it.
            hasher.reset(seed=1)
            hasher.emulator.load_state(state)
            assert hasher.state_hash() == expected_states[env], env
    hasher.close()
