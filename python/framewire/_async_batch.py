"""Batches of operations for a client.

`generate.py` makes `_sync_batch.py` from this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy.typing as npt

from framewire import _calls as calls
from framewire._arguments import whole
from framewire._async_transport import AsyncTransport
from framewire._result import Result
from framewire.errors import FramewireError
from framewire.model import Address, Data, Keys, NumberType, Presses, Timeline
from framewire.screen import Screen

T = TypeVar("T")


class AsyncBatch:
    """Operations that are performed in order at the end of `async with`. Only `advance` runs frames between them.

    If an operation fails, the batch ends with its exception. `op` of the exception is the number of the operation,
    counted from 0. The operations before it were performed, and their results have values.

    Attributes:
        frame: The frame counter after the batch; None before the batch has run.
    """

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self._operations: list[calls.Operation[Any]] = []
        self._results: list[Result[Any]] = []
        self.frame: int | None = None
        self._has_run = False

    def _add(self, operation: calls.Operation[T]) -> Result[T]:
        if self._has_run:
            raise FramewireError("the batch has run; begin another one with batch()")
        result = Result[T]()
        self._operations.append(operation)
        self._results.append(result)
        return result

    def read(self, address: Address, type: NumberType | None = None, *, domain: str | None = None) -> Result[int]:
        """Reads a number."""
        return self._add(calls.read(address, type, domain))

    def read_many(
        self, addresses: Sequence[Address], type: NumberType | None = None, *, domain: str | None = None
    ) -> Result[list[int]]:
        """Reads several numbers."""
        return self._add(calls.read_many(addresses, type, domain))

    def read_bytes(self, address: Address, length: int, *, domain: str | None = None) -> Result[bytes]:
        """Reads bytes."""
        return self._add(calls.read_bytes(address, length, domain))

    def read_array(
        self, address: Address, type: NumberType | npt.DTypeLike, count: int, *, domain: str | None = None
    ) -> Result[npt.NDArray[Any]]:
        """Reads consecutive numbers."""
        return self._add(calls.read_array(address, type, count, domain))

    def write(
        self, address: Address, value: int, type: NumberType | None = None, *, domain: str | None = None
    ) -> Result[None]:
        """Writes a number."""
        return self._add(calls.write(address, value, type, domain))

    def write_bytes(self, address: Address, data: Data, *, domain: str | None = None) -> Result[None]:
        """Writes bytes or an array. One operation can write about 16 KiB to a domain."""
        return self._add(calls.write_bytes(address, data, domain))

    def press(self, keys: Keys, frames: int = 1) -> Result[Timeline]:
        """Presses keys together for a number of frames."""
        return self._add(calls.press(keys, frames))

    def play(self, presses: Presses) -> Result[Timeline]:
        """Presses keys one after another."""
        return self._add(calls.play(presses, False))

    def hold(self, keys: Keys) -> Result[None]:
        """Holds keys."""
        return self._add(calls.hold(keys))

    def release(self, keys: Keys | None = None) -> Result[None]:
        """Releases these keys, or all held keys."""
        return self._add(calls.release(keys))

    def advance(self, frames: int = 1, *, draw: bool = True) -> Result[int]:  # noqa: ARG002
        """Runs frames, up to 3,600 in a batch. With an mGBA window, this must be the last operation of the batch.

        `draw` has no effect, as in `AsyncClient.advance`.
        """
        return self._add(calls.advance(whole(frames, "frames")))

    def reset(self) -> Result[None]:
        """Resets the console."""
        return self._add(calls.plain("reset"))

    def screen(self) -> Result[Screen]:
        """The picture of the last frame."""
        return self._add(calls.batch_screen())

    def save_state(self, flags: int = 31) -> Result[bytes]:
        """Saves the state of the console. `flags` chooses what it includes: docs/states.md."""
        return self._add(calls.batch_save_state(flags))

    def load_state(self, state: bytes, flags: int = 29) -> Result[bool]:
        """Loads a state. The result is whether the emulator accepted it. `flags` chooses what is loaded: docs/states.md."""
        return self._add(calls.batch_load_state(state, flags))

    async def run(self) -> None:
        """Performs the operations."""
        # Even if this fails, the end of `with` must not perform them again.
        self._has_run = True
        try:
            frame, values = await self._transport.perform(calls.batch(self._operations))
        except FramewireError as error:
            for result in self._results:
                result._fail(error)
            raise
        self.frame = frame
        failure: FramewireError | None = None
        for result, value in zip(self._results, values, strict=False):
            if isinstance(value, FramewireError):
                failure = value
                result._fail(failure)
            else:
                result._set(value)
        for result in self._results[len(values) :]:
            result._fail(FramewireError(f"not performed, because an operation before it failed: {failure}"))
        if failure is not None:
            raise failure

    async def __aenter__(self) -> AsyncBatch:
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        if error is None and self._operations and not self._has_run:
            await self.run()
