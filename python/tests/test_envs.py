"""Gymnasium environments on the demo game."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import time
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any
from unittest import mock

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import framewire.envs
from framewire.envs import GameEnv, GameVectorEnv
from framewire.errors import Conflict, GameFileError, InvalidData, InvalidRequest, RomError, Unsupported
from tests.games import demo_scenario


def play(vector: GameVectorEnv, steps: int, seed: int = 5) -> list[Any]:
    """Plays steps, with actions that differ between environments and change over time. Returns the results."""
    results: list[Any] = [vector.reset(seed=seed)[0].copy()]
    count = int(vector.single_action_space.n)  # type: ignore[attr-defined]
    for step in range(steps):
        actions = (np.arange(vector.num_envs) * 3 + step // 4) % count
        observation, reward, terminated, truncated, info = vector.step(actions)
        results.append((observation.copy(), reward.copy(), terminated.copy(), truncated.copy(), info["score"].copy()))
    return results


def same(left: Any, right: Any) -> bool:
    """Whether two arrays, or two lists or tuples of arrays, are equal."""
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return bool(np.array_equal(left, right))


@pytest.mark.filterwarnings("ignore:.*A Box observation space:UserWarning")
@pytest.mark.parametrize("name", ["framewire/Demo-v0", "framewire/DemoMemory-v0"])
def test_gymnasium_accepts_the_registered_environments(name: str) -> None:
    env = gym.make(name, render_mode="rgb_array")
    check_env(env.unwrapped)
    env.reset(seed=1)
    picture = env.render()
    assert isinstance(picture, np.ndarray)
    assert picture.shape == (160, 240, 3)
    env.close()


def test_make_vec_gives_the_native_vector() -> None:
    vector = gym.make_vec("framewire/Demo-v0", num_envs=3, vectorization_mode="vector_entry_point")
    assert isinstance(vector.unwrapped, GameVectorEnv)
    observation, info = vector.reset(seed=1)
    assert observation.shape == (3, 4, 84, 84)
    assert observation in vector.observation_space
    assert info["lives"].tolist() == [3, 3, 3]
    vector.close()


def test_threads_and_interfaces_give_the_same_observations_and_states() -> None:
    vectors = [framewire.envs.make_vec(scenario="pixels", num_envs=4, threads=threads) for threads in (1, 2, 7)]
    results = [play(vector, 60) for vector in vectors]
    assert same(results[0], results[1])
    assert same(results[0], results[2])
    hashes = [vector.state_hashes() for vector in vectors]
    assert hashes[0] == hashes[1] == hashes[2]

    # A single environment, with the seed and the actions of the third environment of the vectors.
    single = framewire.envs.make(scenario="pixels")
    observation, _ = single.reset(seed=5 + 2)
    assert same(observation, results[0][0][2])
    for step in range(60):
        observation, reward, terminated, truncated, info = single.step((2 * 3 + step // 4) % 4)
        expected = [values[2] for values in results[0][step + 1]]
        assert same(observation, expected[0])
        assert [reward, terminated, truncated, info["score"]] == expected[1:]
        assert not terminated
    assert single.state_hash() == hashes[0][2]


def test_no_step_is_played_before_the_first_reset() -> None:
    single = framewire.envs.make(scenario="memory")
    vector = framewire.envs.make_vec(scenario="memory", num_envs=2)
    before = single.state_hash()
    for env in (single, copy.deepcopy(single)):
        with pytest.raises(InvalidRequest, match="environment 0 has not begun an episode; call reset first"):
            env.step(0)
        assert env.state_hash() == before
    single.reset()
    copy.deepcopy(single).step(0)
    vector.reset(options={"reset_mask": [True, False]})
    for begin in (vector.step, vector.send):
        with pytest.raises(InvalidRequest, match="environment 1 has not begun an episode; call reset first"):
            begin([0, 0])
    vector.send([0], [0])
    vector.recv(1)
    vector.reset(options={"reset_mask": [False, True]})
    vector.step([0, 0])


def test_a_recording_of_the_emulator_ends_when_its_environment_moves() -> None:
    env = framewire.envs.make(scenario="memory")
    env.reset(seed=1)
    state = env.save_state()
    moves: list[Any] = [lambda: env.step(1), env.reset, lambda: env.load_state(state)]
    for number, move in enumerate(moves):
        recording = env.emulator.record(str(number))
        env.emulator.advance(5)
        move()
        env.emulator.advance(5)
        expected = "the environment played a step, was reset or loaded a state after frame 5"
        assert recording.info().ended == recording.stop().ended == expected
        report = env.emulator.replay(str(number))
        assert (report.equal, report.frames) == (True, 5)
    # Frames of the emulator itself do not end it.
    with env.emulator.record("whole") as recording:
        env.emulator.advance(5)
        env.render()
        env.emulator.advance(5)
    assert (recording.info().ended, recording.info().frames) == ("stopped", 10)
    assert env.emulator.replay("whole").equal
    env.close()


def test_an_environment_deletes_the_snapshots_of_its_emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    env = framewire.envs.make(scenario="memory")
    env.emulator.snapshots.save("one")
    assert list(tmp_path.iterdir())
    env.close()
    assert not list(tmp_path.iterdir())
    env.close()


def test_a_second_thread_at_the_same_time_is_refused() -> None:
    vector = framewire.envs.make_vec(scenario="memory", num_envs=64)
    vector.reset(seed=1)
    actions = np.zeros(64, dtype=np.int64)
    errors: list[str] = []

    # The order in which the threads run decides which of them is refused.
    def play() -> None:
        deadline = time.monotonic() + 60
        while not errors and time.monotonic() < deadline:
            try:
                vector.step(actions)
            except InvalidRequest as error:
                errors.append(str(error))

    threads = [Thread(target=play) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors
    assert all("another thread is using these environments" in error for error in errors)
    vector.step(actions)


def test_an_observation_does_not_change_during_the_next_step() -> None:
    vector = framewire.envs.make_vec(scenario="pixels", num_envs=2)
    vector.reset(seed=1)
    first = vector.step([1, 1])[0]
    kept = first.copy()
    vector.step([2, 2])
    assert np.array_equal(first, kept)
    copies = framewire.envs.make_vec(scenario="pixels", num_envs=2, copy=True)
    copies.reset(seed=1)
    observations = [copies.step([1, 1])[0] for _ in range(4)]
    assert np.array_equal(observations[0], kept)


def test_final_info_has_no_values_of_earlier_episodes(short: Path) -> None:
    vector = GameVectorEnv(short, num_envs=2, autoreset_mode=AutoresetMode.SAME_STEP)
    vector.reset(seed=1)
    none = np.zeros((2, 10), dtype=np.int8)
    for _ in range(4):
        vector.step(none)
    vector.reset(options={"reset_mask": [False, True]})
    ends = []
    for _ in range(36):
        *_, info = vector.step(none)
        if "final_info" in info:
            final = info["final_info"]
            assert (final["game_frame"] != 0).tolist() == final["_game_frame"].tolist() == info["_final_info"].tolist()
            ends.append(final["_game_frame"].tolist())
    assert ends == [[True, False], [False, True]] * 3 + [[True, False]]
    vector.close()


def test_a_masked_reset_does_not_change_the_results_of_the_last_step(short: Path) -> None:
    vector = GameVectorEnv(short, num_envs=2, autoreset_mode=AutoresetMode.DISABLED)
    vector.reset(seed=1)
    none = np.zeros((2, 10), dtype=np.int8)
    for _ in range(10):
        results = vector.step(none)
    assert results[3].all()
    kept = copy.deepcopy(results)
    observations, _ = vector.reset(options={"reset_mask": [True, False]})
    assert same(list(results[:4]), list(kept[:4]))
    assert same(observations[1], kept[0][1])
    vector.close()


@pytest.mark.parametrize("scenario", ["pixels", "memory"])
def test_a_masked_reset_returns_the_observations_of_loaded_states(scenario: str) -> None:
    vector, new = (framewire.envs.make_vec(scenario=scenario, num_envs=2) for _ in range(2))
    play(vector, 30)
    observations, *_, info = copy.deepcopy(vector.step([1, 2]))
    states = vector.save_states()
    play(vector, 40, seed=9)
    for other in (vector, new):
        other.load_states(states)
        found, found_info = other.reset(options={"reset_mask": [False, False]})
        assert same(found, observations)
        assert same(list(found_info.values()), list(info.values()))
        found, _ = other.reset(options={"reset_mask": [True, False]})
        assert same(found[1], observations[1])
        assert not same(found[0], observations[0])
        other.close()


def test_recv_does_not_change_the_last_results_of_reset_and_step() -> None:
    vector = framewire.envs.make_vec(scenario="memory", num_envs=2)
    for is_first in (True, False):
        last = vector.reset(seed=1)[0] if is_first else vector.step([1, 2])[0]
        kept = last.copy()
        vector.send([1, 2])
        vector.recv(2)
        assert np.array_equal(last, kept)
    vector.send([1, 2])
    observations, *_, info = vector.recv(2)
    # The environment that is not reset has the row that `recv` returned.
    present = observations[info["env_id"].tolist().index(1)]
    assert np.array_equal(vector.reset(options={"reset_mask": [True, False]})[0][1], present)
    vector.close()


def test_autoreset_modes_are_those_of_gymnasium(short: Path) -> None:
    none = np.zeros((2, 10), dtype=np.int8)
    for mode in AutoresetMode:
        vector = GameVectorEnv(short, num_envs=2, autoreset_mode=mode)
        first = vector.reset(seed=0)[0].copy()
        for step in range(1, 11):
            observation, _, terminated, truncated, info = vector.step(none)
            assert truncated.all() == (step == 10)
            assert not terminated.any()
        if mode is AutoresetMode.SAME_STEP:
            assert np.array_equal(observation, first)
            assert info["_final_obs"].all()
            assert info["final_obs"][0].shape == (1,)
            assert info["final_info"]["game_frame"][0] > info["game_frame"][0]
        elif mode is AutoresetMode.NEXT_STEP:
            observation, reward, _, truncated, _ = vector.step(none)
            assert np.array_equal(observation, first)
            assert not truncated.any()
            assert not reward.any()
        else:
            before = vector.state_hashes()
            with pytest.raises(InvalidRequest, match="environment 0 has ended; reset it first"):
                vector.step(none)
            assert vector.state_hashes() == before
            vector.reset(options={"reset_mask": np.array([True, False])})
            after = vector.state_hashes()
            assert after[0] != before[0]
            assert after[1] == before[1]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_has_the_same_results_as_gymnasiums(short: Path, mode: AutoresetMode) -> None:
    ours = GameVectorEnv(short, num_envs=3, autoreset_mode=mode)
    theirs = SyncVectorEnv([lambda: GameEnv(short)] * 3, autoreset_mode=mode)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space

    def compare(our_info: dict[str, Any], their_info: dict[str, Any]) -> None:
        assert our_info.keys() == their_info.keys()
        for name, values in their_info.items():
            if isinstance(values, dict):
                compare(our_info[name], values)
            elif values.dtype == object:
                assert same(list(our_info[name]), list(values)), name
            else:
                assert same(our_info[name], values), name

    ours.action_space.seed(4)
    resets = [ours.reset(seed=1), theirs.reset(seed=1)]
    assert same(resets[0][0], resets[1][0])
    compare(resets[0][1], resets[1][1])
    for _ in range(33):
        actions = ours.action_space.sample()
        our, their = ours.step(actions), theirs.step(actions)
        assert all(same(mine, its) for mine, its in zip(our[:4], their[:4], strict=True))
        compare(our[4], their[4])
        ended = our[2] | our[3]
        if mode is AutoresetMode.DISABLED and ended.any():
            assert same(ours.reset(options={"reset_mask": ended})[0], theirs.reset(options={"reset_mask": ended})[0])
    ours.close()
    theirs.close()


def test_environments_are_saved_copied_and_pickled() -> None:
    env = framewire.envs.make(scenario="pixels")
    env.reset(seed=3)
    for step in range(20):
        env.step(step % 4)
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), framewire.envs.make(scenario="pixels")]
    copies[2].load_state(env.save_state())
    expected = [env.step(step % 3) for step in range(20)]
    for other in copies:
        results = [other.step(step % 3) for step in range(20)]
        assert all(
            same(ours[0], theirs[0]) and ours[1:] == theirs[1:] for ours, theirs in zip(expected, results, strict=True)
        )
        assert other.state_hash() == env.state_hash()
    with pytest.raises(InvalidData, match="of the scenario pixels, and this environment is of memory"):
        framewire.envs.make(scenario="memory").load_state(env.save_state())
    env.close()
    with pytest.raises(InvalidRequest, match="closed"):
        pickle.dumps(env)


def test_a_copy_has_the_spec_and_the_random_numbers_of_its_environment() -> None:
    env = gym.make("framewire/Demo-v0").unwrapped
    env.reset(seed=1)
    env.action_space.seed(2)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert other.spec is not None
        assert other.spec.id == "framewire/Demo-v0"
        assert [other.action_space.sample() for _ in range(8)] == [env.action_space.sample() for _ in range(8)]
        env.action_space.seed(2)
        assert other.np_random.random() == copy.deepcopy(env.np_random).random()
    env.close()


def test_render_shows_the_moment_of_a_reset_of_a_state_and_of_a_copy() -> None:
    env = framewire.envs.make(scenario="memory", render_mode="rgb_array")
    env.reset(seed=1)
    start = env.render()
    assert start is not None
    assert len(np.unique(start)) > 2, "the picture is not blank"
    for _ in range(30):
        env.step(1)
    state, picture = env.save_state(), env.render()
    assert not same(picture, start)
    assert same(copy.deepcopy(env).render(), picture)
    env.reset(seed=1)
    assert same(env.render(), start)
    env.load_state(state)
    assert same(env.render(), picture)
    env.close()


def test_render_shows_the_last_frame_of_an_episode_that_ends_during_a_step(tmp_path: Path) -> None:
    settings = "actions = ['.']\nframe_skip = 4\nobserve.memory = ['lives']\nterminated = 'frame % 4 == {}'"
    ends = [
        GameEnv(demo_scenario(tmp_path, f"end{rest}", settings.format(rest)), render_mode="rgb_array") for rest in range(4)
    ]
    with framewire.load(framewire.envs.demo_game().parent / "framewire-demo.gba") as core:
        for env in ends:
            env.reset(seed=1)
            core.load_state(env.emulator.save_state(31))
            while not env.step(0)[2]:
                pass
            core.advance(env.emulator.frame() - core.frame())
            assert same(env.render(), core.screen().array)
            env.close()


def test_a_state_without_a_picture_does_not_count_as_one_with_it() -> None:
    plain, renders = (framewire.envs.make(scenario="memory", render_mode=mode) for mode in (None, "rgb_array"))
    for env in (plain, renders):
        env.reset(seed=1)
        env.step(1)
    renders.load_state(plain.save_state())
    with pytest.raises(Conflict, match="no picture"):
        renders.emulator.screen()
    plain.close()
    renders.close()


def test_a_picture_that_no_step_has_drawn_is_refused() -> None:
    env = framewire.envs.make(scenario="memory")
    env.reset(seed=1)
    env.step(1)
    with pytest.raises(Conflict, match="render_mode"):
        env.emulator.screen()
    env.emulator.advance(1)
    env.emulator.screen()
    env.step(1)
    with pytest.raises(Conflict, match="render_mode"):
        env.emulator.screen()
    env.close()


def test_the_maximum_of_two_frames_is_observed_in_steps_of_one_frame_too(tmp_path: Path) -> None:
    def pictures(most: int) -> list[Any]:
        settings = f"actions = ['.', 'Left', 'Right']\nobserve.screen = {{ max = {most} }}"
        env = GameEnv(demo_scenario(tmp_path, f"most{most}", settings))
        seen = [env.reset(seed=1)[0]]
        seen += [env.step(1 + step // 10 % 2)[0] for step in range(30)]
        env.close()
        return seen

    single, greatest = pictures(1), pictures(2)
    assert any(not same(before, now) for before, now in pairwise(single))
    for before, now, both in zip(single[:-1], single[1:], greatest[1:], strict=True):
        assert same(np.maximum(before, now), both)


def test_a_clock_in_a_game_boy_cartridge_starts_at_the_same_time_in_each_episode(tmp_path: Path) -> None:
    rom = Path(__file__).parents[2] / "rom"
    subprocess.run(["make", "--silent", "-C", rom, "clocks", f"BUILD={tmp_path}"], check=True)
    game = tmp_path / "clock.toml"
    game.write_text(
        f'[game]\nname = "Clock"\nrom = "{tmp_path / "clock.gb"}"\n'
        '[scenario.clock]\nactions = ["."]\nframe_skip = 50\nobserve.memory = ["u8[0xC000]"]\n'
    )
    env = GameEnv(game)
    env.reset(seed=1)
    env.step(0)
    env.step(0)
    shown = env.emulator.read_bytes(0xC000, 4)
    with framewire.load(tmp_path / "clock.gb", clock=datetime(2000, 1, 1, tzinfo=timezone.utc)) as core:
        core.advance(101)
        assert core.read_bytes(0xC000, 4) == shown == bytes([1, 0, 0, 0])
    env.close()


FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore")
import framewire.envs
vector = framewire.envs.make_vec(scenario="memory", num_envs=2)
vector.reset(seed=1)
idle = framewire.envs.make_vec(scenario="memory", num_envs=2)
idle.reset(seed=1)
vector.send([0, 0])
child = os.fork()
if child == 0:
    for call in (vector.recv, idle.save_states, idle.reset, lambda: idle.step([0, 0])):
        try:
            call()
            os._exit(2)
        except framewire.InvalidRequest as error:
            assert "forked" in str(error), error
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_in_a_forked_process_environments_raise_an_exception_and_do_not_hang() -> None:
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=60)


def test_a_vector_continues_from_its_states() -> None:
    vector = framewire.envs.make_vec(scenario="pixels", num_envs=3)
    play(vector, 10)
    first, second, third = vector.save_states()
    assert vector.save_states([False, True, False]) == [None, second, None]
    hashes = vector.state_hashes()
    vector.step([1, 2, 3])
    vector.load_states([first, None, third])
    now = vector.state_hashes()
    assert (now[0], now[2]) == (hashes[0], hashes[2])
    assert now[1] != hashes[1]
    with pytest.raises(InvalidRequest, match="states has 1 values for 3 environments"):
        vector.load_states([first])


@pytest.mark.parametrize("frame_skip", [1, 2, 4])
def test_a_video_of_an_environment_has_the_speed_of_the_game(short: Path, frame_skip: int) -> None:
    short.write_text(short.read_text().replace("frame_skip = 2", f"frame_skip = {frame_skip}"))
    env, vector = GameEnv(short, render_mode="rgb_array"), GameVectorEnv(short, render_mode="rgb_array")
    # Both consoles have 16,777,216 cycles in a second. A frame of the Game Boy Advance has 280,896 of them.
    for made in (env, vector):
        assert made.metadata["render_fps"] == pytest.approx(16_777_216 / 280_896 / frame_skip)
        made.close()
    # The class has no game, so it has only the rate of the console.
    assert GameEnv.metadata["render_fps"] == pytest.approx(59.7275, abs=1e-4)


def test_a_window_shows_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(ImportError, match="pip install pygame"):
        framewire.envs.make(scenario="memory", render_mode="human")

    pygame = mock.MagicMock()
    monkeypatch.setitem(sys.modules, "pygame", pygame)
    env = framewire.envs.make(scenario="memory", render_mode="human")
    check = env.reset(seed=1)[0]
    env.step(1)
    assert check.shape == (7,)
    assert env.render() is None
    pictures = [call.args[0] for call in pygame.surfarray.make_surface.call_args_list]
    assert [picture.shape for picture in pictures] == [(240, 160, 3)] * 2
    pygame.time.Clock.return_value.tick.assert_called_with(15)
    env.close()
    pygame.display.quit.assert_called_once()


def test_the_shared_window_stays_open_until_the_last_environment_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    pygame = mock.MagicMock()
    monkeypatch.setitem(sys.modules, "pygame", pygame)
    one, other = (framewire.envs.make(scenario="memory", render_mode="human") for _ in range(2))
    one.reset(seed=1)
    other.reset(seed=1)
    one.close()
    pygame.display.quit.assert_not_called()
    other.step(1)
    other.close()
    pygame.display.quit.assert_called_once()


def test_the_emulator_of_an_environment_is_its_own_core() -> None:
    env = framewire.envs.make(scenario="pixels", render_mode="rgb_array")
    env.reset(seed=1)
    emulator = env.emulator
    assert emulator is env.emulator
    registered = gym.make("framewire/Demo-v0")
    registered.reset(seed=1)
    assert registered.unwrapped.emulator.read("lives") == 3  # type: ignore[attr-defined]
    registered.close()
    assert isinstance(emulator, framewire.Emulator)
    for _ in range(5):
        info = env.step(1)[-1]
        assert emulator.memory["score"] == info["score"]
        picture = env.render()
        assert picture is not None
        assert np.array_equal(emulator.screen().array, picture)
    emulator.write("score", 4321)
    assert env.step(0)[-1]["score"] >= 4321
    before = env.state_hash()
    state = emulator.save_state()
    emulator.play("Left:20", wait=True)
    assert env.state_hash() != before
    emulator.load_state(state)
    assert env.state_hash() == before
    with emulator.watch("u32[frame]") as changes:
        assert next(changes).new == emulator.evaluate("u32[frame]")
    with pytest.raises(Unsupported, match="game is that of the environment"):
        emulator.load("other.gba")
    with pytest.raises(TypeError, match="copy the environment"):
        pickle.dumps(emulator)
    emulator.close()
    env.step(0)
    env.close()
    with pytest.raises(InvalidRequest, match="closed"):
        emulator.frame()


def test_steps_are_sent_and_received(short: Path) -> None:
    none = np.zeros((1, 10), dtype=np.int8)
    vector = GameVectorEnv(short, num_envs=3, batch_size=2, autoreset_mode=AutoresetMode.SAME_STEP)
    vector.reset(seed=1)
    with pytest.raises(InvalidRequest, match="only 0 play a step; send actions"):
        vector.recv()
    vector.send(np.repeat(none, 3, axis=0))
    with pytest.raises(InvalidRequest, match="environment 1 is already playing a step"):
        vector.send(none, [1])
    with pytest.raises(InvalidRequest, match="are playing a step that send began; get their results"):
        vector.step(np.repeat(none, 3, axis=0))
    seen: list[int] = []
    ends = 0
    for _ in range(20):
        observations, rewards, _, truncated, info = vector.recv()
        assert observations.shape == (2, 1)
        assert rewards.shape == (2,)
        assert info["game_frame"].shape == info["_game_frame"].shape == (2,)
        ends += int(truncated.sum())
        assert truncated.any() == ("final_obs" in info)
        seen += info["env_id"].tolist()
        vector.send(np.repeat(none, 2, axis=0), info["env_id"])
    assert set(seen) == {0, 1, 2}
    assert ends == sum(seen.count(env) // 10 for env in range(3))
    assert sorted(vector.recv(3)[-1]["env_id"].tolist()) == [0, 1, 2]
    with pytest.raises(InvalidRequest, match="there is no environment 3; use a number below 3"):
        vector.send(none, [3])
    with pytest.raises(InvalidRequest, match="batch_size is 4"):
        GameVectorEnv(short, num_envs=3, batch_size=4)
    with pytest.raises(InvalidRequest, match=r"batch_size is 2\.0; use a whole number"):
        GameVectorEnv(short, num_envs=3, batch_size=2.0)  # type: ignore[arg-type]
    vector.close()
    with pytest.raises(InvalidRequest, match="closed"):
        vector.send(none, [0])


def test_bad_input_raises_an_exception_that_says_what_to_do(short: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match='no scenario called "long"; it has short'):
        GameEnv(short, "long")
    with pytest.raises(InvalidRequest, match="num_envs is 0; use a number from 1"):
        GameVectorEnv(short, num_envs=0)
    with pytest.raises(InvalidRequest, match="render_mode"):
        GameEnv(short, render_mode="ansi")

    wrong = tmp_path / "wrong.toml"
    wrong.write_text(short.read_text().replace('"paddle_x"', '"padle_x"'))
    with pytest.raises(GameFileError, match=r"wrong.toml:13:12: no symbol is called .padle_x.; did you mean .paddle_x."):
        GameEnv(wrong)
    wrong.write_text(short.read_text().replace("[game]", f'[game]\nsha256 = "{"0" * 64}"'))
    with pytest.raises(RomError, match="another ROM"):
        GameEnv(wrong)
    text = tmp_path / "text.gba"
    text.write_text("this is not a ROM")
    with pytest.raises(RomError):
        GameEnv(short, rom=text)
    with pytest.raises(OSError, match=r"missing\.gba"):
        GameEnv(short, rom=tmp_path / "missing.gba")


def test_a_step_after_the_end_of_an_episode_is_refused(short: Path) -> None:
    env = GameEnv(short)
    env.reset()
    for _ in range(10):
        *_, truncated, _ = env.step(np.zeros(10, dtype=np.int8))
    assert truncated
    with pytest.raises(InvalidRequest, match="has ended; reset it first"):
        env.step(np.zeros(10, dtype=np.int8))


def test_a_refused_reset_does_not_overwrite_the_last_results() -> None:
    vector = framewire.envs.make_vec(scenario="pixels", num_envs=2)
    vector.reset(seed=1)
    results = vector.step([1, 1])[0]
    before = results.copy()
    with pytest.raises(InvalidRequest, match="seed is -1"):
        vector.reset(seed=[0, -1])
    vector.step([2, 2])
    assert np.array_equal(results, before)
    vector.close()
