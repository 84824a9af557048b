"""The methods that both kinds of emulator have: an emulator in this process, and an emulator of a server.

A program that takes an `Emulator` works with both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy.typing as npt

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
)
from framewire.screen import Screen

Item = TypeVar("Item", covariant=True)


class Result(Protocol[Item]):
    """The result of an operation in a batch."""

    @property
    def value(self) -> Item:
        """The value, after the batch has run."""


class Stream(AbstractContextManager["Stream[Item]"], Protocol[Item]):
    """An endless iterator. The end of `with` closes it."""

    def __iter__(self) -> Iterator[Item]:
        """The stream."""

    def __next__(self) -> Item:
        """Waits for the next item."""

    def close(self) -> None:
        """Ends the stream."""


class Recording(AbstractContextManager["Recording"], Protocol):
    """A recording that is being made."""

    @property
    def name(self) -> str:
        """The name of the recording."""

    def info(self) -> RecordingInfo:
        """The progress of the recording."""

    def stop(self) -> RecordingInfo:
        """Ends the recording."""


class Batch(AbstractContextManager["Batch"], Protocol):
    """Operations that are performed in order at the end of `with`. Only `advance` runs frames between them."""

    @property
    def frame(self) -> int | None:
        """The frame counter after the batch; None before the batch has run."""

    def read(self, address: Address, type: NumberType | None = None, *, domain: str | None = None) -> Result[int]:
        """Reads a number."""

    def read_many(
        self, addresses: Sequence[Address], type: NumberType | None = None, *, domain: str | None = None
    ) -> Result[list[int]]:
        """Reads several numbers."""

    def read_bytes(self, address: Address, length: int, *, domain: str | None = None) -> Result[bytes]:
        """Reads bytes."""

    def read_array(
        self, address: Address, type: NumberType | npt.DTypeLike, count: int, *, domain: str | None = None
    ) -> Result[npt.NDArray[Any]]:
        """Reads consecutive numbers."""

    def write(
        self, address: Address, value: int, type: NumberType | None = None, *, domain: str | None = None
    ) -> Result[None]:
        """Writes a number."""

    def write_bytes(self, address: Address, data: Data, *, domain: str | None = None) -> Result[None]:
        """Writes bytes."""

    def press(self, keys: Keys, frames: int = 1) -> Result[Timeline]:
        """Presses keys together for a number of frames."""

    def play(self, presses: Presses) -> Result[Timeline]:
        """Presses keys one after another."""

    def hold(self, keys: Keys) -> Result[None]:
        """Holds keys."""

    def release(self, keys: Keys | None = None) -> Result[None]:
        """Releases these keys, or all held keys."""

    def advance(self, frames: int = 1, *, draw: bool = True) -> Result[int]:
        """Runs frames."""

    def reset(self) -> Result[None]:
        """Resets the console."""

    def screen(self) -> Result[Screen]:
        """The picture of the last frame."""

    def save_state(self, flags: int = 31) -> Result[bytes]:
        """Saves the state of the console."""

    def load_state(self, state: bytes, flags: int = 29) -> Result[bool]:
        """Loads a state. The result is whether the emulator accepted it."""


class Snapshots(Protocol):
    """Savestates that are stored under names."""

    def list(self) -> Sequence[SnapshotInfo]:
        """All snapshots."""

    def save(self, name: str | None = None, *, note: str = "", replace: bool = False) -> SnapshotInfo:
        """Saves the state under a name."""

    def load(self, name: str, flags: int | None = None, *, force: bool = False) -> int:
        """Loads a snapshot and returns the frame counter."""

    def change(self, name: str, *, new_name: str | None = None, note: str | None = None) -> SnapshotInfo:
        """Changes the name or the note of a snapshot."""

    def delete(self, name: str) -> None:
        """Deletes a snapshot."""

    def screen(self, name: str) -> Screen:
        """The picture of a snapshot."""

    def file(self, name: str) -> bytes:
        """The file of a snapshot, which is both a PNG file and a state."""


@runtime_checkable
class Emulator(AbstractContextManager["Emulator"], Protocol):
    """An emulator. docs/python.md explains the methods, and `framewire.Client` describes all of their arguments."""

    memory: Memory
    """The memory. Brackets read and write it: `emulator.memory["score"]`."""

    @property
    def snapshots(self) -> Snapshots:
        """Savestates with names."""

    def close(self) -> None:
        """Closes the connection to the emulator; an emulator in this process ends."""

    def read(self, address: Address, type: NumberType | None = None, *, domain: str | None = None) -> int:
        """Reads a number."""

    def read_many(
        self, addresses: Sequence[Address], type: NumberType | None = None, *, domain: str | None = None
    ) -> list[int]:
        """Reads several numbers in the same frame."""

    def read_bytes(self, address: Address, length: int, *, domain: str | None = None) -> bytes:
        """Reads bytes."""

    def read_array(
        self, address: Address, type: NumberType | npt.DTypeLike, count: int, *, domain: str | None = None
    ) -> npt.NDArray[Any]:
        """Reads consecutive numbers."""

    def write(self, address: Address, value: int, type: NumberType | None = None, *, domain: str | None = None) -> None:
        """Writes a number."""

    def write_bytes(self, address: Address, data: Data, *, domain: str | None = None) -> None:
        """Writes bytes or an array."""

    def read_text(self, address: Address, length: int) -> str:
        """Reads a text, in the game's character encoding."""

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
        """Finds a text, bytes, a number or a pointer in memory."""

    def freeze(self, address: Address, value: int, type: NumberType | None = None) -> None:
        """Freezes a number in memory: writes it now, and again after each frame, until `unfreeze`."""

    def unfreeze(self, address: Address | None = None) -> bool:
        """Unfreezes an address, or all addresses. Returns whether any was frozen."""

    def frozen(self) -> list[dict[str, Any]]:
        """The frozen values."""

    def registers(self) -> dict[str, int]:
        """The registers of the processor by name."""

    def write_register(self, name: str, value: int) -> None:
        """Writes a register of the processor."""

    def cycles(self) -> int:
        """Clock cycles since the last reset. A loaded state sets the count to that in the state."""

    def cheats(self) -> list[Cheat]:
        """The cheats of the game."""

    def add_cheat(
        self, codes: str | Sequence[str], *, name: str = "cheat", kind: str = "auto", enabled: bool = True
    ) -> int:
        """Adds a cheat and returns its number."""

    def load_cheats(self, path: str) -> int:
        """Adds the cheats of an mGBA cheat file, and returns how many."""

    def enable_cheat(self, id: int, enabled: bool = True) -> None:
        """Switches a cheat on or off."""

    def remove_cheat(self, id: int | None = None) -> None:
        """Removes a cheat, or all cheats."""

    def symbols(self, contains: str | None = None) -> dict[str, Symbol]:
        """The symbols of the loaded game."""

    def press(self, keys: Keys, frames: int = 1, *, wait: bool = False) -> Timeline:
        """Presses keys together for a number of frames."""

    def play(self, presses: Presses, *, wait: bool = False) -> Timeline:
        """Presses keys one after another."""

    def cancel(self, timeline: Timeline | None = None) -> bool:
        """Ends a timeline of `press` or `play`, or all timelines."""

    def cancelled(self, timeline: Timeline) -> bool | None:
        """Whether a timeline ended early; None while it is still playing."""

    def hold(self, keys: Keys) -> AbstractContextManager[Any]:
        """Holds keys until `release`, or the end of `with`."""

    def release(self, keys: Keys | None = None) -> None:
        """Releases these keys, or all held keys."""

    def frame(self) -> int:
        """The frame counter: frames since the last reset. A loaded state sets it to the counter in the state."""

    def advance(self, frames: int = 1, *, draw: bool = True) -> int:
        """Runs frames and returns the frame counter. With `draw=False`, an emulator of `framewire.load` draws nothing."""

    def pause(self) -> AbstractContextManager[Any]:
        """Pauses the game until `resume`, or the end of `with`."""

    def resume(self) -> None:
        """Continues the game: ends a pause or lockstep."""

    def lockstep(self, timeout: int = 10_000) -> AbstractContextManager[Any]:
        """Runs frames only in `advance` and `replay`, until `resume` or the end of `with`."""

    def set_speed(self, speed: float | str) -> None:
        """Sets the speed: a multiple of the console's speed, or `"unlimited"`."""

    def reset(self) -> None:
        """Resets the console."""

    def load(self, path: str) -> None:
        """Loads another game."""

    def info(self) -> Info:
        """The state of the emulator and its game."""

    def screen(self) -> Screen:
        """The picture of the last frame."""

    def audio(self) -> Stream[AudioChunk]:
        """The sound from now on."""

    def save_state(self, flags: int | None = None) -> bytes:
        """Saves the state, in mGBA's format."""

    def load_state(self, state: bytes, flags: int | None = None, *, force: bool = False) -> int:
        """Loads a state and returns the frame counter."""

    def evaluate(self, expression: str) -> Value:
        """The value of an expression over memory."""

    def wait(self, expression: str, timeout_frames: int = 600) -> Waited:
        """Waits until an expression is true. It is evaluated at once, and then after each frame."""

    def watch(self, *expressions: str) -> Stream[Change]:
        """Watches expressions and reports each change."""

    def events(self) -> Stream[Event]:
        """Reports events of the emulator."""

    def batch(self) -> Batch:
        """Several operations, performed in order. Only `advance` runs frames between them."""

    def record(
        self,
        name: str | None = None,
        *,
        start: str = "state",
        every: int | None = None,
        note: str = "",
        replace: bool = False,
    ) -> Recording:
        """Records every input with its frame until `stop`, or the end of `with`."""

    def replay(
        self, name: str, *, speed: float | None = None, restore: bool = False, through: bool = False
    ) -> ReplayReport:
        """Replays a recording and compares its hashes with those of the replay."""
