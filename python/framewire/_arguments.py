"""Checks of arguments, for emulators of a server and for emulators in this process."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framewire.errors import InvalidRequest, shown
from framewire.model import DTYPES, NumberType

MAX_THREADS = 1024
"""The largest number of threads. Few machines have more processors, and more threads would only use memory."""


MAX_SECONDS = 1_000_000.0
"""The longest time-out: more than eleven days. The system refuses much longer time-outs."""


def whole(value: object, name: str, accepts: str = "a whole number") -> int:
    """Converts a whole number, which may be a NumPy number, to an int."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidRequest(f"{name} is {shown(value)}; use {accepts}", parameter=name, accepts=accepts) from None


def check_range(value: object, name: str, least: int, most: int) -> int:
    """Checks that this is a whole number from `least` to `most`, and converts it to an int."""
    number = whole(value, name)
    if not least <= number <= most:
        raise InvalidRequest(f"{name} is {shown(number)}; use a number from {least} to {most}", parameter=name)
    return number


def check_seconds(value: float, name: str, least: float) -> float:
    """Checks a number of seconds. A number above `MAX_SECONDS`, such as infinity, becomes `MAX_SECONDS`."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or not value >= least:
        raise InvalidRequest(f"{name} is {shown(value)}; use a number of seconds of at least {least:g}", parameter=name)
    return float(min(value, MAX_SECONDS))


def absolute(path: str | os.PathLike[str]) -> str:
    """The absolute path, which has the same meaning after the program has changed its current folder."""
    return str(Path(path).absolute())


def dtype_of(type: NumberType | npt.DTypeLike) -> np.dtype[Any]:
    """The NumPy type for a name such as `u16`, or for a NumPy type. Big-endian NumPy types keep their byte order."""
    if isinstance(type, str) and type in DTYPES:
        return DTYPES[type]
    try:
        # NumPy would take None for float64. The type `object` is refused below.
        dtype = np.dtype(object) if type is None else np.dtype(type)
    except (TypeError, ValueError, SyntaxError):
        dtype = np.dtype(object)
    if dtype.hasobject or dtype.itemsize == 0:
        accepts = f"{', '.join(DTYPES)} or a NumPy type"
        raise InvalidRequest(f"type is {shown(type)}; use {accepts}", parameter="type", accepts=accepts)
    return dtype.newbyteorder("<") if dtype.byteorder == "=" else dtype


def codes_text(codes: str | Sequence[str]) -> str:
    """The codes as one text, with one code per line."""
    try:
        return codes if isinstance(codes, str) else "\n".join(codes)
    except TypeError:
        raise InvalidRequest(f"codes is {shown(codes)}; use a text, or a list of texts", parameter="codes") from None


def check_addresses(addresses: object) -> None:
    """Checks that this is a list of addresses, and not one address."""
    if isinstance(addresses, str) or not isinstance(addresses, Iterable):
        raise InvalidRequest(
            f"addresses is {shown(addresses)}; use a list, such as ['score', 'lives']", parameter="addresses"
        )


def check_threads(threads: int) -> None:
    """Checks a number of threads; 0 means one per processor."""
    if not 0 <= whole(threads, "threads") <= MAX_THREADS:
        raise InvalidRequest(
            f"threads is {shown(threads)}; use a number from 0 (one per processor) to {MAX_THREADS}", parameter="threads"
        )


def check_counts(**counts: int | None) -> None:
    """Checks that each of these arguments is at least 1, or None."""
    for name, value in counts.items():
        if value is not None and whole(value, name, "a whole number of at least 1") < 1:
            raise InvalidRequest(f"{name} is {shown(value)}; use a whole number of at least 1", parameter=name)


def cheat_number(id: int) -> int:
    """Checks the number of a cheat, and returns it. There is no cheat 0."""
    if not 1 <= whole(id, "id") <= 0xFFFF_FFFF:
        raise InvalidRequest(f"id is {shown(id)}; use the number of a cheat (from 1), or None for all", parameter="id")
    return whole(id, "id")
