"""Sends and receives the bytes of the asynchronous client over one connection, in the client's event loop."""

from __future__ import annotations

import asyncio
import ssl as tls
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakSet

from framewire._arguments import check_seconds
from framewire._calls import Call
from framewire._session import START_IT, Pending, Refused, Session, Subscription
from framewire.errors import ConnectionFailed, ConnectionLost, FramewireError

T = TypeVar("T")

# How many seconds `close` waits for the server.
_CLOSE_SECONDS = 1.0


class _Waiting(Pending):
    __slots__ = ("future",)

    def __init__(self, call: Call[Any], future: asyncio.Future[Any]) -> None:
        super().__init__(call.method, call.params, call.changes, call.clean_up)
        self.future = future

    def settle(self, result: Any, error: FramewireError | None) -> None:
        if not self.future.done():
            if error is None:
                self.future.set_result(result)
            else:
                self.future.set_exception(error)


class _Queue(Subscription):
    def __init__(self, params: dict[str, Any]) -> None:
        super().__init__(params)
        self.news = asyncio.Event()

    def wake(self) -> None:
        self.news.set()


class _Stream(asyncio.Protocol):
    """This program's side of one connection."""

    def __init__(self, owner: AsyncTransport, opened: asyncio.Future[None]) -> None:
        self._owner = owner
        self._opened = opened
        self.transport: asyncio.Transport | None = None
        self.closed = opened.get_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._owner.made(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._owner.received(self, data)
        except (Refused, EOFError) as error:
            self._end(error)
        else:
            if not self._opened.done() and self._owner.is_open():
                self._opened.set_result(None)

    def eof_received(self) -> None:
        self.data_received(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or EOFError("the connection ended without a reason"))
        if not self.closed.done():
            self.closed.set_result(None)

    def _end(self, error: Exception) -> None:
        if not self._opened.done():
            self._opened.set_exception(error)
        if self.transport is not None:
            self.transport.abort()
        self._owner.lost(self, error)


class AsyncTransport:
    """Sends calls and receives replies and events. Connects again if the connection breaks.

    Attributes:
        sounds: The sound that the client has begun. It has connections of its own.
    """

    def __init__(self, url: str, token: str | None, timeout: float, retry: float, context: tls.SSLContext | None) -> None:
        self._session = Session(url, token)
        self._timeout = check_seconds(timeout, "timeout", 0.001)
        self._retry = check_seconds(retry, "retry", 0)
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._stream: _Stream | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._flushing = False
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self.sounds: WeakSet[Any] = WeakSet()
        # While `close` waits: set when everything that cancelled requests created has been deleted, or when the
        # connection is lost.
        self._cleaned_up = asyncio.Event()

    async def start(self) -> None:
        """Connects for the first time. Makes only one attempt."""
        await self._connect(0.0)

    async def perform(self, call: Call[T], undo: Call[Any] | None = None) -> T:
        """Sends a request and waits for its reply.

        If the wait is cancelled, and the server may have performed the request, sends `undo`.
        """
        self.check_open()
        future: asyncio.Future[Any] = self._loop.create_future()
        pending = _Waiting(call, future)
        self._session.submit(pending)
        self._send_soon()
        try:
            result = await future
        except asyncio.CancelledError:
            self._session.abandon(pending)
            # If the reply came just before the cancellation, the future is done and has a result.
            failed = future.done() and not future.cancelled() and future.exception() is not None
            if undo is not None and not failed and not self._closed:
                self._session.undo(pending, undo)
                self._send_soon()
            raise
        return call.parsed(result)

    def subscribe(self, params: dict[str, Any]) -> _Queue:
        """Begins a subscription."""
        self.check_open()
        subscription = _Queue(params)
        self._session.subscribe(subscription)
        self._send_soon()
        return subscription

    async def begun(self, subscription: _Queue) -> None:
        """Waits until the server has begun a subscription."""
        while subscription.number is None:
            if subscription.error is not None:
                raise subscription.error
            self.check_open()
            subscription.news.clear()
            await subscription.news.wait()

    async def event(self, subscription: _Queue, timeout: float | None) -> tuple[str, Mapping[str, Any]] | None:
        """The next event; None after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not subscription.events:
            if subscription.error is not None:
                raise subscription.error
            self.check_open()
            subscription.news.clear()
            # A reconnection wakes this method, too.
            left = None if deadline is None else deadline - time.monotonic()
            try:
                if left is not None and left <= 0:
                    # After one `sleep(0)`, this task would continue before the event loop has read what has arrived.
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                    break
                await asyncio.wait_for(subscription.news.wait(), left)
            except (TimeoutError, asyncio.TimeoutError):
                break
        return subscription.events.popleft() if subscription.events else None

    def unsubscribe(self, subscription: Subscription, reason: str) -> None:
        """Ends a subscription. `reason` is the error of later reads."""
        self._session.unsubscribe(subscription, reason)
        self._send_soon()

    async def close(self) -> None:
        """Closes the connection. Requests that have no reply yet fail."""
        if self._closed:
            return
        self._closed = True
        try:
            # What a cancelled request has created can be deleted only after the reply has come.
            if self._session.is_cleaning_up:
                with suppress(TimeoutError, asyncio.TimeoutError):
                    await asyncio.wait_for(self._cleaned_up.wait(), _CLOSE_SECONDS)
        finally:
            await self._end()

    async def _end(self) -> None:
        # If the connection breaks now, this is not reported as a loss of lockstep.
        self._session.lockstep = False
        self._session.close()
        self._flush()
        self._session.give_up(ConnectionLost("the client was closed"))
        if self._connecting is not None:
            self._connecting.cancel()
        if self._timer is not None:
            self._timer.cancel()
        stream = self._stream
        if stream is not None and stream.transport is not None:
            stream.transport.close()
            # The event loop closes the socket. With TLS, it does so only after the server has answered.
            try:
                await asyncio.wait([stream.closed], timeout=_CLOSE_SECONDS)
            finally:
                stream.transport.abort()
            # After an abort, the event loop closes the socket in one of its next iterations.
            await asyncio.wait([stream.closed], timeout=_CLOSE_SECONDS)

    def check_open(self) -> None:
        """Raises `ConnectionLost` after `close`."""
        if self._closed:
            raise ConnectionLost("the client is closed; call framewire.aio.connect() again")

    def _send_soon(self) -> None:
        """Schedules one write for all requests of this iteration of the event loop. Connects again if necessary."""
        if self._session.open:
            if not self._flushing:
                self._flushing = True
                self._loop.call_soon(self._flush)
        elif self._connecting is None and self._session.busy:
            self._connecting = self._loop.create_task(self._connect_again())

    def _flush(self) -> None:
        self._flushing = False
        parts = self._session.data_to_send()
        if parts and self._stream is not None and self._stream.transport is not None:
            self._stream.transport.write(b"".join(parts))

    async def _connect_again(self) -> None:
        try:
            await self._connect(self._retry)
        except FramewireError:
            pass  # all waiting requests and subscriptions have failed with this error
        finally:
            self._connecting = None
        # The new connection may already be lost.
        if not self._closed:
            self._send_soon()

    async def _connect(self, retry: float) -> None:
        """Connects, and tries again for `retry` seconds. If all attempts fail, requests and subscriptions fail, too."""
        begun = self._loop.time()
        pause = 0.05
        while True:
            final = False
            try:
                # Each attempt gets a few seconds, even at the end of `retry`, but not more than the time-out.
                await asyncio.wait_for(self._shake_hands(), min(self._timeout, max(begun + retry - self._loop.time(), 5.0)))
                return
            except Refused as refused:
                error, final = refused.error, refused.final
            except (OSError, EOFError, asyncio.TimeoutError) as failure:
                url = self._session.url
                error = ConnectionFailed(f"no connection to {url}: {str(failure) or 'no answer in time'}; {START_IT}")
                final = isinstance(failure, tls.SSLCertVerificationError)
            if final or self._loop.time() + pause > begun + retry:
                self._session.give_up(error)
                raise error
            await asyncio.sleep(pause)
            pause = min(2 * pause, 1.0)

    async def _shake_hands(self) -> None:
        host, port, secure = self._session.address
        opened: asyncio.Future[None] = self._loop.create_future()
        context = (self._context or tls.create_default_context()) if secure else None
        stream: _Stream | None = None
        try:
            _, stream = await self._loop.create_connection(lambda: _Stream(self, opened), host, port, ssl=context)
            await opened
        except asyncio.CancelledError:
            # Nobody waits for this future any more, so an error of the connection must not become its result.
            opened.cancel()
            if stream is not None and stream.transport is not None:
                stream.transport.abort()
            raise
        if self._timer is not None:
            self._timer.cancel()
        self._check()

    def _check(self) -> None:
        """Checks regularly whether the server still sends data, and ends the connection if it does not."""
        if self._stream is None:
            return
        try:
            delay = self._session.check(self._timeout)
        except EOFError as error:
            stream = self._stream
            self.lost(stream, error)
            if stream.transport is not None:
                stream.transport.abort()
        else:
            self._flush()
            self._timer = self._loop.call_later(delay, self._check)

    # `_Stream` calls the methods below.

    def made(self, stream: _Stream) -> None:
        """Begins the handshake on a new connection."""
        self._stream = stream
        self._session.connect()
        self._flush()

    def is_open(self) -> bool:
        """Whether the handshake is done."""
        return self._session.open

    def received(self, stream: _Stream, data: bytes) -> None:
        """Handles bytes from the connection."""
        if stream is self._stream:
            self._session.received(data)
            self._flush()
            if self._closed and not self._session.is_cleaning_up:
                self._cleaned_up.set()

    def lost(self, stream: _Stream, error: Exception) -> None:
        """Handles the end of the connection."""
        if stream is not self._stream:
            return
        self._stream = None
        self._session.lost(str(error))
        if self._closed:
            self._cleaned_up.set()
        else:
            self._send_soon()
