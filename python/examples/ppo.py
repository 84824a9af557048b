"""Learns to play the demo game from memory: PPO in one file, with PyTorch on the CPU.

    pip install './python[gym]' torch        # in a checkout of Framewire
    python python/examples/ppo.py [--minutes 10] [--json curve.json] [--plot curve.svg]

It prints the mean score of the last 100 episodes. At the end, it compares the agent with random actions and with a rule
that follows the ball. In this comparison, an episode ends with the third lost ball, or after four minutes of game time.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import framewire.envs
from framewire.envs import GameVectorEnv

TRACE = 0.95
"""The parameter lambda of generalized advantage estimation."""
CLIP = 0.2
"""How much an update may change the probability of an action, as a fraction of that probability."""
ENTROPY = 0.01
"""The weight of the entropy in the loss."""


@dataclass(frozen=True)
class Settings:
    """The parameters of the training.

    Attributes:
        steps: Steps of each environment from one update to the next.
        epochs: How many times an update uses each step.
        parts: The number of minibatches into which an update divides the steps.
        rates: The learning rate at the beginning and at the end.
        discount: The factor by which a reward is multiplied for each step that it lies in the future.
        scale: The factor that rewards are multiplied by, so that values are near 1.
    """

    steps: int = 128
    epochs: int = 4
    parts: int = 4
    rates: tuple[float, float] = (1e-3, 1e-3)
    discount: float = 0.99
    scale: float = 1.0


LONGEST = 3600
"""The largest number of steps in an episode of the comparison. A step is four frames, so this is four minutes of game
time."""


def observed(observations: Any) -> torch.Tensor:
    """Converts observations to a tensor. Values from 0 to 1 become values from -1 to 1."""
    return torch.from_numpy(np.asarray(observations, np.float32)) * 2 - 1


class Agent(nn.Module):
    """Two small networks: the actor chooses actions, and the critic predicts the sum of future rewards."""

    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__()

        def network(outputs: int, gain: float) -> nn.Sequential:
            last = nn.Linear(64, outputs)
            nn.init.orthogonal_(last.weight, gain)
            return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), last)

        self.actor = network(actions, 0.01)
        self.critic = network(1, 1.0)

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The logits of the actions, and the expected sum of future rewards."""
        return self.actor(observations), self.critic(observations).squeeze(-1)


def play(policy: Callable[[Any], np.ndarray], vector: GameVectorEnv | None = None, most: int = LONGEST) -> list[float]:
    """Plays with a policy. Returns the score of each environment's first episode, at its end or after `most` steps.

    Closes the vector. Without one, plays the scenario `memory` in 32 environments.
    """
    vector = vector or framewire.envs.make_vec(scenario="memory", num_envs=32)
    observations, info = vector.reset(seed=10_000)
    scores = np.full(vector.num_envs, np.nan)
    for _ in range(most):
        observations, _, terminated, truncated, info = vector.step(policy(observations))
        ended = (terminated | truncated) & np.isnan(scores)
        scores[ended] = info["score"][ended]
        if not np.isnan(scores).any():
            break
    scores = np.where(np.isnan(scores), info["score"], scores)
    vector.close()
    return [float(score) for score in scores]


def follow(observations: Any) -> np.ndarray:
    """A policy that keeps the paddle under the ball. It launches a ball that waits on the paddle."""
    # The scenario `memory` observes `ball_x` first, `ball_dy` fourth and `paddle_x` fifth. Its actions 1, 2 and 3 are
    # Left, Right and A.
    ball, paddle = observations[:, 0], observations[:, 4]
    return np.where(observations[:, 3] == 0, 3, np.where(ball > paddle + 0.01, 2, np.where(ball < paddle - 0.01, 1, 0)))


