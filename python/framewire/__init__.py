"""Control Game Boy Advance and Game Boy emulators, frame by frame.

`framewire.connect()` is an emulator of a Framewire server, such as mGBA in its window. `framewire.aio.connect()` is the
same for asyncio. docs/python.md is the guide.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from framewire.emulator import Emulator
from framewire.errors import (
    Busy,
    Conflict,
    ConnectionFailed,
    ConnectionLost,
    EmulatorStalled,
    EmulatorUnavailable,
    FramewireError,
    InvalidData,
    InvalidRequest,
    NotAllowed,
    NotFound,
    ReplyLost,
    RequestFailed,
    TooLarge,
    Unsupported,
    WaitTimeout,
    WatchEnded,
)
from framewire.memory import Memory
from framewire.model import (
    AudioChunk,
    Change,
    Event,
    Info,
    RecordingInfo,
    ReplayReport,
    SnapshotInfo,
    Symbol,
    Timeline,
    Waited,
)
from framewire.screen import Screen

if TYPE_CHECKING:
    from framewire import aio
    from framewire.client import Client, connect

__version__ = "0.1.0"

__all__ = [
    "AudioChunk",
    "Busy",
    "Change",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "ConnectionLost",
    "Emulator",
    "EmulatorStalled",
    "EmulatorUnavailable",
    "Event",
    "FramewireError",
    "Info",
    "InvalidData",
    "InvalidRequest",
    "Memory",
    "NotAllowed",
    "NotFound",
    "RecordingInfo",
    "ReplayReport",
    "ReplyLost",
    "RequestFailed",
    "Screen",
    "SnapshotInfo",
    "Symbol",
    "Timeline",
    "TooLarge",
    "Unsupported",
    "WaitTimeout",
    "Waited",
    "WatchEnded",
    "aio",
    "connect",
]

# What needs the extra `client`.
_CLIENT = {"aio": "framewire.aio", "connect": "framewire.client", "Client": "framewire.client"}


def __getattr__(name: str) -> Any:
    if name not in _CLIENT:
        raise AttributeError(f"module 'framewire' has no attribute {name!r}")
    try:
        module = importlib.import_module(_CLIENT[name])
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("websockets"):
            raise
        raise ImportError(
            f"framewire.{name} needs the package websockets: pip install 'framewire[client]'", name="websockets"
        ) from None
    return module if name == "aio" else getattr(module, name)
