"""Wrappers for objects that some asynchronous methods return.

A wrapper can be awaited, or used in `async with` without `await`. A wrapper of a stream can also be used in `async for`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar

from framewire._streams import AsyncBaseStream

P = ParamSpec("P")
C = TypeVar("C", bound=AbstractAsyncContextManager[Any])
S = TypeVar("S", bound=AsyncBaseStream[Any])


class Starting(Generic[C]):
    """Runs the coroutine of a method when it is awaited, or when `async with` is entered."""

    def __init__(self, begin: Coroutine[Any, Any, C]) -> None:
        self._begin = begin
        self._begun: C | None = None

    def __await__(self) -> Generator[Any, None, C]:
        return self._begin.__await__()

    async def __aenter__(self) -> C:
        self._begun = await self._begin
        await self._begun.__aenter__()
        return self._begun

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._begun is not None
        await self._begun.__aexit__(kind, error, traceback)


class StartingStream(Starting[S]):
    """Like `Starting`, but also begins when `async for` gets the first item."""

    async def __aiter__(self) -> AsyncIterator[Any]:
        async with self as stream:
            async for item in stream:
                yield item


def starting(begin: Callable[P, Coroutine[Any, Any, C]]) -> Callable[P, Starting[C]]:
    """Makes an asynchronous method return a `Starting`."""

    def start(*args: P.args, **kwargs: P.kwargs) -> Starting[C]:
        return Starting(begin(*args, **kwargs))

    start.__doc__ = begin.__doc__
    return start


def starting_stream(begin: Callable[P, Coroutine[Any, Any, S]]) -> Callable[P, StartingStream[S]]:
    """Makes an asynchronous method return a `StartingStream`."""

    def start(*args: P.args, **kwargs: P.kwargs) -> StartingStream[S]:
        return StartingStream(begin(*args, **kwargs))

    start.__doc__ = begin.__doc__
    return start
