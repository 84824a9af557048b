"""Recordings and snapshots of an emulator in this process. They are files in its data folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framewire.errors import FramewireError, NotFound
from framewire.model import RecordingInfo, SnapshotInfo, file_bytes, name_or_time
from framewire.screen import Screen

if TYPE_CHECKING:
    from framewire.core import Core

_WITH_PICTURE = 31
"""mGBA's flags for a state with all parts, including the picture."""


class CoreRecording:
    """A recording that is being made."""

    def __init__(self, core: Core, name: str, replace: bool) -> None:
        self._core = core
        self._native = core._core
        self._replace = replace
        self._data: bytes | None = None
        self._ended: RecordingInfo | None = None
        self.name = name

    def info(self) -> RecordingInfo:
        """The progress of the recording."""
        if self._ended is not None:
            return self._ended
        found = self._native.recording()
        if found is None:
            raise NotFound(f"the recording {self.name} is no longer being made")
        frames, size, ended = found
        return RecordingInfo(self.name, frames, ended, size)

    def stop(self) -> RecordingInfo:
        """Ends the recording and stores it under its name.

        If it cannot be stored, it is kept in memory. Then you can set another `name`, and call this method again.
        """
        if self._ended is None:
            if self._data is None:
                self._data = self._native.stop_recording()
            if self._data is None:
                raise NotFound(f"the recording {self.name} is no longer being made")
            store = self._core._store()
            store.add_recording(self.name, self._data, self._replace)
            self._data = None
            frames, ended, size = store.recording(self.name)
            self._ended = RecordingInfo(self.name, frames, ended, size)
        return self._ended

    def __enter__(self) -> CoreRecording:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        try:
            self.stop()
        except FramewireError:
            if error is None:
                raise


class CoreSnapshots:
    """Savestates with names: docs/states.md. The argument `data` of `framewire.load` chooses their folder."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def list(self) -> list[SnapshotInfo]:
        """All snapshots."""
        return [SnapshotInfo(*row) for row in self._core._store().snapshots()]

    def save(self, name: str | None = None, *, note: str = "", replace: bool = False) -> SnapshotInfo:
        """Saves the state under a name. Without a name, the present time becomes the name.

        Raises:
            Conflict: The name is in use, and `replace` is false.
        """
        core = self._core
        title, code, checksum, _ = core._core.game()
        state = core.save_state(_WITH_PICTURE)
        name = name_or_time(name)
        row = core._store().save_snapshot(name, state, title, code, checksum, core.frame(), note, replace)
        return SnapshotInfo(*row)

    def load(self, name: str, flags: int | None = None, *, force: bool = False) -> int:
        """Loads a snapshot and returns the frame counter. `flags` and `force` are as in `Core.load_state`."""
        return self._core.load_state(self.file(name), flags, force=force)

    def change(self, name: str, *, new_name: str | None = None, note: str | None = None) -> SnapshotInfo:
        """Changes the name or the note of a snapshot. An argument that is None changes nothing."""
        return SnapshotInfo(*self._core._store().change_snapshot(name, new_name, note))

    def delete(self, name: str) -> None:
        """Deletes a snapshot."""
        self._core._store().delete_snapshot(name)

    def screen(self, name: str) -> Screen:
        """The picture of a snapshot."""
        return Screen.from_png(self.file(name))

    def file(self, name: str) -> bytes:
        """The file of a snapshot. It is a PNG file, and also a state that `load_state` and mGBA can load."""
        return self._core._store().snapshot_file(name)


class CoreRecordings:
    """Recordings with names: docs/recordings.md. Their files have the same format as those of a server."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def list(self) -> list[str]:
        """The names of all recordings."""
        return self._core._store().recordings()

    def info(self, name: str) -> RecordingInfo:
        """Information about a recording."""
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
        self._core._store().add_recording(name, file_bytes(data, "data"), replace)
