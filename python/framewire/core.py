"""An emulator in this process: `framewire.load`.

A `Core` runs frames only in its methods, on the thread that calls them. Any number of cores can run at the same time: they
do not hold the interpreter's lock while they run frames.

It has the methods of `Emulator` for memory, keys, frames, pictures, states and expressions. Snapshots, recordings, watches
and batches need a server: `framewire serve`, and `framewire.connect`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from framewire import _native
from framewire.errors import InvalidRequest, WaitTimeout
from framewire.memory import Memory
from framewire.model import (
    DTYPES,
    Address,
    Data,
    Info,
    Keys,
    NumberType,
    Presses,
    Symbol,
    Waited,
    as_bytes,
    key_names,
    sequence_text,
)
from framewire.screen import Screen

_BITS = {name: 1 << bit for bit, name in enumerate(("A", "B", "Select", "Start", "Right", "Left", "Up", "Down", "R", "L"))}


def load(
    rom: str | os.PathLike[str],
    *,
    symbols: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    clock: datetime | None = None,
) -> Core:
    """Starts a game in this process.

    Args:
        rom: The path of the ROM.
        symbols: Symbol files: names for addresses.
        clock: The time at which the cartridge's clock starts; it then follows the frames. None is this machine's clock.
    """
    return Core(rom, symbols=symbols, clock=clock)


class Core:
    """An emulator in this process. See `load`."""

    def __init__(
        self,
        rom: str | os.PathLike[str],
        *,
        symbols: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        clock: datetime | None = None,
    ) -> None:
        files = [symbols] if isinstance(symbols, (str, os.PathLike)) else symbols
        start = None if clock is None else round(clock.timestamp() * 1000)
        self._core = _native.Core(os.fspath(rom), [os.fspath(file) for file in files], start)
        self._held = 0
        self._symbols: dict[str, Symbol] | None = None
        self.memory = Memory(self)

    def close(self) -> None:
        """Frees the core."""
        self._core.close()

    def __enter__(self) -> Core:
        """The core."""
        return self

    def __exit__(self, *_: object) -> None:
        """Frees the core."""
        self.close()

    def read(self, address: Address, type: NumberType | None = None, *, domain: str | None = None) -> int:
        """Reads a number."""
        return self._core.read(address if isinstance(address, str) else hex(address), type, domain)

    def read_many(
        self, addresses: Sequence[Address], type: NumberType | None = None, *, domain: str | None = None
    ) -> list[int]:
        """Reads several numbers at the same frame."""
        return [self.read(address, type, domain=domain) for address in addresses]

    def read_bytes(self, address: Address, length: int, *, domain: str | None = None) -> bytes:
        """Reads bytes."""
        return self._core.read_bytes(self._address(address), length, domain)

    def read_array(
        self, address: Address, type: NumberType | npt.DTypeLike, count: int, *, domain: str | None = None
    ) -> npt.NDArray[Any]:
        """Reads numbers in a row."""
        dtype = DTYPES[type] if isinstance(type, str) and type in DTYPES else np.dtype(type)
        return np.frombuffer(self.read_bytes(address, count * dtype.itemsize, domain=domain), dtype).copy()

    def write(self, address: Address, value: int, type: NumberType | None = None, *, domain: str | None = None) -> None:
        """Writes a number."""
        self._core.write(address if isinstance(address, str) else hex(address), value, type, domain)

    def write_bytes(self, address: Address, data: Data, *, domain: str | None = None) -> None:
        """Writes bytes or an array."""
        self._core.write_bytes(self._address(address), as_bytes(data), domain)

    def symbols(self, contains: str | None = None) -> dict[str, Symbol]:
        """The names of addresses of the game, or those that contain a text."""
        if self._symbols is None:
            self._symbols = {
                name: Symbol(name, address, kind, count, doc) for name, address, kind, count, doc in self._core.symbols()
            }
        return {name: symbol for name, symbol in self._symbols.items() if contains is None or contains in name}

    def press(self, keys: Keys, frames: int = 1) -> int:
        """Runs frames while these keys are held, in addition to those of `hold`, and returns the frame counter."""
        self._core.advance(frames, self._held | _mask(keys))
        return self.frame()

    def play(self, presses: Presses) -> int:
        """Presses keys one after the other: `play("A:2 .:10 Up+B:30")`. Runs their frames and returns the frame counter."""
        self._core.play(sequence_text(presses), self._held)
        return self.frame()

    @contextmanager
    def _releasing(self, before: int) -> Iterator[None]:
        try:
            yield
        finally:
            self._held = before

    def hold(self, keys: Keys) -> Any:
        """Holds keys until `release`, or the end of `with`."""
        before = self._held
        self._held |= _mask(keys)
        return self._releasing(before)

    def release(self, keys: Keys | None = None) -> None:
        """Releases held keys, or all."""
        self._held &= 0 if keys is None else ~_mask(keys)

    def frame(self) -> int:
        """The frame counter: frames since the last reset."""
        return self._core.frame()

    def advance(self, frames: int = 1) -> int:
        """Runs frames and returns the frame counter. Only the last one is drawn."""
        self._core.advance(frames, self._held)
        return self._core.frame()

    def reset(self) -> None:
        """Restarts the game."""
        self._core.reset()

    def info(self) -> Info:
        """The state of the emulator and its game."""
        title, code, checksum, platform = self._core.game()
        more = {"checksum": checksum, "platform": platform}
        return Info("embedded", True, "paused", self.frame(), title, code, more)

    def screen(self) -> Screen:
        """The picture of the last frame."""
        return Screen(self._core.screen(), self._core.frame())

    def audio(self) -> npt.NDArray[np.int16]:
        """The sound of the frames since the last call, of ten frames at most: one row per sample, left and right."""
        return self._core.audio().reshape(-1, 2)

    @property
    def sample_rate(self) -> int:
        """Samples per second of `audio`."""
        return self._core.sample_rate()

    def save_state(self) -> bytes:
        """The state, with the battery save and the cartridge's clock, in mGBA's format."""
        return self._core.save_state()

    def load_state(self, state: bytes) -> int:
        """Loads a state and returns the frame counter."""
        self._core.load_state(state)
        return self._core.frame()

    def evaluate(self, expression: str) -> int | None:
        """The value of an expression over memory; None if it has none, such as a division by zero."""
        return self._core.evaluate(expression)

    def wait(self, expression: str, timeout_frames: int = 600) -> Waited:
        """Runs frames until an expression is true after one of them."""
        frames, is_true = self._core.run_until(expression, timeout_frames, self._held)
        if not is_true:
            raise WaitTimeout(f"{expression} was not true within {frames} frames; the emulator is in frame {self.frame()}")
        return Waited(self.frame(), frames)

    def _address(self, address: Address) -> int:
        return address if isinstance(address, int) else self._core.locate(address)[0]


def _mask(keys: Keys) -> int:
    mask = 0
    for name in key_names(keys):
        if name not in _BITS:
            raise InvalidRequest(f"{name!r} is not a key; use {', '.join(_BITS)}", parameter="keys")
        mask |= _BITS[name]
    return mask
