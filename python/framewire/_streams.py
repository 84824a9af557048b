"""The base classes of streams, which report one item after another until the end of `with`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self  # typing has it since Python 3.11

Item = TypeVar("Item")


class BaseStream(Iterator[Item]):
    """An endless iterator. The end of `with` closes it."""

    @abstractmethod
    def next(self) -> Item:
        """Waits for the next item."""

    @abstractmethod
    def close(self) -> None:
        """Ends the stream."""

    def __next__(self) -> Item:
        return self.next()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncBaseStream(AsyncIterator[Item]):
    """The same for asyncio."""

    @abstractmethod
    async def next(self) -> Item:
        """Waits for the next item."""

    @abstractmethod
    async def close(self) -> None:
        """Ends the stream."""

    async def __anext__(self) -> Item:
        return await self.next()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
