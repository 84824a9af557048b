"""Each kind of bad input raises a typed exception that says what was wrong and what is accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import framewire
import framewire.envs
from framewire.envs import GameEnv, GameVectorEnv
from framewire.errors import GameFileError, InvalidData, InvalidRequest


@pytest.fixture
def vector() -> Iterator[GameVectorEnv]:
    """Two environments after a reset."""
    vector = framewire.envs.make_vec(scenario="memory", num_envs=2)
    vector.reset(seed=1)
    yield vector
    vector.close()


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("frame_skip = 2", "frame_skip = ", r":8:14: string values must be quoted"),
        ('"buttons"', '"buttons', r":7:19: invalid basic string"),
        ("frame_skip", "frameskip", r":8:1: unknown field `frameskip`, expected one of .*`frame_skip`"),
        ("frame_skip = 2", 'frame_skip = "two"', r':8:14: invalid type: string "two"'),
        ("frame_skip = 2", "frame_skip = 0", r":8:14: frame_skip is 0; use a number from 1 to 60"),
        ('"buttons"', '["Up+Q"]', r':7:11: "Up\+Q" is not a set of keys; use names'),
        ('"paddle_x"', '"paddle_x +"', r":12:22: expected a number"),
        ("memory-map.toml", "missing.toml", r":4:12: cannot read the symbol file"),
    ],
)
def test_a_malformed_game_file_is_reported_with_its_line(short: Path, right: str, wrong: str, message: str) -> None:
    text = short.read_text().lstrip("\n")
    assert right in text
    short.write_text(text.replace(right, wrong, 1))
    with pytest.raises(GameFileError, match=r"short\.toml" + message):
        GameEnv(short)


def test_the_error_of_an_unreadable_game_file_has_its_path_and_one_reason(tmp_path: Path) -> None:
    with pytest.raises(GameFileError, match=r"cannot read the game file .*missing\.toml: [^:]*$"):
        GameEnv(tmp_path / "missing.toml")


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 4], "there is no action 4; use a number from 0 to 3"),
        ([-1, 0], "there is no action -1; use a number from 0 to 3"),
        ([0], "actions has 1 values for 2 environments"),
        ([0.0, 1.0], "the type float64; use 2 whole numbers"),
        ([[0, 1]], r"the shape \(1, 2\) and the type int64; use 2 whole numbers"),
        (["A", "B"], "use 2 whole numbers"),
        (None, "use 2 whole numbers"),
        ([[0], 1], r"the shape \(2,\) and the type object; use 2 whole numbers"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], r"the shape \(\) and the type object; use 2 whole numbers"),
        ([0, 2**70], f"there is no action {2**70}; use a number from 0 to 3"),
        ([-(2**63) - 1, 0], f"there is no action {-(2**63) - 1}; use a number from 0 to 3"),
        (np.array([0, 2**64 - 1], np.uint64), f"there is no action {2**64 - 1}; use a number from 0 to 3"),
    ],
)
def test_refused_actions_change_nothing(vector: GameVectorEnv, actions: Any, message: str) -> None:
    before = vector.state_hashes()
    with pytest.raises(InvalidRequest, match=message):
        vector.step(actions)
    with pytest.raises(InvalidRequest):
        vector.send(actions)
    assert vector.state_hashes() == before
    vector.step([0, 1])


@pytest.mark.parametrize("action", [-1, 4, 2**70, -(2**70), np.uint64(2**64 - 1), 0.5, "A", None, [0, 1]])
def test_one_environment_refuses_the_same_actions(action: Any) -> None:
    env = framewire.envs.make(scenario="memory")
    env.reset(seed=1)
    before = env.state_hash()
    with pytest.raises(InvalidRequest, match=r"no action .*; use a number from 0 to 3|action is .*; use a whole number"):
        env.step(action)
    assert env.state_hash() == before
    for accepted in (1, np.int64(1), np.array(1)):
        env.step(accepted)
    env.close()


@pytest.mark.parametrize(
    ("first", "message"), [(2, "use 1 for a button that is held"), (0.5, "use 1"), (-1, "use 1"), ("A", "use 1")]
)
def test_buttons_other_than_zero_and_one_are_refused(short: Path, first: Any, message: str) -> None:
    action = [first] + [0] * 9
    env, vector = GameEnv(short), GameVectorEnv(short, num_envs=1)
    env.reset(seed=1)
    vector.reset(seed=1)
    with pytest.raises(InvalidRequest, match=message):
        env.step(action)
    with pytest.raises(InvalidRequest, match=message):
        vector.step([action])
    with pytest.raises(InvalidRequest, match=r"the shape of the actions is \(9,\); use \(10,\)"):
        env.step([0] * 9)
    with pytest.raises(InvalidRequest, match=r"the shape of the actions is \(2,\); use \(10,\)"):
        env.step([[0], 0])
    with pytest.raises(InvalidRequest, match=r"the shape of the actions is \(10,\); use \(1, 10\)"):
        vector.step([0] * 10)
    env.close()
    vector.close()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v: v.reset(seed=-1), r"seed is -1; use a number from 0 to 2\*\*64 - 1"),
        (lambda v: v.reset(seed=[1, "x"]), "seed is 'x'; use a whole number"),
        (lambda v: v.reset(seed=1.5), "seed is 1.5; use a whole number, or a list with one for each environment"),
        (lambda v: v.reset(seed="12"), "seed is '12'; use a whole number, or a list"),
        (lambda v: v.reset(seed=2**64 - 1), r"seed is 18446744073709551615, but .* from 0 to 2\*\*64 - 2"),
        (lambda v: v.reset(seed=[1]), "seeds has 1 values for 2 environments"),
        (lambda v: v.reset(options={"reset_mask": [True]}), "reset_mask has 1 values for 2 environments"),
        (lambda v: v.reset(options={"reset_mask": [[True, True]]}), r"the shape of reset_mask is \(1, 2\); use \(2,\)"),
        (lambda v: v.reset(options={"reset_mask": [[True], False]}), "reset_mask has lists of different lengths"),
        (lambda v: v.save_states([[True], False]), "mask has lists of different lengths; use 2 times True or False"),
        (lambda v: v.save_states([[True, False]]), r"the shape of mask is \(1, 2\); use \(2,\)"),
        (lambda v: v.recv(3), "count is 3; use a number from 1 to 2"),
        (lambda v: v.recv("2"), "count is '2'; use a whole number"),
        (lambda v: v.send([0, 1], []), "there are actions but no environments"),
        (lambda v: v.send([0], [2]), "there is no environment 2; use a number below 2"),
        (lambda v: v.send([0], [-1]), "there is no environment -1; use a number from 0"),
        (lambda v: v.send([0, 1], [[0], 1]), "use a list of environment numbers"),
        (lambda v: v.send([0], [0.5]), "use a list of environment numbers"),
    ],
)
def test_wrong_arguments_of_calls_are_refused(
    vector: GameVectorEnv, call: Callable[[GameVectorEnv], object], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        call(vector)
    vector.step([0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_envs": -1}, "num_envs is -1; use a number from 1"),
        ({"num_envs": "2"}, "num_envs is '2'; use a whole number"),
        ({"num_envs": 70_000}, "num_envs is 70000; use a number from 1 to 65536"),
        ({"threads": -1}, "threads is -1; use a number from 0"),
        ({"threads": 10**9}, "threads is 1000000000; use a number from 0"),
        ({"autoreset_mode": "Never"}, "autoreset_mode is 'Never'; use one of NextStep, SameStep, Disabled"),
    ],
)
def test_wrong_options_of_a_vector_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        framewire.envs.make_vec(scenario="memory", **{"num_envs": 2, **options})


@pytest.mark.parametrize(
    "call",
    [
        lambda v, _: v.reset(seed=10**5000),
        lambda v, deep: v.reset(seed=[deep, 1]),
        lambda v, _: v.step([10**5000, 0]),
        lambda v, deep: v.step(deep),
        lambda v, deep: v.send(deep, deep),
        lambda v, deep: v.recv(deep),
        lambda v, deep: v.load_states([deep, None]),
        lambda _, deep: framewire.envs.make_vec(scenario="memory", num_envs=1, autoreset_mode=deep),
        lambda _, deep: framewire.envs.make_vec(scenario="memory", num_envs=1, render_mode=deep),
        lambda *_: framewire.envs.make_vec(scenario="memory", num_envs=10**5000),
        lambda *_: framewire.envs.make_vec(scenario="memory", num_envs=1, batch_size=10**5000),
    ],
)
def test_values_that_cannot_be_shown_are_refused(
    vector: GameVectorEnv, call: Callable[[GameVectorEnv, Any], object]
) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidRequest):
        call(vector, deep)
    vector.step([0, 1])


def test_a_damaged_state_is_refused(vector: GameVectorEnv) -> None:
    before = vector.state_hashes()
    state = vector.save_states()[0]
    assert state is not None
    for damaged, message in ((b"xx", "not the state of an environment"), (state[:-9], "damaged")):
        with pytest.raises(InvalidData, match=message):
            vector.load_states([damaged, None])
    with pytest.raises(InvalidRequest, match=r"states\[1\] is 'a text'; use the bytes of the file"):
        vector.load_states([state, "a text"])  # type: ignore[list-item]
    assert vector.state_hashes() == before


def test_calls_on_closed_objects_fail(vector: GameVectorEnv) -> None:
    states = vector.save_states()
    vector.close()
    single = framewire.envs.make(scenario="memory", render_mode="rgb_array")
    single.reset(seed=1)
    single.close()
    core = framewire.load(framewire.envs.demo_game().parent / "framewire-demo.gba")
    core.close()
    calls: list[Callable[[], object]] = [
        vector.reset,
        lambda: vector.step([0, 0]),
        lambda: vector.send([0, 0]),
        vector.recv,
        vector.state_hashes,
        lambda: vector.load_states(states),
        single.reset,
        lambda: single.step(0),
        single.render,
        single.save_state,
        core.frame,
        core.advance,
        core.screen,
        core.save_state,
    ]
    for call in calls:
        with pytest.raises(InvalidRequest, match="closed"):
            call()
    # Closing them a second time does nothing.
    vector.close()
    single.close()
    core.close()
