"""A client of a Framewire server: `framewire.connect(url)`.

`generate.py` makes this file from `aio.py`: change that one.
"""

from __future__ import annotations

import os
import ssl as tls
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy.typing as npt
import websockets.sync.client
from websockets.exceptions import InvalidHandshake

from framewire import _calls as calls
from framewire._arguments import check_range
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
    key_names,
)
from framewire.screen import Screen

LOCAL = "http://127.0.0.1:5000"
"""The default address of `framewire serve`."""

# How many seconds the end of sound waits for the server. If the program has not read all sound, the reply is not read.
_CLOSE_SECONDS = 0.1


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
        url: The address of the server. The default is the environment variable FRAMEWIRE_URL, or
            `http://127.0.0.1:5000`.
        emulator: The name of the emulator. The default is the first one of the server.
        token: The token, if the server needs one.
        timeout: The connection counts as broken after this many seconds without data from the server. It also limits each
            attempt to connect.
        retry: After the connection has broken, the client tries to connect again for this many seconds. It then repeats
            the requests that have no reply, if that is safe. The server performs none of them twice.
        ssl: How to check the certificate of an `https` server, such as `ssl.create_default_context(cafile="cert.pem")`.

    Raises:
        ConnectionFailed: There is no server at this address.
        InvalidRequest: The URL is not valid.
        NotAllowed: The server needs a token, or does not accept this one.
        NotFound: There is no such emulator.
    """
    url = url or os.environ.get("FRAMEWIRE_URL") or LOCAL
    transport = SyncTransport(socket_url(url, "/v1/ws", emulator), token, timeout, retry, ssl)
    transport.start()
    return Client(transport, url, emulator, token, ssl)


class Client:
    """An emulator of a Framewire server. All methods can raise `FramewireError`. Requests are performed between two frames.

    Some methods are not available if the emulator is an mGBA window: `cycles`, `pause`, `set_speed`, `replay`, `audio`
    and the methods for cheats.

    Attributes:
        memory: The memory. Brackets read it: `client.memory["score"]`.
        snapshots: The server's savestates with names.
        recordings: The server's recordings.
    """

    def __init__(
        self, transport: SyncTransport, url: str, emulator: str | None, token: str | None, ssl: tls.SSLContext | None
    ) -> None:
        self._transport = transport
        self._audio = (socket_url(url, "/v1/audio", emulator), token, ssl)
        self.memory = Memory(self)
        self.snapshots = Snapshots(transport)
        self.recordings = Recordings(transport)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection, its watches and its sound. The emulator continues to run."""
        try:
            self._transport.close()
        finally:
            for sound in list(self._transport.sounds):
                sound.close()

    # Memory.

    def read(self, address: Address, type: NumberType | None = None, *, domain: str | None = None) -> int:
        """Reads a number. The default type is that of the symbol, or `"u8"` if there is none."""
        return self._transport.perform(calls.read(address, type, domain).call())

    def read_many(
        self, addresses: Sequence[Address], type: NumberType | None = None, *, domain: str | None = None
    ) -> list[int]:
        """Reads several numbers in the same frame."""
        return self._transport.perform(calls.read_many(addresses, type, domain).call())

    def read_bytes(self, address: Address, length: int, *, domain: str | None = None) -> bytes:
        """Reads bytes, up to 16 MiB."""
        return self._transport.perform(calls.read_bytes(address, length, domain).call())

    def read_array(
        self, address: Address, type: NumberType | npt.DTypeLike, count: int, *, domain: str | None = None
    ) -> npt.NDArray[Any]:
        """Reads consecutive numbers into a new array. `type` is a name such as `"u16"`, or a NumPy type."""
        return self._transport.perform(calls.read_array(address, type, count, domain).call())

    def write(self, address: Address, value: int, type: NumberType | None = None, *, domain: str | None = None) -> None:
        """Writes a number. The default type is that of the symbol, or `"u8"` if there is none."""
        self._transport.perform(calls.write(address, value, type, domain).call())

    def write_bytes(self, address: Address, data: Data, *, domain: str | None = None) -> None:
        """Writes bytes or an array. With `domain`, one call can write about 16 KiB."""
        self._transport.perform(calls.write_bytes(address, data, domain).call())

    def freeze(self, address: Address, value: int, type: NumberType | None = None) -> None:
        """Freezes a number in memory: writes it now, and again after each frame, until `unfreeze`."""
        self._transport.perform(calls.freeze(address, value, type).call())

    def unfreeze(self, address: Address | None = None) -> bool:
        """Unfreezes an address, or all addresses. Returns whether any was frozen."""
        return self._transport.perform(calls.unfreeze(address).call())

    def frozen(self) -> list[dict[str, Any]]:
        """The frozen values: dictionaries with `address`, and either `type` and `value`, or `data` (base64 text)."""
        return self._transport.perform(calls.frozen().call())

    def read_text(self, address: Address, length: int) -> str:
        """Reads a text of at most `length` bytes (up to 4,096), in the game's character encoding: docs/api.md."""
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
        """Finds a text, bytes, a number or a pointer in memory. Pass exactly one of the first five arguments.

        Args:
            text: A text, in the game's character encoding.
            bytes: The bytes to find.
            float: A 32-bit floating-point number.
            bcd: A number in binary-coded decimal.
            pointer_to: An address. Pointers to it are found.
            areas: Where to look, such as `[{"domain": "iwram"}, {"address": "scratch", "length": 256}]`; by default in
                the work RAM, and on a Game Boy also in `hram`.
            limit: The largest number of places to return, from 1 to 10,000.
        """
        wanted = {"text": text, "bytes": bytes, "float": float, "bcd": bcd, "pointer_to": pointer_to}
        return self._transport.perform(calls.find(wanted, areas, limit))

    # The machine.

    def registers(self) -> dict[str, int]:
        """The registers of the processor by name, as unsigned numbers. All are read in the same frame."""
        return self._transport.perform(calls.registers())

    def write_register(self, name: str, value: int) -> None:
        """Writes a register of the processor. The value is a signed or unsigned 32-bit number."""
        self._transport.perform(calls.write_register(name, value))

    def io_registers(self, contains: str | None = None) -> list[IoRegister]:
        """The I/O registers with their bit fields: all of them, or those whose name contains a text."""
        return self._transport.perform(calls.io_registers(contains))

    def write_io_register(self, name: str, value: int) -> None:
        """Writes an I/O register, such as `BLDY`."""
        self._transport.perform(calls.write_io_register(name, value))

    def cycles(self) -> int:
        """Clock cycles since the last reset. A loaded state sets the count to that in the state.

        Not available with an mGBA window.
        """
        return self._transport.perform(calls.cycles().call())

    # The past.

    def history(self, first: int = 0) -> History:
        """The history that the emulator keeps, from frame `first` on. With an mGBA window, the first call starts it."""
        return self._transport.perform(calls.history(first))

    def history_screen(self, frame: int, line: int) -> Screen:
        """The small picture of a past frame. `history` lists the frames that have one."""
        return self._transport.perform(calls.history_screen(frame, line))

    def rewind(self, frame: int, line: int | None = None) -> Rewound:
        """Goes back to a past frame, on the present line of the history or another one: docs/api.md#going-back."""
        return self._transport.perform(calls.rewind(frame, line))

    # Cheats.

    def cheats(self) -> list[Cheat]:
        """The cheats of the game. Not available with an mGBA window."""
        return self._transport.perform(calls.cheats())

    def add_cheat(
        self, codes: str | Sequence[str], *, name: str = "cheat", kind: str = "auto", enabled: bool = True
    ) -> int:
        """Adds a cheat and returns its number. docs/api.md lists the kinds."""
        return self._transport.perform(calls.add_cheat(codes, name, kind, enabled).call())

    def load_cheats(self, path: str) -> int:
        """Adds the cheats of an mGBA cheat file, and returns how many. The path is on the emulator's machine."""
        return self._transport.perform(calls.load_cheats(path).call())

    def enable_cheat(self, id: int, enabled: bool = True) -> None:
        """Switches a cheat on or off."""
        self._transport.perform(calls.enable_cheat(id, enabled).call())

    def remove_cheat(self, id: int | None = None) -> None:
        """Removes a cheat, or all cheats."""
        self._transport.perform(calls.remove_cheat(id).call())

    def symbols(self, contains: str | None = None) -> dict[str, Symbol]:
        """The symbols of the loaded game: all of them, or those whose name contains a text."""
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
            wait: Whether to wait until the keys are released. This fails if no frames run, for example while the
                emulator is paused.

        Raises:
            Conflict: Another timeline has one of these keys.
        """
        return self._keys(calls.press(keys, frames), wait)

    def play(self, presses: Presses, *, wait: bool = False, append: bool = False) -> Timeline:
        """Presses keys one after another.

        Args:
            presses: Text such as `"A:2 .:10 Up+B:30"`: keys (`.` for no key), a colon, and the number of frames. Or
                pairs such as `[("A", 2), ("", 10)]`.
            wait: Whether to wait until the keys are released.
            append: Whether to begin after the end of all other timelines, instead of in the next frame.

        Raises:
            Conflict: Another timeline has one of these keys, and `append` is false.
        """
        return self._keys(calls.play(presses, append), wait)

    def _keys(self, operation: calls.Operation[Timeline], wait: bool) -> Timeline:
        return self._transport.perform(calls.until_over(operation) if wait else operation.call())

    def cancel(self, timeline: Timeline | None = None) -> bool:
        """Ends a timeline of `press` or `play`, or all timelines. Returns whether there was one.

        Raises:
            NotFound: This timeline is not running.
        """
        return self._transport.perform(calls.cancel(None if timeline is None else timeline.id))

    def cancelled(self, timeline: Timeline) -> bool | None:
        """Whether a timeline ended early; None while it is still playing. The last 16,384 that ended are remembered."""
        return self._transport.perform(calls.progress(timeline.id))

    def hold(self, keys: Keys) -> Held:
        """Holds keys until `release`, or until the end of `with client.hold(keys):`."""
        names = key_names(keys)
        held = Held(self._transport, calls.release(names).call())
        held.begin(calls.hold(names).call())
        return held

    def release(self, keys: Keys | None = None) -> None:
        """Releases these keys, or all held keys."""
        self._transport.perform(calls.release(keys).call())

    # Frames.

    def frame(self) -> int:
        """The frame counter: frames since the last reset. A loaded state sets it to the counter in the state."""
        return self._transport.perform(calls.frame().call())

    def advance(self, frames: int = 1, *, draw: bool = True) -> int:  # noqa: ARG002
        """Runs frames now and returns the frame counter. With an mGBA window, this works only in lockstep.

        Args:
            frames: The number of frames, from 1 to 4,294,967,295.
            draw: Has no effect; it is for programs that also use `framewire.load`. A server draws each frame whose
                picture is needed, and `screen()` returns the picture of the last frame.
        """
        frames = check_range(frames, "frames", 1, 0xFFFF_FFFF)
        while frames > calls.MOST_FRAMES:
            self._transport.perform(calls.advance(calls.MOST_FRAMES).call())
            frames -= calls.MOST_FRAMES
        return self._transport.perform(calls.advance(frames).call())

    def pause(self) -> Held:
        """Pauses the game until `resume`, or until the end of `with client.pause():`. Requests still work."""
        held = Held(self._transport, calls.plain("resume").call())
        held.begin(calls.plain("pause").call())
        return held

    def resume(self) -> None:
        """Continues the game: ends a pause or lockstep."""
        self._transport.perform(calls.plain("resume").call())

    def lockstep(self, timeout: int = 10_000) -> Held:
        """Runs frames only in `advance`, `run` and `replay`, until `resume` or the end of `with client.lockstep():`.

        Args:
            timeout: Lockstep ends after this many milliseconds (1 to 60,000) without a request. It also ends when the
                connection breaks. Then the requests that have no reply raise `ConnectionLost`; if there are none, the
                next request does.
        """
        held = Held(self._transport, calls.lockstep(0).call())
        held.begin(calls.lockstep(timeout).call())
        return held

    def set_speed(self, speed: float | str) -> None:
        """Sets the speed: a factor from 0.01 to 1000, or `"unlimited"`. Not available with an mGBA window."""
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
            timeout: How many milliseconds to wait for that frame, up to 60,000; 10,000 by default.
        """
        return self._transport.perform(calls.screen(frame, timeout))

    def audio(self) -> Audio:
        """The sound from now on, as an iterator of `AudioChunk`. Not available with an mGBA window."""
        self._transport.check_open()
        url, token, ssl = self._audio
        context = (ssl or tls.create_default_context()) if url.startswith("wss:") else None
        stack = ExitStack()
        try:
            socket = stack.enter_context(
                websockets.sync.client.connect(
                    url,
                    ssl=context,
                    additional_headers=authorization(token),
                    compression=None,
                    max_size=None,
                    close_timeout=_CLOSE_SECONDS,
                    proxy=None,
                )
            )
        except InvalidHandshake as error:
            raise refusal(error, url).error from None
        except OSError as error:
            raise ConnectionFailed(f"no connection to {url}: {error}; {START_IT}") from error
        sound = Audio(socket, stack)
        self._transport.sounds.add(sound)
        return sound

    def save_state(self, flags: int | None = None) -> bytes:
        """Saves the state, in mGBA's format. `flags` chooses what it includes: docs/states.md."""
        return self._transport.perform(calls.save_state(flags))

    def load_state(self, state: bytes, flags: int | None = None, *, force: bool = False) -> int:
        """Loads a state and returns the frame counter. `force` also accepts a state of another game.

        `flags` chooses what is loaded: docs/states.md. By default, the battery save does not change.
        """
        return self._transport.perform(calls.load_state(state, flags, force))

    # Expressions.

    def evaluate(self, expression: str) -> Value:
        """The value of an expression over memory, such as `"score + 10 * level"`: docs/watches.md."""
        return self._transport.perform(calls.evaluate(expression))

    def wait(self, expression: str, timeout_frames: int = 600) -> Waited:
        """Waits until an expression is true. It is evaluated at once, and then after each frame. The game must be running.

        `timeout_frames` is a number from 1 to 216,000, which is an hour of the game.

        Raises:
            WaitTimeout: The expression did not become true in `timeout_frames` frames.
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
        """Plays steps until conditions hold, and performs operations at exactly the frame where they hold: docs/api.md.

        Args:
            steps: Such as `[{"sequence": "A:2"}, {"hold": "Right", "until": "paddle_x > 2200", "frames": 120}]`.
            stop: Conditions that end the whole run.
            values: Expressions whose values at the last frame are returned, by name or in a list.
            operations: Operations to perform before the first frame, as in a batch.
            then: Operations to perform after the last frame, as in a batch.

        Returns:
            The reply: `why`, `condition`, `frames`, `frame`, `steps`, `ops`, `then` and `values`.
        """
        return self._transport.perform(calls.run(steps, stop, values, operations, then))

    def watch(self, *expressions: str) -> Watch:
        """Watches expressions. Returns an iterator that reports each change, frame by frame, as a `Change`."""
        if not expressions:
            raise InvalidRequest("watch() needs an expression, such as watch('score')", parameter="expressions")
        watch = Watch(self._transport, expressions)
        try:
            watch.begin()
        except BaseException:
            watch.close()  # The caller does not get the watch, so it cannot close it.
            raise
        return watch

    def events(self) -> Events:
        """Reports events of the emulator, such as `reset`. Returns an iterator of `Event`: docs/watches.md."""
        events = Events(self._transport)
        try:
            events.begin()
        except BaseException:
            events.close()  # As in `watch`.
            raise
        return events

    def batch(self) -> Batch:
        """Several operations in one request, performed in order. Only `advance` runs frames between them.

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
            name: The name of the recording. If it is None, the current time becomes the name.
            start: `state`, the current state, or `power-on`, which resets the console.
            every: Frames from one hash of the picture to the next, from 1 to 3,600; 60 by default.
            note: Text to store in the recording.
            replace: Whether to overwrite a recording with the same name.

        Raises:
            Conflict: The name is in use, and `replace` is false; or a recording is being made.
        """
        call = calls.start_recording(name, start, every, note, replace)
        info = self._transport.perform(call, calls.stop_recording())
        return Recording(self._transport, info)

    def replay(
        self, name: str, *, speed: float | None = None, restore: bool = False, through: bool = False
    ) -> ReplayReport:
        """Replays a recording and compares its hashes with those of the replay.

        Args:
            name: The name of the recording.
            speed: A multiple of the console's speed; by default as fast as possible.
            restore: Whether to restore the emulator's earlier state after the replay, unless another client has
                changed the emulator meanwhile.
            through: Whether to continue after the first difference.
        """
        return self._transport.perform(calls.replay(name, speed, restore, through))

    # All other methods of the server.

    def call(self, method: str, *, changes: bool, **params: Any) -> Any:
        """Calls any method of docs/json-rpc.md.

        Args:
            method: The name of the method.
            changes: Whether the method changes something. If so, the request gets an idempotency key.
            params: The parameters of the method.
        """
        return self._transport.perform(calls.Call(method, params, calls.same, changes))
