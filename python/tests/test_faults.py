"""Broken connections: no request is lost or performed twice. If an outcome cannot be known, the error says so."""

from __future__ import annotations

import asyncio
import http.server
import json
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection
from websockets.sync.server import serve as serve_websockets

import framewire
from framewire import Client, aio
from tests.servers import Proxy, Server, reserved_port, serve


@pytest.fixture
async def client(proxy: Proxy, emulator: Client) -> AsyncIterator[aio.AsyncClient]:
    async with await aio.connect(proxy.url, timeout=5) as client:
        yield client


@pytest.fixture
def paused(emulator: Client) -> Client:
    """The demo game, paused. While it runs, it loses a life about two seconds after the reset."""
    emulator.pause()
    return emulator


def expect_timeout(stream: Any, timeout: float) -> None:
    with pytest.raises(framewire.WaitTimeout):
        stream.next(timeout)


def read_for(stream: Any, seconds: float) -> None:
    """Reads the events that come in this time, such as the one that reports the end of lockstep."""
    end = time.monotonic() + seconds
    with suppress(framewire.WaitTimeout):
        while (left := end - time.monotonic()) > 0:
            stream.next(left)


def test_a_change_whose_reply_is_lost_is_done_once(emulator: Client, proxy: Proxy) -> None:
    emulator.pause()
    with framewire.connect(proxy.url) as client:
        start = client.frame()
        for turn in range(1, 31):
            if turn % 3 == 0:
                proxy.drop_replies = 1
            elif turn % 3 == 1:
                proxy.drop_requests = 1
            assert client.advance() == start + turn
    assert proxy.cuts == 20
    assert emulator.frame() == start + 30


def test_keys_are_pressed_once_over_broken_connections(emulator: Client, proxy: Proxy) -> None:
    emulator.pause()
    with framewire.connect(proxy.url) as client:
        before = emulator.memory["presses"].sum()
        for _ in range(10):
            proxy.drop_replies = 1
            client.press("Select")
            proxy.drop_replies = 1
            with client.batch() as batch:
                batch.advance(2)
    assert proxy.cuts == 20
    assert emulator.memory["presses"].sum() == before + 10


def test_no_request_is_lost_if_connections_break_after_any_byte(emulator: Client, proxy: Proxy) -> None:
    """Each connection ends after a random number of bytes, in the middle of a message or between messages."""
    emulator.pause()
    proxy.budget = (1_000, 6_000)
    start = emulator.frame()
    with framewire.connect(proxy.url) as client:
        for turn in range(1, 201):
            assert client.advance() == start + turn
            assert client.read_bytes("magic", 8) == b"FWDEMO01"
    assert proxy.cuts > 10
    assert emulator.frame() == start + 200


async def test_concurrent_changes_are_done_once(client: aio.AsyncClient, emulator: Client, proxy: Proxy) -> None:
    emulator.pause()
    proxy.cut()
    # Enough for the 200 requests of a turn: they take 25,000 bytes in all, and are sent again together.
    proxy.budget = (30_000, 60_000)
    start = emulator.frame()
    for turn in range(5):
        frames = await asyncio.gather(*(client.advance() for _ in range(200)))
        first = start + 200 * turn + 1
        assert sorted(frames) == list(range(first, first + 200))
    assert emulator.frame() == start + 1000
    assert proxy.cuts > 3


def test_a_watch_continues_over_broken_connections(emulator: Client, proxy: Proxy) -> None:
    with framewire.connect(proxy.url) as client, client.watch("frame") as changes:
        for turn in range(60):
            if turn % 20 == 10:
                proxy.cut()
            before = changes.values["frame"]
            change = next(changes)
            assert isinstance(before, int)
            assert (change.old, change.new, change.gap) == (before, before + 1, False)
    assert proxy.cuts == 3


async def test_an_asynchronous_watch_continues_too(client: aio.AsyncClient, proxy: Proxy) -> None:
    async with client.watch("frame") as changes:
        for turn in range(40):
            if turn % 20 == 10:
                proxy.cut()
            before = changes.values["frame"]
            change = await changes.next(10)
            assert isinstance(before, int)
            assert (change.old, change.new, change.gap) == (before, before + 1, False)


def test_a_watch_that_was_refused_does_not_come_back_on_a_new_connection(emulator: Client, proxy: Proxy) -> None:
    with framewire.connect(proxy.url) as client:
        assert client.read("lives") == 3
        with pytest.raises(framewire.InvalidRequest, match="not valid JSON"):
            client.watch(b"score")  # type: ignore[arg-type]
        proxy.cut()
        assert client.read("lives") == 3
        assert (proxy.cuts, proxy.accepted) == (1, 2)


