"""An asynchronous client of a Framewire server: `await framewire.aio.connect(url)`.

`generate.py` makes `client.py`, the synchronous client, from this file.
"""

from __future__ import annotations

import os
import ssl as tls
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, TypeVar

import numpy.typing as npt
import websockets.asyncio.client
from websockets.exceptions import InvalidHandshake

from framewire import _calls as calls
from framewire._arguments import whole
from framewire._async_batch import AsyncBatch
from framewire._async_files import AsyncRecording, AsyncRecordings, AsyncSnapshots
from framewire._async_memory import AsyncMemory
from framewire._async_streams import AsyncAudio, AsyncEvents, AsyncHeld, AsyncWatch
from framewire._async_transport import AsyncTransport
from framewire._session import START_IT, authorization, refusal, socket_url
from framewire._starting import starting, starting_stream
from framewire.errors import ConnectionFailed, InvalidRequest
from framewire.model import (
    Address,
    Cheat,
    Data,
    Found,
    History,
    Info,
    IoRegister,
    Keys,
    NumberType,
    Presses,
    ReplayReport,
    Rewound,
    Symbol,
    Timeline,
    Value,
    Waited,
)
from framewire.screen import Screen

T = TypeVar("T")

LOCAL = "http://127.0.0.1:5000"
"""Where `framewire serve` listens."""


async def connect(
    url: str | None = None,
    *,
    emulator: str | None = None,
    token: str | None = None,
    timeout: float = 20.0,
    retry: float = 10.0,
    ssl: tls.SSLContext | None = None,
) -> AsyncClient:
    """Connects to a Framewire server.

    Args:
        url: The address of the server; without it the variable FRAMEWIRE_URL of the environment, or
            `http://127.0.0.1:5000`.
        emulator: The name of the emulator; without it the first one.
        token: The token, if the server needs one.
        timeout: The connection counts as broken after this many seconds without any sign of the server.
        retry: After a broken connection, the client tries for this many seconds to connect again. It then sends requests
            again whose reply is missing; the server performs none of them twice.
        ssl: What to check of a server with `https`, for example `ssl.create_default_context(cafile="cert.pem")`.

    Raises:
        ConnectionFailed: There is no server at this address.
        NotAllowed: The server needs another token.
        NotFound: There is no such emulator.
    """
    url = url or os.environ.get("FRAMEWIRE_URL") or LOCAL
    transport = AsyncTransport(socket_url(url, "/v1/ws", emulator), token, timeout, retry, ssl)
    await transport.start()
    return AsyncClient(transport, url, emulator, token, ssl)


