"""An emulator in this process: `framewire.load`.

A `Core` has the methods of `Emulator`, as `framewire.Client` does. Frames run only in methods that need them:
`advance`, `wait`, `replay`, `screen(frame=...)`, `press` and `play` with `wait=True`, and the methods that wait for the
next item of a watch, of events or of sound. These run frames as fast as possible, on the thread that calls them and
without the interpreter's lock. So any number of cores can run at the same time.

The methods for memory are in `_core_memory.py`. The classes of objects that methods return are in `_core_streams.py`,
`_core_batch.py` and `_core_files.py`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from framewire import _native
from framewire._arguments import absolute, cheat_number, codes_text, whole
from framewire._core_batch import CoreBatch
from framewire._core_files import CoreRecording, CoreRecordings, CoreSnapshots
from framewire._core_memory import CoreMemory, number32, u32
from framewire._core_streams import CoreAudio, CoreEvents, CoreWatch, Held
from framewire.errors import Conflict, InvalidRequest, NotFound, Unsupported, WaitTimeout, shown
from framewire.memory import Memory
from framewire.model import (
    Cheat,
    Event,
    Info,
    Keys,
    Presses,
    ReplayReport,
    Symbol,
    Timeline,
    Value,
    Waited,
    file_bytes,
    key_names,
    name_or_time,
    sequence_text,
)
from framewire.screen import Screen

_BITS = {name: 1 << bit for bit, name in enumerate(("A", "B", "Select", "Start", "Right", "Left", "Up", "Down", "R", "L"))}
_ALL_KEYS = (1 << len(_BITS)) - 1

_SAVED = 2 | 8
"""mGBA's flags for the battery save and the cartridge's clock."""

_PICTURE = 1
"""mGBA's flag for the picture."""

_CHUNK = 600
"""How many frames run before Python can react to an interrupt from the keyboard."""


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
        clock: The time at which the cartridge's clock starts; it then follows the frames. None uses this machine's
            clock.
        data: The folder of snapshots and recordings, as for `framewire serve --data`. If it is None, they are deleted
            when the core is closed.
        patch: An IPS, UPS or BPS file, which is applied to the ROM in memory.
        cheats: Cheat files of mGBA.
        bios: The console's BIOS. If it is None, mGBA uses its own replacement, which starts the game at once.
        gb_model: The model of a Game Boy: "dmg", "mgb", "sgb", "sgb2", "cgb" or "agb". If it is None, the ROM decides.
        gb_palette: The colours of a monochrome Game Boy, from white to black, such as "e0f8d0,88c070,346856,081820".
        sgb_borders: Whether pictures of a Super Game Boy include its border.
        save_type: The save memory of a GBA game: "auto", "none", "sram", "sram512", "flash512", "flash1m", "eeprom" or
            "eeprom512".

    When `Core.load` loads another game, it keeps all options except `patch`, `cheats`, `bios` and `save_type`.
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


