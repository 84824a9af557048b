"""The arguments and results of requests: plain values, which are the same for every kind of emulator."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from framewire.errors import InvalidRequest, shown

Address: TypeAlias = int | str
"""A number, or text: `"0x02000044"`, a name such as `"score"`, `"score+2"` or `"presses[3]"`."""

NumberType: TypeAlias = Literal["u8", "u16", "u32", "i8", "i16", "i32"]
"""The type of a number in memory; numbers are little-endian."""

Keys: TypeAlias = str | Iterable[str]
"""Keys by name: `"A"`, `"Up+B"` or `["Up", "B"]`."""

Presses: TypeAlias = str | Iterable[tuple[Keys, int]]
"""Presses one after another: `"A:2 .:10 Up+B:30"`, or pairs of keys and frames. `.` and, in pairs, `""` mean no keys."""

Data: TypeAlias = bytes | bytearray | memoryview | npt.NDArray[Any]
"""Bytes to write. Arrays are written as little-endian numbers."""

Value: TypeAlias = int | bool | bytes | str | None
"""The value of an expression. None if it has no value, for example after a division by zero."""

DTYPES: dict[str, np.dtype[Any]] = {
    "u8": np.dtype("u1"),
    "u16": np.dtype("<u2"),
    "u32": np.dtype("<u4"),
    "i8": np.dtype("i1"),
    "i16": np.dtype("<i2"),
    "i32": np.dtype("<i4"),
}
"""The NumPy type of each type of number in memory."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name for an address.

    Attributes:
        name: The name.
        address: The address on the bus.
        type: The type of the number, or None if the symbol file does not have it.
        count: The number of elements if the symbol is an array, or else 1.
        doc: The description, or None if the symbol file does not have one.
    """

    name: str
    address: int
    type: NumberType | None
    count: int
    doc: str | None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of the number; `numpy.uint8` if the type is not known."""
        return DTYPES[self.type or "u8"]


@dataclass(frozen=True, slots=True)
class Cheat:
    """A cheat of the game.

    Attributes:
        id: The number of the cheat.
        name: The name to display.
        kind: The kind of its codes, such as `gameshark`; docs/api.md lists all kinds.
        codes: Its codes.
        enabled: Whether it is on.
    """

    id: int
    name: str
    kind: str
    codes: tuple[str, ...]
    enabled: bool


@dataclass(frozen=True, slots=True)
class IoRegister:
    """An I/O register of the console.

    Attributes:
        name: Its name in GBATEK or the Pan Docs, such as `DISPCNT`.
        address: Its address.
        size: Its size in bytes.
        value: Its present value. For a write-only register, this is not the value that was written last.
        doc: What it is for.
        fields: The values of its bit fields, by name. Empty if the register is a single number.
    """

    name: str
    address: int
    size: int
    value: int
    doc: str
    fields: dict[str, int]


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """A line of the history: a sequence of frames without gaps.

    Attributes:
        line: Its number.
        began: Why the line began: `game`, `reset`, `state` or `rewind`.
        follows: If `began` is `rewind`, the line and the frame after which this line begins; otherwise None.
        states: The frames whose states are kept.
        pictures: The frames that have a small picture.
        keys: Pairs of a frame and the keys that were held after that frame.
        snapshots: The snapshots that were made on this line: the name and the frame of each.
        recordings: The recordings that began on this line: the name and the first frame of each.
    """

    line: int
    began: str
    follows: tuple[int, int] | None
    states: list[int]
    pictures: list[int]
    keys: list[tuple[int, tuple[str, ...]]]
    snapshots: dict[str, int]
    recordings: dict[str, int]


@dataclass(frozen=True, slots=True)
class History:
    """What an emulator keeps of the past.

    Attributes:
        frame: The present frame counter.
        line: The line that the emulator is on; None if nothing is kept yet.
        used: How many bytes of memory the history takes.
        lines: The lines, the oldest first.
    """

    frame: int
    line: int | None
    used: int
    lines: list[HistoryLine]


@dataclass(frozen=True, slots=True)
class Rewound:
    """The result of `rewind`.

    Attributes:
        frame: The present frame counter.
        exact: Whether `frame` is the requested frame. If the emulator cannot go to that frame, for example because
            something other than keys changed the game, it goes to an earlier one: docs/api.md#going-back.
    """

    frame: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Found:
    """A place in memory that `find` found.

    Attributes:
        address: The address on the bus, or None if the place is not on the bus.
        bank: The memory bank in which the place has that address, or None if the memory has no banks.
        domain: The memory domain, or None for a place that was found on the bus.
        offset: The offset in the domain; without a domain, the address.
        symbol: The name of the address, if there is one.
        data: The bytes there.
    """

    address: int | None
    bank: int | None
    domain: str | None
    offset: int
    symbol: str | None
    data: bytes


@dataclass(frozen=True, slots=True)
class Timeline:
    """A key timeline: keys that are pressed in exactly the planned frames.

    Attributes:
        id: The number of the timeline.
        first: Its first frame.
        last: Its last frame. Frames without keys count, too, even at the beginning or the end.
        cancelled: Whether the timeline ended early; None if the call did not wait for its end.
    """

    id: int
    first: int
    last: int
    cancelled: bool | None = None


