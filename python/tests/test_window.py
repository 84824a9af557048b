"""The synchronous client with mGBA in its window: the same methods, and errors for those that a window lacks."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

import numpy as np
import pytest

import framewire
from tests.servers import Proxy, Server


def test_a_window_is_an_emulator_too(attached: Server) -> None:
    with framewire.connect(attached.url) as emulator:
        assert emulator.info().kind == "attached"
        # The game has run since mGBA started, and it loses a life after a few seconds. So the test resets it.
        emulator.reset()
        # `frame` alone is mGBA's counter, which the reset sets to 0. `u32[frame]` is the game's own counter in memory.
        emulator.wait("u32[frame] > 1 and u32[frame] <= frame")
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


def test_a_window_can_go_back_to_a_kept_state(attached: Server) -> None:
    with framewire.connect(attached.url) as emulator:
        deadline = time.monotonic() + 30
        while not any(line.states for line in emulator.history().lines):
            assert time.monotonic() < deadline, "no state is kept"
            time.sleep(0.1)
        line = emulator.history().lines[-1]
        with emulator.lockstep():
            assert emulator.rewind(line.states[0], line.line) == framewire.Rewound(line.states[0], True)
            assert emulator.frame() == line.states[0]


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
                # Release the key for two frames first: the game sees presses in adjacent frames as one press.
                emulator.play(".:2 R", wait=True)
            frame = emulator.frame()
            emulator.wait(f"frame > {frame + 5}")
            assert emulator.read("presses[8]") == before + 5
        assert proxy.cuts == 5
    finally:
        proxy.close()


def test_the_environment_of_the_rllib_window_example_works(attached: Server) -> None:
    path = Path(__file__).parents[1] / "examples/rllib_window.py"
    spec = importlib.util.spec_from_file_location("rllib_window", path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    proxy = Proxy(attached.port)
    env = example.WindowEnv({"url": proxy.url})
    try:
        begun, _ = env.reset(seed=1)
        again, _ = env.reset(seed=1)
        assert env.observation_space.contains(begun)
        assert np.array_equal(begun, again)
        frame = env._emulator.frame()
        for step in range(60):
            # The ball is launched, and then the paddle moves.
            observation, _, terminated, _, info = env.step(3 if step < 10 else 1)
        assert env._emulator.frame() == frame + 60 * example.FRAMES
        assert env.observation_space.contains(observation)
        assert observation[4] < begun[4]
        assert not terminated
        assert info["lives"] > 0
        # If the connection breaks between two steps, the episode is cut off, and the next one begins as usual.
        proxy.cut()
        _, reward, _, truncated, _ = env.step(3)
        assert (reward, truncated) == (0.0, True)
        again, _ = env.reset(seed=1)
        assert np.array_equal(begun, again)
        assert not env.step(3)[3]
    finally:
        env.close()
        proxy.close()
    with framewire.connect(attached.url) as emulator:
        frame = emulator.frame()
        emulator.wait(f"frame > {frame + 2}")
