"""Many environments in one process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from framewire import _native
from framewire._arguments import check_range, check_threads, whole
from framewire.envs._spaces import (
    FRAME_RATE,
    Array,
    Arrays,
    Observation,
    action_space,
    button_masks,
    check_action_size,
    checked_mask,
    checked_seeds,
    copy,
    observation_space,
    rows_of,
)
from framewire.errors import InvalidRequest, shown
from framewire.model import array_of, file_bytes

_MAX_ENVS = 65_536


def checked_mode(autoreset_mode: AutoresetMode | str) -> AutoresetMode:
    """Checks an autoreset mode, which can be given by its name."""
    try:
        return AutoresetMode(autoreset_mode)
    except (RecursionError, ValueError):
        accepted = ", ".join(mode.value for mode in AutoresetMode)
        raise InvalidRequest(
            f"autoreset_mode is {shown(autoreset_mode)}; use one of {accepted}",
            parameter="autoreset_mode",
            accepts=accepted,
        ) from None


class GameVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Many environments of one scenario in this process, on a pool of threads without the interpreter's lock.

    Steps and resets write their results into two sets of arrays in turn. So the result of a call does not change during
    the next call, but the call after that overwrites it. A reset with a mask counts as a call. With `copy=True`, steps
    and resets return new arrays.

    Args:
        game: The game file.
        scenario: The name of a scenario. It can be left out if there is only one.
        num_envs: The number of environments.
        rom: The path of the ROM, instead of the one in the game file.
        threads: The largest number of threads. 0 means one for each processor; there are never more.
        autoreset_mode: When the next episode begins after the end of an episode: one of Gymnasium's modes.
        render_mode: `rgb_array`, or None. With `rgb_array`, each step draws its last frame.
        copy: Whether steps and resets return new arrays.
        batch_size: How many environments `recv` waits for. None means all.
    """

    def __init__(
        self,
        game: str | os.PathLike[str],
        scenario: str | None = None,
        *,
        num_envs: int = 1,
        rom: str | os.PathLike[str] | None = None,
        threads: int = 0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        copy: bool = False,
        batch_size: int | None = None,
    ) -> None:
        # There is nothing to close yet, but Gymnasium 1.2 closes a vector even if this constructor raises an exception.
        self.closed = True
        if render_mode not in (None, "rgb_array"):
            raise InvalidRequest(
                f"render_mode is {shown(render_mode)}; use 'rgb_array' or None",
                parameter="render_mode",
                accepts="rgb_array",
            )
        mode = checked_mode(autoreset_mode)
        check_threads(threads)
        num_envs = check_range(num_envs, "num_envs", 1, _MAX_ENVS)
        self.batch_size = num_envs if batch_size is None else whole(batch_size, "batch_size")
        if not 1 <= self.batch_size <= num_envs:
            raise InvalidRequest(
                f"batch_size is {shown(batch_size)}; use a number from 1 to num_envs, which is {num_envs}",
                parameter="batch_size",
            )
        self._native = _native.VectorEnv(
            os.fspath(game),
            scenario,
            num_envs,
            rom=None if rom is None else os.fspath(rom),
            threads=threads,
            autoreset=mode.value,
            render=render_mode is not None,
        )
        self.closed = False
        self.metadata = {
            "autoreset_mode": mode,
            "render_modes": ["rgb_array"],
            "render_fps": FRAME_RATE / self._native.frame_skip,
        }
        self.render_mode = render_mode
        self.num_envs = num_envs
        self.single_observation_space = observation_space(self._native)
        self.single_action_space = action_space(self._native)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._mode = mode
        self._copy = copy
        self._needs_more = copy or mode is AutoresetMode.SAME_STEP
        """Whether a step must copy its arrays, or add the last observations of episodes that ended."""
        self._has_buttons = self._native.button_names is not None
        self._arrays = (Arrays(self._native), Arrays(self._native))
        self._is_second = False
        """Whether the last `reset` or `step` has returned the second set."""
        self._bits = 1 << np.arange(len(self._native.button_names or []), dtype=np.int64)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins episodes in all environments. With `options={"reset_mask": mask}`, only in those where `mask` is true.

        For the other environments, returns their last observations. After `load_states`, they come from the loaded states.

        Each environment has random numbers from its own seed. If `seed` is one number, the seeds are `seed`, `seed + 1`
        and so on. Without a seed, the random numbers of an environment continue; those of a new environment begin with
        its number as the seed.
        """
        mask = None if options is None else options.get("reset_mask")
        if mask is not None:
            mask = checked_mask(mask, "reset_mask", self.num_envs)
        seeds = checked_seeds(seed, self.num_envs)
        # The arrays of the last step do not change, because the program may still need the rewards of the episodes that
        # ended.
        arrays = self._arrays[not self._is_second]
        self._native.reset(seeds, mask, arrays.batch)
        self._is_second = not self._is_second
        observations = copy(arrays.observations) if self._copy else arrays.observations
        return observations, self._info(arrays)

    def step(self, actions: npt.ArrayLike) -> tuple[Observation, Array, Array, Array, dict[str, Any]]:
        """Plays a step in each environment."""
        # Speed matters here: after many emulators have run their frames, the interpreter's objects are no longer in the
        # processor's caches, so each access to an object is slow.
        arrays = self._arrays[not self._is_second]
        try:
            if self._has_buttons:
                actions = self._actions(actions, self.num_envs)
            self._native.step(actions, arrays.batch)
        except TypeError:
            # The native part only accepts a contiguous array of 64-bit numbers. Convert other actions and try again.
            self._native.step(self._actions(actions, self.num_envs), arrays.batch)
        self._is_second = not self._is_second
        if self._needs_more:
            return self._results(arrays)
        return (*arrays.results, arrays.masked_info.copy())

    def send(self, actions: npt.ArrayLike, env_id: npt.ArrayLike | None = None) -> None:
        """Begins a step in some environments, and returns at once. Their results come from `recv`.

        Args:
            actions: One action for each of these environments.
            env_id: The numbers of the environments. None means all.
        """
        numbers = np.arange(self.num_envs) if env_id is None else array_of(env_id)
        if numbers.size == 0:
            if np.size(actions) > 0:
                raise InvalidRequest("there are actions but no environments; give one action for each", parameter="actions")
            return
        if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
            raise InvalidRequest(f"env_id is {shown(env_id)}; use a list of environment numbers", parameter="env_id")
        values = self._actions(actions, len(numbers))
        self._native.send(np.ascontiguousarray(numbers, dtype=np.int64), values)

    def recv(self, count: int | None = None) -> tuple[Observation, Array, Array, Array, dict[str, Any]]:
        """Waits for the environments that finish their steps first, and returns their results in the format of `step`.

        `info["env_id"]` has the numbers of the environments, one for each row. The arrays are new in each call.

        Args:
            count: How many environments to wait for. The default is `batch_size`.
        """
        wanted = self.batch_size if count is None else check_range(count, "count", 1, self.num_envs)
        arrays = Arrays(self._native, wanted)
        numbers = self._native.recv(wanted, arrays.batch)
        observations, rewards, terminated, truncated, info = self._results(arrays)
        info["env_id"] = numbers
        return observations, rewards, terminated, truncated, info

    def _actions(self, actions: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
        if self._has_buttons:
            return button_masks(actions, self._bits, count)
        values = array_of(actions)
        # If a whole number does not fit into int64, NumPy makes an array of uint64, of objects, or of float64. The last
        # check refuses float64.
        if values.dtype == np.uint64:
            check_action_size(int(values.max(initial=0)), self._native)
        elif values.dtype.kind == "O" and values.ndim == 1:
            for value in values:
                if isinstance(value, (int, np.integer)):
                    check_action_size(int(value), self._native)
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise InvalidRequest(
                f"actions has the shape {values.shape} and the type {values.dtype}; use {count} whole numbers"
            )
        return np.ascontiguousarray(values, dtype=np.int64)

    def _results(self, arrays: Arrays) -> tuple[Observation, Array, Array, Array, dict[str, Any]]:
        info = self._info(arrays)
        if self._mode is AutoresetMode.SAME_STEP:
            self._add_finals(arrays, info)
        observations, rewards, terminated, truncated = map(copy, arrays.results) if self._copy else arrays.results
        return observations, rewards, terminated, truncated, info

    def render(self) -> tuple[Array, ...] | None:
        """The picture of each environment: rows, columns and colours (red, green, blue). None without a render mode."""
        if self.render_mode is None:
            return None
        return tuple(self._native.screen(index) for index in range(self.num_envs))

    def state_hashes(self) -> list[str]:
        """The SHA-256 of the state of each console without its sound unit, in hexadecimal digits."""
        return [bytes(digest).hex() for digest in self._native.hashes()]

    def save_states(self, mask: npt.ArrayLike | None = None) -> list[bytes | None]:
        """Saves each environment: everything that its next steps depend on, and its last observation.

        Args:
            mask: Which environments to save. The result has None for the others. Without a mask, all are saved.
        """
        return self._native.save(None if mask is None else checked_mask(mask, "mask", self.num_envs))

    def load_states(self, states: Sequence[bytes | None]) -> None:
        """Loads states that `save_states` returned. An environment whose state is None does not change."""
        checked = [None if state is None else file_bytes(state, f"states[{index}]") for index, state in enumerate(states)]
        self._native.restore(checked)

    def close_extras(self, **_: Any) -> None:
        """Frees the cores."""
        self._native.close()

    def _info(self, arrays: Arrays) -> dict[str, Any]:
        # Each step returns its own dictionary, because wrappers may add values to it.
        info = arrays.masked_info.copy()
        if self._copy:
            info.update((name, values.copy()) for name, values in arrays.info.items())
        return info

    def _add_finals(self, arrays: Arrays, info: dict[str, Any]) -> None:
        ended = arrays.terminated | arrays.truncated
        if not ended.any():
            return
        final = np.full(len(ended), None, dtype=object)
        for index in np.flatnonzero(ended):
            final[index] = copy(rows_of(arrays.final_observations, int(index)))
        info["final_obs"] = final
        info["_final_obs"] = ended.copy()
        final_info: dict[str, Any] = {}
        for name, values in arrays.final_info.items():
            # The arrays still have the values of earlier steps for environments whose episode has not ended now.
            final_info[name] = np.where(ended, values, 0.0)
            final_info[f"_{name}"] = ended.copy()
        info["final_info"] = final_info
        info["_final_info"] = ended.copy()