def test_lockstep_that_ends_with_its_connection_is_reported(emulator: Client, proxy: Proxy) -> None:
    with framewire.connect(proxy.url) as client:
        held = client.lockstep()
        client.advance()
        proxy.cut()
        with pytest.raises(framewire.ConnectionLost, match="lockstep ended with it"):
            client.advance()
        with client.lockstep():
            assert client.advance(2) == client.frame()
        held.release()
    assert emulator.info().run == "running"


async def test_lockstep_that_ends_between_two_calls_is_reported(client: aio.AsyncClient, proxy: Proxy) -> None:
    await client.lockstep()
    await client.advance()
    proxy.cut()
    await asyncio.sleep(0.3)
    with pytest.raises(framewire.ConnectionLost, match="lockstep ended with it"):
        await client.advance()
    assert (await client.info()).run == "running"


def test_lockstep_that_ends_while_another_thread_reads_is_reported(emulator: Client, proxy: Proxy) -> None:
    with framewire.connect(proxy.url) as client:
        client.lockstep()
        client.advance()
        events = client.events()
        thread = threading.Thread(target=read_for, args=(events, 1))
        thread.start()
        time.sleep(0.1)
        proxy.cut()
        time.sleep(0.3)
        with pytest.raises(framewire.ConnectionLost, match="lockstep ended with it"):
            client.advance()
        thread.join()


def test_lockstep_whose_reply_is_lost_begins_on_the_next_connection(emulator: Client, proxy: Proxy) -> None:
    with framewire.connect(proxy.url) as client:
        proxy.drop_replies = 1
        with client.lockstep():
            frame = client.frame()
            time.sleep(0.1)
            assert client.frame() == frame
            assert client.advance(2) == frame + 2
    assert proxy.cuts == 1


def test_a_server_that_is_gone_is_reported(emulator: Client, proxy: Proxy) -> None:
    with framewire.connect(proxy.url, retry=0.3) as client:
        changes = client.watch("frame")
        # The running game loses a life about two seconds after the reset.
        emulator.pause()
        proxy.refuse = True
        proxy.cut()
        with pytest.raises(framewire.ConnectionFailed, match="no connection to ws://"):
            client.read("lives")
        with pytest.raises(framewire.ConnectionFailed):
            while True:
                next(changes)
        proxy.refuse = False
        assert client.read("lives") == 3


async def test_a_server_that_is_gone_is_reported_asynchronously(emulator: Client, proxy: Proxy) -> None:
    async with await aio.connect(proxy.url, retry=0.3) as client:
        changes = await client.watch("frame")
        proxy.refuse = True
        proxy.cut()
        with pytest.raises(framewire.ConnectionFailed, match="no connection to ws://"):
            await client.read("lives")
        with pytest.raises(framewire.ConnectionFailed):
            while True:
                await changes.next(5)
        proxy.refuse = False
        assert await client.read("lives") == emulator.read("lives")


@pytest.mark.parametrize("kill", [False, True])
def test_a_server_that_starts_again_is_found(folder: Path, kill: bool) -> None:
    with reserved_port() as port:
        with serve(folder, port=port) as first:
            client = framewire.connect(first.url)
            changes = client.watch("frame")
            next(changes)
            if kill:
                first.process.kill()
        with serve(folder, port=port):
            assert client.info().title == "FRAMEWIRE"
            while not next(changes).gap:  # what happened before the new server started is not known
                pass
            assert next(changes).gap is False
            client.close()


def test_a_silent_connection_counts_as_broken(paused: Client, proxy: Proxy) -> None:
    with framewire.connect(proxy.url, timeout=0.6) as client:
        assert client.read("lives") == 3
        proxy.silent = 1
        assert client.read("lives") == 3


async def test_a_silent_connection_counts_as_broken_asynchronously(paused: Client, proxy: Proxy) -> None:
    async with await aio.connect(proxy.url, timeout=0.6) as client:
        proxy.silent = 1
        assert await client.read("lives") == 3


def test_a_silent_handshake_is_tried_again(paused: Client, proxy: Proxy) -> None:
    with framewire.connect(proxy.url, timeout=0.6) as client:
        proxy.silent = 2  # this connection and the next one
        assert client.read("lives") == 3
    assert proxy.silent == 0


