"""Scenarios as environments of RLlib.

`register` makes a scenario known under a name. RLlib's environment runners then have a `GameVectorEnv` each, with
`gym_env_vectorize_mode="vector_entry_point"`. docs/fleets.md has an example.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
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

    The `env_config` of the algorithm has further arguments of `GameVectorEnv`, such as `threads`.

    Args:
        name: The name for `config.environment(name)`.
        game: The game file; the demo game's if left out.
        scenario: The name of a scenario; it can be left out if there is only one.
        rom: The ROM, in place of the path in the game file.
        node_rom: The path of the ROM on every node. It is not sent then.
    """
    from ray.tune.registry import register_env

    if not ray.is_initialized():
        ray.init()
    files = _actors.put(GameFiles.collect(game or demo_game(), scenario, rom, node_rom))

    def create(config: Mapping[str, Any]) -> GameEnv | GameVectorEnv:
        return _environment(ray.get(files), scenario, config)

    register_env(name, create)


def _environment(files: GameFiles, scenario: str | None, config: Mapping[str, Any]) -> GameEnv | GameVectorEnv:
    """One environment, or, as RLlib asks for it, a vector of `num_envs`."""
    options = dict(config)
    num_envs = options.pop("num_envs", None)
    with files.unpacked() as (game, path):
        if num_envs is None:
            return GameEnv(game, scenario, rom=path, **options)
        # RLlib keeps the arrays of all steps of an episode.
        return GameVectorEnv(game, scenario, num_envs=num_envs, rom=path, **{"copy": True, "threads": 1, **options})
