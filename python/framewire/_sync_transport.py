"""Moves the bytes of the synchronous client, over one socket that any number of threads may use.

There is no background thread. A thread that waits for a reply reads the socket itself. If another thread is already
reading the socket, that thread also handles the replies of the others, and wakes them after each read.
"""

from __future__ import annotations

import os
import select
import socket
import ssl as tls
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from framewire._arguments import MAX_SECONDS, check_seconds
from framewire._calls import Call
from framewire._session import START_IT, Pending, Refused, Session, Subscription
from framewire.errors import ConnectionFailed, ConnectionLost, FramewireError

T = TypeVar("T")

_WANTS = (BlockingIOError, tls.SSLWantReadError, tls.SSLWantWriteError)
_RECEIVE = 1 << 18
# How many seconds a thread waits for room in the socket's buffer, before it looks again at what has come for it.
_WRITE_SECONDS = 0.1
# How many seconds a thread whose time is up waits for bytes that have arrived, and that another thread is about to handle.
_HANDLE_SECONDS = 0.1
# The same as in the asynchronous transport.
_CLOSE_SECONDS = 1.0


class _Waiting(Pending):
    __slots__ = ("done", "error", "result")

    def __init__(self, call: Call[Any]) -> None:
        super().__init__(call.method, call.params, call.changes, call.clean_up)
        self.done = False
        self.result: Any = None
        self.error: FramewireError | None = None

    def settle(self, result: Any, error: FramewireError | None) -> None:
        self.result, self.error, self.done = result, error, True


class _Queue(Subscription):
    def wake(self) -> None:
        pass  # the thread that reads the socket wakes all others after each read


# The transports that must connect again in a process that is forked.
_transports: weakref.WeakSet[SyncTransport] = weakref.WeakSet()


