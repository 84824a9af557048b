"""An emulator in this process: `framewire.load`.

A `Core` has the methods of `Emulator`, like the client of a server. Time passes only in methods that need it: `advance`,
`wait`, `press(..., wait=True)`, and the next item of a watch, of events or of sound. They run frames as fast as possible,
on the thread that calls them and without the interpreter's lock, so any number of cores can run at the same time.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from framewire import _native
from framewire._calls import cheat_number, codes_text, dtype_of, whole
from framewire._result import Result
from framewire.errors import (
    Conflict,
    FramewireError,
    InvalidRequest,
    NotFound,
    RequestFailed,
    Unsupported,
    WaitTimeout,
    WatchEnded,
)
from framewire.memory import Memory
from framewire.model import (
    Address,
    AudioChunk,
    Change,
    Cheat,
    Data,
    Event,
    Found,
    Info,
    Keys,
    NumberType,
    Presses,
    RecordingInfo,
    ReplayReport,
    SnapshotInfo,
    Symbol,
    Timeline,
    Value,
    Waited,
    as_bytes,
    key_names,
    sequence_text,
)
from framewire.screen import Screen

T = TypeVar("T")

_BITS = {name: 1 << bit for bit, name in enumerate(("A", "B", "Select", "Start", "Right", "Left", "Up", "Down", "R", "L"))}
_ALL_KEYS = (1 << len(_BITS)) - 1

_SAVED = 2 | 8
"""The battery save and the cartridge's clock, in mGBA's flags."""
_WITH_PICTURE = 31

_LONGEST_TEXT = 4096
"""The most bytes of a text."""
_MOST_PLACES = 10_000
"""The most places that `find` returns."""
_MOST_DECIMAL = 99_999_999
"""The greatest number of eight digits."""

_CHUNK = 600
"""Frames that run before an interrupt from the keyboard is seen."""


def load(
    rom: str | os.PathLike[str],
    *,
    symbols: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    clock: datetime | None = None,
    data: str | os.PathLike[str] | None = None,
    patch: str | os.PathLike[str] | None = None,
    cheats: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    bios: str | os.PathLike[str] | None = None,
    gb_model: str | None = None,
    gb_palette: str | None = None,
    sgb_borders: bool = True,
    save_type: str | None = None,
) -> Core:
    """Starts a game in this process.

    Args:
        rom: The path of the ROM.
        symbols: Symbol files: names for addresses.
        clock: The time at which the cartridge's clock starts; it then follows the frames. None is this machine's clock.
        data: The folder of snapshots and recordings, as `framewire serve --data` has it. Without it, they are deleted when
            the core is closed.
        patch: An IPS, UPS or BPS file, which is applied to the ROM in memory.
        cheats: Files of cheats, as mGBA writes them.
        bios: The console's BIOS. Without it, mGBA's replacement starts the game at once.
        gb_model: The model of a Game Boy: "dmg", "mgb", "sgb", "sgb2", "cgb" or "agb". None chooses by the ROM.
        gb_palette: The colours of a Game Boy without colours, from white to black: "e0f8d0,88c070,346856,081820".
        sgb_borders: Whether pictures of a Super Game Boy have its border.
        save_type: The save memory of a GBA game: "auto", "none", "sram", "sram512", "flash512", "flash1m", "eeprom" or
            "eeprom512".

    `Core.load` takes over `gb_model`, `gb_palette` and `sgb_borders` for another game.
    """
    return Core(
        rom,
        symbols=symbols,
        clock=clock,
        data=data,
        patch=patch,
        cheats=cheats,
        bios=bios,
        gb_model=gb_model,
        gb_palette=gb_palette,
        sgb_borders=sgb_borders,
        save_type=save_type,
    )


class Core:
    """An emulator in this process. See `load`.

    Attributes:
        memory: The memory, with brackets: `core.memory["score"]`.
        snapshots: Savestates with names.
        recordings: Recordings with names.
    """

    def __init__(
        self,
        rom: str | os.PathLike[str],
        *,
        symbols: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        clock: datetime | None = None,
        data: str | os.PathLike[str] | None = None,
        patch: str | os.PathLike[str] | None = None,
        cheats: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        bios: str | os.PathLike[str] | None = None,
        gb_model: str | None = None,
        gb_palette: str | None = None,
        sgb_borders: bool = True,
        save_type: str | None = None,
    ) -> None:
        self._rom = os.fspath(rom)
        self._files = _paths(symbols)
        self._clock = clock
        self._data = None if data is None else os.fspath(data)
        self._options: _native.GameOptions = {
            "patch": None if patch is None else os.fspath(patch),
            "cheats": _paths(cheats),
            "bios": None if bios is None else os.fspath(bios),
            "gb_model": gb_model,
            "gb_palette": gb_palette,
            "sgb_borders": sgb_borders,
            "save_type": save_type,
        }
        self._begin(self._open(self._rom, self._options))

    def _begin(self, native: _native.Core) -> None:
        self._core = native
        self._symbols: dict[str, Symbol] | None = None
        self._events: list[CoreEvents] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._opened_store: _native.Store | None = None
        self.memory = Memory(self)
        self.snapshots = CoreSnapshots(self)
        self.recordings = CoreRecordings(self)

    def _open(self, rom: str, options: _native.GameOptions) -> _native.Core:
        start = None if self._clock is None else round(self._clock.timestamp() * 1000)
        return _native.Core(rom, self._files, start, options)

    def _store(self) -> _native.Store:
        if self._opened_store is None:
            if self._data is None:
                self._folder = tempfile.TemporaryDirectory(prefix="framewire-", ignore_cleanup_errors=True)
            self._opened_store = _native.Store(self._data or self._folder.name)  # type: ignore[union-attr]
        return self._opened_store

    def close(self) -> None:
        """Frees the core."""
        self._core.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
            self._opened_store = None

    def __enter__(self) -> Core:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Core], tuple[Any, ...]]:
        arguments = {"symbols": self._files, "clock": self._clock, "data": self._data, **self._options}
        return _restored, (self._rom, arguments, self.save_state(), self._core.keys())

    def __deepcopy__(self, _: dict[int, Any]) -> Core:
        restore, arguments = self.__reduce__()
        return restore(*arguments)

    # Memory.

    def read(self, address: Address, type: NumberType | None = None, *, domain: str | None = None) -> int:
        """Reads a number, by default of the symbol's type, or one byte."""
        return self._core.read(address if isinstance(address, str) else _hex(address), type, domain)

    def read_many(
        self, addresses: Sequence[Address], type: NumberType | None = None, *, domain: str | None = None
    ) -> list[int]:
        """Reads several numbers at the same frame."""
        if isinstance(addresses, str):
            raise InvalidRequest(
                f"addresses is {addresses!r}; use a list, such as ['score', 'lives']", parameter="addresses"
            )
        return [self.read(address, type, domain=domain) for address in addresses]

    def read_bytes(self, address: Address, length: int, *, domain: str | None = None) -> bytes:
        """Reads bytes."""
        return self._core.read_bytes(self._address(address), _count(length, "length", 0), domain)

    def read_array(
        self, address: Address, type: NumberType | npt.DTypeLike, count: int, *, domain: str | None = None
    ) -> npt.NDArray[Any]:
        """Reads numbers in a row, of a type such as `"u16"` or a little-endian NumPy type. The array is yours to change."""
        dtype = dtype_of(type)
        length = _count(count, "count", 0) * dtype.itemsize
        return np.frombuffer(bytearray(self.read_bytes(address, length, domain=domain)), dtype)

    def write(self, address: Address, value: int, type: NumberType | None = None, *, domain: str | None = None) -> None:
        """Writes a number, by default of the symbol's type, or one byte."""
        place = address if isinstance(address, str) else _hex(address)
        self._core.write(place, whole(value, "value"), type, domain)

    def write_bytes(self, address: Address, data: Data, *, domain: str | None = None) -> None:
        """Writes bytes or an array."""
        self._core.write_bytes(self._address(address), as_bytes(data), domain)

    def read_text(self, address: Address, length: int) -> str:
        """Reads the text in up to 4,096 bytes, up to its end, in the characters of the game: docs/api.md."""
        if not 1 <= whole(length, "length") <= _LONGEST_TEXT:
            raise InvalidRequest(f"length is {length}; use a number from 1 to {_LONGEST_TEXT}", parameter="length")
        return self._core.read_text(self._address(address), length)

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
        given = [each is not None for each in (text, bytes, float, bcd, pointer_to)]
        if sum(given) != 1:
            raise InvalidRequest("exactly one of text, bytes, float, bcd and pointer_to is accepted")
        is_gba = self._core.game()[3] == "GBA"
        if text is not None:
            patterns = [self._core.encode_text(text)]
        elif bytes is not None:
            patterns = [as_bytes(bytes)]
        elif float is not None:
            patterns = [np.float32(float).tobytes()]
        elif bcd is not None:
            patterns = _decimal(bcd)
        else:
            patterns = [self._address(pointer_to or 0).to_bytes(4, "little")[: 4 if is_gba else 2]]
        if not patterns[0]:
            raise InvalidRequest("what is looked for has no bytes; use 1 or more")
        if not 1 <= whole(limit, "limit") <= _MOST_PLACES:
            raise InvalidRequest(f"limit is {limit}; use a number from 1 to {_MOST_PLACES}", parameter="limit")
        usual = [{"domain": "wram"}, {"domain": "iwram" if is_gba else "hram"}]
        found = [place for area in areas or usual for place in self._places(area, patterns)][:limit]
        names = self._core.names([each.address for each in found if each.address is not None and each.bank is None])
        return [replace(each, symbol=names.get(each.address or 0) if each.bank is None else None) for each in found]

    def _places(self, area: Mapping[str, Any], patterns: Sequence[bytes]) -> Iterator[Found]:
        """The places in an area at which one of the patterns is."""
        domain = area.get("domain")
        missing = [name for name in ("address", "length") if domain is None and name not in area]
        if missing:
            raise InvalidRequest(
                f"an area has no {missing[0]}; use an address and a length, or a domain", parameter="areas"
            )
        start = self._address(area.get("address", 0))
        length = _count(area["length"] if "length" in area else self._core.size(domain or "") - start, "length", 1)
        memory = self._core.read_bytes(start, length, domain)
        found = {start + at: pattern for pattern in reversed(patterns) for at in _positions(memory, pattern)}
        offsets = sorted(found)
        on_bus = [(None, at) for at in offsets] if domain is None else self._core.on_bus(domain, offsets)
        for offset, place in zip(offsets, on_bus, strict=True):
            bank, address = place or (None, None)
            yield Found(address, bank, domain, offset, None, found[offset])

    def freeze(self, address: Address, value: int, type: NumberType | None = None) -> None:
        """Keeps a number in memory: it is written now, and again after each frame, until `unfreeze`."""
        name = _frozen_name(address)
        self._core.freeze(name, name, whole(value, "value"), type)

    def unfreeze(self, address: Address | None = None) -> bool:
        """Ends `freeze` of an address, or all. Returns whether there was one."""
        return self._core.unfreeze("*" if address is None else _frozen_name(address))

    def frozen(self) -> list[dict[str, Any]]:
        """What `freeze` keeps: dictionaries with `address`, `type` and `value`."""
        texts = iter(self._core.frozen())
        kept = []
        for name, kind, pairs in zip(texts, texts, texts, strict=True):
            data = bytes.fromhex(pairs.replace(",", ""))
            number = int.from_bytes(data, "little", signed=kind.startswith("i"))
            kept.append({"address": name, "type": kind, "value": number})
        return kept

    # The machine.

    def registers(self) -> dict[str, int]:
        """The registers of the processor by name, unsigned."""
        return self._core.registers()

    def write_register(self, name: str, value: int) -> None:
        """Writes a register of the processor: a number of 32 bits, with or without a sign."""
        number = whole(value, "value")
        if not -0x8000_0000 <= number <= 0xFFFF_FFFF:
            raise InvalidRequest(f"value is {number}; use a number from -2147483648 to 4294967295", parameter="value")
        self._core.write_register(name, number - (1 << 32) if number > 0x7FFF_FFFF else number)

    def cycles(self) -> int:
        """Clock cycles since the last reset."""
        return self._core.cycles()

    # Cheats.

    def cheats(self) -> list[Cheat]:
        """The cheats of the game."""
        texts = iter(self._core.cheats())
        rows = zip(texts, texts, texts, texts, texts, strict=True)
        return [
            Cheat(int(number), name, kind, tuple(codes.splitlines()), state == "on")
            for number, state, kind, name, codes in rows
        ]

    def add_cheat(
        self, codes: str | Sequence[str], *, name: str = "cheat", kind: str = "auto", enabled: bool = True
    ) -> int:
        """Adds a cheat and returns its number. docs/api.md lists the kinds."""
        return self._core.add_cheat(name, kind, codes_text(codes), enabled)

    def load_cheats(self, path: str) -> int:
        """Adds the cheats of a file of mGBA, and returns how many there are."""
        return self._core.load_cheats(os.fspath(path))

    def enable_cheat(self, id: int, enabled: bool = True) -> None:
        """Switches a cheat on or off."""
        self._core.enable_cheat(_count(id, "id", 0), enabled)

    def remove_cheat(self, id: int | None = None) -> None:
        """Removes a cheat, or all."""
        self._core.remove_cheat(0 if id is None else cheat_number(id))

    def symbols(self, contains: str | None = None) -> dict[str, Symbol]:
        """The names of addresses of the game, or those that contain a text."""
        if self._symbols is None:
            self._symbols = {
                name: Symbol(name, address, kind, count, doc) for name, address, kind, count, doc in self._core.symbols()
            }
        return {name: symbol for name, symbol in self._symbols.items() if contains is None or contains in name}

    # Keys.

    def press(self, keys: Keys, frames: int = 1, *, wait: bool = False) -> Timeline:
        """Presses keys together for a number of frames, from the next frame on.

        Args:
            keys: The keys, such as `"A"` or `"Up+B"`.
            frames: The number of frames.
            wait: Whether to run frames until the keys are released.
        """
        names = key_names(keys)
        if not _mask(names):
            raise InvalidRequest(f"keys is {keys!r}; use names such as 'A' or 'Up+B'", parameter="keys")
        return self._play(f"{'+'.join(names)}:{_count(frames, 'frames', 1)}", wait)

    def play(self, presses: Presses, *, wait: bool = False) -> Timeline:
        """Presses keys one after the other, from the next frame on: `play("A:2 .:10 Up+B:30")`.

        Args:
            presses: The text, or pairs such as `[("A", 2), ("", 10)]`.
            wait: Whether to run frames until the keys are released.
        """
        return self._play(sequence_text(presses), wait)

    def _play(self, text: str, wait: bool) -> Timeline:
        number, frames = self._core.play(text)
        first = self.frame() + 1
        if not wait:
            return Timeline(number, first, first + frames - 1)
        self._run(frames)
        return Timeline(number, first, first + frames - 1, self._core.timeline(number))

    def cancel(self, timeline: Timeline | None = None) -> bool:
        """Ends a timeline of `press` or `play`, or all. Returns whether there was one.

        Raises:
            NotFound: This timeline is not running.
        """
        ended = self._core.cancel(0 if timeline is None else timeline.id)
        self._report()
        if timeline is not None and not ended:
            raise NotFound(f"no timeline {timeline.id} is running")
        return ended

    def cancelled(self, timeline: Timeline) -> bool | None:
        """Whether a timeline ended early; None while it plays."""
        return self._core.timeline(timeline.id)

    def hold(self, keys: Keys) -> Held:
        """Holds keys until `release`, or until the end of `with core.hold(keys):`."""
        mask = _mask(key_names(keys))
        self._core.set_keys(mask, 0)
        self._report()
        return Held(lambda: self._core.set_keys(0, mask))

    def release(self, keys: Keys | None = None) -> None:
        """Releases held keys, or all."""
        self._core.set_keys(0, _ALL_KEYS if keys is None else _mask(key_names(keys)))
        self._report()

    # Frames.

    def frame(self) -> int:
        """The frame counter: frames since the last reset."""
        return self._core.frame()

    def advance(self, frames: int = 1) -> int:
        """Runs frames and returns the frame counter. Only the last one is drawn."""
        self._run(_count(frames, "frames", 1))
        return self._core.frame()

    def _run(self, frames: int) -> None:
        while frames > 0:
            now = min(frames, _CHUNK)
            self._core.advance(now)
            frames -= now
        self._report()

    def pause(self) -> Held:
        """For programs that also work with other emulators: this one always waits for `advance`."""
        return Held(lambda: None)

    def resume(self) -> None:
        """For programs that also work with other emulators: this one always waits for `advance`."""

    def lockstep(self, timeout: int = 10_000) -> Held:
        """For programs that also work with other emulators: this one always waits for `advance`."""
        whole(timeout, "timeout", "milliseconds")
        return Held(lambda: None)

    def set_speed(self, speed: float | str) -> None:
        """Accepts `"unlimited"` only: frames run as fast as they can."""
        if speed != "unlimited":
            raise Unsupported(
                f"speed is {speed!r}, but an emulator in this process runs frames as fast as it can; use 'unlimited', or "
                "framewire serve for other speeds",
                parameter="speed",
                accepts="unlimited",
            )

    def reset(self) -> None:
        """Resets the console."""
        self._core.reset()
        self._emit("reset", {})

    def load(self, path: str | os.PathLike[str]) -> None:
        """Loads another game. Its watches end."""
        rom, options = os.fspath(path), self._options
        if rom != self._rom:
            options = {**options, "patch": None, "cheats": [], "bios": None, "save_type": None}
        core = self._open(rom, options)
        if self._core.recording() is not None:
            raise Conflict("a recording is being made; stop it before you load another game")
        self._core.close()
        self._core, self._rom, self._options, self._symbols = core, rom, options, None
        self.memory.refresh()
        title, code, checksum, _ = core.game()
        self._emit("game", {"title": title, "code": code, "checksum": checksum})

    def info(self) -> Info:
        """The state of the emulator and its game."""
        title, code, checksum, platform = self._core.game()
        frame = self.frame()
        more = {
            "kind": "embedded",
            "connected": True,
            "run": "paused",
            "speed": "unlimited",
            "frame": frame,
            "title": title,
            "code": code,
            "checksum": checksum,
            "platform": platform,
        }
        return Info("embedded", True, "paused", frame, title, code, more)

    # Pictures, sound and states.

    def screen(self, *, frame: int | None = None) -> Screen:
        """The picture of the last frame.

        Args:
            frame: Run frames up to this one first.
        """
        if frame is not None:
            left = whole(frame, "frame") - self.frame()
            if left < 0:
                raise InvalidRequest(
                    f"frame {frame} has passed; the emulator is in frame {self.frame()}", parameter="frame"
                )
            self._run(left)
        return Screen(self._core.screen(), self._core.frame())

    def audio(self) -> CoreAudio:
        """The sound from now on, as an iterator of `AudioChunk`. Each item that is not there yet runs a frame."""
        return CoreAudio(self, self._core)

    @property
    def sample_rate(self) -> int:
        """Samples per second of `audio`."""
        return self._core.sample_rate()

    def save_state(self, flags: int | None = None) -> bytes:
        """The state, in mGBA's format. `flags` says what it includes: docs/states.md.

        By default, that is the battery save and the cartridge's clock; 31 is everything, with the picture as a PNG.
        """
        return self._core.save_state(_SAVED if flags is None else _count(flags, "flags", 0))

    def load_state(self, state: bytes, flags: int | None = None, *, force: bool = False) -> int:
        """Loads a state and returns the frame counter. `force` loads a state of another game."""
        self._core.load_state(state, _SAVED if flags is None else _count(flags, "flags", 0), force)
        self._emit("state", {})
        return self._core.frame()

    # Expressions.

    def evaluate(self, expression: str) -> Value:
        """The value of an expression over memory, such as `"score + 10 * level"`: docs/watches.md."""
        return self._core.evaluate(expression)

    def wait(self, expression: str, timeout_frames: int = 600) -> Waited:
        """Runs frames until an expression is true after one of them.

        Raises:
            WaitTimeout: It did not become true in `timeout_frames` frames.
        """
        most = _count(timeout_frames, "timeout_frames", 0)
        passed = 0
        while True:
            frames, is_true = self._core.run_until(expression, min(most - passed, _CHUNK))
            passed += frames
            if is_true or passed == most:
                break
        self._report()
        if not is_true:
            raise WaitTimeout(
                f"`{expression}` did not become true in {passed} frames, up to frame {self.frame()}; wait longer with "
                "timeout_frames=, or check the condition with evaluate()"
            )
        return Waited(self.frame(), passed)

    def watch(self, *expressions: str) -> CoreWatch:
        """Reports each change of expressions, from now on, frame by frame, as an iterator of `Change`."""
        if not expressions:
            raise InvalidRequest("watch() needs an expression, such as watch('score')", parameter="expressions")
        return CoreWatch(self, self._core, expressions)

    def events(self) -> CoreEvents:
        """Reports what happens to the emulator, such as `reset`, as an iterator of `Event`: docs/watches.md."""
        self._core.take_ended()
        events = CoreEvents(self)
        self._events.append(events)
        return events

    def batch(self) -> CoreBatch:
        """Several operations between the same two frames.

        ```python
        with core.batch() as batch:
            score = batch.read("score")
            batch.press("A", frames=2)
        print(score.value)
        ```
        """
        return CoreBatch(self)

    # Recordings.

    def record(
        self,
        name: str | None = None,
        *,
        start: str = "state",
        every: int | None = None,
        note: str = "",
        replace: bool = False,
    ) -> CoreRecording:
        """Records every input with its frame until `stop`, or until the end of `with core.record():`.

        Args:
            name: The name of the recording.
            start: `state`, the current state, or `power-on`, which resets the console.
            every: Frames from one hash of the picture to the next; 60 by default.
            note: Text to keep with it.
            replace: Whether to overwrite a recording of this name.
        """
        name = name or time.strftime("%Y-%m-%d-%H%M%S")
        self._store().check_recording(name, replace)
        self._core.start_recording(start, 60 if every is None else _count(every, "every", 1), note)
        if start == "power-on":
            self._emit("reset", {})
        return CoreRecording(self, self._core, name, replace)

    def replay(
        self, name: str, *, speed: float | None = None, restore: bool = False, through: bool = False
    ) -> ReplayReport:
        """Replays a recording and compares it.

        Args:
            name: The name of the recording.
            speed: None only: as fast as possible.
            restore: Whether to put the emulator back into its earlier state afterwards.
            through: Whether to continue after a difference.
        """
        if speed is not None:
            raise Unsupported(
                f"speed is {speed}, but an emulator in this process replays as fast as it can; leave speed out",
                parameter="speed",
            )
        result = self._core.replay(self._store().recording_file(name), restore, through)
        self._report()
        result["recording"] = name
        return ReplayReport(result["equal"], result["frames"], result["played"], result["diverged"], result)

    # What happens.

    def _report(self) -> None:
        """Hands over what ended in the frames that were run."""
        if self._events:
            for number, frame, cancelled in self._core.take_ended():
                for events in self._events:
                    events._push(Event("input", frame, {"frame": frame, "id": number, "cancelled": cancelled}))

    def _emit(self, name: str, data: Mapping[str, Any]) -> None:
        self._report()
        frame = self.frame()
        for events in self._events:
            events._push(Event(name, frame, {"frame": frame, **data}))

    def _address(self, address: Address) -> int:
        if isinstance(address, str):
            return self._core.locate(address)[0]
        return _count(address, "address", 0)


