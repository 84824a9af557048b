"""A connection between the program and a worker. Ray starts the worker and notices its end; calls and results go this way.

A call through Ray takes about a millisecond, and a large result several more, because it passes through one or two object
stores. That is a large part of a step. Here, a worker's arrays go from its memory into those of the program.

A message is a pickle and the arrays that it leaves out, with their lengths before them. The program proves with a secret,
which the worker got through Ray, that it is the owner.
"""

from __future__ import annotations

import hmac
import pickle
import socket
import struct
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from framewire.errors import FramewireError

# The secret's bytes.
SECRET_BYTES = 32

_HEAD = struct.Struct("!QI")
_LENGTH = struct.Struct("!Q")

# Arrays with fewer bytes are part of the pickle.
LARGE = 4096


class ConnectionLostError(Exception):
    """The other end is gone."""


class Reply(NamedTuple):
    """What a method of a worker returned or raised. An exception that nobody expects is the text of its traceback."""

    value: Any = None
    error: FramewireError | str | None = None


class Connection:
    """Sends and receives objects.

    Args:
        connected: The socket.
        timeout: Seconds without any byte in the middle of a message after which the other end is lost; None for no limit.
    """

    def __init__(self, connected: socket.socket, timeout: float | None) -> None:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.settimeout(timeout)
        self._socket = connected

    def fileno(self) -> int:
        """For `select`."""
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

    def receive(self, places: Sequence[memoryview] = ()) -> Any:
        """Waits for an object. Its large arrays are written into `places`, if these have the right lengths."""
        length, count = _HEAD.unpack(self._bytes(_HEAD.size))
        data = self._bytes(count * _LENGTH.size + length)
        lengths = [each for (each,) in _LENGTH.iter_unpack(data[: count * _LENGTH.size])]
        if [each.nbytes for each in places] != lengths[: len(places)]:
            places = ()
        buffers = [*places, *(np.empty(each, np.uint8).data for each in lengths[len(places) :])]
        for each in buffers:
            self._fill(each)
        return pickle.loads(memoryview(data)[count * _LENGTH.size :], buffers=buffers)

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()

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
        OSError: Nothing answers there.
    """
    connected = socket.create_connection(address, timeout)
    connected.sendall(secret)
    return Connection(connected, timeout)


def accept(listener: socket.socket, secret: bytes) -> Connection:
    """Waits for the program. Other connections are closed."""
    while True:
        connected, _ = listener.accept()
        connected.settimeout(listener.gettimeout())
        try:
            given = connected.recv(SECRET_BYTES, socket.MSG_WAITALL)
        except OSError:
            given = b""
        if hmac.compare_digest(given, secret):
            return Connection(connected, None)
        connected.close()


def serve(connection: Connection, perform: Callable[[str, tuple[Any, ...]], Any]) -> None:
    """Performs methods, and answers in their order, until the program closes the connection."""
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
