"""One batch from those of several workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from framewire.envs._spaces import Observation

Rows = slice


def copy_rows(into: Observation, rows: Rows, part: Observation) -> None:
    """Copies the observations of a worker to their rows."""
    if isinstance(into, dict):
        for name, values in into.items():
            values[rows] = part[name]
    else:
        into[rows] = part


def merge_infos(parts: Sequence[tuple[Rows, dict[str, Any]]], count: int) -> dict[str, Any]:
    """The information of all environments. What only some workers have is None, zero or False for the others."""
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
