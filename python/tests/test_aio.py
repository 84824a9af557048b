"""The asynchronous client: tests of what is different from the synchronous one."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import framewire
from framewire import Client, _async_transport, aio
from tests.servers import Server


@pytest.fixture
async def client(server: Server, emulator: Client) -> AsyncIterator[aio.AsyncClient]:
    async with await aio.connect(server.url) as client:
        yield client


async def test_memory_is_awaited(client: aio.AsyncClient) -> None:
    assert await client.memory["lives"] == 3
    await client.memory.write("scratch", np.uint8(7))
    assert await client.memory[0x02000100:0x02000102] == b"\x07\x00"
    await client.memory.write("presses", list(range(10)))
    assert (await client.memory["presses"]).tolist() == list(range(10))
    await client.memory.domain("wram").write(0x100, np.array([9], np.uint8))
    assert await client.memory.domain("wram")[0x100] == 9
    assert (await client.memory.array("scratch", "u16", 1)).tolist() == [9]


async def test_contexts_and_streams_begin_without_await(client: aio.AsyncClient) -> None:
    async with client.pause(), client.hold("Left"):
        async with client.watch("held") as changes:
            await client.advance()
            assert (await changes.next(5)).new == 32
        async with client.batch() as batch:
            lives = batch.read("lives")
        assert lives.value == 3
        async with client.record("run", replace=True) as recording:
            await client.advance(10)
        assert (await recording.info()).frames == 10
        assert (await client.replay("run")).equal
    async for change in client.watch("frame"):
        assert change.expression == "frame"
        break
    async with client.audio() as audio:
        assert (await audio.next()).samples.shape[1] == 2
    events = await client.events()
    await client.reset()
    assert (await events.next(5)).name == "reset"
    await events.close()


async def test_a_call_of_watch_or_events_that_is_cancelled_leaves_no_subscription(client: aio.AsyncClient) -> None:
    for begun in (client.watch("frame"), client.events()):
        call = asyncio.ensure_future(begun)
        await asyncio.sleep(0)
        assert client._transport._session.subscriptions
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not client._transport._session.subscriptions


def cancel_with_the_reply(monkeypatch: pytest.MonkeyPatch, calls: list[asyncio.Future[Any]]) -> None:
    """Lets the next reply of a client cancel the last of these calls, before the call returns."""
    settle = _async_transport._Waiting.settle

    def settle_and_cancel(pending: Any, result: Any, error: Any) -> None:
        settle(pending, result, error)
        if calls:
            calls.pop().cancel()

    monkeypatch.setattr(_async_transport._Waiting, "settle", settle_and_cancel)


async def test_a_connect_that_is_cancelled_logs_no_error(server: Server) -> None:
    logged: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
    for iterations in range(12):
        task = asyncio.create_task(aio.connect(server.url))
        for _ in range(iterations):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await (await task).close()
        await asyncio.sleep(0.05)
        gc.collect()
    assert not logged


@pytest.mark.parametrize("has_reply", [False, True])
async def test_a_hold_or_pause_that_is_cancelled_is_undone(
    client: aio.AsyncClient, monkeypatch: pytest.MonkeyPatch, has_reply: bool
) -> None:
    calls: list[asyncio.Future[Any]] = []
    if has_reply:
        cancel_with_the_reply(monkeypatch, calls)
    methods: list[Callable[[], Any]] = [lambda: client.hold("A"), client.lockstep, client.pause]
    for begin in methods:
        call = asyncio.ensure_future(begin().__aenter__())
        if has_reply:
            calls.append(call)
        else:
            await asyncio.sleep(0)
            call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with client.watch("frame") as changes:
            for _ in range(3):
                await changes.next(5)
        assert await client.read("held") == 0


@pytest.mark.parametrize("has_reply", [False, True])
@pytest.mark.parametrize("closes", [False, True])
async def test_a_record_that_is_cancelled_leaves_no_recording_running(
    server: Server, emulator: Client, monkeypatch: pytest.MonkeyPatch, has_reply: bool, closes: bool
) -> None:
    client = await aio.connect(server.url)
    call = asyncio.ensure_future(client.record("cancelled", replace=True).__aenter__())
    if has_reply:
        cancel_with_the_reply(monkeypatch, [call])
    else:
        await asyncio.sleep(0)
        call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    if closes:
        await client.close()

    def record_again() -> None:
        deadline = time.monotonic() + 10
        while True:
            try:
                emulator.record("again", replace=True).stop()
            except framewire.Conflict:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            else:
                return

    await asyncio.to_thread(record_again)
    await client.close()


async def test_a_record_that_is_cancelled_does_not_end_the_recording_of_another_client(
    client: aio.AsyncClient, emulator: Client
) -> None:
    running = await asyncio.to_thread(lambda: emulator.record("running", replace=True))
    call = asyncio.ensure_future(client.record("refused", replace=True).__aenter__())
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await client.frame()
    await asyncio.sleep(0.2)
    ended = await asyncio.to_thread(running.stop)
    assert ended.name == "running"


async def watches(client: Client) -> set[str]:
    """The ids of the server's watches, after the requests that are on their way have had time to arrive."""
    await asyncio.sleep(0.3)
    found = await asyncio.to_thread(lambda: client.call("watches", changes=False)["watches"])
    return {watch["id"] for watch in found}


