"""A connection between the program and a worker, for calls and results.

Ray starts the worker and notices its end. But a call through Ray takes about a millisecond, and a large result takes
several more, because it passes through one or two object stores. These times are a large part of the time of a step.
Over this connection, arrays go directly from the worker's memory into the program's arrays.

A message has lengths, a pickle, and then the large arrays, which are not part of the pickle. When the program connects,
it sends a secret that it has passed to the worker through Ray. So the worker accepts only the program that started it.
"""

from __future__ import annotations

import errno
import hmac
import pickle
import selectors
import socket
import struct
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from framewire.errors import FramewireError

# The length of the secret, in bytes.
SECRET_BYTES = 32

# The head of a message: the length of the pickle in bytes, and the number of large arrays.
_HEAD = struct.Struct("!QI")
# The length of a large array in bytes. These lengths follow the head.
_LENGTH = struct.Struct("!Q")

# Arrays with fewer bytes than this are part of the pickle.
LARGE = 4096


class ConnectionLostError(Exception):
    """The connection has ended, or the other side does not answer."""


class Reply(NamedTuple):
    """What a worker's method returned or raised. An unexpected exception is sent as the text of its traceback."""

    value: Any = None
    error: FramewireError | str | None = None


class Connection:
    """Sends and receives objects.

    Args:
        connected: The socket.
        timeout: The connection counts as lost if `receive` gets no data for this many seconds, or if sending the pickle of
            a message or one of its large arrays takes longer. None means no limit.
    """

    def __init__(self, connected: socket.socket, timeout: float | None) -> None:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.settimeout(timeout)
        self._socket = connected
        # Whether a message was cut off, so that the next bytes are not the beginning of a message.
        self._is_cut = False

    def fileno(self) -> int:
        """The file descriptor of the socket, for selectors."""
        return self._socket.fileno()

    def send(self, message: Any) -> None:
        """Sends an object."""
        large: list[memoryview] = []

        def is_small(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes >= LARGE:
                large.append(raw)
            return raw.nbytes < LARGE

        data = pickle.dumps(message, protocol=5, buffer_callback=is_small)
        lengths = b"".join(_LENGTH.pack(each.nbytes) for each in large)
        try:
            self._socket.sendall(_HEAD.pack(len(data), len(large)) + lengths + data)
            for each in large:
                self._socket.sendall(each)
        except OSError as error:
            raise ConnectionLostError(str(error)) from None
        except BaseException:
            self.cut()
            raise

    def receive(self, places: Sequence[memoryview] = ()) -> Any:
        """Waits for an object. Its large arrays are written into `places`, if the lengths are equal."""
        if self._is_cut:
            raise ConnectionLostError("an earlier message was cut off")
        try:
            return self._receive(places)
        except BaseException:
            self.cut()
            raise

    def cut(self) -> None:
        """Makes the connection count as lost, after an interrupt within a message or between related calls."""
        self._is_cut = True
        # The other side learns of the end, and selectors report that this side can be read.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()

    def _receive(self, places: Sequence[memoryview]) -> Any:
        length, count = _HEAD.unpack(self._bytes(_HEAD.size))
        data = self._bytes(count * _LENGTH.size + length)
        lengths = [each for (each,) in _LENGTH.iter_unpack(data[: count * _LENGTH.size])]
        if [each.nbytes for each in places] != lengths[: len(places)]:
            places = ()
        buffers = [*places, *(np.empty(each, np.uint8).data for each in lengths[len(places) :])]
        for each in buffers:
            self._fill(each)
        return pickle.loads(memoryview(data)[count * _LENGTH.size :], buffers=buffers)

    def _bytes(self, length: int) -> bytearray:
        data = bytearray(length)
        self._fill(memoryview(data))
        return data

    def _fill(self, view: memoryview) -> None:
        try:
            while view.nbytes:
                received = self._socket.recv_into(view)
                if received == 0:
                    raise ConnectionLostError("the connection was closed")
                view = view[received:]
        except OSError as error:
            raise ConnectionLostError(str(error)) from None


def connect(address: tuple[str, int], secret: bytes, timeout: float) -> Connection:
    """Connects to a worker.

    Raises:
        OSError: The worker does not answer.
    """
    connected = socket.create_connection(address, timeout)
    connected.sendall(secret)
    return Connection(connected, timeout)


def accept(listener: socket.socket, secret: bytes) -> Connection:
    """Waits until the program connects and sends the secret. Closes all other connections.

    Raises:
        TimeoutError: The program has not done this within the timeout of the listener.
        OSError: The system cannot accept connections, for example because too many files are open.
    """
    timeout = listener.gettimeout()
    end = None if timeout is None else time.monotonic() + timeout
    listener.setblocking(False)
    given: dict[socket.socket, bytes] = {}
    # Reads all connections at the same time, so that one that sends nothing does not delay the program.
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        try:
            while True:
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError("the program did not connect in time")
                for key, _ in selector.select(left):
                    connected = key.data or _next(listener)
                    if connected is None:
                        continue
                    if connected not in given:
                        given[connected] = b""
                        selector.register(connected, selectors.EVENT_READ, connected)
                        continue
                    data = _available(connected, SECRET_BYTES - len(given[connected]))
                    given[connected] += data or b""
                    if data is None or (data and len(given[connected]) < SECRET_BYTES):
                        continue
                    selector.unregister(connected)
                    if hmac.compare_digest(given.pop(connected), secret):
                        return Connection(connected, None)
                    connected.close()
        finally:
            listener.settimeout(timeout)
            for each in given:
                each.close()


def _next(listener: socket.socket) -> socket.socket | None:
    """The next connection of a listener; None if it has ended already."""
    try:
        connected = listener.accept()[0]
    except OSError as error:
        # These errors do not go away. Others belong to a connection that has already ended.
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            raise
        return None
    connected.setblocking(False)
    return connected


def _available(connected: socket.socket, count: int) -> bytes | None:
    """At most `count` bytes that have arrived; None if there are none yet, and no bytes if the connection has ended."""
    try:
        return connected.recv(count)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def serve(connection: Connection, perform: Callable[[str, tuple[Any, ...]], Any]) -> None:
    """Performs the method calls that the program sends, in order, until the program closes the connection."""
    while True:
        try:
            name, arguments = connection.receive()
        except ConnectionLostError:
            return
        try:
            reply = Reply(perform(name, arguments))
        except FramewireError as error:
            reply = Reply(error=error)
        except Exception:
            reply = Reply(error=traceback.format_exc())
        try:
            connection.send(reply)
        except ConnectionLostError:
            return