class EnvironmentCore(Core):
    """The emulator of an environment. Frames that it runs are not steps of the environment."""

    def __init__(self, native: _native.Core, rom: Path) -> None:
        self._rom = str(rom)
        self._files = []
        self._clock = None
        self._data = None
        self._begin(native)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Is refused: the game is that of the environment."""
        raise Unsupported(
            f"the game is that of the environment, so {os.fspath(path)} is not loaded; use framewire.load, or make another "
            "environment"
        )

    def __reduce__(self) -> tuple[Callable[..., Core], tuple[Any, ...]]:
        raise TypeError("the emulator of an environment is not copied or pickled alone; copy the environment")


def _restored(rom: str, arguments: dict[str, Any], state: bytes, keys: int) -> Core:
    """The core of a pickle."""
    core = Core(rom, **arguments)
    core.load_state(state)
    core._core.set_keys(keys, 0)
    return core


def _mask(names: Sequence[str]) -> int:
    mask = 0
    for name in names:
        if name not in _BITS:
            raise InvalidRequest(f"{name!r} is not a key; use {', '.join(_BITS)}", parameter="keys")
        mask |= _BITS[name]
    return mask


def _paths(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """One path or several."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    return [os.fspath(path) for path in several]


def _count(value: int, name: str, least: int) -> int:
    """A number that fits 32 bits."""
    number = whole(value, name)
    if not least <= number <= 0xFFFF_FFFF:
        raise InvalidRequest(f"{name} is {number}; use a number from {least} to 4294967295", parameter=name)
    return number


