"""Checks of our environments with other packages: Gymnasium, Stable-Baselines3 and RLlib.

`make test` runs Gymnasium's checks. The others need PyTorch: `make test-python-checks` runs all, with Gymnasium 1.2.2.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import vector as wrappers

import framewire.envs
from framewire.envs import GameEnv, GameVectorEnv
from tests.test_envs import same

EXAMPLES = Path(__file__).parents[1] / "examples"

NAMES = ["framewire/Demo-v0", "framewire/DemoMemory-v0"]


def other(name: str) -> Any:
    """Imports a module that only `make test-python-checks` installs. Without the module, the test is skipped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason="make test-python-checks installs it")


def wrapped_in(*outer: Callable[[VectorEnv[Any, Any, Any]], Any]) -> Callable[[VectorEnv[Any, Any, Any]], Any]:
    def wrap(vector: VectorEnv[Any, Any, Any]) -> Any:
        for each in outer:
            vector = each(vector)
        return vector

    return wrap


WRAPPERS: dict[str, Callable[[VectorEnv[Any, Any, Any]], Any]] = {
    "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
    "NormalizeObservation": wrappers.NormalizeObservation,
    "NormalizeReward": wrappers.NormalizeReward,
    "DtypeObservation": lambda vector: wrappers.DtypeObservation(vector, np.float64),
    "FlattenObservation": wrappers.FlattenObservation,
    "ClipReward": lambda vector: wrappers.ClipReward(vector, -1, 1),
    "several": wrapped_in(wrappers.RecordEpisodeStatistics, wrappers.NormalizeReward, wrappers.NormalizeObservation),
}


@pytest.fixture
def scored(short: Path) -> Path:
    """Like `short`, with rewards."""
    short.write_text(
        short.read_text().replace("frame_skip = 2", 'frame_skip = 2\nreward = "delta(u32[frame]) + delta(ball_x) / 7.0"')
    )
    return short


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrappers_have_the_same_results_with_our_vector_and_gymnasiums(scored: Path, wrapper: str) -> None:
    ours = WRAPPERS[wrapper](GameVectorEnv(scored, num_envs=3))
    theirs = WRAPPERS[wrapper](SyncVectorEnv([lambda: GameEnv(scored)] * 3, autoreset_mode=AutoresetMode.NEXT_STEP))
    ours.action_space.seed(3)
    assert ours.observation_space == theirs.observation_space
    assert same(ours.reset(seed=2)[0], theirs.reset(seed=2)[0])
    rewards = 0.0
    for _ in range(25):
        actions = ours.action_space.sample()
        our, their = ours.step(actions), theirs.step(actions)
        assert all(same(mine, its) for mine, its in zip(our[:4], their[:4], strict=True))
        rewards += float(np.abs(our[1]).sum())
        if "RecordEpisodeStatistics" in wrapper and our[3].any():
            assert same(our[4]["episode"]["r"], their[4]["episode"]["r"])
            assert same(our[4]["episode"]["l"], their[4]["episode"]["l"])
    assert rewards > 0
    ours.close()
    theirs.close()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_results_of_a_vector_are_in_its_spaces(scored: Path, mode: AutoresetMode) -> None:
    vector = GameVectorEnv(scored, num_envs=4, autoreset_mode=mode)
    vector.action_space.seed(1)
    observations, info = vector.reset(seed=[9, None, 3, 3])
    assert isinstance(info, dict)
    assert same(observations[2], observations[3])
    for _ in range(23):
        assert observations in vector.observation_space
        assert observations.dtype == vector.observation_space.dtype
        assert all(each in vector.single_observation_space for each in observations)
        actions = vector.action_space.sample()
        assert actions in vector.action_space
        observations, rewards, terminated, truncated, info = vector.step(actions)
        assert rewards.shape == terminated.shape == truncated.shape == (4,)
        assert rewards.dtype == np.float64
        assert terminated.dtype == truncated.dtype == np.bool_
        ended = terminated | truncated
        if mode is AutoresetMode.DISABLED and ended.any():
            observations, info = vector.reset(options={"reset_mask": ended})
    vector.close()
    vector.close()  # closing it a second time does nothing


@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_vector_runs_our_environments_in_processes(name: str) -> None:
    # Processes must not be forked, because this process has threads.
    spawn = {"context": "spawn"}
    other_process = gym.make_vec(f"framewire.envs:{name}", num_envs=2, vectorization_mode="async", vector_kwargs=spawn)
    here = gym.make_vec(f"framewire.envs:{name}", num_envs=2, vectorization_mode="vector_entry_point")
    assert same(other_process.reset(seed=4)[0], here.reset(seed=4)[0])
    for step in range(10):
        assert same(other_process.step(np.array([step % 4, 1]))[:4], here.step(np.array([step % 4, 1]))[:4])
    other_process.close()
    here.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", NAMES)