class AsyncClient:
    """An emulator of a Framewire server. All methods raise `FramewireError`; each reply was made at a frame boundary.

    Attributes:
        memory: The memory, with brackets: `await client.memory["score"]`.
        snapshots: The server's savestates with names.
        recordings: The server's recordings.
    """

    def __init__(
        self,
        transport: AsyncTransport,
        url: str,
        emulator: str | None,
        token: str | None,
        ssl: tls.SSLContext | None,
    ) -> None:
        self._transport = transport
        self._audio = (socket_url(url, "/v1/audio", emulator), token, ssl)
        self.memory = AsyncMemory(self)
        self.snapshots = AsyncSnapshots(transport)
        self.recordings = AsyncRecordings(transport)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connection. Its watches end; the emulator runs on."""
        await self._transport.close()

    # Memory.

    async def read(self, address: Address, type: NumberType | None = None, *, domain: str | None = None) -> int:
        """Reads a number, by default of the symbol's type, or one byte."""
        return await self._transport.perform(calls.read(address, type, domain).call())

    async def read_many(
        self, addresses: Sequence[Address], type: NumberType | None = None, *, domain: str | None = None
    ) -> list[int]:
        """Reads several numbers at the same frame."""
        return await self._transport.perform(calls.read_many(addresses, type, domain).call())

    async def read_bytes(self, address: Address, length: int, *, domain: str | None = None) -> bytes:
        """Reads bytes, up to 16 MiB."""
        return await self._transport.perform(calls.read_bytes(address, length, domain).call())

    async def read_array(
        self, address: Address, type: NumberType | npt.DTypeLike, count: int, *, domain: str | None = None
    ) -> npt.NDArray[Any]:
        """Reads numbers in a row, of a type such as `"u16"` or a little-endian NumPy type. The array is yours to change."""
        return await self._transport.perform(calls.read_array(address, type, count, domain).call())

    async def write(
        self, address: Address, value: int, type: NumberType | None = None, *, domain: str | None = None
    ) -> None:
        """Writes a number, by default of the symbol's type, or one byte."""
        await self._transport.perform(calls.write(address, value, type, domain).call())

    async def write_bytes(self, address: Address, data: Data, *, domain: str | None = None) -> None:
        """Writes bytes or an array; to a domain, about 16 KiB at most."""
        await self._transport.perform(calls.write_bytes(address, data, domain).call())

    async def freeze(self, address: Address, value: int, type: NumberType | None = None) -> None:
        """Keeps a number in memory: it is written now, and again after each frame, until `unfreeze`."""
        await self._transport.perform(calls.freeze(address, value, type).call())

    async def unfreeze(self, address: Address | None = None) -> bool:
        """Ends `freeze` of an address, or all. Returns whether there was one."""
        return await self._transport.perform(calls.unfreeze(address).call())

    async def frozen(self) -> list[dict[str, Any]]:
        """What `freeze` keeps: dictionaries with `address`, and `type` and `value` or `data`."""
        return await self._transport.perform(calls.frozen().call())

    async def read_text(self, address: Address, length: int) -> str:
        """Reads the text in up to 4,096 bytes, up to its end, in the characters of the game: docs/api.md."""
        return await self._transport.perform(calls.read_text(address, length).call())

    async def find(
        self,
        *,
        text: str | None = None,
        bytes: Data | None = None,
        float: float | None = None,
        bcd: int | None = None,
        pointer_to: Address | None = None,
        areas: Sequence[Mapping[str, Any]] = (),
        limit: int = 100,
    ) -> list[Found]:
        """Finds places in memory that hold a text, bytes or a number in another form. Give exactly one of the first five.

        Args:
            text: A text, in the characters of the game.
            bytes: Bytes.
            float: A floating point number of 32 bits.
            bcd: A number in binary-coded decimal.
            pointer_to: An address, to find pointers to it.
            areas: Where to look, such as `[{"domain": "iwram"}, {"address": "scratch", "length": 256}]`; by default in
                the work RAM.
            limit: The most places.
        """
        wanted = {"text": text, "bytes": bytes, "float": float, "bcd": bcd, "pointer_to": pointer_to}
        return await self._transport.perform(calls.find(wanted, areas, limit))

    # The machine.

    async def registers(self) -> dict[str, int]:
        """The registers of the processor by name, unsigned, all of the same moment."""
        return await self._transport.perform(calls.registers())

    async def write_register(self, name: str, value: int) -> None:
        """Writes a register of the processor: a number of 32 bits, with or without a sign."""
        await self._transport.perform(calls.write_register(name, value))

    async def io_registers(self, contains: str | None = None) -> list[IoRegister]:
        """The I/O registers with the names of their bits, or those whose name contains a text."""
        return await self._transport.perform(calls.io_registers(contains))

    async def write_io_register(self, name: str, value: int) -> None:
        """Writes an I/O register, such as `BLDY`."""
        await self._transport.perform(calls.write_io_register(name, value))

    async def cycles(self) -> int:
        """Clock cycles since the last reset. A window does not have them."""
        return await self._transport.perform(calls.cycles().call())

    # The past.

    async def history(self, first: int = 0) -> History:
        """What the emulator keeps of the past, from the frame `first` on. A window begins to keep states with this call."""
        return await self._transport.perform(calls.history(first))

    async def history_screen(self, frame: int, line: int) -> Screen:
        """The small picture of a frame; `history` says which frames have one."""
        return await self._transport.perform(calls.history_screen(frame, line))

    async def rewind(self, frame: int, line: int | None = None) -> Rewound:
        """Goes back to a frame of the past, on this line or another one: docs/api.md#going-back."""
        return await self._transport.perform(calls.rewind(frame, line))

    # Cheats.

    async def cheats(self) -> list[Cheat]:
        """The cheats of the game. A window does not have them."""
        return await self._transport.perform(calls.cheats())

    async def add_cheat(
        self, codes: str | Sequence[str], *, name: str = "cheat", kind: str = "auto", enabled: bool = True
    ) -> int:
        """Adds a cheat and returns its number. docs/api.md lists the kinds."""
        return await self._transport.perform(calls.add_cheat(codes, name, kind, enabled).call())

    async def load_cheats(self, path: str) -> int:
        """Adds the cheats of a file of mGBA, and returns how many there are. The path is on the emulator's machine."""
        return await self._transport.perform(calls.load_cheats(path).call())

    async def enable_cheat(self, id: int, enabled: bool = True) -> None:
        """Switches a cheat on or off."""
        await self._transport.perform(calls.enable_cheat(id, enabled).call())

    async def remove_cheat(self, id: int | None = None) -> None:
        """Removes a cheat, or all."""
        await self._transport.perform(calls.remove_cheat(id).call())

    async def symbols(self, contains: str | None = None) -> dict[str, Symbol]:
        """The names of addresses of the loaded game, or those that contain a text."""
        found: dict[str, Symbol] = {}
        after, more = None, True
        while more:
            page, more = await self._transport.perform(calls.symbols(contains, after))
            found.update((symbol.name, symbol) for symbol in page)
            after = page[-1].name if page else None
        return found

    # Keys.

    async def press(self, keys: Keys, frames: int = 1, *, wait: bool = False) -> Timeline:
        """Presses keys together for a number of frames.

        Args:
            keys: The keys, such as `"A"` or `"Up+B"`.
            frames: The number of frames.
            wait: Whether to wait until the keys are released. Without frames, for example while the emulator is paused,
                this fails.
        """
        return await self._keys(calls.press(keys, frames), wait)

    async def play(self, presses: Presses, *, wait: bool = False, append: bool = False) -> Timeline:
        """Presses keys one after the other.

        Args:
            presses: Text such as `"A:2 .:10 Up+B:30"`: keys, `.` for no key, and after the colon the number of frames; or
                pairs such as `[("A", 2), ("", 10)]`.
            wait: Whether to wait until the keys are released.
            append: Whether to begin after everything that plays or waits, instead of in the next frame.
        """
        return await self._keys(calls.play(presses, append), wait)

    async def _keys(self, operation: calls.Operation[Timeline], wait: bool) -> Timeline:
        return await self._transport.perform(calls.until_over(operation) if wait else operation.call())

    async def cancel(self, timeline: Timeline | None = None) -> bool:
        """Ends a timeline of `press` or `play`, or all. Returns whether there was one."""
        return await self._transport.perform(calls.cancel(None if timeline is None else timeline.id))

    async def cancelled(self, timeline: Timeline) -> bool | None:
        """Whether a timeline ended early; None while it plays."""
        return await self._transport.perform(calls.progress(timeline.id))

    @starting
    async def hold(self, keys: Keys) -> AsyncHeld:
        """Holds keys until `release`, or until the end of `async with client.hold(keys):`."""
        await self._transport.perform(calls.hold(keys).call())
        return AsyncHeld(self._transport, calls.release(keys).call())

    async def release(self, keys: Keys | None = None) -> None:
        """Releases held keys, or all."""
        await self._transport.perform(calls.release(keys).call())

    # Frames.

    async def frame(self) -> int:
        """The frame counter: frames since the last reset."""
        return await self._transport.perform(calls.frame().call())

    async def advance(self, frames: int = 1, *, draw: bool = True) -> int:  # noqa: ARG002
        """Runs frames now and returns the frame counter. A window does this in lockstep only.

        Args:
            frames: The number of frames.
            draw: For programs that also use `framewire.load`. A server draws the frames that somebody looks at, whatever
                this says, and `screen()` is the picture of the last frame.
        """
        frames = whole(frames, "frames")
        while frames > calls.MOST_FRAMES:
            await self._transport.perform(calls.advance(calls.MOST_FRAMES).call())
            frames -= calls.MOST_FRAMES
        return await self._transport.perform(calls.advance(frames).call())

    @starting
    async def pause(self) -> AsyncHeld:
        """Pauses the game until `resume`, or until the end of `async with client.pause():`. Requests still work."""
        await self._transport.perform(calls.plain("pause").call())
        return AsyncHeld(self._transport, calls.plain("resume").call())

    async def resume(self) -> None:
        """Continues the game: ends a pause or lockstep."""
        await self._transport.perform(calls.plain("resume").call())
        self._transport.lockstep(False)

    @starting
    async def lockstep(self, timeout: int = 10_000) -> AsyncHeld:
        """Runs frames only in `advance`, until `resume`, or until the end of `async with client.lockstep():`.

        Args:
            timeout: Lockstep ends after this many milliseconds without a request, 1 to 60,000. It also ends with the
                connection; a request during which that happens raises `ConnectionLost`.
        """
        await self._transport.perform(calls.lockstep(timeout).call())
        self._transport.lockstep(True)
        return AsyncHeld(self._transport, calls.lockstep(0).call())

    async def set_speed(self, speed: float | str) -> None:
        """Changes the speed: a multiple of the console's, 0.01 to 1000, or `"unlimited"`. A window cannot do this."""
        await self._transport.perform(calls.set_speed(speed))

    async def reset(self) -> None:
        """Resets the console."""
        await self._transport.perform(calls.plain("reset").call())

    async def load(self, path: str) -> None:
        """Loads another game. The path is on the emulator's machine."""
        await self._transport.perform(calls.load(path))
        self.memory.refresh()

    async def info(self) -> Info:
        """The state of the emulator and its game."""
        return await self._transport.perform(calls.info())

    # Pictures, sound and states.

    async def screen(self, *, frame: int | None = None, timeout: int | None = None) -> Screen:
        """The picture of the last frame.

        Args:
            frame: Wait for the picture of this frame instead.
            timeout: How many milliseconds to wait for it, up to 60,000; 10,000 by default.
        """
        return await self._transport.perform(calls.screen(frame, timeout))

    @starting_stream
    async def audio(self) -> AsyncAudio:
        """The sound from now on, as an iterator of `AudioChunk`. A window does not have it."""
        url, token, ssl = self._audio
        stack = AsyncExitStack()
        try:
            socket = await stack.enter_async_context(
                websockets.asyncio.client.connect(
                    url, ssl=ssl, additional_headers=authorization(token), compression=None, max_size=None, proxy=None
                )
            )
        except InvalidHandshake as error:
            raise refusal(error, url).error from None
        except OSError as error:
            raise ConnectionFailed(f"no connection to {url}: {error}; {START_IT}") from error
        return AsyncAudio(socket, stack)

    async def save_state(self, flags: int | None = None) -> bytes:
        """The state, as mGBA saves it. `flags` says what it includes: docs/states.md."""
        return await self._transport.perform(calls.save_state(flags))

    async def load_state(self, state: bytes, flags: int | None = None, *, force: bool = False) -> int:
        """Loads a state and returns the frame counter. `force` loads a state of another game."""
        return await self._transport.perform(calls.load_state(state, flags, force))

    # Expressions.

    async def evaluate(self, expression: str) -> Value:
        """The value of an expression over memory, such as `"score + 10 * level"`: docs/watches.md."""
        value, watch = await self._transport.perform(calls.evaluate(expression))
        self._transport.notify("deleteWatch", {"id": watch})
        return value

    async def wait(self, expression: str, timeout_frames: int = 600) -> Waited:
        """Waits until an expression is true after a frame. The game must run.

        Raises:
            WaitTimeout: It did not become true in `timeout_frames` frames.
        """
        return await self._transport.perform(calls.wait(expression, timeout_frames))

    async def run(
        self,
        steps: Sequence[Mapping[str, Any]],
        *,
        stop: str | Sequence[str] | None = None,
        values: Mapping[str, str] | Sequence[str] | None = None,
        operations: Sequence[Mapping[str, Any]] = (),
        then: Sequence[Mapping[str, Any]] = (),
    ) -> dict[str, Any]:
        """Plays steps until conditions hold, and performs operations at exactly that frame: docs/api.md.

        Args:
            steps: Such as `[{"sequence": "A:2"}, {"hold": "Right", "until": "paddle_x > 2200", "frames": 120}]`.
            stop: Conditions that end the whole run.
            values: Expressions whose values at the last frame are returned, by name or in a list.
            operations: Operations of a batch before the first frame.
            then: Operations of a batch at the last frame.

        Returns:
            The reply: `why`, `condition`, `frames`, `frame`, `steps`, `ops`, `then` and `values`.
        """
        return await self._transport.perform(calls.run(steps, stop, values, operations, then))

    @starting_stream
    async def watch(self, *expressions: str) -> AsyncWatch:
        """Reports each change of expressions, from now on, frame by frame, as an iterator of `Change`."""
        if not expressions:
            raise InvalidRequest("watch() needs an expression, such as watch('score')", parameter="expressions")
        watch = AsyncWatch(self._transport, expressions)
        await watch.begin()
        return watch

    @starting_stream
    async def events(self) -> AsyncEvents:
        """Reports what happens to the emulator, such as `reset`, as an iterator of `Event`: docs/watches.md."""
        events = AsyncEvents(self._transport)
        await events.begin()
        return events

    def batch(self) -> AsyncBatch:
        """Several operations between the same two frames, in one request.

        ```python
        async with client.batch() as batch:
            score = batch.read("score")
            batch.press("A", frames=2)
        print(score.value)
        ```
        """
        return AsyncBatch(self._transport)

    # Recordings.

    @starting
    async def record(
        self,
        name: str | None = None,
        *,
        start: str = "state",
        every: int | None = None,
        note: str = "",
        replace: bool = False,
    ) -> AsyncRecording:
        """Records every input with its frame until `stop`, or until the end of `async with client.record():`.

        Args:
            name: The name of the recording.
            start: `state`, the current state, or `power-on`, which resets the console.
            every: Frames from one hash of the picture to the next; 60 by default.
            note: Text to keep with it.
            replace: Whether to overwrite a recording of this name.
        """
        info = await self._transport.perform(calls.start_recording(name, start, every, note, replace))
        return AsyncRecording(self._transport, info)

    async def replay(
        self, name: str, *, speed: float | None = None, restore: bool = False, through: bool = False
    ) -> ReplayReport:
        """Replays a recording and compares it.

        Args:
            name: The name of the recording.
            speed: A multiple of the console's speed; by default as fast as possible.
            restore: Whether to put the emulator back into its earlier state afterwards.
            through: Whether to continue after a difference.
        """
        return await self._transport.perform(calls.replay(name, speed, restore, through))

    # Everything else.

    async def call(self, method: str, *, changes: bool, **params: Any) -> Any:
        """Calls any method of docs/json-rpc.md.

        Args:
            method: The name of the method.
            changes: Whether it changes something. Then it gets an idempotency key.
            params: Its parameters.
        """
        return await self._transport.perform(calls.Call(method, params, calls.same, changes))
