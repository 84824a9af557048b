"""Recordings and snapshots that a server stores.

`generate.py` makes `_sync_files.py` from this file.
"""

from __future__ import annotations

from framewire import _calls as calls
from framewire._async_transport import AsyncTransport
from framewire.errors import FramewireError
from framewire.model import RecordingInfo, SnapshotInfo
from framewire.screen import Screen


class AsyncRecording:
    """A recording that is being made."""

    def __init__(self, transport: AsyncTransport, info: RecordingInfo) -> None:
        self._transport = transport
        self._ended: RecordingInfo | None = None
        self._started = info

    @property
    def name(self) -> str:
        """The name of the recording."""
        return (self._ended or self._started).name

    async def info(self) -> RecordingInfo:
        """The progress of the recording."""
        if self._ended is not None:
            return self._ended
        return await self._transport.perform(calls.recording_under_way())

    async def stop(self) -> RecordingInfo:
        """Ends the recording."""
        if self._ended is None:
            self._ended = await self._transport.perform(calls.stop_recording())
        return self._ended

    async def __aenter__(self) -> AsyncRecording:
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        try:
            await self.stop()
        except FramewireError:
            if error is None:
                raise


class AsyncSnapshots:
    """Savestates that the server stores under names: docs/states.md."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> list[SnapshotInfo]:
        """All snapshots."""
        found: list[SnapshotInfo] = []
        offset: int | None = 0
        while offset is not None:
            page, offset = await self._transport.perform(calls.snapshots(offset))
            found += page
        return found

    async def save(self, name: str | None = None, *, note: str = "", replace: bool = False) -> SnapshotInfo:
        """Saves the state under a name. Without a name, the present time becomes the name.

        Raises:
            Conflict: The name is in use, and `replace` is false.
        """
        return await self._transport.perform(calls.save_snapshot(name, note, replace))

    async def load(self, name: str, flags: int | None = None, *, force: bool = False) -> int:
        """Loads a snapshot and returns the frame counter. `flags` and `force` are as in `AsyncClient.load_state`."""
        return await self._transport.perform(calls.load_snapshot(name, flags, force))

    async def change(self, name: str, *, new_name: str | None = None, note: str | None = None) -> SnapshotInfo:
        """Changes the name or the note of a snapshot. An argument that is None changes nothing."""
        return await self._transport.perform(calls.change_snapshot(name, new_name, note))

    async def delete(self, name: str) -> None:
        """Deletes a snapshot."""
        await self._transport.perform(calls.delete_snapshot(name))

    async def screen(self, name: str) -> Screen:
        """The picture of a snapshot."""
        return Screen.from_png(await self._transport.perform(calls.file("snapshotPicture", name)))

    async def file(self, name: str) -> bytes:
        """The file of a snapshot. It is a PNG file, and also a state that `load_state` and mGBA can load."""
        return await self._transport.perform(calls.file("snapshotFile", name))


class AsyncRecordings:
    """Recordings that the server stores under names: docs/recordings.md."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> list[str]:
        """The names of all recordings."""
        found: list[str] = []
        offset: int | None = 0
        while offset is not None:
            page, offset = await self._transport.perform(calls.recordings(offset))
            found += page
        return found

    async def info(self, name: str) -> RecordingInfo:
        """Information about a recording."""
        return await self._transport.perform(calls.recording(name))

    async def delete(self, name: str) -> None:
        """Deletes a recording."""
        await self._transport.perform(calls.delete_recording(name))

    async def file(self, name: str) -> bytes:
        """The file of a recording, for `framewire replay`."""
        return await self._transport.perform(calls.file("downloadRecording", name))

    async def add(self, name: str, data: bytes, *, replace: bool = False) -> None:
        """Adds a recording from its file."""
        await self._transport.perform(calls.upload_recording(name, data, replace))
