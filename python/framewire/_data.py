"""The files of the package."""

from pathlib import Path

DATA = Path(__file__).resolve().parent / "data"
"""Their folder, which has the demo game."""


def demo_game() -> Path:
    """The game file of the demo game."""
    return DATA / "demo.toml"
