"""A client of a Framewire server: `framewire.connect(url)`.

`generate.py` makes this file from `aio.py`: change that one.
"""

from __future__ import annotations

import os
import ssl as tls
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, TypeVar

import numpy.typing as npt
import websockets.sync.client
from websockets.exceptions import InvalidHandshake

from framewire import _calls as calls
from framewire._arguments import whole
from framewire._session import START_IT, authorization, refusal, socket_url
from framewire._sync_batch import Batch
from framewire._sync_files import Recording, Recordings, Snapshots
from framewire._sync_streams import Audio, Events, Held, Watch
from framewire._sync_transport import SyncTransport
from framewire.errors import ConnectionFailed, InvalidRequest
from framewire.memory import Memory
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


def connect(
    url: str | None = None,
    *,
    emulator: str | None = None,
    token: str | None = None,
    timeout: float = 20.0,
    retry: float = 10.0,
    ssl: tls.SSLContext | None = None,
) -> Client:
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
    transport = SyncTransport(socket_url(url, "/v1/ws", emulator), token, timeout, retry, ssl)
    transport.start()
    return Client(transport, url, emulator, token, ssl)


class Client:
    """An emulator of a Framewire server. All methods raise `FramewireError`; each reply was made at a frame boundary.

    Attributes:
        memory: The memory, with brackets: `client.memory["score"]`.
        snapshots: The server's savestates with names.
        recordings: The server's recordings.
    """

    def __init__(
        self,
        transport: SyncTransport,
        url: str,
        emulator: str | None,
        token: str | None,
        ssl: tls.SSLContext | None,
    ) -> None:
        self._transport = transport
        self._audio = (socket_url(url, "/v1/audio", emulator), token, ssl)
        self.memory = Memory(self)
        self.snapshots = Snapshots(transport)
        self.recordings = Recordings(transport)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection. Its watches end; the emulator runs on."""
        self._transport.close()

    # Memory.

    def read(self, address: Address, type: NumberType | None = None, *, domain: str | None = None) -> int:
        """Reads a number, by default of the symbol's type, or one byte."""
        return self._transport.perform(calls.read(address, type, domain).call())

    def read_many(
        self, addresses: Sequence[Address], type: NumberType | None = None, *, domain: str | None = None
    ) -> list[int]:
        """Reads several numbers at the same frame."""
        return self._transport.perform(calls.read_many(addresses, type, domain).call())

    def read_bytes(self, address: Address, length: int, *, domain: str | None = None) -> bytes:
        """Reads bytes, up to 16 MiB."""
        return self._transport.perform(calls.read_bytes(address, length, domain).call())

    def read_array(
        self, address: Address, type: NumberType | npt.DTypeLike, count: int, *, domain: str | None = None
    ) -> npt.NDArray[Any]:
        """Reads numbers in a row, of a type such as `"u16"` or a little-endian NumPy type. The array is yours to change."""
        return self._transport.perform(calls.read_array(address, type, count, domain).call())

    def write(self, address: Address, value: int, type: NumberType | None = None, *, domain: str | None = None) -> None:
        """Writes a number, by default of the symbol's type, or one byte."""
        self._transport.perform(calls.write(address, value, type, domain).call())

    def write_bytes(self, address: Address, data: Data, *, domain: str | None = None) -> None:
        """Writes bytes or an array; to a domain, about 16 KiB at most."""
        self._transport.perform(calls.write_bytes(address, data, domain).call())

    def freeze(self, address: Address, value: int, type: NumberType | None = None) -> None:
        """Keeps a number in memory: it is written now, and again after each frame, until `unfreeze`."""
        self._transport.perform(calls.freeze(address, value, type).call())

    def unfreeze(self, address: Address | None = None) -> bool:
        """Ends `freeze` of an address, or all. Returns whether there was one."""
        return self._transport.perform(calls.unfreeze(address).call())

    def frozen(self) -> list[dict[str, Any]]:
        """What `freeze` keeps: dictionaries with `address`, and `type` and `value` or `data`."""
        return self._transport.perform(calls.frozen().call())

    def read_text(self, address: Address, length: int) -> str:
        """Reads the text in up to 4,096 bytes, up to its end, in the characters of the game: docs/api.md."""
        return self._transport.perform(calls.read_text(address, length).call())

    def find(
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
        return self._transport.perform(calls.find(wanted, areas, limit))

    # The machine.

    def registers(self) -> dict[str, int]:
        """The registers of the processor by name, unsigned, all of the same moment."""
        return self._transport.perform(calls.registers())

    def write_register(self, name: str, value: int) -> None:
        """Writes a register of the processor: a number of 32 bits, with or without a sign."""
        self._transport.perform(calls.write_register(name, value))

    def io_registers(self, contains: str | None = None) -> list[IoRegister]:
        """The I/O registers with the names of their bits, or those whose name contains a text."""
        return self._transport.perform(calls.io_registers(contains))

    def write_io_register(self, name: str, value: int) -> None:
        """Writes an I/O register, such as `BLDY`."""
        self._transport.perform(calls.write_io_register(name, value))

    def cycles(self) -> int:
        """Clock cycles since the last reset. A window does not have them."""
        return self._transport.perform(calls.cycles().call())

    # The past.

    def history(self, first: int = 0) -> History:
        """What the emulator keeps of the past, from the frame `first` on. A window begins to keep states with this call."""
        return self._transport.perform(calls.history(first))

    def history_screen(self, frame: int, line: int) -> Screen:
        """The small picture of a frame; `history` says which frames have one."""
        return self._transport.perform(calls.history_screen(frame, line))

    def rewind(self, frame: int, line: int | None = None) -> Rewound:
        """Goes back to a frame of the past, on this line or another one: docs/api.md#going-back."""
        return self._transport.perform(calls.rewind(frame, line))

    # Cheats.

    def cheats(self) -> list[Cheat]:
        """The cheats of the game. A window does not have them."""
        return self._transport.perform(calls.cheats())

    def add_cheat(
        self, codes: str | Sequence[str], *, name: str = "cheat", kind: str = "auto", enabled: bool = True
    ) -> int:
        """Adds a cheat and returns its number. docs/api.md lists the kinds."""
        return self._transport.perform(calls.add_cheat(codes, name, kind, enabled).call())

    def load_cheats(self, path: str) -> int:
        """Adds the cheats of a file of mGBA, and returns how many there are. The path is on the emulator's machine."""
        return self._transport.perform(calls.load_cheats(path).call())

    def enable_cheat(self, id: int, enabled: bool = True) -> None:
        """Switches a cheat on or off."""
        self._transport.perform(calls.enable_cheat(id, enabled).call())

    def remove_cheat(self, id: int | None = None) -> None:
        """Removes a cheat, or all."""
        self._transport.perform(calls.remove_cheat(id).call())

    def symbols(self, contains: str | None = None) -> dict[str, Symbol]:
        """The names of addresses of the loaded game, or those that contain a text."""
        found: dict[str, Symbol] = {}
        after, more = None, True
        while more:
            page, more = self._transport.perform(calls.symbols(contains, after))
            found.update((symbol.name, symbol) for symbol in page)
            after = page[-1].name if page else None
        return found

    # Keys.

    def press(self, keys: Keys, frames: int = 1, *, wait: bool = False) -> Timeline:
        """Presses keys together for a number of frames.

        Args:
            keys: The keys, such as `"A"` or `"Up+B"`.
            frames: The number of frames.
            wait: Whether to wait until the keys are released. Without frames, for example while the emulator is paused,
                this fails.
        """
        return self._keys(calls.press(keys, frames), wait)

    def play(self, presses: Presses, *, wait: bool = False, append: bool = False) -> Timeline:
        """Presses keys one after the other.

        Args:
            presses: Text such as `"A:2 .:10 Up+B:30"`: keys, `.` for no key, and after the colon the number of frames; or
                pairs such as `[("A", 2), ("", 10)]`.
            wait: Whether to wait until the keys are released.
            append: Whether to begin after everything that plays or waits, instead of in the next frame.
        """
        return self._keys(calls.play(presses, append), wait)

    def _keys(self, operation: calls.Operation[Timeline], wait: bool) -> Timeline:
        return self._transport.perform(calls.until_over(operation) if wait else operation.call())

    def cancel(self, timeline: Timeline | None = None) -> bool:
        """Ends a timeline of `press` or `play`, or all. Returns whether there was one."""
        return self._transport.perform(calls.cancel(None if timeline is None else timeline.id))

    def cancelled(self, timeline: Timeline) -> bool | None:
        """Whether a timeline ended early; None while it plays."""
        return self._transport.perform(calls.progress(timeline.id))

    def hold(self, keys: Keys) -> Held:
        """Holds keys until `release`, or until the end of `with client.hold(keys):`."""
        self._transport.perform(calls.hold(keys).call())
        return Held(self._transport, calls.release(keys).call())

    def release(self, keys: Keys | None = None) -> None:
        """Releases held keys, or all."""
        self._transport.perform(calls.release(keys).call())

    # Frames.

    def frame(self) -> int:
        """The frame counter: frames since the last reset."""
        return self._transport.perform(calls.frame().call())

    def advance(self, frames: int = 1, *, draw: bool = True) -> int:  # noqa: ARG002
        """Runs frames now and returns the frame counter. A window does this in lockstep only.

        Args:
            frames: The number of frames.
            draw: For programs that also use `framewire.load`. A server draws the frames that somebody looks at, whatever
                this says, and `screen()` is the picture of the last frame.
        """
        frames = whole(frames, "frames")
        while frames > calls.MOST_FRAMES:
            self._transport.perform(calls.advance(calls.MOST_FRAMES).call())
            frames -= calls.MOST_FRAMES
        return self._transport.perform(calls.advance(frames).call())

    def pause(self) -> Held:
        """Pauses the game until `resume`, or until the end of `with client.pause():`. Requests still work."""
        self._transport.perform(calls.plain("pause").call())
        return Held(self._transport, calls.plain("resume").call())

    def resume(self) -> None:
        """Continues the game: ends a pause or lockstep."""
        self._transport.perform(calls.plain("resume").call())
        self._transport.lockstep(False)

    def lockstep(self, timeout: int = 10_000) -> Held:
        """Runs frames only in `advance`, until `resume`, or until the end of `with client.lockstep():`.

        Args:
            timeout: Lockstep ends after this many milliseconds without a request, 1 to 60,000. It also ends with the
                connection; a request during which that happens raises `ConnectionLost`.
        """
        self._transport.perform(calls.lockstep(timeout).call())
        self._transport.lockstep(True)
        return Held(self._transport, calls.lockstep(0).call())

    def set_speed(self, speed: float | str) -> None:
        """Changes the speed: a multiple of the console's, 0.01 to 1000, or `"unlimited"`. A window cannot do this."""
        self._transport.perform(calls.set_speed(speed))

    def reset(self) -> None:
        """Resets the console."""
        self._transport.perform(calls.plain("reset").call())

    def load(self, path: str) -> None:
        """Loads another game. The path is on the emulator's machine."""
        self._transport.perform(calls.load(path))
        self.memory.refresh()

    def info(self) -> Info:
        """The state of the emulator and its game."""
        return self._transport.perform(calls.info())

    # Pictures, sound and states.

    def screen(self, *, frame: int | None = None, timeout: int | None = None) -> Screen:
        """The picture of the last frame.

        Args:
            frame: Wait for the picture of this frame instead.
            timeout: How many milliseconds to wait for it, up to 60,000; 10,000 by default.
        """
        return self._transport.perform(calls.screen(frame, timeout))

    def audio(self) -> Audio:
        """The sound from now on, as an iterator of `AudioChunk`. A window does not have it."""
        url, token, ssl = self._audio
        stack = ExitStack()
        try:
            socket = stack.enter_context(
                websockets.sync.client.connect(
                    url, ssl=ssl, additional_headers=authorization(token), compression=None, max_size=None, proxy=None
                )
            )
        except InvalidHandshake as error:
            raise refusal(error, url).error from None
        except OSError as error:
            raise ConnectionFailed(f"no connection to {url}: {error}; {START_IT}") from error
        return Audio(socket, stack)

    def save_state(self, flags: int | None = None) -> bytes:
        """The state, as mGBA saves it. `flags` says what it includes: docs/states.md."""
        return self._transport.perform(calls.save_state(flags))

    def load_state(self, state: bytes, flags: int | None = None, *, force: bool = False) -> int:
        """Loads a state and returns the frame counter. `force` loads a state of another game."""
        return self._transport.perform(calls.load_state(state, flags, force))

    # Expressions.

    def evaluate(self, expression: str) -> Value:
        """The value of an expression over memory, such as `"score + 10 * level"`: docs/watches.md."""
        value, watch = self._transport.perform(calls.evaluate(expression))
        self._transport.notify("deleteWatch", {"id": watch})
        return value

    def wait(self, expression: str, timeout_frames: int = 600) -> Waited:
        """Waits until an expression is true after a frame. The game must run.

        Raises:
            WaitTimeout: It did not become true in `timeout_frames` frames.
        """
        return self._transport.perform(calls.wait(expression, timeout_frames))

    def run(
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
        return self._transport.perform(calls.run(steps, stop, values, operations, then))

    def watch(self, *expressions: str) -> Watch:
        """Reports each change of expressions, from now on, frame by frame, as an iterator of `Change`."""
        if not expressions:
            raise InvalidRequest("watch() needs an expression, such as watch('score')", parameter="expressions")
        watch = Watch(self._transport, expressions)
        watch.begin()
        return watch

    def events(self) -> Events:
        """Reports what happens to the emulator, such as `reset`, as an iterator of `Event`: docs/watches.md."""
        events = Events(self._transport)
        events.begin()
        return events

    def batch(self) -> Batch:
        """Several operations between the same two frames, in one request.

        ```python
        with client.batch() as batch:
            score = batch.read("score")
            batch.press("A", frames=2)
        print(score.value)
        ```
        """
        return Batch(self._transport)

    # Recordings.

    def record(
        self,
        name: str | None = None,
        *,
        start: str = "state",
        every: int | None = None,
        note: str = "",
        replace: bool = False,
    ) -> Recording:
        """Records every input with its frame until `stop`, or until the end of `with client.record():`.

        Args:
            name: The name of the recording.
            start: `state`, the current state, or `power-on`, which resets the console.
            every: Frames from one hash of the picture to the next; 60 by default.
            note: Text to keep with it.
            replace: Whether to overwrite a recording of this name.
        """
        info = self._transport.perform(calls.start_recording(name, start, every, note, replace))
        return Recording(self._transport, info)

    def replay(
        self, name: str, *, speed: float | None = None, restore: bool = False, through: bool = False
    ) -> ReplayReport:
        """Replays a recording and compares it.

        Args:
            name: The name of the recording.
            speed: A multiple of the console's speed; by default as fast as possible.
            restore: Whether to put the emulator back into its earlier state afterwards.
            through: Whether to continue after a difference.
        """
        return self._transport.perform(calls.replay(name, speed, restore, through))

    # Everything else.

    def call(self, method: str, *, changes: bool, **params: Any) -> Any:
        """Calls any method of docs/json-rpc.md.

        Args:
            method: The name of the method.
            changes: Whether it changes something. Then it gets an idempotency key.
            params: Its parameters.
        """
        return self._transport.perform(calls.Call(method, params, calls.same, changes))
