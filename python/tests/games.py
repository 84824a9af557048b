"""Game files for tests."""

from __future__ import annotations

from pathlib import Path

import framewire.envs


def demo_scenario(folder: Path, name: str, settings: str) -> Path:
    """Writes a game file with one scenario of the demo game.

    Args:
        folder: The folder for the file.
        name: The name of the scenario and of the file.
        settings: The keys of the scenario, in TOML.
    """
    data = framewire.envs.demo_game().parent
    path = folder / f"{name}.toml"
    path.write_text(
        f"""
[game]
name = "Demo: {name}"
rom = "{data / "framewire-demo.gba"}"
symbols = ["{data / "memory-map.toml"}"]

[scenario.{name}]
{settings.strip()}
"""
    )
    return path
