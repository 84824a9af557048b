"""Learns to play the demo game in an mGBA window, with RLlib's PPO. You can watch it learn.

Load framewire.lua and the demo game into mGBA, start `framewire serve --symbols rom/memory-map.toml`, and run

    pip install './python[client,rllib]'        # in a checkout of Framewire
    python python/examples/rllib_window.py [--url http://127.0.0.1:5000] [--minutes 30]

The game runs in lockstep: each step of the environment runs four frames,
and the game stands still while RLlib learns. At most 15 steps run per second, which is the speed of the console.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

import framewire
from framewire.errors import ConnectionLost

ACTIONS = (".", "Left", "Right", "A")
# The frames of a step.
FRAMES = 4

# The symbols that are observed, and the number by which each is divided, as in the scenario `memory` of the demo game.
OBSERVED = {
    "ball_x": 3840,
    "ball_y": 2560,
    "ball_dx": 64,
    "ball_dy": 64,
    "paddle_x": 3840,
    "paddle_width": 512,
    "bricks_left": 70,
}


class WindowEnv(gymnasium.Env[npt.NDArray[np.float32], int]):
    """The demo game on a server, with the actions, observations and rewards of the scenario `memory`.

    Args:
        config: `url` is the address of the server, as for `framewire.connect`.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (len(OBSERVED),), np.float32)
        self.action_space = gymnasium.spaces.Discrete(len(ACTIONS))
        self._emulator = framewire.connect(config.get("url"))
        self._lockstep()
        self._emulator.reset()
        # Wait until the game has drawn its bricks.
        self._emulator.advance(20)
        self._start = self._emulator.save_state()
        self._score = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begins an episode from the saved state, after a random number of frames from 1 to 30."""
        super().reset(seed=seed, options=options)
        try:
            self._emulator.load_state(self._start)
        except ConnectionLost:
            # The connection broke while RLlib was learning, and lockstep ended with it.
            self._lockstep()
            self._emulator.load_state(self._start)
        self._emulator.advance(1 + int(self.np_random.integers(30)))
        observation, self._score, _ = self._observe()
        return observation, {}

    def step(self, action: int) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Holds the keys of an action for four frames."""
        keys = ACTIONS[action]
        was_lost = False
        try:
            if keys != ".":
                self._emulator.press(keys, FRAMES)
            self._emulator.advance(FRAMES)
        except ConnectionLost:
            # The game has run on without this environment, so the episode ends here, without a reward.
            self._lockstep()
            was_lost = True
        observation, score, lives = self._observe()
        reward = 0.0 if was_lost else float(score - self._score)
        self._score = score
        return observation, reward, lives == 0, was_lost, {"score": score, "lives": lives}

    def close(self) -> None:
        """Lets the game run again."""
        self._emulator.resume()
        self._emulator.close()

    def _lockstep(self) -> None:
        # While RLlib learns, nothing sends requests. Lockstep ends after this many milliseconds without a request.
        self._emulator.lockstep(60_000)

    def _observe(self) -> tuple[npt.NDArray[np.float32], int, int]:
        """The observation, the score and the lives, all from the same frame."""
        *values, score, lives = self._emulator.read_many([*OBSERVED, "score", "lives"])
        return np.array(values, np.float32) / np.array(list(OBSERVED.values()), np.float32), score, lives


def main() -> None:
    """Trains, and prints the mean return after each iteration."""
    from ray.rllib.algorithms.ppo import PPOConfig

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="the server; by default the one on this machine")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--steps", type=int, default=512, help="steps for each iteration")
    options = parser.parse_args()
    config = (
        PPOConfig()
        .environment(WindowEnv, env_config={"url": options.url})
        # There is one window, so there is one environment, in this process.
        .env_runners(num_env_runners=0)
        .training(train_batch_size_per_learner=options.steps, minibatch_size=128, num_epochs=6, lr=5e-4)
    )
    algorithm = config.build_algo()
    end = time.monotonic() + options.minutes * 60
    while time.monotonic() < end:
        runners = algorithm.train()["env_runners"]
        print(runners["num_env_steps_sampled_lifetime"], runners.get("episode_return_mean"), flush=True)
    algorithm.stop()


if __name__ == "__main__":
    main()
