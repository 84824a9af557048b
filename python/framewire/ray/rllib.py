"""Scenarios as environments of RLlib.

`register` registers a scenario under a name. With `gym_env_vectorize_mode="vector_entry_point"`, each of RLlib's
environment runners then has a `GameVectorEnv`. docs/fleets.md has an example.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import ray

from framewire.envs import GameEnv, GameVectorEnv, demo_game
from framewire.ray import _actors
from framewire.ray._files import GameFiles

# The files that this process has received, as long as an environment uses them.
_received: WeakValueDictionary[ray.ObjectRef[GameFiles], GameFiles] = WeakValueDictionary()


def register(
    name: str,
    game: str | os.PathLike[str] | None = None,
    scenario: str | None = None,
    *,
    rom: str | os.PathLike[str] | None = None,
    node_rom: str | None = None,
) -> None:
    """Registers a scenario with RLlib. Its files are sent to each node once.

    With `gym_env_vectorize_mode="vector_entry_point"`, the `env_config` of the algorithm can have other arguments of
    `GameVectorEnv`, such as `threads`. In other modes, RLlib creates single environments, and `env_config` can have only
    arguments of `GameEnv`.

    Args:
        name: The name for `config.environment(name)`.
        game: The game file. The default is that of the demo game.
        scenario: The name of a scenario. It can be left out if there is only one.
        rom: The path of the ROM, instead of the one in the game file.
        node_rom: The path of the ROM on every node. If it is given, the ROM is not sent.
    """
    from ray.tune.registry import register_env

    if not ray.is_initialized():
        ray.init()
    files = _actors.put(GameFiles.collect(game or demo_game(), scenario, rom, node_rom))

    def create(config: Mapping[str, Any]) -> GameEnv | GameVectorEnv:
        return _environment(_receive(files), scenario, config)

    register_env(name, create)


def _receive(reference: ray.ObjectRef[GameFiles]) -> GameFiles:
    """The files of a scenario. The environments of a process share them."""
    if (files := _received.get(reference)) is None:
        files = _received[reference] = ray.get(reference)
    return files


def _environment(files: GameFiles, scenario: str | None, config: Mapping[str, Any]) -> GameEnv | GameVectorEnv:
    """Creates one environment, or a vector of `num_envs` environments if RLlib requests that."""
    options = dict(config)
    num_envs = options.pop("num_envs", None)
    if num_envs is None:
        return _SentEnv(files, scenario, options)
    with files.unpacked() as (game, rom):
        # RLlib keeps the arrays of all steps of an episode, so each step must return new ones.
        return GameVectorEnv(game, scenario, num_envs=num_envs, rom=rom, **{"copy": True, "threads": 1, **options})


class _SentEnv(GameEnv):
    """An environment whose files were sent.

    The files are on the disk only while they are read, so none stay there if Ray kills the process.
    """

    def __init__(self, files: GameFiles, scenario: str | None, options: dict[str, Any]) -> None:
        with files.unpacked() as (game, rom):
            super().__init__(game, scenario, rom=rom, **options)
        self._sent = (files, scenario, options)

    @contextmanager
    def _rom(self) -> Iterator[Path]:
        with self._sent[0].unpacked() as (_, rom):
            yield Path(rom)

    def __reduce__(self) -> tuple[Any, ...]:
        _, (_, state), attributes = super().__reduce__()
        return _restored, (self._sent, state), attributes


def _restored(sent: tuple[GameFiles, str | None, dict[str, Any]], state: bytes) -> _SentEnv:
    """Creates an environment from its pickled arguments and state."""
    env = _SentEnv(*sent)
    env.load_state(state)
    return env
