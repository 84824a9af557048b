"""Recordings and snapshots that a server stores.

`generate.py` makes this file from `_async_files.py`: change that one.
"""

from __future__ import annotations

from framewire import _calls as calls
from framewire._sync_transport import SyncTransport
from framewire.errors import FramewireError
from framewire.model import RecordingInfo, SnapshotInfo
from framewire.screen import Screen


class Recording:
    """A recording that is being made."""

    def __init__(self, transport: SyncTransport, info: RecordingInfo) -> None:
        self._transport = transport
        self._ended: RecordingInfo | None = None
        self._started = info

    @property
    def name(self) -> str:
        """The name of the recording."""
        return (self._ended or self._started).name

    def info(self) -> RecordingInfo:
        """The progress of the recording."""
        if self._ended is not None:
            return self._ended
        return self._transport.perform(calls.recording_under_way())

    def stop(self) -> RecordingInfo:
        """Ends the recording."""
        if self._ended is None:
            self._ended = self._transport.perform(calls.stop_recording())
        return self._ended

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        try:
            self.stop()
        except FramewireError:
            if error is None:
                raise


class Snapshots:
    """Savestates that the server stores under names: docs/states.md."""

    def __init__(self, transport: SyncTransport) -> None:
        self._transport = transport

    def list(self) -> list[SnapshotInfo]:
        """All snapshots."""
        found: list[SnapshotInfo] = []
        offset: int | None = 0
        while offset is not None:
            page, offset = self._transport.perform(calls.snapshots(offset))
            found += page
        return found

    def save(self, name: str | None = None, *, note: str = "", replace: bool = False) -> SnapshotInfo:
        """Saves the state under a name. Without a name, the present time becomes the name.

        Raises:
            Conflict: The name is in use, and `replace` is false.
        """
        return self._transport.perform(calls.save_snapshot(name, note, replace))

    def load(self, name: str, flags: int | None = None, *, force: bool = False) -> int:
        """Loads a snapshot and returns the frame counter. `flags` and `force` are as in `Client.load_state`."""
        return self._transport.perform(calls.load_snapshot(name, flags, force))

    def change(self, name: str, *, new_name: str | None = None, note: str | None = None) -> SnapshotInfo:
        """Changes the name or the note of a snapshot. An argument that is None changes nothing."""
        return self._transport.perform(calls.change_snapshot(name, new_name, note))

    def delete(self, name: str) -> None:
        """Deletes a snapshot."""
        self._transport.perform(calls.delete_snapshot(name))

    def screen(self, name: str) -> Screen:
        """The picture of a snapshot."""
        return Screen.from_png(self._transport.perform(calls.file("snapshotPicture", name)))

    def file(self, name: str) -> bytes:
        """The file of a snapshot. It is a PNG file, and also a state that `load_state` and mGBA can load."""
        return self._transport.perform(calls.file("snapshotFile", name))


class Recordings:
    """Recordings that the server stores under names: docs/recordings.md."""

    def __init__(self, transport: SyncTransport) -> None:
        self._transport = transport

    def list(self) -> list[str]:
        """The names of all recordings."""
        found: list[str] = []
        offset: int | None = 0
        while offset is not None:
            page, offset = self._transport.perform(calls.recordings(offset))
            found += page
        return found

    def info(self, name: str) -> RecordingInfo:
        """Information about a recording."""
        return self._transport.perform(calls.recording(name))

    def delete(self, name: str) -> None:
        """Deletes a recording."""
        self._transport.perform(calls.delete_recording(name))

    def file(self, name: str) -> bytes:
        """The file of a recording, for `framewire replay`."""
        return self._transport.perform(calls.file("downloadRecording", name))

    def add(self, name: str, data: bytes, *, replace: bool = False) -> None:
        """Adds a recording from its file."""
        self._transport.perform(calls.upload_recording(name, data, replace))
