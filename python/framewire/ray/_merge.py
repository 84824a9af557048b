"""Merges the results of several workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from framewire.envs._spaces import Array, Observation

Rows = slice
"""The numbers of the environments of one worker."""


def in_order(observations: Observation) -> Observation:
    """The same observations, with arrays in the order of their names. So the order is the same on all machines."""
    return dict(sorted(observations.items())) if isinstance(observations, dict) else observations


def arrays(observations: Observation) -> list[Array]:
    """The arrays of observations, in the order of `in_order`."""
    return list(in_order(observations).values()) if isinstance(observations, dict) else [observations]


def write(into: Observation, observations: Observation) -> None:
    """Copies observations, unless they are already there."""
    for target, values in zip(arrays(into), arrays(observations), strict=True):
        if not np.may_share_memory(target, values):
            target[:] = values


def merge_infos(parts: Sequence[tuple[Rows, dict[str, Any]]], count: int) -> dict[str, Any]:
    """Merges the infos of workers. A value that a worker does not have is None, zero or False for its environments."""
    merged: dict[str, Any] = {}
    for rows, info in parts:
        for name, values in info.items():
            if isinstance(values, dict):
                continue
            if name not in merged:
                empty = None if values.dtype == object else 0
                merged[name] = np.full((count, *values.shape[1:]), empty, dtype=values.dtype)
            merged[name][rows] = values
    for name in {name: None for _, info in parts for name, values in info.items() if isinstance(values, dict)}:
        merged[name] = merge_infos([(rows, info[name]) for rows, info in parts if name in info], count)
    return merged
