"""The synchronous client with mGBA in its window: the same methods, and errors for what a window cannot do."""

from __future__ import annotations

import pytest

import framewire
from tests.servers import Proxy, Server


def test_a_window_is_an_emulator_too(attached: Server) -> None:
    with framewire.connect(attached.url) as emulator:
        assert emulator.info().kind == "attached"
        emulator.wait("u32[frame] > 1")
        emulator.memory["scratch"] = bytes(range(256))
        assert emulator.memory["scratch"].tolist() == list(range(256))
        assert emulator.evaluate("lives + 1") == 4
        assert emulator.screen().array.shape == (160, 240, 3)
        state = emulator.save_state()
        emulator.write("scratch", 77)
        emulator.load_state(state)
        assert emulator.read("scratch") == 0
        with emulator.watch("presses[2]") as changes:
            emulator.play("Select:2 .:2", wait=True)
            change = changes.next(5)
            assert (change.old, change.new) == (0, 1)
        with pytest.raises(framewire.Unsupported, match="window"):
            emulator.pause()
        with pytest.raises(framewire.Unsupported):
            emulator.audio()


def test_a_window_is_stepped_in_lockstep(attached: Server) -> None:
    with framewire.connect(attached.url) as emulator:
        with pytest.raises(framewire.RequestFailed, match="lockstep"):
            emulator.advance()
        with emulator.lockstep():
            frame = emulator.frame()
            emulator.press("B")
            assert [emulator.advance() for _ in range(3)] == [frame + 1, frame + 2, frame + 3]
            assert emulator.read("presses[1]") == 1
        emulator.wait(f"frame > {frame + 20}")


def test_keys_are_pressed_once_in_a_window(attached: Server) -> None:
    proxy = Proxy(attached.port)
    try:
        with framewire.connect(proxy.url) as emulator:
            before = emulator.read("presses[8]")
            for _ in range(5):
                proxy.drop_replies = 1
                # Released first: presses in adjacent frames are one press for the game.
                emulator.play(".:2 R", wait=True)
            frame = emulator.frame()
            emulator.wait(f"frame > {frame + 5}")
            assert emulator.read("presses[8]") == before + 5
        assert proxy.cuts == 5
    finally:
        proxy.close()
