"""Shared memory for observations, between the program and the workers on its own machine."""

from __future__ import annotations

import math
import mmap
import os
import secrets
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector.utils import create_empty_array

from framewire.envs._spaces import Array, Observation, rows_of
from framewire.ray._merge import Rows, arrays

# The shared block begins with this many random bytes, by which a worker recognises it.
_MARK_BYTES = 64
_ALIGNMENT = 64


class _Part(NamedTuple):
    """One array of the observations: its name (None if it is the only one), and shape and type for one environment."""

    name: str | None
    shape: tuple[int, ...]
    dtype: str


class MemoryKey(NamedTuple):
    """Says where workers find the memory, which is an open file of the program's process, and how to read it.

    Attributes:
        process: The id of the program's process.
        file: The file descriptor in that process.
        mark: The bytes at the beginning of the memory.
        envs: The number of environments.
        sets: The number of sets of arrays.
        parts: The arrays of each set.
    """

    process: int
    file: int
    mark: bytes
    envs: int
    sets: int
    parts: tuple[_Part, ...]

    def views(self, block: Any) -> list[Observation]:
        """Views of the block: for each set, the observations of all environments."""
        found: list[Observation] = []
        at = _MARK_BYTES
        for _ in range(self.sets):
            observations: dict[str | None, Array] = {}
            for part in self.parts:
                count = self.envs * math.prod(part.shape)
                flat = np.frombuffer(block, part.dtype, count, at)
                observations[part.name] = flat.reshape(self.envs, *part.shape)
                at += _aligned(flat.nbytes)
            found.append(observations.get(None, observations))
        return found

    @property
    def size(self) -> int:
        """The size of the block in bytes."""
        each = sum(_aligned(self.envs * math.prod(part.shape) * np.dtype(part.dtype).itemsize) for part in self.parts)
        return _MARK_BYTES + self.sets * each


class SharedMemory:
    """Several sets of arrays. Each set has room for the observations of all environments.

    Args:
        space: The space of one environment's observations.
        envs: The number of environments.
        sets: The number of sets.
    """

    def __init__(self, space: gymnasium.spaces.Space[Any], envs: int, sets: int) -> None:
        sample: Any = create_empty_array(space, 1)
        names = sorted(sample) if isinstance(sample, dict) else [None]
        parts = [_Part(name, each.shape[1:], each.dtype.str) for name, each in zip(names, arrays(sample), strict=True)]
        key = MemoryKey(os.getpid(), -1, secrets.token_bytes(_MARK_BYTES), envs, sets, tuple(parts))
        self.key: MemoryKey | None = None
        if hasattr(os, "memfd_create"):
            # This file has no name, so it cannot remain after the program has ended.
            key = key._replace(file=os.memfd_create("framewire-fleet"))
            os.posix_fallocate(key.file, 0, key.size)
            block: Any = mmap.mmap(key.file, key.size)
            self.key = key
        else:
            block = bytearray(key.size)
        block[:_MARK_BYTES] = key.mark
        self.sets = key.views(block)

    def close(self) -> None:
        """Closes the file. The arrays can still be used."""
        if self.key is not None:
            os.close(self.key.file)
            self.key = None


def open_rows(key: MemoryKey | None, rows: Rows) -> list[Observation]:
    """Opens the memory in a worker. Returns these rows of each set; no sets if the program is on another machine."""
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
