"""One environment."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from framewire import _native
from framewire._arguments import absolute, whole
from framewire.core import Core, EnvironmentCore
from framewire.envs._spaces import (
    FRAME_RATE,
    Array,
    Arrays,
    Observation,
    action_space,
    button_masks,
    check_action_size,
    checked_seed,
    copy,
    observation_space,
    rows_of,
)
from framewire.envs._window import Window
from framewire.errors import InvalidRequest, shown
from framewire.model import file_bytes


class GameEnv(gymnasium.Env[Any, Any]):
    """One environment of a scenario.

    Args:
        game: The game file.
        scenario: The name of a scenario. It can be left out if there is only one.
        rom: The path of the ROM, instead of the one in the game file.
        render_mode: `rgb_array`; `human`, which shows each step in a window, with pygame; or None. All environments with
            `human` in a process share one window, because pygame has only one.
    """

    metadata = {  # noqa: RUF012
        # Gymnasium's checks try every mode that is listed here, and `human` needs pygame.
        "render_modes": ["rgb_array", "human"] if importlib.util.find_spec("pygame") else ["rgb_array"],
        # Each environment replaces this with the rate of its own steps.
        "render_fps": FRAME_RATE,
    }

    def __init__(
        self,
        game: str | os.PathLike[str],
        scenario: str | None = None,
        *,
        rom: str | os.PathLike[str] | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "rgb_array", "human"):
            raise InvalidRequest(
                f"render_mode is {shown(render_mode)}; use 'rgb_array', 'human' or None",
                parameter="render_mode",
                accepts="rgb_array, human",
            )
        self._window = Window(os.fspath(game)) if render_mode == "human" else None
        game = absolute(game)
        rom = None if rom is None else absolute(rom)
        self._native = _native.VectorEnv(
            game, scenario, 1, rom=rom, threads=1, autoreset="Disabled", render=render_mode is not None
        )
        self._arguments = (game, scenario, rom, render_mode)
        self._emulator: Core | None = None
        self.metadata = {**self.metadata, "render_fps": FRAME_RATE / self._native.frame_skip}
        self.render_mode = render_mode
        self.observation_space = observation_space(self._native)
        self.action_space = action_space(self._native)
        self._arrays = Arrays(self._native)
        self._action = np.zeros(1, dtype=np.int64)
        self._bits = 1 << np.arange(len(self._native.button_names or []), dtype=np.int64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode.

        Without a seed, the random numbers of the environment continue; those of a new environment begin with seed 0.
        """
        seed = checked_seed(seed)
        super().reset(seed=seed, options=options)
        self._native.reset([seed], None, self._arrays.batch)
        self._show()
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Plays a step."""
        if self._native.button_names is not None:
            self._action[0] = button_masks(action, self._bits)
        else:
            number = whole(action, "action")
            check_action_size(number, self._native)
            self._action[0] = number
        self._native.step(self._action, self._arrays.batch)
        self._show()
        arrays = self._arrays
        return (
            self._observation(),
            float(arrays.rewards[0]),
            bool(arrays.terminated[0]),
            bool(arrays.truncated[0]),
            self._info(),
        )

    def render(self) -> Array | None:
        """The picture: rows, columns and colours (red, green, blue). None unless the mode is `rgb_array`."""
        return self._native.screen(0) if self.render_mode == "rgb_array" else None

    def _show(self) -> None:
        if self._window is not None:
            self._window.show(self._native.screen(0), 60 / self._native.frame_skip)

    @property
    def emulator(self) -> Core:
        """The emulator of this environment, for everything except steps: memory, pictures, states, recordings."""
        if self._emulator is None:
            with self._rom() as rom:
                self._emulator = EnvironmentCore(self._native.emulator(0, rom), rom)
        return self._emulator

    @contextmanager
    def _rom(self) -> Iterator[Path]:
        """Yields the path of the ROM, which can be read until the end of `with`."""
        yield self._native.rom()

    def state_hash(self) -> str:
        """The SHA-256 of the console's state without its sound unit, in hexadecimal digits."""
        return bytes(self._native.hashes()[0]).hex()

    def save_state(self) -> bytes:
        """Saves everything that the next steps depend on, including random numbers and observed pictures."""
        (state,) = self._native.save(None)
        assert state is not None
        return state

    def load_state(self, state: bytes) -> None:
        """Loads a state from `save_state`. The state may come from another environment of the same scenario."""
        self._native.restore([file_bytes(state, "state")])

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("spec", "action_space", "_np_random", "_np_random_seed")
        return _restored, (self._arguments, self.save_state()), {name: getattr(self, name) for name in names}

    def close(self) -> None:
        """Frees the core. Also deletes the snapshots and recordings of `emulator`."""
        self._native.close()
        if self._emulator is not None:
            self._emulator.close()
        if self._window is not None:
            self._window.close()

    def _observation(self) -> Observation:
        return copy(rows_of(self._arrays.observations, 0))

    def _info(self) -> dict[str, Any]:
        return {name: float(values[0]) for name, values in self._arrays.info.items()}


def _restored(arguments: tuple[str, str | None, str | None, str | None], state: bytes) -> GameEnv:
    """Creates an environment from its pickled arguments and state."""
    game, scenario, rom, render_mode = arguments
    env = GameEnv(game, scenario, rom=rom, render_mode=render_mode)
    env.load_state(state)
    return env