class Core(CoreMemory):
    """An emulator in this process. See `load`.

    Attributes:
        memory: The memory. Brackets read and write it: `core.memory["score"]`.
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
        if clock is not None and not isinstance(clock, datetime):
            raise InvalidRequest(
                f"clock is {clock!r}; use a datetime, such as datetime(2026, 1, 31, 12), or None", parameter="clock"
            )
        for name, text in (("gb_model", gb_model), ("gb_palette", gb_palette), ("save_type", save_type)):
            if text is not None and not isinstance(text, str):
                raise InvalidRequest(f"{name} is {text!r}; use a text or None", parameter=name)
        self._rom = absolute(rom)
        self._files = _paths(symbols)
        self._clock = clock
        self._data = absolute(data) if data else None
        self._options: _native.GameOptions = {
            "patch": None if patch is None else absolute(patch),
            "cheats": _paths(cheats),
            "bios": None if bios is None else absolute(bios),
            "gb_model": gb_model,
            "gb_palette": gb_palette,
            "sgb_borders": sgb_borders,
            "save_type": save_type,
        }
        self._begin(self._open(self._rom, self._options, None))

    def _begin(self, native: _native.Core) -> None:
        self._core = native
        self._symbols: dict[str, Symbol] | None = None
        self._events: list[CoreEvents] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._opened_store: _native.Store | None = None
        self._recording: CoreRecording | None = None
        self.memory = Memory(self)
        self.snapshots = CoreSnapshots(self)
        self.recordings = CoreRecordings(self)

    def _open(self, rom: str, options: _native.GameOptions, before: _native.Core | None) -> _native.Core:
        # If `before` is given, the new core replaces it and takes over its symbol files, instead of opening `_files`.
        start = None if self._clock is None else round(self._clock.timestamp() * 1000)
        return _native.Core(rom, self._files, start, options, before)

    def _store(self) -> _native.Store:
        if self._opened_store is None:
            if self._data is None:
                # After `close`, this raises an exception, and no new folder is made.
                self.frame()
                self._folder = tempfile.TemporaryDirectory(prefix="framewire-", ignore_cleanup_errors=True)
            self._opened_store = _native.Store(self._data or self._folder.name)  # type: ignore[union-attr]
        return self._opened_store

    def close(self) -> None:
        """Frees the core, and completes the recording that is being made.

        Without a folder `data`, deletes its snapshots and recordings.

        Raises:
            FramewireError: The recording cannot be stored. Set another `name` for it, and call its `stop` again.
        """
        recording, self._recording = self._recording, None
        try:
            if recording is not None and self._data is not None:
                recording.stop()
        finally:
            self._core.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
            self._opened_store = None

    def __enter__(self) -> Core:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Core], tuple[Any, ...]]:
        arguments = {"symbols": self._files, "clock": self._clock, "data": self._data, **self._options}
        state = self.save_state(_SAVED | _PICTURE)
        return _restored, (self._rom, arguments, state, self._core.lasting_keys(), self.frozen())

    def __deepcopy__(self, _: dict[int, Any]) -> Core:
        restore, arguments = self.__reduce__()
        return restore(*arguments)

    # The machine.

    def registers(self) -> dict[str, int]:
        """The registers of the processor by name, as unsigned numbers."""
        return self._core.registers()

    def write_register(self, name: str, value: int) -> None:
        """Writes a register of the processor. The value is a signed or unsigned 32-bit number."""
        number = number32(value)
        self._core.write_register(name, number - (1 << 32) if number > 0x7FFF_FFFF else number)

    def cycles(self) -> int:
        """Clock cycles since the last reset. A loaded state sets the count to that in the state."""
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
        """Adds the cheats of an mGBA cheat file, and returns how many."""
        return self._core.load_cheats(os.fspath(path))

    def enable_cheat(self, id: int, enabled: bool = True) -> None:
        """Switches a cheat on or off."""
        self._core.enable_cheat(u32(id, "id", 0), enabled)

    def remove_cheat(self, id: int | None = None) -> None:
        """Removes a cheat, or all cheats."""
        self._core.remove_cheat(0 if id is None else cheat_number(id))

    def symbols(self, contains: str | None = None) -> dict[str, Symbol]:
        """The symbols of the game: all of them, or those whose name contains a text."""
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

        Raises:
            Conflict: Another timeline has one of these keys.
        """
        names = key_names(keys)
        if not _mask(names):
            raise InvalidRequest(f"keys is {keys!r}; use names such as 'A' or 'Up+B'", parameter="keys")
        return self._play(f"{'+'.join(names)}:{u32(frames, 'frames', 1)}", wait)

    def play(self, presses: Presses, *, wait: bool = False) -> Timeline:
        """Presses keys one after another, from the next frame on: `play("A:2 .:10 Up+B:30")`.

        Args:
            presses: The text, or pairs such as `[("A", 2), ("", 10)]`.
            wait: Whether to run frames until the keys are released.

        Raises:
            Conflict: Another timeline has one of these keys.
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
        """Ends a timeline of `press` or `play`, or all timelines. Returns whether there was one.

        Raises:
            NotFound: This timeline is not running.
        """
        ended = self._core.cancel(0 if timeline is None else timeline.id)
        self._report()
        if timeline is not None and not ended:
            raise NotFound(f"no timeline {timeline.id} is running")
        return ended

    def cancelled(self, timeline: Timeline) -> bool | None:
        """Whether a timeline ended early; None while it is still playing. The last 16,384 that ended are known."""
        return self._core.timeline(timeline.id)

    def hold(self, keys: Keys) -> Held:
        """Holds keys until `release`, or until the end of `with core.hold(keys):`."""
        mask = _mask(key_names(keys))
        self._set_keys(mask, 0)
        return Held(lambda: self._set_keys(0, mask))

    def release(self, keys: Keys | None = None) -> None:
        """Releases these keys, or all held keys."""
        self._set_keys(0, _ALL_KEYS if keys is None else _mask(key_names(keys)))

    def _set_keys(self, add: int, clear: int) -> None:
        self._core.set_keys(add, clear)
        self._report()

    # Frames.

    def frame(self) -> int:
        """The frame counter: frames since the last reset. A loaded state sets it to the counter in the state."""
        return self._core.frame()

    def advance(self, frames: int = 1, *, draw: bool = True) -> int:
        """Runs frames and returns the frame counter.

        Args:
            frames: The number of frames.
            draw: Whether to draw the last frame; the others are not drawn. With `draw=False`, the frames take less
                time, but `screen()` raises `Conflict` until a frame is drawn. The game runs in the same way.
        """
        self._run(u32(frames, "frames", 1), draw)
        return self._core.frame()

    def _run(self, frames: int, draw: bool = True) -> None:
        while frames > 0:
            now = min(frames, _CHUNK)
            self._core.advance(now, draw and now == frames)
            frames -= now
        self._report()

    def pause(self) -> Held:
        """Has no effect; it is for programs that also use other emulators. This emulator always waits for `advance`."""
        return Held(lambda: None)

    def resume(self) -> None:
        """Has no effect; it is for programs that also use other emulators. This emulator always waits for `advance`."""

    def lockstep(self, timeout: int = 10_000) -> Held:
        """Has no effect; it is for programs that also use other emulators. This emulator always waits for `advance`."""
        whole(timeout, "timeout", "milliseconds")
        return Held(lambda: None)

    def set_speed(self, speed: float | str) -> None:
        """Accepts only `"unlimited"`, because frames always run as fast as possible."""
        if speed != "unlimited":
            raise Unsupported(
                f"speed is {shown(speed)}, but an emulator in this process runs frames as fast as it can; use 'unlimited', "
                "or framewire serve for other speeds",
                parameter="speed",
                accepts="unlimited",
            )

    def reset(self) -> None:
        """Resets the console."""
        self._core.reset()
        self._emit("reset", {})

    def load(self, path: str | os.PathLike[str]) -> None:
        """Loads another game. The watches and the sound of the old game end.

        If it is the same game, numbers stay frozen and keys stay held. Symbol files that have changed are read again.

        Raises:
            Conflict: A recording is being made.
        """
        rom, options = absolute(path), self._options
        if rom != self._rom:
            options = {**options, "patch": None, "cheats": [], "bios": None, "save_type": None}
        core = self._open(rom, options, self._core)
        if self._core.recording() is not None:
            raise Conflict("a recording is being made; stop it before you load another game")
        frozen, keys = self.frozen(), self._core.lasting_keys()
        is_same = core.game()[2] == self._core.game()[2]
        self._core.close()
        self._core, self._rom, self._options, self._symbols = core, rom, options, None
        self.memory.refresh()
        title, code, checksum, _ = core.game()
        self._emit("game", {"title": title, "code": code, "checksum": checksum})
        if is_same:
            core.set_keys(keys, _ALL_KEYS)
            self._freeze_again(frozen)

    def _freeze_again(self, frozen: Sequence[Mapping[str, Any]]) -> None:
        """Freezes numbers that were frozen before in the same game, as far as this is possible now."""
        for each in frozen:
            # The symbol file may not have the name any more, or a pointer in the address may lead to no memory now.
            with suppress(InvalidRequest):
                self.freeze(each["address"], each["value"], each["type"])

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
            frame: If given, frames run until this frame before the picture is taken.
        """
        if frame is not None:
            left = u32(frame, "frame", 0) - self.frame()
            if left < 0:
                raise InvalidRequest(
                    f"frame {frame} has passed; the emulator is in frame {self.frame()}", parameter="frame"
                )
            self._run(left)
        return Screen(self._core.screen(), self._core.frame())

    def audio(self) -> CoreAudio:
        """The sound from now on, as an iterator of `AudioChunk`. If no chunk is waiting, reading one runs a frame."""
        return CoreAudio(self)

    @property
    def sample_rate(self) -> int:
        """Samples per second of `audio`."""
        return self._core.sample_rate()

    def save_state(self, flags: int | None = None) -> bytes:
        """Saves the state, in mGBA's format. `flags` chooses what it includes: docs/states.md.

        By default, it includes the battery save and the cartridge's clock. 31 includes everything, even the picture,
        and makes a PNG file.
        """
        return self._core.save_state(_SAVED if flags is None else u32(flags, "flags", 0))

    def load_state(self, state: bytes, flags: int | None = None, *, force: bool = False) -> int:
        """Loads a state and returns the frame counter. `force` also accepts a state of another game.

        `flags` chooses what is loaded: docs/states.md. By default, the picture, the battery save and the cartridge's clock
        are loaded, too, if the state includes them.
        """
        parts = _SAVED | _PICTURE if flags is None else u32(flags, "flags", 0)
        self._core.load_state(file_bytes(state, "state"), parts, force)
        self._emit("state", {})
        return self._core.frame()

    # Expressions.

    def evaluate(self, expression: str) -> Value:
        """The value of an expression over memory, such as `"score + 10 * level"`: docs/watches.md."""
        return self._core.evaluate(expression)

    def wait(self, expression: str, timeout_frames: int = 600) -> Waited:
        """Runs frames until an expression is true.

        Raises:
            WaitTimeout: The expression did not become true in `timeout_frames` frames.
        """
        most = u32(timeout_frames, "timeout_frames", 0)
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
        """Watches expressions. Returns an iterator that reports each change, frame by frame, as a `Change`."""
        if not expressions:
            raise InvalidRequest("watch() needs an expression, such as watch('score')", parameter="expressions")
        return CoreWatch(self, expressions)

    def events(self) -> CoreEvents:
        """Reports events of the emulator, such as `reset`. Returns an iterator of `Event`: docs/watches.md."""
        # The new iterator does not report the timelines that ended earlier.
        self._report()
        self._core.take_ended()
        events = CoreEvents(self)
        self._events.append(events)
        return events

    def batch(self) -> CoreBatch:
        """Several operations, performed in order at the end of `with`. Only `advance` runs frames between them.

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
        """Records every input with its frame until `stop`, `close`, or the end of `with core.record():`.

        Args:
            name: The name of the recording. If it is None, the current time becomes the name.
            start: `state`, the current state, or `power-on`, which resets the console.
            every: Frames from one hash of the picture to the next; 60 by default.
            note: Text to store in the recording.
            replace: Whether to overwrite a recording with the same name.

        Raises:
            Conflict: The name is in use, and `replace` is false; or a recording is being made.
        """
        name = name_or_time(name)
        self._store().check_recording(name, replace)
        self._core.start_recording(start, 60 if every is None else u32(every, "every", 1), note)
        if start == "power-on":
            self._emit("reset", {})
        self._recording = CoreRecording(self, name, replace)
        return self._recording

    def replay(
        self, name: str, *, speed: float | None = None, restore: bool = False, through: bool = False
    ) -> ReplayReport:
        """Replays a recording and compares its hashes with those of the replay.

        Args:
            name: The name of the recording.
            speed: Must be None: the replay always runs as fast as possible.
            restore: Whether to restore the emulator's earlier state after the replay.
            through: Whether to continue after the first difference.
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

    # Events.

    def _report(self) -> None:
        """Reports to all iterators of `events` which timelines have ended."""
        if self._events:
            for number, frame, cancelled in self._core.take_ended():
                for events in self._events:
                    events._push(Event("input", frame, {"frame": frame, "id": number, "cancelled": cancelled}))

    def _emit(self, name: str, data: Mapping[str, Any]) -> None:
        self._report()
        frame = self.frame()
        for events in self._events:
            events._push(Event(name, frame, {"frame": frame, **data}))


class EnvironmentCore(Core):
    """The emulator of an environment. Frames that it runs are not steps of the environment."""

    def __init__(self, native: _native.Core, rom: Path) -> None:
        self._rom = str(rom)
        self._files = []
        self._clock = None
        self._data = None
        self._begin(native)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Raises `Unsupported`: the emulator of an environment cannot load another game."""
        raise Unsupported(
            f"the game is that of the environment, so {os.fspath(path)} is not loaded; use framewire.load, or make another "
            "environment"
        )

    def __reduce__(self) -> tuple[Callable[..., Core], tuple[Any, ...]]:
        raise TypeError("the emulator of an environment cannot be copied or pickled alone; copy the environment")


def _restored(
    rom: str, arguments: dict[str, Any], state: bytes, keys: int, frozen: Sequence[Mapping[str, Any]] = ()
) -> Core:
    """Creates a core again from its pickled ROM path, arguments, state, keys and frozen numbers."""
    core = Core(rom, **arguments)
    core.load_state(state)
    if frozen:
        core._freeze_again(frozen)
        # `freeze` wrote its numbers at once. Undo this: until its next frame, the original may contain other numbers.
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
    """Converts one path, or several, to a list of absolute paths."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    return [absolute(path) for path in several]
