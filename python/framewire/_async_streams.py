"""Watches, events and sound, which report one item after another; and objects that hold keys.

`generate.py` makes `_sync_streams.py` from this file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import numpy as np
import websockets.asyncio.client
from websockets.exceptions import ConnectionClosed

from framewire import _calls as calls
from framewire._async_transport import AsyncTransport
from framewire._streams import AsyncBaseStream
from framewire.errors import ConnectionLost, FramewireError, WaitTimeout, WatchEnded
from framewire.model import AudioChunk, Change, Event, Value


class AsyncHeld:
    """Held keys, a pause or lockstep, until `release` or the end of `async with`."""

    def __init__(self, transport: AsyncTransport, end: calls.Call[None]) -> None:
        self._transport = transport
        self._end = end

    async def begin(self, call: calls.Call[None]) -> None:
        """Holds the keys, or begins the pause or lockstep. If this call is cancelled or interrupted, undoes it."""
        await self._transport.perform(call, self._end)

    async def release(self) -> None:
        """Releases the keys, or ends the pause or lockstep."""
        await self._transport.perform(self._end)

    async def __aenter__(self) -> AsyncHeld:
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        try:
            await self.release()
        except FramewireError:
            if error is None:
                raise


class AsyncWatch(AsyncBaseStream[Change]):
    """The changes of watched values, in order. `async for change in watch` waits for each change.

    Attributes:
        expressions: The watched expressions.
        values: The value of each expression after the last event that was read. One event can contain several changes, so
            `values` can be ahead of the change that `next` returned.
        missed: How many events were lost, because this program was too slow or a connection broke. Events are not counted
            if the server does not know how many were lost.
    """

    def __init__(self, transport: AsyncTransport, expressions: Sequence[str]) -> None:
        self._transport = transport
        self._subscription = transport.subscribe({"watch": list(expressions)})
        self._ready: list[Change] = []
        self._gap = False
        self._dropped = 0
        self.expressions = tuple(expressions)
        self.values: dict[str, Value] = {}
        self.missed = 0

    async def begin(self) -> None:
        """Waits for the first values."""
        while not self.values:
            event = await self._transport.event(self._subscription, None)
            if event is not None:
                self._take(*event)

    async def next(self, timeout: float | None = None) -> Change:
        """The next change.

        Args:
            timeout: How many seconds to wait. None waits without a limit.

        Raises:
            FramewireError: The watch was closed.
            WaitTimeout: Nothing changed in this time.
            WatchEnded: The watch has ended, for example because another game was loaded.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._ready:
            # Some events, such as `missed`, contain no change.
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            event = await self._transport.event(self._subscription, left)
            if event is None:
                raise WaitTimeout(f"no change of {', '.join(self.expressions)} in {timeout} s")
            self._take(*event)
        return self._ready.pop(0)

    async def close(self) -> None:
        """Ends the watch."""
        self._transport.unsubscribe(self._subscription, "the watch was closed; call watch() again")

    def _take(self, name: str, data: Mapping[str, Any]) -> None:
        try:
            self._read(name, data)
        except calls.UNREADABLE as error:
            raise calls.unreadable(f"event {name} of a watch", error) from error

    def _read(self, name: str, data: Mapping[str, Any]) -> None:
        # This client drops events that are not read in time. A `missed` event contains the number of events that the
        # server dropped.
        lost = self._subscription.dropped - self._dropped
        if lost or name == "missed" or data.get("gap"):
            self._gap = True
            self._dropped += lost
            self.missed += lost + (data.get("missed") or 0 if name == "missed" else 0)
        if name == "change":
            for expression, change in data["changes"].items():
                old, new = (calls.value(expression, change[each]) for each in ("old", "new"))
                self._change(expression, data["frame"], old, new, data["tick"], False)
            # An event can report only a gap. The next change then reports it.
            if data["changes"]:
                self._gap = False
        elif name in ("values", "missed"):
            for expression, encoded in data["values"].items():
                new = calls.value(expression, encoded)
                old = self.values.setdefault(expression, new)
                if old != new:
                    self._change(expression, data["frame"], old, new, None, True)
                    self._gap = False  # this change reports the gap
        elif name == "end":
            self._subscription.fail(WatchEnded(f"the watch is over: {data.get('detail')}; call watch() again"))

    def _change(self, expression: str, frame: int, old: Value, new: Value, tick: int | None, gap: bool) -> None:
        self.values[expression] = new
        self._ready.append(Change(expression, frame, old, new, tick, gap or self._gap))


class AsyncEvents(AsyncBaseStream[Event]):
    """Events of the emulator, such as a reset. `async for event in events` waits for each event.

    Up to 16,384 events are kept until they are read. After that, the oldest are lost.
    """

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self._subscription = transport.subscribe({"events": True})

    async def begin(self) -> None:
        """Waits until the server has begun to report events."""
        await self._transport.begun(self._subscription)

    async def next(self, timeout: float | None = None) -> Event:
        """The next event.

        Args:
            timeout: How many seconds to wait. None waits without a limit.

        Raises:
            FramewireError: The events were closed.
            WaitTimeout: Nothing happened in this time.
            WatchEnded: The previous event was `end`.
        """
        event = await self._transport.event(self._subscription, timeout)
        if event is None:
            raise WaitTimeout(f"no event in {timeout} s")
        name, data = event
        try:
            if name == "end":
                self._subscription.fail(WatchEnded(f"the events are over: {data.get('detail')}; call events() again"))
            return Event(name, data.get("frame"), data)
        except calls.UNREADABLE as error:
            raise calls.unreadable(f"event {name}", error) from error

    async def close(self) -> None:
        """Stops receiving events."""
        self._transport.unsubscribe(self._subscription, "the events were closed; call events() again")


class AsyncAudio(AsyncBaseStream[AudioChunk]):
    """Sound, about one chunk per frame. `async for chunk in audio` waits for each chunk."""

    def __init__(self, socket: websockets.asyncio.client.ClientConnection, stack: AsyncExitStack) -> None:
        self._socket = socket
        self._stack = stack
        self._rate = 0
        self._missed = 0

    async def next(self) -> AudioChunk:
        """The next chunk.

        Raises:
            ConnectionLost: The connection has ended, or the sound was closed.
        """
        while True:
            try:
                message = await self._socket.recv()
            except ConnectionClosed as error:
                raise ConnectionLost(f"the sound ended: {error}; call audio() again") from None
            try:
                if isinstance(message, str):
                    news = json.loads(message)
                    self._rate = news.get("rate", self._rate)
                    self._missed += news.get("missed", 0)
                else:
                    missed, self._missed = self._missed, 0
                    return AudioChunk(np.frombuffer(message, "<i2").reshape(-1, 2), self._rate, missed)
            except calls.UNREADABLE as error:
                raise calls.unreadable("sound", error) from error

    async def close(self) -> None:
        """Ends the sound."""
        await self._stack.aclose()
