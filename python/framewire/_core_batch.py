"""Batches of operations for an emulator in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy.typing as npt

from framewire._result import Result
from framewire.errors import FramewireError, RequestFailed
from framewire.model import Address, Data, Keys, NumberType, Presses, Timeline, as_bytes
from framewire.screen import Screen

if TYPE_CHECKING:
    from framewire.core import Core

T = TypeVar("T")


class CoreBatch:
    """Operations that are performed in order at the end of `with`. Only `advance` runs frames between them.

    If an operation fails, the batch ends with its exception. `op` of the exception is the number of the operation,
    counted from 0. The operations before it were performed, and their results have values.

    Attributes:
        frame: The frame counter after the batch; None before the batch has run.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._operations: list[tuple[Callable[[], Any], Result[Any]]] = []
        self.frame: int | None = None
        self._has_run = False

    def _add(self, operation: Callable[[], T]) -> Result[T]:
        if self._has_run:
            raise FramewireError("the batch has run; begin another one with batch()")
        result = Result[T]()
        self._operations.append((operation, result))
        return result

    def read(self, address: Address, type: NumberType | None = None, *, domain: str | None = None) -> Result[int]:
        """Reads a number."""
        return self._add(lambda: self._core.read(address, type, domain=domain))

    def read_many(
        self, addresses: Sequence[Address], type: NumberType | None = None, *, domain: str | None = None
    ) -> Result[list[int]]:
        """Reads several numbers."""
        return self._add(lambda: self._core.read_many(addresses, type, domain=domain))

    def read_bytes(self, address: Address, length: int, *, domain: str | None = None) -> Result[bytes]:
        """Reads bytes."""
        return self._add(lambda: self._core.read_bytes(address, length, domain=domain))

    def read_array(
        self, address: Address, type: NumberType | npt.DTypeLike, count: int, *, domain: str | None = None
    ) -> Result[npt.NDArray[Any]]:
        """Reads consecutive numbers."""
        return self._add(lambda: self._core.read_array(address, type, count, domain=domain))

    def write(
        self, address: Address, value: int, type: NumberType | None = None, *, domain: str | None = None
    ) -> Result[None]:
        """Writes a number."""
        return self._add(lambda: self._core.write(address, value, type, domain=domain))

    def write_bytes(self, address: Address, data: Data, *, domain: str | None = None) -> Result[None]:
        """Writes bytes or an array."""
        content = as_bytes(data)
        return self._add(lambda: self._core.write_bytes(address, content, domain=domain))

    def press(self, keys: Keys, frames: int = 1) -> Result[Timeline]:
        """Presses keys together for a number of frames."""
        return self._add(lambda: self._core.press(keys, frames))

    def play(self, presses: Presses) -> Result[Timeline]:
        """Presses keys one after another."""
        return self._add(lambda: self._core.play(presses))

    def hold(self, keys: Keys) -> Result[None]:
        """Holds keys."""
        return self._add(lambda: _nothing(self._core.hold(keys)))

    def release(self, keys: Keys | None = None) -> Result[None]:
        """Releases these keys, or all held keys."""
        return self._add(lambda: self._core.release(keys))

    def advance(self, frames: int = 1, *, draw: bool = True) -> Result[int]:
        """Runs frames. The last one is drawn, unless `draw` is false."""
        return self._add(lambda: self._core.advance(frames, draw=draw))

    def reset(self) -> Result[None]:
        """Resets the console."""
        return self._add(self._core.reset)

    def screen(self) -> Result[Screen]:
        """The picture of the last frame."""
        return self._add(self._core.screen)

    def save_state(self, flags: int = 31) -> Result[bytes]:
        """Saves the state of the console. `flags` chooses what it includes: docs/states.md."""
        return self._add(lambda: self._core.save_state(flags))

    def load_state(self, state: bytes, flags: int = 29) -> Result[bool]:
        """Loads a state. The result is True, because a state that is not accepted raises an exception.

        `flags` chooses what is loaded: docs/states.md.
        """
        return self._add(lambda: self._core.load_state(state, flags) is not None)

    def run(self) -> None:
        """Performs the operations."""
        # Even if this fails, the end of `with` must not perform them again.
        self._has_run = True
        failure: FramewireError | None = None
        for number, (operation, result) in enumerate(self._operations):
            if failure is not None:
                result._fail(FramewireError(f"not performed, because an operation before it failed: {failure}"))
                continue
            try:
                result._set(operation())
            except FramewireError as error:
                if isinstance(error, RequestFailed):
                    error.op = number
                failure = error
                result._fail(error)
        self.frame = self._core.frame()
        if failure is not None:
            raise failure

    def __enter__(self) -> CoreBatch:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if error is None and self._operations and not self._has_run:
            self.run()


def _nothing(_: object) -> None:
    """Drops the object that `Core.hold` returns, because `hold` has no result in a batch."""
