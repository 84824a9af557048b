from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# Do not send usage statistics to Ray's developers, and turn off some of Ray's warnings.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_DISABLE_IMPORT_WARNING"] = "1"
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"

import pytest

import framewire
from tests.games import demo_scenario
from tests.servers import Proxy, Server, serve, window


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the demo game, which the tests share. They must undo their changes."""
    with serve(tmp_path_factory.mktemp("server")) as served:
        yield served


@pytest.fixture
def emulator(server: Server) -> Iterator[framewire.Client]:
    """The demo game after a reset. It is running, and no keys are held."""
    with framewire.connect(server.url) as client:
        client.cancel()
        client.release()
        client.resume()
        client.reset()
        # `u32[frame]` is the game's own counter, which becomes 0 a few frames after the reset. `frame` alone is the
        # emulator's counter, which becomes 0 at once.
        client.wait("u32[frame] > 1 and u32[frame] <= frame")
        yield client


@pytest.fixture(scope="session")
def attached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose emulator is a stock mGBA in a window, with the demo game."""
    with (
        window() as address,
        serve(tmp_path_factory.mktemp("attached"), "--attach", address, rom=False) as served,
    ):
        yield served


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "server"


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """A scenario whose episodes end after ten steps."""
    return demo_scenario(
        tmp_path,
        "short",
        """
actions = "buttons"
frame_skip = 2
max_frames = 20
info = { game_frame = "frame" }
[scenario.short.observe]
memory = ["paddle_x"]
""",
    )
