"""Control Game Boy Advance and Game Boy emulators, frame by frame.

`framewire.connect()` connects to an emulator of a Framewire server, such as mGBA in its window.
`framewire.aio.connect()` does the same for asyncio. `framewire.load()` starts an emulator in this process, and
`framewire.envs` has environments for reinforcement learning. docs/python.md is the guide.
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
    GameFileError,
    InvalidData,
    InvalidRequest,
    NotAllowed,
    NotFound,
    ReplyLost,
    RequestFailed,
    RomError,
    StatesLost,
    TooLarge,
    Unsupported,
    WaitTimeout,
    WatchEnded,
)
from framewire.memory import Memory
from framewire.model import (
    AudioChunk,
    Change,
    Cheat,
    Event,
    Found,
    History,
    HistoryLine,
    Info,
    IoRegister,
    RecordingInfo,
    ReplayReport,
    Rewound,
    SnapshotInfo,
    Symbol,
    Timeline,
    Waited,
)
from framewire.screen import Screen

if TYPE_CHECKING:
    from framewire import aio
    from framewire.client import Client, connect
    from framewire.core import Core, load

__version__ = "0.1.0"

__all__ = [
    "AudioChunk",
    "Busy",
    "Change",
    "Cheat",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "ConnectionLost",
    "Core",
    "Emulator",
    "EmulatorStalled",
    "EmulatorUnavailable",
    "Event",
    "Found",
    "FramewireError",
    "GameFileError",
    "History",
    "HistoryLine",
    "Info",
    "InvalidData",
    "InvalidRequest",
    "IoRegister",
    "Memory",
    "NotAllowed",
    "NotFound",
    "RecordingInfo",
    "ReplayReport",
    "ReplyLost",
    "RequestFailed",
    "Rewound",
    "RomError",
    "Screen",
    "SnapshotInfo",
    "StatesLost",
    "Symbol",
    "Timeline",
    "TooLarge",
    "Unsupported",
    "WaitTimeout",
    "Waited",
    "WatchEnded",
    "aio",
    "connect",
    "load",
]

# Names whose modules need the extra `client` or the native part. The modules are imported at the first use.
_LATER = {
    "aio": "framewire.aio",
    "connect": "framewire.client",
    "Client": "framewire.client",
    "load": "framewire.core",
    "Core": "framewire.core",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'framewire' has no attribute {name!r}")
    try:
        module = importlib.import_module(_LATER[name])
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("websockets"):
            raise
        raise ImportError(
            f"framewire.{name} needs the package websockets: pip install 'framewire[client]'", name="websockets"
        ) from None
    return module if name == "aio" else getattr(module, name)