def _after_fork() -> None:
    for transport in _transports:
        transport.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class SyncTransport:
    """Sends calls and receives replies and events. Connects again if the connection breaks.

    Attributes:
        sounds: The sound that the client has begun in this process. It has connections of its own.
    """

    def __init__(self, url: str, token: str | None, timeout: float, retry: float, context: tls.SSLContext | None) -> None:
        self._session = Session(url, token)
        self._timeout = check_seconds(timeout, "timeout", 0.001)
        self._retry = check_seconds(retry, "retry", 0)
        self._context = context
        self._lock = threading.Lock()
        self._handed_over = threading.Condition(self._lock)
        self._reading = False
        # Whether the reading thread waits for bytes, without the lock.
        self._polling = False
        self._writing = False
        self._socket: socket.socket | None = None
        self._poll: Callable[[bool, float], None] = _never
        self._outgoing = b""
        self._closed = False
        self.sounds: weakref.WeakSet[Any] = weakref.WeakSet()
        # When the first attempt to connect began, and when the last one failed. Set if a call stopped trying at its
        # deadline.
        self._tries: tuple[float, float] | None = None
        _transports.add(self)

    def forked(self) -> None:
        """Leaves the connections to the parent, in a process that was forked. The next call connects again."""
        # Threads of the parent do not exist here, so nobody releases the lock.
        self._lock = threading.Lock()
        self._handed_over = threading.Condition(self._lock)
        self._reading = self._polling = self._writing = False
        self._tries = None
        self.sounds = weakref.WeakSet()
        self._drop()
        self._session.forked()

    def start(self) -> None:
        """Connects for the first time. Makes only one attempt."""
        with self._lock:
            self._connect(0.0)

    def perform(self, call: Call[T], undo: Call[Any] | None = None) -> T:
        """Sends a request and waits for its reply. If that is interrupted, sends `undo`."""
        pending = _Waiting(call)
        with self._lock:
            self.check_open()
            self._session.submit(pending)
            self._flush()
            try:
                self._read_until(lambda: pending.done, None)
            finally:
                if not pending.done:
                    self._session.abandon(pending)
                    if undo is not None and not self._closed:
                        self._session.undo(pending, undo)
                        self._flush()
        if pending.error is not None:
            raise pending.error
        return call.parsed(pending.result)

    def subscribe(self, params: dict[str, Any]) -> Subscription:
        """Begins a subscription."""
        subscription = _Queue(params)
        with self._lock:
            self.check_open()
            self._session.subscribe(subscription)
            self._flush()
        return subscription

    def begun(self, subscription: Subscription) -> None:
        """Waits until the server has begun a subscription."""
        with self._lock:
            self._read_until(lambda: bool(subscription.number is not None or subscription.error or self._closed), None)
            if subscription.error is not None:
                raise subscription.error
            self.check_open()

    def event(self, subscription: Subscription, timeout: float | None) -> tuple[str, Mapping[str, Any]] | None:
        """The next event; None after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            self._read_until(lambda: bool(subscription.events or subscription.error or self._closed), deadline)
            if subscription.events:
                return subscription.events.popleft()
            if subscription.error is not None:
                raise subscription.error
            self.check_open()
            return None

    def unsubscribe(self, subscription: Subscription, reason: str) -> None:
        """Ends a subscription. `reason` is the error of later reads."""
        with self._lock:
            self._session.unsubscribe(subscription, reason)
            if self._reading:
                # The reading thread may wait for this subscription. The server's answer wakes it.
                self._session.ping()
            self._flush()
            self._handed_over.notify_all()

    def close(self) -> None:
        """Closes the connection. Requests that have no reply yet fail."""
        with self._lock:
            try:
                # What an interrupted request has created can be deleted only after the reply has come.
                if not self._closed:
                    self._read_until(self._is_clean, time.monotonic() + _CLOSE_SECONDS)
            finally:
                if not self._closed:
                    self._end()

    def _is_clean(self) -> bool:
        return self._socket is None or not self._session.is_cleaning_up

    def _end(self) -> None:
        self._closed = True
        # If the connection breaks now, this is not reported as a loss of lockstep.
        self._session.lockstep = False
        self._session.close()
        self._flush()
        self._session.give_up(ConnectionLost("the client was closed"))
        self._drop()
        self._handed_over.notify_all()

    def check_open(self) -> None:
        """Raises `ConnectionLost` after `close`."""
        if self._closed:
            raise ConnectionLost("the client is closed; call framewire.connect() again")

    # All methods below are called with the lock held. They release it while they wait, except at the end of
    # a handshake.

    def _read_until(self, ready: Callable[[], bool], deadline: float | None) -> None:
        """Reads until `ready` returns true, or until the deadline. Reads what has arrived even if the deadline is past."""
        has_looked = False
        while not ready():
            left = None if deadline is None else max(0.0, min(deadline - time.monotonic(), MAX_SECONDS))
            if left == 0 and has_looked:
                return
            has_looked = True
            if self._reading:
                # The reading thread may be waiting for a long time, and only for bytes to read. So this thread writes the
                # rest.
                if self._outgoing and self._socket is not None and not self._writing:
                    self._write_rest(self._socket, left)
                elif left == 0 and self._socket is not None and _wait_for(self._socket, False, 0):
                    # The reading thread is about to handle these bytes.
                    self._handed_over.wait(_HANDLE_SECONDS)
                else:
                    self._handed_over.wait(left)
                continue
            self._reading = True
            try:
                self._read(ready, left, deadline)
            finally:
                self._reading = False
                self._handed_over.notify_all()

    def _write_rest(self, connection: socket.socket, left: float | None) -> None:
        """Waits until the socket accepts more bytes, and writes them, while another thread reads."""
        self._writing = True
        self._lock.release()
        try:
            _wait_for(connection, True, _WRITE_SECONDS if left is None else min(left, _WRITE_SECONDS))
        finally:
            self._lock.acquire()
            self._writing = False
            self._handed_over.notify_all()
        self._flush()

    def _read(self, ready: Callable[[], bool], left: float | None, deadline: float | None) -> None:
        """Waits for bytes and passes them to the session; connects again if there is no connection."""
        if self._socket is None:
            if not self._session.busy:
                return
            self._connect(self._retry, deadline, ready)
            return
        try:
            buffered = isinstance(self._socket, tls.SSLSocket) and self._socket.pending()
            if not buffered:
                until_check = self._session.until_check(self._timeout)
                connection, poll = self._socket, self._poll
                wants_to_write = bool(self._outgoing)
                self._polling = True
                self._lock.release()
                try:
                    poll(wants_to_write, until_check if left is None else min(left, until_check))
                finally:
                    self._lock.acquire()
                    self._polling = False
                    if self._socket is not connection:
                        connection.close()
            if self._socket is not None:
                try:
                    data = self._socket.recv(_RECEIVE)
                except _WANTS:
                    # Nothing is left to read: the data that came while no thread was reading has been handled. So
                    # `check` does not take that time for a silence of the server.
                    self._session.check(self._timeout)
                else:
                    self._session.received(data)
            self._flush()
        except (OSError, EOFError) as error:
            self._lose(error)

    def _flush(self) -> None:
        """Writes as much as the socket accepts without waiting; the reading thread writes the rest."""
        parts = self._session.data_to_send()
        if parts:
            self._outgoing = self._outgoing + b"".join(parts) if self._outgoing else b"".join(parts)
        while self._outgoing and self._socket is not None:
            try:
                sent = self._socket.send(self._outgoing)
            except _WANTS:
                return
            except OSError as error:
                self._lose(error)
                return
            self._outgoing = self._outgoing[sent:]

    def _lose(self, error: Exception) -> None:
        if self._socket is not None:
            self._drop()
            self._session.lost(str(error))

    def _drop(self) -> None:
        if self._socket is not None and self._polling:
            # This wakes the reading thread, which then closes the socket. If it were closed here, that thread would not
            # wake, or would wait for another socket that gets the same number.
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        elif self._socket is not None:
            self._socket.close()
        self._socket = None
        self._poll = _never
        self._outgoing = b""

    def _connect(self, retry: float, deadline: float | None = None, ready: Callable[[], bool] = lambda: False) -> None:
        """Connects, and tries again for `retry` seconds. If all attempts fail, requests and subscriptions fail, too.

        Returns without a connection soon after `deadline`: the last attempt may take up to a second longer. The next call
        then continues the attempts. Also returns without a connection if the client was closed, if `ready` returns
        true, or if nothing needs a connection any more.
        """
        begun = time.monotonic()
        if self._tries is not None and begun - self._tries[1] <= retry:
            begun = self._tries[0]
        pause = 0.05
        while True:
            try:
                limit = min(self._timeout, max(begun + retry - time.monotonic(), 5.0))
                if deadline is not None:
                    # Over a slow network, an attempt that ends earlier would never succeed.
                    limit = min(limit, max(deadline - time.monotonic(), 1.0))
                self._shake_hands(limit)
                self._tries = None
                return
            except Refused as refused:
                error, final = refused.error, refused.final
            except (OSError, EOFError) as failure:
                error = ConnectionFailed(f"no connection to {self._session.url}: {failure}; {START_IT}")
                final = isinstance(failure, tls.SSLCertVerificationError)
            except BaseException:
                self._drop()
                self._session.lost("interrupted")
                raise
            self._drop()
            self._session.lost(str(error))
            if self._closed:
                return
            if final or time.monotonic() + pause > begun + retry:
                self._tries = None
                self._session.give_up(error)
                raise error
            self._tries = (begun, time.monotonic())
            self._lock.release()
            try:
                time.sleep(pause if deadline is None else max(0.0, min(pause, deadline - time.monotonic())))
            finally:
                self._lock.acquire()
            if ready() or not self._session.busy or (deadline is not None and time.monotonic() >= deadline):
                return
            pause = min(2 * pause, 1.0)

    def _shake_hands(self, timeout: float) -> None:
        host, port, secure = self._session.address
        end = time.monotonic() + timeout
        self._lock.release()
        try:
            connection = socket.create_connection((host, port), timeout)
            try:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if secure:
                    context = self._context or tls.create_default_context()
                    connection = context.wrap_socket(connection, server_hostname=host)
            except BaseException:
                connection.close()
                raise
        finally:
            self._lock.acquire()
        if self._closed:
            connection.close()
            raise EOFError("the client was closed")
        self._socket = connection
        self._session.connect()
        connection.sendall(b"".join(self._session.data_to_send()))
        while not self._session.open:
            # `recv` has its own time-out for each part of the answer.
            connection.settimeout(max(end - time.monotonic(), 0.001))
            self._session.received(connection.recv(_RECEIVE))
        connection.setblocking(False)
        self._poll = _poller(connection)
        self._flush()


def _never(_write: bool, _timeout: float) -> None:
    """Does not wait, because there is no socket."""


def _wait_for(connection: socket.socket, write: bool, seconds: float) -> bool:
    """Waits until the socket can be read, or written if `write` is true, for `seconds` at most. Returns whether it can."""
    with suppress(OSError, ValueError):  # another thread has closed it
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(connection, select.POLLOUT if write else select.POLLIN)
            return bool(poll.poll(seconds * 1000))
        return any(select.select([] if write else [connection], [connection] if write else [], [], seconds))
    return False


def _poller(connection: socket.socket) -> Callable[[bool, float], None]:
    """A function that waits until the socket can be read, or written if `write` is true.

    It waits for `seconds` at most.
    """
    if hasattr(select, "poll"):
        read, both = select.poll(), select.poll()
        read.register(connection, select.POLLIN)
        both.register(connection, select.POLLIN | select.POLLOUT)

        def wait(write: bool, seconds: float) -> None:
            (both if write else read).poll(max(0.0, seconds) * 1000)
    else:

        def wait(write: bool, seconds: float) -> None:
            select.select([connection], [connection] if write else [], [], max(0.0, seconds))

    return wait