async def test_a_silent_handshake_is_tried_again_asynchronously(paused: Client, proxy: Proxy) -> None:
    async with await aio.connect(proxy.url, timeout=0.6) as client:
        proxy.silent = 2
        assert await client.read("lives") == 3
    assert proxy.silent == 0


async def test_the_error_of_a_silent_server_has_a_reason(emulator: Client, proxy: Proxy) -> None:
    proxy.silent = 1
    with pytest.raises(framewire.ConnectionFailed, match=r"no connection to .*: no answer in time; start one"):
        await aio.connect(proxy.url, timeout=0.6)


def test_an_idle_connection_is_kept(emulator: Client, proxy: Proxy) -> None:
    """The connection is not silent during a long wait, because the server answers the client's pings."""
    with framewire.connect(proxy.url, timeout=2) as client, pytest.raises(framewire.WaitTimeout):
        client.wait("lives == 77", timeout_frames=300)
    assert (proxy.cuts, proxy.accepted) == (0, 1)


def test_lockstep_continues_after_the_program_was_idle(emulator: Client, proxy: Proxy) -> None:
    with framewire.connect(proxy.url, timeout=2) as client, client.lockstep():
        frame = client.advance()
        changes = client.watch("frame")
        for pause in (3, 1.5, 3):
            time.sleep(pause)
            frame += 1
            assert client.advance() == frame
            # This wait can end between a ping and its reply.
            with pytest.raises(framewire.WaitTimeout):
                while True:
                    changes.next(timeout=1)


async def test_lockstep_continues_after_the_event_loop_was_busy(emulator: Client, proxy: Proxy) -> None:
    async with await aio.connect(proxy.url, timeout=2) as client, await client.lockstep():
        frame = await client.advance()
        time.sleep(3)  # noqa: ASYNC251
        assert await client.advance() == frame + 1


