"""Servers for the tests, and a proxy that breaks connections."""

from __future__ import annotations

import os
import random
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = Path(os.environ.get("FRAMEWIRE_BIN", ROOT / "target/debug/framewire"))
WINDOW = ROOT / "target/debug/examples/window"
DEMO = ROOT / "rom/framewire-demo.gba"
SYMBOLS = ROOT / "rom/memory-map.toml"


@contextmanager
def reserved_port() -> Iterator[int]:
    """Reserves a port on which nothing listens. No other program gets it until the end of the context.

    On Linux, a server can still listen on it with the option `SO_REUSEADDR`, because this socket does not listen.
    """
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield int(reserved.getsockname()[1])


@dataclass
class Server:
    """A running `framewire serve`."""

    process: subprocess.Popen[str]
    url: str

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])


@contextmanager
def serve(folder: Path, *arguments: str, port: int = 0, rom: bool = True) -> Iterator[Server]:
    """Starts a server with these arguments. It has the demo game, unless `rom` is false."""
    folder.mkdir(exist_ok=True)
    command = [str(PROGRAM), "serve", "--listen", f"127.0.0.1:{port}", "--data", str(folder / "data")]
    command += ["--symbols", str(SYMBOLS)]
    if rom:
        copy = folder / "demo.gba"
        copy.write_bytes(DEMO.read_bytes())
        command += ["--rom", str(copy)]
    log = folder / "log"
    with log.open("w") as errors:
        process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"listening on (https?://[\d.:]+)", line)
        assert found, f"{line!r}; {log.read_text()}"
        yield Server(process, found[1])
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def window() -> Iterator[str]:
    """Starts the demo game in a stock mGBA. Yields the address of its script."""
    process = subprocess.Popen([str(WINDOW)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("attach "), line
        yield line.split()[1]
    finally:
        process.stdin.close()
        process.wait(20)
        process.stdout.close()


@dataclass
class Proxy:
    """Forwards bytes to a server, and breaks connections when a test requests it.

    Attributes:
        drop_replies: How many times to end the connection instead of forwarding a reply.
        drop_requests: How many times to end the connection instead of forwarding a request.
        budget: Each connection ends after a random number of bytes between these two; None means never.
        silent: How many connections become silent. A connection becomes silent when the server sends something on it:
            from then on, nothing from the server is forwarded. It stays open.
        refuse: Whether to end new connections at once.
        slow: Whether to forward requests slowly.
        cuts: How many times connections were ended on purpose.
        accepted: How many connections were accepted and forwarded.
    """

    target: int
    drop_replies: int = 0
    drop_requests: int = 0
    budget: tuple[int, int] | None = None
    silent: int = 0
    refuse: bool = False
    slow: bool = False
    cuts: int = 0
    accepted: int = 0
    random: random.Random = field(default_factory=lambda: random.Random(1))

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Ends all connections."""
        with self._lock:
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            self.cuts += 1

    def close(self) -> None:
        self.refuse = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(10)

    def _start(self, run: object, *args: object) -> None:
        thread = threading.Thread(target=run, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refuse:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            left = [self.random.randint(*self.budget)] if self.budget else []
            with self._lock:
                self._open |= {client, server}
                self.accepted += 1
            self._start(self._pump, client, server, True, left)
            self._start(self._pump, server, client, False, left)

    def _pump(self, source: socket.socket, sink: socket.socket, requests: bool, left: list[int]) -> None:
        """Forwards the bytes of one direction. Both directions share `left`, the rest of the connection's budget."""
        shaken = False  # the first data of each direction, the handshake, is always forwarded
        mute = False
        with suppress(OSError):
            while data := source.recv(65536):
                if shaken and (requests or has_text(data)) and self._drops(requests):
                    self.cuts += 1
                    break
                shaken = True
                if self.silent and not requests and not mute:
                    mute = True
                    self.silent -= 1
                if mute:
                    continue
                if self.slow and requests:
                    time.sleep(0.002)
                if left:
                    left[0] -= len(data)
                    if left[0] < 0:
                        sink.sendall(data[: left[0]])
                        self.cuts += 1
                        break
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        with self._lock:
            first = source in self._open
            self._open -= {source, sink}
        if not first:
            source.close()
            sink.close()

    def _drops(self, requests: bool) -> bool:
        with self._lock:
            if requests and self.drop_requests > 0:
                self.drop_requests -= 1
                return True
            if not requests and self.drop_replies > 0:
                self.drop_replies -= 1
                return True
            return False


def has_text(data: bytes) -> bool:
    """Whether bytes from the server contain more than pings and pongs."""
    while data[:1] in (b"\x89", b"\x8a"):
        data = data[2 + data[1] :]
    return bool(data)