def learn(
    agent: nn.Module,
    vector: GameVectorEnv,
    converted: Callable[[Any], torch.Tensor],
    minutes: float,
    seed: int,
    settings: Settings,
) -> list[dict[str, float]]:
    """Trains an agent, and returns its learning curve. Closes the vector.

    Args:
        agent: The network that learns.
        vector: The environments.
        converted: Converts observations to a tensor.
        minutes: The duration of the training.
        seed: The seed of the first reset.
        settings: The parameters.
    """
    optimizer = torch.optim.Adam(agent.parameters(), lr=settings.rates[0], eps=1e-5)
    scores: deque[float] = deque(maxlen=100)
    curve: list[dict[str, float]] = []
    begun, steps = time.perf_counter(), 0

    envs, length = vector.num_envs, settings.steps
    now = converted(vector.reset(seed=seed)[0])
    seen = torch.zeros(length, *now.shape, dtype=now.dtype)
    taken, log_probs, values, rewards, ends, counts = (torch.zeros(length, envs) for _ in range(6))
    over = torch.zeros(envs)
    while (seconds := time.perf_counter() - begun) < 60 * minutes:
        for group in optimizer.param_groups:
            first, last = settings.rates
            group["lr"] = first + (last - first) * seconds / (60 * minutes)
        for step in range(length):
            with torch.no_grad():
                logits, values[step] = agent(now)
                distribution = torch.distributions.Categorical(logits=logits)
                action = distribution.sample()
                seen[step], taken[step] = now, action
                log_probs[step] = distribution.log_prob(action)
            # The step after the end of an episode only resets the environment, so the agent does not learn from it.
            counts[step] = 1 - over
            observations, reward, terminated, truncated, info = vector.step(action.numpy())
            over = torch.from_numpy((terminated | truncated).astype(np.float32))
            rewards[step], ends[step] = torch.from_numpy(reward.astype(np.float32)) * settings.scale, over
            scores.extend(info["score"][terminated | truncated])
            now = converted(observations)
            steps += envs

        with torch.no_grad():
            following, advantage = agent(now)[1], torch.zeros(envs)
            advantages = torch.zeros(length, envs)
            for step in reversed(range(length)):
                goes_on = 1 - ends[step]
                error = rewards[step] + settings.discount * following * goes_on - values[step]
                advantage = error + settings.discount * TRACE * goes_on * advantage
                advantages[step], following = advantage, values[step]
            returns = advantages + values

        use = counts.flatten() > 0
        batch = [part.flatten(0, 1)[use] for part in (seen, taken, log_probs, advantages, returns)]
        for _ in range(settings.epochs):
            for part in torch.randperm(len(batch[0])).chunk(settings.parts):
                observation, action, before, gain, target = (each[part] for each in batch)
                logits, value = agent(observation)
                distribution = torch.distributions.Categorical(logits=logits)
                ratio = (distribution.log_prob(action) - before).exp()
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                policy_loss = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
                value_loss = (value - target).pow(2).mean()
                loss = policy_loss + 0.5 * value_loss - ENTROPY * distribution.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()

        seconds = time.perf_counter() - begun
        if scores and (not curve or seconds - curve[-1]["seconds"] >= 5):
            point = {"seconds": round(seconds, 1), "steps": steps, "score": round(float(np.mean(scores)), 1)}
            curve.append(point)
            print(f"{seconds:6.0f} s  {steps:12,} steps  score {point['score']:8.1f}", flush=True)
    vector.close()
    return curve


def plot(curve: list[dict[str, float]], path: Path, unit: str = "mean score of the last 100 episodes") -> None:
    """Draws the curve as an SVG file: the mean score over the steps. `unit` describes the scores."""
    width, height, left, bottom = 640, 320, 60, 40
    # If all scores are 0, the axis ends at 1.
    most_steps, most_score = curve[-1]["steps"], max(point["score"] for point in curve) or 1.0

    def at(steps: float, score: float) -> str:
        x = left + (width - left - 20) * steps / most_steps
        y = height - bottom - (height - bottom - 20) * score / most_score
        return f"{x:.1f},{y:.1f}"

    line = " ".join(at(point["steps"], point["score"]) for point in curve)
    axes = f"{at(0, most_score)} {at(0, 0)} {at(most_steps, 0)}"
    path.write_text(
        f'''<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">
<rect width="{width}" height="{height}" fill="#fff"/>
<polyline points="{axes}" fill="none" stroke="#666"/>
<polyline points="{line}" fill="none" stroke="#06c" stroke-width="2"/>
<text x="{left - 8}" y="25" text-anchor="end">{most_score:.0f}</text>
<text x="{left - 8}" y="{height - bottom}" text-anchor="end">0</text>
<text x="{width - 20}" y="{height - bottom + 18}" text-anchor="end">{most_steps:,.0f} steps</text>
<text x="{left}" y="{height - 8}">{unit}</text>
</svg>
'''
    )


def main() -> None:
    """Trains an agent, and compares it with other policies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch; one is enough for small networks")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path, help="the SVG file for a plot of the curve")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    vector = framewire.envs.make_vec(scenario="memory", num_envs=64)
    agent = Agent(vector.single_observation_space.shape[0], int(vector.single_action_space.n))
    curve = learn(agent, vector, observed, options.minutes, options.seed, Settings(scale=0.02))

    def learned(observations: Any) -> np.ndarray:
        with torch.no_grad():
            return agent.actor(observed(observations)).argmax(-1).numpy()

    rng = np.random.default_rng(options.seed)
    final = {
        "random": float(np.mean(play(lambda observations: rng.integers(0, 4, len(observations))))),
        "rule": float(np.mean(play(follow))),
        "learned": float(np.mean(play(learned))),
    }
    for name, score in final.items():
        print(f"{name:8} {score:10.1f}")
    if options.plot and curve:
        plot(curve, options.plot)
    if options.json:
        command = f"python python/examples/ppo.py --minutes {options.minutes:g} --seed {options.seed}"
        content = {"command": command, "torch": torch.__version__, "final": final, "curve": curve}
        options.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
