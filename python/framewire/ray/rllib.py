"""Scenarios as environments of RLlib.

`register` registers a scenario under a name. With `gym_env_vectorize_mode="vector_entry_point"`, each of RLlib's
environment runners then has a `GameVectorEnv`. docs/fleets.md has an example.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import ray

from framewire.envs import GameEnv, GameVectorEnv, demo_game
from framewire.ray import _actors
from framewire.ray._files import GameFiles


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
        return _environment(ray.get(files), scenario, config)

    register_env(name, create)


def _environment(files: GameFiles, scenario: str | None, config: Mapping[str, Any]) -> GameEnv | GameVectorEnv:
    """Creates one environment, or a vector of `num_envs` environments if RLlib requests that."""
    options = dict(config)
    num_envs = options.pop("num_envs", None)
    with ExitStack() as stack:
        game, path = stack.enter_context(files.unpacked())
        if num_envs is not None:
            # RLlib keeps the arrays of all steps of an episode, so each step must return new ones.
            return GameVectorEnv(game, scenario, num_envs=num_envs, rom=path, **{"copy": True, "threads": 1, **options})
        env = GameEnv(game, scenario, rom=path, **options)
        # The files must exist as long as the environment does: `env.emulator` and copies of `env` open them again.
        weakref.finalize(env, stack.pop_all().close)
        return env
