"""Learns to play the demo game from memory, with RLlib's PPO.

    pip install './python[rllib]'        # in a checkout of Framewire
    python python/examples/rllib_ppo.py [--minutes 8] [--json curve.json] [--plot curve.svg]

`--json` and `--plot` write the learning curve to files.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path

import gymnasium
import ray
from ppo import plot
from ray.rllib.algorithms.ppo import PPOConfig

from framewire.ray.rllib import register

# RLlib averages over the episodes that ended in the present iteration, but over at most the last 100 of them.
UNIT = "mean score of the episodes that ended in an iteration"


def main() -> None:
    """Trains, and prints the mean score of the episodes that ended in each iteration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--runners", type=int, default=0, help="environment runners; 0 means only this process")
    parser.add_argument("--envs", type=int, default=16, help="environments for each runner")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path, help="the SVG file for a plot of the curve")
    options = parser.parse_args()

    register("demo-memory", scenario="memory")
    config = (
        PPOConfig()
        .environment("demo-memory", env_config={"threads": 1})
        .env_runners(
            num_env_runners=options.runners,
            num_envs_per_env_runner=options.envs,
            gym_env_vectorize_mode="vector_entry_point",
            rollout_fragment_length=256,
        )
        .training(
            train_batch_size_per_learner=256 * options.envs * max(options.runners, 1),
            minibatch_size=512,
            num_epochs=6,
            lr=5e-4,
            gamma=0.99,
            lambda_=0.95,
            entropy_coeff=0.01,
            grad_clip=0.5,
        )
        .reporting(metrics_num_episodes_for_smoothing=100)
        .debugging(seed=1)
    )
    algorithm = config.build_algo()
    curve = []
    begin = time.monotonic()
    while (seconds := time.monotonic() - begin) < options.minutes * 60:
        result = algorithm.train()
        runners = result["env_runners"]
        # Episodes are long, so in some iterations none ends, and there is no score.
        score = float(runners.get("episode_return_mean", math.nan))
        if math.isnan(score):
            continue
        curve.append(
            {
                "seconds": round(seconds),
                "steps": int(runners["num_env_steps_sampled_lifetime"]),
                "score": round(score, 2),
                "length": round(float(runners["episode_len_mean"]), 1),
            }
        )
        print(curve[-1], flush=True)
    algorithm.stop()
    if options.json is not None:
        figures = {
            "command": "python examples/rllib_ppo.py " + " ".join(sys.argv[1:]),
            "ray": ray.__version__,
            "gymnasium": gymnasium.__version__,
            "scenario": "memory",
            "unit": UNIT,
            "curve": curve,
        }
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.plot is not None and curve:
        plot(curve, options.plot, UNIT)


if __name__ == "__main__":
    main()