def test_stable_baselines3_accepts_the_environments(name: str) -> None:
    other("stable_baselines3")
    checker = importlib.import_module("stable_baselines3.common.env_checker")
    env = gym.make(name, render_mode="rgb_array")
    checker.check_env(env, warn=True)
    env.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_stable_baselines3_learns_from_our_environments() -> None:
    baselines = other("stable_baselines3")
    common = importlib.import_module("stable_baselines3.common.vec_env")
    envs = common.DummyVecEnv([lambda: framewire.envs.make(scenario="memory")] * 2)
    model = baselines.PPO("MlpPolicy", envs, n_steps=32, batch_size=32, n_epochs=1, seed=1, device="cpu")
    before = [parameter.detach().clone() for parameter in model.policy.parameters()]
    model.learn(128)
    assert model.num_timesteps == 128
    assert any((now != then).any() for now, then in zip(model.policy.parameters(), before, strict=True))
    envs.close()


def test_the_agent_that_sees_pictures_plays_better_than_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    other("torch")
    monkeypatch.syspath_prepend(EXAMPLES)
    ppo, pictures = importlib.import_module("ppo"), importlib.import_module("ppo_pictures")
    vector = pictures.make(8)
    agent = pictures.Agent(vector.single_observation_space.shape, int(vector.single_action_space.n))
    vector.close()
    pictures.load(agent, EXAMPLES / "pictures.npz")
    rng = np.random.default_rng(1)
    learned = ppo.play(lambda observations: pictures.chosen(agent, observations), pictures.make(8), most=900)
    random = ppo.play(lambda observations: rng.integers(0, 3, len(observations)), pictures.make(8), most=900)
    assert np.mean(learned) > 2 * np.mean(random)


@pytest.mark.parametrize("name", ["policy.npz", "policy", "policy.weights"])
def test_weights_are_written_to_exactly_the_given_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    torch = other("torch")
    monkeypatch.syspath_prepend(EXAMPLES)
    pictures = importlib.import_module("ppo_pictures")
    agent, again = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    pictures.save(agent, tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    pictures.load(again, tmp_path / name)
    for now, then in zip(again.parameters(), agent.parameters(), strict=True):
        assert torch.equal(now, then.half().float())


def test_a_curve_whose_best_score_is_zero_is_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other("torch")
    monkeypatch.syspath_prepend(EXAMPLES)
    ppo = importlib.import_module("ppo")
    ppo.plot([{"steps": 64, "score": 0.0}, {"steps": 128, "score": 0.0}], tmp_path / "curve.svg")
    assert '<polyline points="340.0,280.0 620.0,280.0"' in (tmp_path / "curve.svg").read_text()


@pytest.mark.filterwarnings("ignore")
def test_a_training_without_a_complete_episode_draws_no_curve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other("torch")
    other("tree")
    ray = importlib.import_module("ray")
    monkeypatch.syspath_prepend(EXAMPLES)
    curve, picture = tmp_path / "curve.json", tmp_path / "curve.svg"
    arguments = ["--minutes", "0", "--envs", "2", "--json", str(curve), "--plot", str(picture)]
    monkeypatch.setattr("sys.argv", ["rllib_ppo.py", *arguments])
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        importlib.import_module("rllib_ppo").main()
    finally:
        ray.shutdown()
    assert curve.exists()
    assert not picture.exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::ResourceWarning")
def test_rllib_accepts_the_environments() -> None:
    other("torch")
    other("tree")
    multi = importlib.import_module("ray.rllib.env.multi_agent_env")
    checks = importlib.import_module("ray.rllib.utils.pre_checks.env")
    env = multi.make_multi_agent(lambda _: framewire.envs.make(scenario="memory"))({"num_agents": 2})
    checks.check_multiagent_environments(env)


@pytest.mark.filterwarnings("ignore")
def test_rllib_learns_from_a_vector() -> None:
    other("torch")
    other("tree")
    ray = importlib.import_module("ray")
    ppo = importlib.import_module("ray.rllib.algorithms.ppo")
    register = importlib.import_module("framewire.ray.rllib").register
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        register("checked", scenario="memory")
        algorithm = (
            ppo.PPOConfig()
            .environment("checked", env_config={"threads": 1}, disable_env_checking=False)
            .env_runners(
                num_env_runners=0,
                num_envs_per_env_runner=2,
                gym_env_vectorize_mode="vector_entry_point",
                rollout_fragment_length=64,
            )
            .training(train_batch_size_per_learner=128, minibatch_size=64, num_epochs=1)
            .debugging(seed=1)
            .build_algo()
        )
        result = algorithm.train()
        assert result["env_runners"]["num_env_steps_sampled"] >= 128
        algorithm.stop()
    finally:
        ray.shutdown()