def test_a_request_without_an_idempotency_key_is_not_repeated(
    emulator: Client, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("framewire._session.MOST_KEYS", 2)
    emulator.pause()
    with framewire.connect(proxy.url) as client:
        start = client.advance(2)
        proxy.drop_replies = 1
        assert client.advance() == start + 1
        proxy.drop_replies = 1
        with pytest.raises(framewire.ConnectionLost, match="may have been performed"):
            client.advance()
        assert client.frame() == start + 2


def test_a_change_is_not_repeated_after_the_server_has_forgotten_its_key(
    emulator: Client, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("framewire._session.KEY_LIFE", 0.5)
    emulator.pause()
    with framewire.connect(proxy.url) as client:
        start = client.frame()
        proxy.drop_replies = 1
        proxy.refuse = True
        back = threading.Timer(1, lambda: setattr(proxy, "refuse", False))
        back.start()
        with pytest.raises(framewire.ConnectionLost, match="how long the server remembers"):
            client.advance()
        back.join()
        assert client.frame() == start + 1


def test_a_batch_whose_error_was_handled_is_not_performed_again(
    emulator: Client, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("framewire._session.MOST_KEYS", 0)
    emulator.pause()
    with framewire.connect(proxy.url) as client:
        start = client.frame()
        with client.batch() as batch:
            batch.advance()
            proxy.drop_replies = 1
            with pytest.raises(framewire.ConnectionLost):
                batch.run()
        assert client.frame() == start + 1


def test_a_large_request_does_not_wait_for_a_thread_that_waits_for_a_change(paused: Client, proxy: Proxy) -> None:
    # Each accepted connection inherits this small buffer from the listener.
    proxy._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    proxy.slow = True
    with framewire.connect(proxy.url) as client:
        changes = client.watch("lives")
        thread = threading.Thread(target=expect_timeout, args=(changes, 5))
        thread.start()
        time.sleep(0.1)
        begun = time.monotonic()
        with pytest.raises(framewire.InvalidData):
            client.recordings.add("large", bytes(5_000_000))
        assert time.monotonic() - begun < 3
        thread.join()


def test_next_keeps_its_timeout_while_the_server_is_away(paused: Client, proxy: Proxy) -> None:
    with framewire.connect(proxy.url, retry=2) as client, client.watch("lives") as changes:
        proxy.refuse = True
        proxy.cut()
        begun = time.monotonic()
        with pytest.raises(framewire.WaitTimeout):
            changes.next(timeout=0.4)
        assert time.monotonic() - begun < 1
        # The next calls continue the same attempts to connect. So the attempts end after `retry` seconds, although each
        # call times out earlier.
        with pytest.raises(framewire.ConnectionFailed):
            while time.monotonic() - begun < 10:
                try:
                    changes.next(timeout=0.4)
                except framewire.WaitTimeout:
                    continue
        assert 1.5 < time.monotonic() - begun < 4


@pytest.mark.parametrize("is_away", [False, True])
@pytest.mark.parametrize("closes_client", [False, True])
def test_close_wakes_a_thread_that_waits_for_a_server_that_is_away(
    emulator: Client, proxy: Proxy, is_away: bool, closes_client: bool
) -> None:
    client = framewire.connect(proxy.url, retry=20)
    events = client.events()
    # Another stream that needs the connection, and stays open.
    client.watch("scratch[9]")
    errors: list[framewire.FramewireError] = []

    def wait() -> None:
        with pytest.raises(framewire.FramewireError, match="closed") as caught:
            events.next()
        errors.append(caught.value)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    time.sleep(0.2)
    if is_away:
        proxy.refuse = True
        proxy.cut()
        time.sleep(0.5)
    (client if closes_client else events).close()
    thread.join(5)
    assert len(errors) == 1
    client.close()


def test_a_handshake_that_comes_byte_by_byte_ends_in_time() -> None:
    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            for byte in b"HTTP/1.1 101 Switching Protocols":
                connection.sendall(bytes([byte]))
                time.sleep(0.1)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        begun = time.monotonic()
        with pytest.raises(framewire.ConnectionFailed, match="timed out"):
            framewire.connect(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.5)
        assert time.monotonic() - begun < 2
        thread.join()


def test_a_request_that_always_breaks_its_connection_fails(emulator: Client, proxy: Proxy) -> None:
    with framewire.connect(proxy.url) as client:
        proxy.drop_requests = 1000
        with pytest.raises(framewire.ConnectionLost, match="broke 30 times"):
            client.write("scratch", 5)
        proxy.drop_requests = 0
        assert client.read("scratch") == emulator.read("scratch")
    assert proxy.cuts == 30


def test_changes_are_sent_without_a_key_if_the_server_has_no_room_for_keys() -> None:
    seen: list[dict[str, object]] = []

    def answer(connection: ServerConnection) -> None:
        for text in connection:
            request = json.loads(text)
            seen.append(request["params"])
            if "idempotency_key" in request["params"]:
                detail = "131072 values of Idempotency-Key are remembered"
                problem = {"code": -32012, "data": {"status": 503, "detail": detail}}
                connection.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": problem}))
            else:
                reply = {"jsonrpc": "2.0", "id": request["id"], "result": {"frame": 1, "value": None}}
                connection.send(json.dumps(reply))

    with serve_websockets(answer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with framewire.connect(f"http://127.0.0.1:{server.socket.getsockname()[1]}") as client:
            client.write(5, 6)
            client.write(5, 7)
        server.shutdown()
        thread.join(10)
    assert ["idempotency_key" in each for each in seen] == [True, False, False]


def test_a_server_that_is_not_framewire_is_reported() -> None:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        with pytest.raises(framewire.ConnectionFailed, match="is not a Framewire server"):
            framewire.connect(f"http://127.0.0.1:{other.server_address[1]}")
        other.shutdown()
        thread.join(10)


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        ('{"id": ID, "result": {"value": %s}}' % ("[" * 100_000 + "]" * 100_000), framewire.ConnectionLost, "Recursion"),
        ('{"id": ID, "result": {"value": %s}}' % ("9" * 5000), framewire.ConnectionLost, "cannot read .*5000 digits"),
        ('{"id": ID, ', framewire.ConnectionLost, "cannot read"),
        ("[5]", framewire.ConnectionLost, "cannot read"),
        ('{"id": [ID], "result": {"value": 5}}', framewire.ConnectionLost, "cannot read"),
        ('{"id": ID}', framewire.ConnectionLost, "cannot read .*'result'"),
        ('{"id": ID, "error": 5}', framewire.ConnectionLost, "cannot read"),
        ('{"id": ID, "error": {"data": 5}}', framewire.ConnectionLost, "cannot read"),
        ('{"method": "event", "params": {}}', framewire.ConnectionLost, "cannot read"),
        (
            '{"id": null, "error": {"code": -32700, "message": "Parse error"}}',
            framewire.ConnectionLost,
            "a request that the server could not read: Parse error",
        ),
        ('{"id": ID, "result": {"equal": true}}', framewire.FramewireError, "of replayRecording does not have .*'frames'"),
        ('{"id": ID, "result": 5}', framewire.FramewireError, "replayRecording does not have the expected form"),
    ],
)  # fmt: skip
async def test_a_reply_that_cannot_be_read_ends_the_call(reply: str, error: type[Exception], message: str) -> None:
    connections: list[ServerConnection] = []

    def answer(connection: ServerConnection) -> None:
        connections.append(connection)
        for text in connection:
            connection.send(reply.replace("ID", str(json.loads(text)["id"])))

    with serve_websockets(answer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        try:
            with framewire.connect(url) as client, pytest.raises(error, match=message):
                client.replay("run")
            async with await aio.connect(url) as asynchronous:
                with pytest.raises(error, match=message):
                    await asyncio.wait_for(asynchronous.replay("run"), 10)
        finally:
            server.shutdown()
            thread.join(10)
    assert len(connections) == 2, "the request is not sent again"


async def test_an_event_or_a_sound_that_cannot_be_read_is_reported() -> None:
    sounds: list[str | bytes] = ["[" * 100_000, "5", '{"missed": "many"}', b"odd"]

    def answer(connection: ServerConnection) -> None:
        assert connection.request is not None
        if connection.request.path == "/v1/audio":
            for sound in sounds:
                connection.send(sound)
        for text in connection:
            request = json.loads(text)
            connection.send(json.dumps({"id": request["id"], "result": {"subscription": 1}}))
            data = 5 if "events" in request["params"] else {"values": 5}
            event = {"subscription": 1, "id": "1", "event": "values", "data": data}
            connection.send(json.dumps({"method": "event", "params": event}))

    with serve_websockets(answer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        try:
            with (
                framewire.connect(url) as client,
                pytest.raises(framewire.FramewireError, match="event values of a watch does not have the expected form"),
            ):
                client.watch("score")
            with framewire.connect(url) as client:
                with pytest.raises(framewire.FramewireError, match="event values does not have the expected form"):
                    client.events().next(10)
                with client.audio() as audio:
                    for _ in sounds:
                        with pytest.raises(framewire.FramewireError, match="sound does not have the expected form"):
                            audio.next()
            async with await aio.connect(url) as asynchronous:
                with pytest.raises(
                    framewire.FramewireError, match="event values of a watch does not have the expected form"
                ):
                    await asynchronous.watch("score")
        finally:
            server.shutdown()
            thread.join(10)


async def test_a_connection_that_ends_together_with_a_reply_is_replaced() -> None:
    ends = [True, False, True, False]
    deleted: list[object] = []
    all_deleted = threading.Event()

    def answer(connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            for text in connection:
                request = json.loads(text)
                if "id" not in request:  # the client deletes the watch of `evaluate`
                    deleted.append(request["params"]["id"])
                    if len(deleted) == 2:
                        all_deleted.set()
                    continue
                reply = {"id": request["id"], "result": {"id": len(ends), "values": {"x": 5}}}
                connection.protocol.send_text(json.dumps(reply).encode())
                if ends.pop(0):
                    connection.protocol.send_close(1001, "the server is stopping")
                connection.socket.sendall(b"".join(connection.protocol.data_to_send()))

    with serve_websockets(answer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        try:
            with framewire.connect(url) as client:
                assert [client.evaluate("x") for _ in range(2)] == [5, 5]
            async with await aio.connect(url) as asynchronous:
                assert [await asyncio.wait_for(asynchronous.evaluate("x"), 10) for _ in range(2)] == [5, 5]
            await asyncio.to_thread(all_deleted.wait, 10)
        finally:
            server.shutdown()
            thread.join(10)
    # The watches of the other calls have ended with their connections.
    assert deleted == [3, 1]


async def test_a_cancelled_request_is_not_sent_again(client: aio.AsyncClient, emulator: Client, proxy: Proxy) -> None:
    with pytest.raises((TimeoutError, asyncio.TimeoutError)):
        await asyncio.wait_for(client.wait("lives == 77", timeout_frames=100_000), 0.1)
    emulator.pause()  # the running game loses a life about two seconds after the reset
    proxy.cut()
    assert await client.read("lives") == 3
    assert not client._transport._session._in_flight


def test_closing_a_client_does_not_affect_another_one(server: Server) -> None:
    one, two = framewire.connect(server.url), framewire.connect(server.url)
    one.close()
    assert two.info().connected
    two.close()