@dataclass(frozen=True, slots=True)
class Waited:
    """The result of `wait`.

    Attributes:
        frame: The frame after which the condition was true.
        frames: The number of frames that passed; 0 if the condition was true at once.
    """

    frame: int
    frames: int


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a watched value.

    Attributes:
        expression: The watched expression.
        frame: The frame in which the value changed.
        old: The value before.
        new: The value after.
        tick: The number of frames since the watch began. A reset does not set it to 0. None after lost events.
        gap: Whether changes between the previous `Change` and this one may be missing, because events were lost.
    """

    expression: str
    frame: int
    old: Value
    new: Value
    tick: int | None
    gap: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the emulator, such as `reset`; docs/watches.md lists all names.

    Attributes:
        name: The name of the event.
        frame: The frame counter, or None if the event does not have it.
        data: All fields of the event, as in docs/watches.md.
    """

    name: str
    frame: int | None
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """The sound of about one frame.

    Attributes:
        samples: One row per sample, with two signed 16-bit numbers: left and right.
        rate: Samples per second.
        missed: The number of samples that were lost directly before this chunk.
    """

    samples: npt.NDArray[np.int16]
    rate: int
    missed: int


@dataclass(frozen=True, slots=True)
class Info:
    """The state of an emulator.

    Attributes:
        kind: `embedded` or `attached`.
        connected: Whether the emulator can be reached.
        run: `running`, `paused`, `stalled` (the emulator does not answer), or `unknown` (there is no connection to it).
        frame: The frame counter, or None without an emulator.
        title: The title of the game, or None without a game.
        code: The code of the game, or None without a game.
        more: All fields, as in `GET /v1/emulator`. An emulator in this process has only some of them.
    """

    kind: str
    connected: bool
    run: str
    frame: int | None
    title: str | None
    code: str | None
    more: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """A savestate with a name.

    Attributes:
        name: The name.
        title: The title of the game.
        frame: The frame counter when it was made.
        time: The time when it was made (RFC 3339).
        note: The text that was saved with it.
        size: The size of its file in bytes.
    """

    name: str
    title: str
    frame: int
    time: str
    note: str
    size: int


@dataclass(frozen=True, slots=True)
class RecordingInfo:
    """A recording.

    Attributes:
        name: The name. It is not the requested name if another recording has taken that name in the meantime.
        frames: The number of frames so far.
        ended: Why it ended, such as `stopped`; None while it is being made.
        size: The size of its file in bytes.
    """

    name: str
    frames: int
    ended: str | None
    size: int


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """The result of a replay.

    Attributes:
        equal: Whether everything that was compared is equal.
        frames: The frames of the recording.
        played: The frames that were replayed.
        diverged: The first difference, or None if there is no difference. `frame` is its frame. `agreed` is the last frame
            before it at which all compared hashes were equal. `what` is `picture` or `memory`.
        more: All fields, as in `POST /v1/recordings/NAME/replay`. An emulator in this process has only some of them.
    """

    equal: bool
    frames: int
    played: int
    diverged: Mapping[str, Any] | None
    more: Mapping[str, Any]


def array_of(values: object) -> npt.NDArray[Any]:
    """An array of these values. Its type is `object` if NumPy has no other, for example for lists of different lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        pass
    try:
        return np.asarray(values, dtype=object)
    except ValueError:  # arrays whose shapes differ, but have the same first number
        array = np.empty((), dtype=object)
        array[()] = values
        return array


def key_names(keys: Keys) -> list[str]:
    """The names of the keys in `"Up+B"` or `["Up", "B"]`."""
    if isinstance(keys, str):
        return [name.strip() for name in keys.split("+")] if keys not in ("", ".") else []
    names = list(keys) if isinstance(keys, Iterable) else [keys]
    for name in names:
        if not isinstance(name, str):
            raise InvalidRequest(
                f"keys is {shown(names)}; use names of keys, such as 'A', 'Up+B' or ['Up', 'B']", parameter="keys"
            )
    return names


def sequence_text(presses: Presses) -> str:
    """Converts presses to the text that the server accepts."""
    if isinstance(presses, str):
        return presses
    try:
        return " ".join(f"{'+'.join(key_names(keys)) or '.'}:{frames}" for keys, frames in presses)
    except (RecursionError, TypeError, ValueError) as error:
        if isinstance(error, InvalidRequest):
            raise
        raise InvalidRequest(
            f"presses is {shown(presses)}; use text such as 'A:2 .:10', or pairs such as [('A', 2), ('', 10)]",
            parameter="presses",
        ) from error


def name_or_time(name: str | None) -> str:
    """The name of a new snapshot or recording. Without one, the present time becomes the name."""
    return name or time.strftime("%Y-%m-%d-%H%M%S")


def file_bytes(data: object, name: str) -> bytes:
    """The bytes of a file, such as a state. `name` is the name of the argument, for the error."""
    if isinstance(data, bytes):
        return data
    try:
        return memoryview(data).tobytes()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidRequest(f"{name} is {shown(data)}; use the bytes of the file", parameter=name) from None


def as_bytes(data: Data) -> bytes:
    """The bytes to write. The numbers of an array become little-endian."""
    if isinstance(data, np.ndarray):
        if data.dtype.kind not in "biu":
            raise InvalidRequest(
                f"the array has the type {data.dtype}; use whole numbers, such as array.astype('u1')", parameter="data"
            )
        big_endian = data.dtype.byteorder == ">" or (data.dtype.byteorder == "=" and sys.byteorder == "big")
        return (data.byteswap() if big_endian else data).tobytes()
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise InvalidRequest(f"data is {shown(data)}; use bytes or a NumPy array", parameter="data")
