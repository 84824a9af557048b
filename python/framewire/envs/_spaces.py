"""Gymnasium spaces of a scenario, and views of the arrays that the native part writes into."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt

from framewire import _native
from framewire._arguments import whole
from framewire.errors import InvalidRequest, shown
from framewire.model import array_of

Array: TypeAlias = npt.NDArray[Any]
Observation: TypeAlias = Any
"""An array, or a dictionary of arrays if both picture and memory are observed."""

FRAME_RATE = 16_777_216 / 280_896
"""Frames per second of the consoles: cycles per second and cycles per frame of the Game Boy Advance. The rate of the
Game Boy is the same."""

_INT64 = np.iinfo(np.int64)


def observation_space(native: _native.VectorEnv) -> gymnasium.spaces.Space[Any]:
    """The space of one environment's observations: the picture, memory, or a dictionary of both."""
    parts: dict[str, gymnasium.spaces.Space[Any]] = {}
    if native.screen_shape is not None:
        parts["screen"] = gymnasium.spaces.Box(0, 255, tuple(native.screen_shape), np.uint8)
    if native.memory_len:
        parts["memory"] = gymnasium.spaces.Box(-np.inf, np.inf, (native.memory_len,), np.float32)
    return next(iter(parts.values())) if len(parts) == 1 else gymnasium.spaces.Dict(parts)


def action_space(native: _native.VectorEnv) -> gymnasium.spaces.Space[Any]:
    """The space of one environment's actions: the index of an action, or one bit per button."""
    if native.action_names is not None:
        return gymnasium.spaces.Discrete(len(native.action_names))
    return gymnasium.spaces.MultiBinary(len(native.button_names or []))


def checked_seed(seed: object) -> int | None:
    """Checks a seed, which must fit the native part's 64 bits."""
    if seed is None:
        return None
    number = whole(seed, "seed")
    if not 0 <= number < 1 << 64:
        raise InvalidRequest(f"seed is {shown(number)}; use a number from 0 to 2**64 - 1, or None", parameter="seed")
    return number


def checked_seeds(seed: int | Iterable[int | None] | None, count: int) -> list[int | None]:
    """The seed of each environment; None for all if `seed` is None. One number stands for `seed`, `seed + 1` and so on."""
    if seed is None:
        return [None] * count
    if isinstance(seed, (int, np.integer)):
        first = checked_seed(seed)
        assert first is not None
        if first + count > 1 << 64:
            raise InvalidRequest(
                f"seed is {first}, but the other environments have larger ones; use a number from 0 to 2**64 - {count}",
                parameter="seed",
            )
        return list(range(first, first + count))
    if isinstance(seed, (str, bytes)) or not np.iterable(seed):
        accepts = "a whole number, or a list with one for each environment"
        raise InvalidRequest(f"seed is {shown(seed)}; use {accepts}", parameter="seed", accepts=accepts)
    return [checked_seed(each) for each in seed]


def check_action_size(action: int, native: _native.VectorEnv) -> None:
    """Checks that the number of an action fits into 64 bits. The native part checks the rest."""
    if not _INT64.min <= action <= _INT64.max:
        last = len(native.action_names or []) - 1
        raise InvalidRequest(f"there is no action {shown(action)}; use a number from 0 to {last}", parameter="action")


def button_masks(actions: npt.ArrayLike, bits: npt.NDArray[np.int64], *batch: int) -> npt.NDArray[np.int64]:
    """Converts actions with one 0 or 1 per button to bit masks. `batch` is their number; omit it for a single action."""
    values = array_of(actions)
    expected = (*batch, len(bits))
    if values.shape != expected:
        raise InvalidRequest(f"the shape of the actions is {values.shape}; use {expected}, one bit per button")
    if not ((values == 0) | (values == 1)).all():
        raise InvalidRequest(
            f"the actions are {shown(values.tolist())}; use 1 for a button that is held, and 0 for the others"
        )
    masks: npt.NDArray[np.int64] = values.astype(np.int64) @ bits
    return masks


def checked_mask(mask: npt.ArrayLike, name: str, count: int) -> npt.NDArray[np.bool_]:
    """Checks that a mask is a list. The native part checks that it has `count` values."""
    try:
        values = np.ascontiguousarray(mask, dtype=np.bool_)
    except ValueError:
        raise InvalidRequest(f"{name} has lists of different lengths; use {count} times True or False") from None
    if values.ndim != 1:
        raise InvalidRequest(f"the shape of {name} is {values.shape}; use ({count},)")
    return values


class Arrays:
    """One set of arrays for the results of steps, as views with the shapes that Gymnasium expects.

    Args:
        native: The environments.
        envs: The number of environments that the arrays are for. None means all.
        observations: Contiguous arrays that the observations are written into. None creates new arrays.
    """

    def __init__(self, native: _native.VectorEnv, envs: int | None = None, observations: Observation | None = None) -> None:
        count = native.num_envs if envs is None else envs
        parts = observations if isinstance(observations, dict) else {}
        if observations is not None and not parts:
            parts = {"memory" if native.screen_shape is None else "screen": observations}
        flat = {name: values.reshape(-1) for name, values in parts.items()}
        self.batch = native.batch(count, screens=flat.get("screen"), memory=flat.get("memory"))
        self.observations = self._shaped(native, self.batch.screens, self.batch.memory)
        self.final_observations = self._shaped(native, self.batch.final_screens, self.batch.final_memory)
        self.rewards = self.batch.rewards
        self.terminated = self.batch.terminated
        self.truncated = self.batch.truncated
        self.results = (self.observations, self.rewards, self.terminated, self.truncated)
        names = native.info_names
        self.info = dict(zip(names, self.batch.info.reshape(count, -1).T, strict=True)) if names else {}
        everywhere = np.ones(count, dtype=np.bool_)
        # In Gymnasium's format: each value comes with a mask of the environments that have it. Here, all have it.
        self.masked_info: dict[str, Array] = {}
        for name, values in self.info.items():
            self.masked_info |= {name: values, f"_{name}": everywhere}
        finals = self.batch.final_info
        self.final_info = dict(zip(names, finals.reshape(count, -1).T, strict=True)) if finals.size else {}

    def _shaped(self, native: _native.VectorEnv, screens: Array, memory: Array) -> Observation:
        parts: dict[str, Array] = {}
        if native.screen_shape is not None:
            parts["screen"] = screens.reshape(-1, *native.screen_shape)
        if native.memory_len:
            parts["memory"] = memory.reshape(-1, native.memory_len)
        return next(iter(parts.values())) if len(parts) == 1 else parts


def rows_of(observations: Observation, rows: int | slice | Array) -> Observation:
    """The observations of one or several environments: views of the arrays, or copies if `rows` is a mask."""
    if isinstance(observations, dict):
        return {name: values[rows] for name, values in observations.items()}
    return observations[rows]


def copy(observations: Observation) -> Observation:
    """A copy of observations, which later steps do not overwrite."""
    if isinstance(observations, dict):
        return {name: values.copy() for name, values in observations.items()}
    return observations.copy()
