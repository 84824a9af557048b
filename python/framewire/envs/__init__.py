"""Gymnasium environments on embedded cores.

`make` creates one environment, and `make_vec` many of them in this process. Both take a game file (docs/game-file.md)
and one of its scenarios. The scenarios of the demo game are registered as `framewire/Demo-v0` and
`framewire/DemoMemory-v0`.
"""

from __future__ import annotations

import os
from typing import Any

from framewire._data import demo_game
from framewire.envs.single import GameEnv
from framewire.envs.vector import GameVectorEnv

__all__ = ["GameEnv", "GameVectorEnv", "demo_game", "make", "make_vec", "register_envs"]

# The scenarios of the demo game that have their own Gymnasium id, and their names in the game file.
_REGISTERED = {"Demo": "pixels", "DemoMemory": "memory"}


def make(game: str | os.PathLike[str] | None = None, scenario: str | None = None, **options: Any) -> GameEnv:
    """Creates one environment.

    Args:
        game: The game file. The default is that of the demo game.
        scenario: The name of a scenario in it. It can be left out if there is only one.
        options: See `GameEnv`.
    """
    return GameEnv(game or demo_game(), scenario, **options)


def make_vec(
    game: str | os.PathLike[str] | None = None, scenario: str | None = None, *, num_envs: int, **options: Any
) -> GameVectorEnv:
    """Creates many environments of one scenario. By default, they run on all processors.

    Args:
        game: The game file. The default is that of the demo game.
        scenario: The name of a scenario in it. It can be left out if there is only one.
        num_envs: The number of environments.
        options: See `GameVectorEnv`.
    """
    return GameVectorEnv(game or demo_game(), scenario, num_envs=num_envs, **options)


def register_envs() -> None:
    """Registers the demo game's scenarios with Gymnasium. It is called when this module is imported."""
    import gymnasium

    for name, scenario in _REGISTERED.items():
        if f"framewire/{name}-v0" in gymnasium.registry:
            continue
        gymnasium.register(
            f"framewire/{name}-v0",
            entry_point="framewire.envs:make",
            vector_entry_point="framewire.envs:make_vec",
            kwargs={"scenario": scenario},
        )


register_envs()
