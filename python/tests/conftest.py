from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import framewire
from tests.games import demo_scenario
from tests.servers import Proxy, Server, serve, window


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server with the demo game for all tests that leave it as it was."""
    with serve(tmp_path_factory.mktemp("server")) as served:
        yield served


@pytest.fixture
def emulator(server: Server) -> Iterator[framewire.Client]:
    """The demo game, running, without held keys."""
    with framewire.connect(server.url) as client:
        client.cancel()
        client.release()
        client.resume()
        client.reset()
        # The counter of the game itself, which the reset sets back a few frames later.
        client.wait("u32[frame] > 1 and u32[frame] <= frame")
        yield client


@pytest.fixture(scope="session")
def attached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demo game in the window of a stock mGBA."""
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
