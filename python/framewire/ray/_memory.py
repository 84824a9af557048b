"""Observations that the program shares with the workers of its own machine."""

from __future__ import annotations

import mmap
import os
import secrets
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector.utils import create_empty_array

from framewire.envs._spaces import Array, Observation
from framewire.ray._merge import Rows, arrays, rows_of

# The block begins with random bytes, by which a worker recognises it.
_MARK_BYTES = 64
_ALIGNMENT = 64


class _Part(NamedTuple):
    """One array of the observations: its name, or None if there is only one, and what one environment has of it."""

    name: str | None
    shape: tuple[int, ...]
    dtype: str


class MemoryKey(NamedTuple):
    """Where a worker finds the memory: an open file of the program's process."""

    process: int
    file: int
    mark: bytes
    envs: int
    sets: int
    parts: tuple[_Part, ...]

    def views(self, block: Any) -> list[Observation]:
        """The observations of all environments, once for each set."""
        found: list[Observation] = []
        at = _MARK_BYTES
        for _ in range(self.sets):
            observations: dict[str | None, Array] = {}
            for part in self.parts:
                count = self.envs * int(np.prod(part.shape, dtype=np.int64))
                flat = np.frombuffer(block, part.dtype, count, at)
                observations[part.name] = flat.reshape(self.envs, *part.shape)
                at += _aligned(flat.nbytes)
            found.append(observations.get(None, observations))
        return found

    @property
    def size(self) -> int:
        """Bytes of the block."""
        each = sum(
            _aligned(self.envs * int(np.prod(part.shape, dtype=np.int64)) * np.dtype(part.dtype).itemsize)
            for part in self.parts
        )
        return _MARK_BYTES + self.sets * each


class SharedMemory:
    """Sets of observations of all environments.

    Args:
        space: The observation of one environment.
        envs: How many environments there are.
        sets: How many sets.
    """

    def __init__(self, space: gymnasium.spaces.Space[Any], envs: int, sets: int) -> None:
        sample: Any = create_empty_array(space, 1)
        names = sorted(sample) if isinstance(sample, dict) else [None]
        parts = [_Part(name, each.shape[1:], each.dtype.str) for name, each in zip(names, arrays(sample), strict=True)]
        key = MemoryKey(os.getpid(), -1, secrets.token_bytes(_MARK_BYTES), envs, sets, tuple(parts))
        self.key: MemoryKey | None = None
        if hasattr(os, "memfd_create"):
            # It has no name that could remain after the program.
            key = key._replace(file=os.memfd_create("framewire-fleet"))
            os.posix_fallocate(key.file, 0, key.size)
            block: Any = mmap.mmap(key.file, key.size)
            self.key = key
        else:
            block = bytearray(key.size)
        block[:_MARK_BYTES] = key.mark
        self.sets = key.views(block)

    def close(self) -> None:
        """Closes the file. The arrays stay."""
        if self.key is not None:
            os.close(self.key.file)
            self.key = None


def open_rows(key: MemoryKey | None, rows: Rows) -> list[Observation]:
    """The rows of some environments in each set. There are no sets if the program is on another machine."""
    if key is None:
        return []
    try:
        file = os.open(f"/proc/{key.process}/fd/{key.file}", os.O_RDWR)
    except OSError:
        return []
    try:
        if os.fstat(file).st_size != key.size:
            return []
        block = mmap.mmap(file, key.size)
    except OSError:
        return []
    finally:
        os.close(file)
    if block[:_MARK_BYTES] != key.mark:
        return []
    return [rows_of(each, rows) for each in key.views(block)]


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