def _positions(memory: bytes, pattern: bytes) -> Iterator[int]:
    """Where a pattern is in memory."""
    at = memory.find(pattern)
    while at >= 0:
        yield at
        at = memory.find(pattern, at + 1)


def _decimal(number: int) -> list[bytes]:
    """A number in binary-coded decimal, with the lowest byte first and last."""
    if not 0 <= whole(number, "bcd") <= _MOST_DECIMAL:
        raise InvalidRequest(f"bcd is {number}; use a number from 0 to {_MOST_DECIMAL}", parameter="bcd")
    digits = str(number)
    high_first = bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
    return [high_first[::-1], high_first]


def _frozen_name(address: Address) -> str:
    """The name of a frozen value: the text of its address, or the number in hex."""
    return address.strip() if isinstance(address, str) else f"{_count(address, 'address', 0):#010x}"


def _hex(address: int) -> str:
    return hex(_count(address, "address", 0))


class Held:
    """Something that holds keys or the emulator, until `release` or the end of `with`."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def release(self) -> None:
        """Ends it."""
        self._end()

    def __enter__(self) -> Held:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


class CoreWatch:
    """Changes of watched expressions. `for change in watch` runs frames until the next one.

    Changes in frames that other methods run are kept until they are read; after 65,536 of them, the oldest are lost.

    Attributes:
        expressions: What is watched.
        values: The latest values that were read.
        missed: How many changes were lost.
    """

    def __init__(self, core: Core, native: _native.Core, expressions: tuple[str, ...]) -> None:
        self._core = core
        self._native = native
        self._id, values = native.watch(list(expressions))
        self.expressions = expressions
        self.values: dict[str, Value] = dict(zip(expressions, values, strict=True))
        self.missed = 0

    def next(self, timeout: float | None = None) -> Change:
        """The next change.

        Args:
            timeout: For how many seconds to run frames; without it, as long as necessary.

        Raises:
            WaitTimeout: Nothing changed in this time.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        frames = 0
        while True:
            if self._native is not self._core._core:
                raise WatchEnded("the watch is over: another game was loaded; call watch() again")
            row = self._native.change(self._id, frames)
            if row is not None:
                break
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitTimeout(f"no change of {', '.join(self.expressions)} in {timeout} s")
            frames = 60
        self._core._report()
        number, frame, tick, old, new, missed = row
        self.missed += missed
        expression = self.expressions[number]
        self.values[expression] = new
        return Change(expression, frame, old, new, tick, bool(missed))

    def close(self) -> None:
        """Ends the watch."""
        if self._native is self._core._core:
            self._native.unwatch(self._id)

    def __iter__(self) -> Iterator[Change]:
        return self

    def __next__(self) -> Change:
        return self.next()

    def __enter__(self) -> CoreWatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class CoreEvents:
    """What happens to the emulator. `for event in events` runs frames until the next event."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._waiting: deque[Event] = deque(maxlen=65_536)

    def _push(self, event: Event) -> None:
        self._waiting.append(event)

    def next(self, timeout: float | None = None) -> Event:
        """The next event.

        Args:
            timeout: For how many seconds to run frames; without it, as long as necessary.

        Raises:
            WaitTimeout: Nothing happened in this time.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._waiting:
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitTimeout(f"no event in {timeout} s")
            self._core.advance()
        return self._waiting.popleft()

    def close(self) -> None:
        """Ends the reports."""
        if self in self._core._events:
            self._core._events.remove(self)

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        return self.next()

    def __enter__(self) -> CoreEvents:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class CoreAudio:
    """Sound, one chunk per frame. `for chunk in audio` runs a frame if there is no chunk yet.

    The chunks of a minute are kept. Later ones take the place of the oldest.
    """

    def __init__(self, core: Core, native: _native.Core) -> None:
        self._core = core
        self._native = native
        self._id = native.listen()

    def next(self) -> AudioChunk:
        """The next chunk."""
        found = self._native.sound(self._id)
        self._core._report()
        if found is None:
            raise FramewireError("the sound was closed; call audio() again")
        samples, missed = found
        return AudioChunk(samples.reshape(-1, 2), self._native.sample_rate(), missed)

    def close(self) -> None:
        """Ends the sound."""
        if self._native is self._core._core:
            self._native.unlisten(self._id)

    def __iter__(self) -> Iterator[AudioChunk]:
        return self

    def __next__(self) -> AudioChunk:
        return self.next()

    def __enter__(self) -> CoreAudio:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class CoreBatch:
    """Operations that are performed in order, between the same two frames, at the end of `with`.

    The first operation that fails ends the batch with its exception, whose `op` is the number of the operation. The
    operations before it were performed, and their results have a value.

    Attributes:
        frame: The frame counter of the batch, after it has run.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._operations: list[tuple[Callable[[], Any], Result[Any]]] = []
        self.frame: int | None = None

    def _add(self, operation: Callable[[], T]) -> Result[T]:
        if self.frame is not None:
            raise FramewireError("the batch has run; begin another one with batch()")
        result = Result[T]()
        self._operations.append((operation, result))
        return result

    def read(self, address: Address, type: NumberType | None = None, *, domain: str | None = None) -> Result[int]:
        """Reads a number."""
        return self._add(lambda: self._core.read(address, type, domain=domain))

    def read_many(
        self, addresses: Sequence[Address], type: NumberType | None = None, *, domain: str | None = None
    ) -> Result[list[int]]:
        """Reads several numbers."""
        return self._add(lambda: self._core.read_many(addresses, type, domain=domain))

    def read_bytes(self, address: Address, length: int, *, domain: str | None = None) -> Result[bytes]:
        """Reads bytes."""
        return self._add(lambda: self._core.read_bytes(address, length, domain=domain))

    def read_array(
        self, address: Address, type: NumberType | npt.DTypeLike, count: int, *, domain: str | None = None
    ) -> Result[npt.NDArray[Any]]:
        """Reads numbers in a row."""
        return self._add(lambda: self._core.read_array(address, type, count, domain=domain))

    def write(
        self, address: Address, value: int, type: NumberType | None = None, *, domain: str | None = None
    ) -> Result[None]:
        """Writes a number."""
        return self._add(lambda: self._core.write(address, value, type, domain=domain))

    def write_bytes(self, address: Address, data: Data, *, domain: str | None = None) -> Result[None]:
        """Writes bytes or an array."""
        content = as_bytes(data)
        return self._add(lambda: self._core.write_bytes(address, content, domain=domain))

    def press(self, keys: Keys, frames: int = 1) -> Result[Timeline]:
        """Presses keys together for a number of frames."""
        return self._add(lambda: self._core.press(keys, frames))

    def play(self, presses: Presses) -> Result[Timeline]:
        """Presses keys one after the other."""
        return self._add(lambda: self._core.play(presses))

    def hold(self, keys: Keys) -> Result[None]:
        """Holds keys."""
        return self._add(lambda: _nothing(self._core.hold(keys)))

    def release(self, keys: Keys | None = None) -> Result[None]:
        """Releases held keys, or all."""
        return self._add(lambda: self._core.release(keys))

    def advance(self, frames: int = 1) -> Result[int]:
        """Runs frames."""
        return self._add(lambda: self._core.advance(frames))

    def reset(self) -> Result[None]:
        """Resets the console."""
        return self._add(self._core.reset)

    def screen(self) -> Result[Screen]:
        """The picture of the last frame."""
        return self._add(self._core.screen)

    def save_state(self, flags: int = 31) -> Result[bytes]:
        """The state."""
        return self._add(lambda: self._core.save_state(flags))

    def load_state(self, state: bytes, flags: int = 29) -> Result[bool]:
        """Loads a state."""
        return self._add(lambda: self._core.load_state(state, flags) is not None)

    def run(self) -> None:
        """Performs the operations."""
        failure: FramewireError | None = None
        for number, (operation, result) in enumerate(self._operations):
            if failure is not None:
                result._fail(FramewireError(f"not performed, because an operation before it failed: {failure}"))
                continue
            try:
                result._set(operation())
            except FramewireError as error:
                if isinstance(error, RequestFailed):
                    error.op = number
                failure = error
                result._fail(error)
        self.frame = self._core.frame()
        if failure is not None:
            raise failure

    def __enter__(self) -> CoreBatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None and self._operations and self.frame is None:
            self.run()


def _nothing(_: object) -> None:
    """No result."""


class CoreRecording:
    """A recording that is being made."""

    def __init__(self, core: Core, native: _native.Core, name: str, replace: bool) -> None:
        self._core = core
        self._native = native
        self._replace = replace
        self._ended: RecordingInfo | None = None
        self.name = name

    def info(self) -> RecordingInfo:
        """How far the recording is."""
        if self._ended is not None:
            return self._ended
        found = self._native.recording()
        if found is None:
            raise NotFound(f"the recording {self.name} is no longer being made")
        frames, size, ended = found
        return RecordingInfo(self.name, frames, ended, size)

    def stop(self) -> RecordingInfo:
        """Ends the recording and keeps it under its name."""
        if self._ended is None:
            data = self._native.stop_recording()
            if data is None:
                raise NotFound(f"the recording {self.name} is no longer being made")
            store = self._core._store()
            store.add_recording(self.name, data, self._replace)
            frames, ended, size = store.recording(self.name)
            self._ended = RecordingInfo(self.name, frames, ended, size)
        return self._ended

    def __enter__(self) -> CoreRecording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except FramewireError:
            if error is None:
                raise


class CoreSnapshots:
    """Savestates with names: docs/states.md. `load` of `framewire` says where they are kept."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def list(self) -> list[SnapshotInfo]:
        """All snapshots."""
        return [SnapshotInfo(*row) for row in self._core._store().snapshots()]

    def save(self, name: str | None = None, *, note: str = "", replace: bool = False) -> SnapshotInfo:
        """Saves the state under a name; without one, under its time."""
        core = self._core
        title, code, checksum, _ = core._core.game()
        state = core.save_state(_WITH_PICTURE)
        name = name or time.strftime("%Y-%m-%d-%H%M%S")
        row = core._store().save_snapshot(name, state, title, code, checksum, core.frame(), note, replace)
        return SnapshotInfo(*row)

    def load(self, name: str, flags: int | None = None, *, force: bool = False) -> int:
        """Loads a snapshot and returns the frame counter."""
        return self._core.load_state(self.file(name), flags, force=force)

    def change(self, name: str, *, new_name: str | None = None, note: str | None = None) -> SnapshotInfo:
        """Changes the name or the note."""
        return SnapshotInfo(*self._core._store().change_snapshot(name, new_name, note))

    def delete(self, name: str) -> None:
        """Deletes a snapshot."""
        self._core._store().delete_snapshot(name)

    def screen(self, name: str) -> Screen:
        """The picture of a snapshot."""
        return Screen.from_png(self.file(name))

    def file(self, name: str) -> bytes:
        """The file of a snapshot: a state that `load_state` and mGBA can load, and a PNG."""
        return self._core._store().snapshot_file(name)


class CoreRecordings:
    """Recordings with names: docs/recordings.md. They are the same files as those of a server."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def list(self) -> list[str]:
        """The names of all recordings."""
        return self._core._store().recordings()

    def info(self, name: str) -> RecordingInfo:
        """One recording."""
        frames, ended, size = self._core._store().recording(name)
        return RecordingInfo(name, frames, ended, size)

    def delete(self, name: str) -> None:
        """Deletes a recording."""
        self._core._store().delete_recording(name)

    def file(self, name: str) -> bytes:
        """The file of a recording, for `framewire replay`."""
        return self._core._store().recording_file(name)

    def add(self, name: str, data: bytes, *, replace: bool = False) -> None:
        """Adds a recording from its file."""
        self._core._store().add_recording(name, data, replace)
