"""Learns to play the demo game from pictures: the PPO of ppo.py with a small convolutional network.

    pip install './python[gym]' torch pillow        # in a checkout of Framewire
    python python/examples/ppo_pictures.py [--minutes 20] [--json curve.json] [--plot curve.svg] [--policy policy.npz]
    python python/examples/ppo_pictures.py --play policy.npz [--gif agent.gif]

Without `--play`, it trains an agent on the processor, and compares it with random actions and with a rule that follows
the ball. `--policy` names the file to which it writes the agent's weights. With `--play`, it plays with these weights
and prints the same comparison. With `--gif`, it also writes the first seconds of an episode as an animation.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import ppo
import torch
from torch import nn

import framewire.envs
from framewire.envs import GameVectorEnv

GAME = Path(__file__).parent / "pictures.toml"
SETTINGS = ppo.Settings(steps=64, epochs=6, parts=8, rates=(7e-4, 1e-4), discount=0.9)


class Agent(nn.Module):
    """A network with shared layers for the picture, and two outputs: the action, and the expected sum of rewards."""

    def __init__(self, shape: tuple[int, ...], actions: int) -> None:
        super().__init__()
        self.seen = nn.Sequential(
            nn.Conv2d(shape[0], 16, 4, stride=4),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3),
            nn.ReLU(),
            nn.Flatten(),
        )
        size = self.seen(torch.zeros(1, *shape)).shape[1]
        self.body = nn.Sequential(nn.Linear(size, 64), nn.ReLU())
        self.actor, self.critic = nn.Linear(64, actions), nn.Linear(64, 1)
        nn.init.orthogonal_(self.actor.weight, 0.01)

    def forward(self, pictures: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The logits of the actions, and the expected sum of future rewards."""
        earlier, now = (pictures.float() / 255).split(1, dim=1)
        # The difference between two pictures shows what moves: the ball and the paddle.
        body = self.body(self.seen(torch.cat([now, 2 * (now - earlier)], dim=1)))
        return self.actor(body), self.critic(body).squeeze(-1)


def make(num_envs: int, **options: Any) -> GameVectorEnv:
    """Creates environments whose observations are pictures."""
    rom = framewire.envs.demo_game().parent / "framewire-demo.gba"
    return framewire.envs.make_vec(GAME, "pictures", rom=rom, num_envs=num_envs, **options)


def save(agent: Agent, path: Path) -> None:
    """Writes the weights, with 16 bits each."""
    weights = {name: value.numpy().astype(np.float16) for name, value in agent.state_dict().items()}
    # NumPy adds `.npz` to a path that does not have it, but not to an open file.
    with path.open("wb") as file:
        np.savez_compressed(file, **weights)


def load(agent: Agent, path: Path) -> None:
    """Reads the weights."""
    with np.load(path) as weights:
        agent.load_state_dict({name: torch.from_numpy(weights[name].astype(np.float32)) for name in weights})


def draw(agent: Agent, path: Path, seconds: float) -> None:
    """Plays the first seconds of an episode, and writes them as an animation of 15 pictures per second in 64 colours."""
    from PIL import Image

    vector = make(1, render_mode="rgb_array")
    observations, _ = vector.reset(seed=1)
    pictures = []
    for _ in range(round(15 * seconds)):
        observations = vector.step(chosen(agent, observations))[0]
        shown = vector.render()
        assert shown is not None
        pictures.append(Image.fromarray(shown[0]))
    vector.close()
    colours = pictures[len(pictures) // 2].quantize(64)
    first, *others = [picture.quantize(palette=colours, dither=Image.Dither.NONE) for picture in pictures]
    first.save(path, save_all=True, append_images=others, duration=1000 / 15, loop=0, optimize=True)
    print(f"{path}: {path.stat().st_size:,} bytes")


def chosen(agent: Agent, observations: Any) -> np.ndarray:
    """The most probable action in each environment."""
    with torch.no_grad():
        return agent(torch.from_numpy(observations))[0].argmax(-1).numpy()


def main() -> None:
    """Trains or loads an agent, and compares it with other policies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path, help="the SVG file for a plot of the curve")
    parser.add_argument("--policy", type=Path, help="the NPZ file for the weights of the trained agent")
    parser.add_argument("--play", type=Path, help="play with these weights instead of learning")
    parser.add_argument("--gif", type=Path, help="the file for the animation")
    parser.add_argument("--seconds", type=float, default=12.0, help="the length of the animation")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    vector = make(32)
    agent = Agent(vector.single_observation_space.shape, int(vector.single_action_space.n))
    curve = []
    if options.play:
        vector.close()
        load(agent, options.play)
    else:
        curve = ppo.learn(agent, vector, torch.from_numpy, options.minutes, options.seed, SETTINGS)
        if options.policy:
            save(agent, options.policy)
            # The weights in the file are rounded. The comparison below uses them.
            load(agent, options.policy)

    rng = np.random.default_rng(options.seed)
    final = {
        "random": float(np.mean(ppo.play(lambda observations: rng.integers(0, 3, len(observations)), make(32)))),
        "rule": float(np.mean(ppo.play(ppo.follow))),
        "learned": float(np.mean(ppo.play(lambda observations: chosen(agent, observations), make(32)))),
    }
    for name, score in final.items():
        print(f"{name:8} {score:10.1f}")
    if options.gif:
        draw(agent, options.gif, options.seconds)
    if options.plot and curve:
        ppo.plot(curve, options.plot)
    if options.json:
        command = f"python python/examples/ppo_pictures.py --minutes {options.minutes:g} --seed {options.seed}"
        content = {"command": command, "torch": torch.__version__, "final": final, "curve": curve}
        options.json.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
