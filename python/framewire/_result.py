"""The result of an operation in a batch."""

from __future__ import annotations

from typing import Generic, TypeVar

from framewire.errors import FramewireError

T = TypeVar("T")


class Result(Generic[T]):
    """The result of an operation in a batch."""

    def __init__(self) -> None:
        self._values: list[T] = []
        self._error: FramewireError | None = None

    @property
    def value(self) -> T:
        """The value.

        Raises:
            FramewireError: The batch has not run, or this operation failed or was not performed.
        """
        if self._values:
            return self._values[0]
        if self._error is not None:
            raise self._error
        raise FramewireError("the batch has not run yet; its results have values after the `with` block")

    def _set(self, value: T) -> None:
        self._values = [value]

    def _fail(self, error: FramewireError) -> None:
        self._error = error
