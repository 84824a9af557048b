"""The files of the package."""

from pathlib import Path

DATA = Path(__file__).resolve().parent / "data"
"""The folder of the files, such as the demo game."""


def demo_game() -> Path:
    """The game file of the demo game."""
    return DATA / "demo.toml"