@pytest.mark.parametrize("has_reply", [False, True])
@pytest.mark.parametrize("closes", [False, True])
async def test_an_evaluate_that_is_cancelled_leaves_no_watch(
    server: Server, emulator: Client, monkeypatch: pytest.MonkeyPatch, has_reply: bool, closes: bool
) -> None:
    before = await watches(emulator)
    client = await aio.connect(server.url)
    call = asyncio.ensure_future(client.evaluate("lives"))
    if has_reply:
        cancel_with_the_reply(monkeypatch, [call])
    else:
        await asyncio.sleep(0)
        call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    monkeypatch.undo()
    if closes:
        await client.close()
    # Watches of earlier tests can end meanwhile.
    left = await watches(emulator) - before
    await client.close()
    assert not left


async def test_events_without_a_change_do_not_extend_the_timeout_of_a_watch(
    client: aio.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def missed(_: Any, timeout: float) -> tuple[str, dict[str, Any]] | None:
        """Reports a lost event every 10 ms."""
        await asyncio.sleep(min(timeout, 0.01))
        return ("missed", {"missed": 1, "values": {}}) if timeout > 0.01 else None

    async with client.watch("lives") as changes:
        monkeypatch.setattr(changes._transport, "event", missed)
        with pytest.raises(framewire.WaitTimeout, match=r"no change of lives in 0\.2 s"):
            await asyncio.wait_for(changes.next(0.2), 30)
    assert changes.missed > 0


async def test_many_requests_can_be_open_at_once(client: aio.AsyncClient) -> None:
    """There are more requests than the server accepts on one connection. The rest wait in the client."""
    # If the game ran, it would lose a life after a few seconds.
    async with client.pause():
        assert await asyncio.gather(*(client.read("lives") for _ in range(3000))) == [3] * 3000


async def test_a_wait_does_not_delay_other_requests(client: aio.AsyncClient) -> None:
    waiting = asyncio.ensure_future(client.wait("scratch[9] == 5", timeout_frames=3600))
    for _ in range(20):
        await client.read("lives")
    assert not waiting.done()
    await client.write("scratch[9]", 5)
    assert (await waiting).frames > 0


async def test_requests_keep_their_order(client: aio.AsyncClient) -> None:
    async with client.pause():
        writes = [client.write("scratch", value) for value in range(100)]
        *_, last = await asyncio.gather(*writes, client.read("scratch"))
        assert last == 99


async def test_bad_input_is_explained(client: aio.AsyncClient) -> None:
    with pytest.raises(framewire.InvalidRequest, match="did you mean"):
        await client.memory["livse"]
    with pytest.raises(framewire.InvalidRequest, match="use whole numbers from 0 to 4294967295"):
        await client.memory.write("presses", [-1] * 10)
    with pytest.raises(framewire.InvalidRequest, match="the list contains 300; use whole numbers from 0 to 255"):
        await client.memory.write(0x02000100, [300])
    with pytest.raises(framewire.WaitTimeout):
        await client.wait("lives == 77", timeout_frames=2)


async def test_next_that_does_not_wait_returns_what_has_arrived(client: aio.AsyncClient, emulator: Client) -> None:
    async with client.events() as events, client.watch("scratch[9]") as changes:
        with pytest.raises(framewire.WaitTimeout):
            await events.next(timeout=0)
        with pytest.raises(framewire.WaitTimeout):
            await changes.next(timeout=0)
        # The event loop does not run until the events have arrived.
        with emulator.watch("scratch[9]") as seen:
            emulator.write("scratch[9]", 5)
            seen.next(5)
        emulator.reset()
        time.sleep(0.3)  # noqa: ASYNC251
        assert (await events.next(timeout=0)).name == "reset"
        assert (await changes.next(timeout=0)).new == 5


@pytest.mark.parametrize("closes_client", [False, True])
async def test_close_wakes_tasks_that_wait_for_an_event(client: aio.AsyncClient, closes_client: bool) -> None:
    streams: list[Any] = [await client.events(), await client.watch("scratch[9]")]
    tasks = [asyncio.ensure_future(stream.next()) for stream in streams]
    await asyncio.sleep(0.1)
    for each in [client] if closes_client else streams:
        await each.close()
    for task in tasks:
        with pytest.raises(framewire.FramewireError, match="closed"):
            await asyncio.wait_for(task, 5)


async def test_calls_of_a_closed_client_fail(server: Server) -> None:
    client = await aio.connect(server.url)
    waiting = asyncio.ensure_future(client.wait("lives == 77", timeout_frames=3600))
    await asyncio.sleep(0)
    await client.close()
    with pytest.raises(framewire.ConnectionLost, match="closed"):
        await waiting
    with pytest.raises(framewire.ConnectionLost, match="the client is closed"):
        await client.read("lives")
