"""The data files that are part of the package."""

from pathlib import Path

DATA = Path(__file__).resolve().parent / "data"
"""The folder of the package's data files, such as the demo game's ROM and game file."""


def demo_game() -> Path:
    """The game file of the demo game."""
    return DATA / "demo.toml"
