"""Other parts of the package: the demo, the pytest fixtures, the schema of game files, and figures in its docs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from framewire import demo
from tests.servers import DEMO, ROOT


def test_the_demo_plays_and_saves_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "demo.png"
    assert demo.main(["--frames", "900", "--output", str(picture)]) == 0
    output = capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in output
    score = re.search(r"score (\d+), level", output)
    assert score is not None, output
    assert int(score[1]) > 0
    assert demo.main(["--frames", "1", "--output", str(tmp_path / "missing" / "demo.png")]) == 1
    assert "missing" in capsys.readouterr().err


def test_golden_pictures_are_compared_and_updated(tmp_path: Path) -> None:
    (tmp_path / "test_game.py").write_text(
        f"""
def test_title(framewire_load, framewire_golden):
    game = framewire_load({str(DEMO)!r})
    game.advance(30)
    framewire_golden(game, "title")
"""
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}

    def run(*arguments: str) -> tuple[int, str]:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "framewire.pytest_plugin",
            "-p",
            "no:cacheprovider",
            *arguments,
        ]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout

    golden = tmp_path / "golden" / "title.png"
    code, output = run()
    assert code == 1
    assert "there is no golden picture" in output
    assert run("--framewire-update")[0] == 0
    assert golden.exists()
    assert run()[0] == 0

    test = tmp_path / "test_game.py"
    test.write_text(test.read_text().replace("advance(30)", "play('A:5 .:100', wait=True); game.advance(200)"))
    code, output = run()
    assert code == 1
    assert "pixels differ" in output
    assert (tmp_path / "golden" / "title.actual.png").exists()
    assert run("--framewire-update")[0] == 0
    assert not (tmp_path / "golden" / "title.actual.png").exists()


@pytest.mark.parametrize("name", ["learning", "learning-pictures"])
def test_the_scores_are_those_of_the_last_training(name: str) -> None:
    page = (ROOT / "docs" / "environments.md").read_text()
    final = json.loads((ROOT / "docs" / "performance" / f"{name}.json").read_text())["final"]
    for score in final.values():
        assert f"| {score:,.0f} |" in page


def test_the_animation_of_the_agent_is_small_and_shown() -> None:
    page = (ROOT / "docs" / "environments.md").read_text()
    animation = ROOT / "docs" / "images" / "agent.gif"
    assert "](images/agent.gif)" in page
    assert animation.stat().st_size < 300_000
    with Image.open(animation) as image:
        assert image.size == (240, 160)
        assert getattr(image, "n_frames", 1) > 100


def test_memory_did_not_grow_in_the_last_long_run() -> None:
    page = (ROOT / "docs" / "environments.md").read_text()
    run = json.loads((ROOT / "docs" / "performance" / "environments-memory.json").read_text())
    memory = run["kilobytes_after_each_hour"]
    assert len(memory) == 25
    assert run["growth_kilobytes_after_a_quarter"] == memory[-1] - memory[6] <= 1024
    assert f"{memory[-1] / 1000:.0f} MB" in page
    assert f"{run['episodes']:,} episodes" in page


def test_the_figures_of_environments_are_those_of_the_last_measurement() -> None:
    page = (ROOT / "docs" / "environments.md").read_text()
    report = json.loads((ROOT / "docs" / "performance" / "environments.json").read_text())
    for comparison, ratio in report["ratios"].items():
        ours, other = (report["per_second"][name] for name in comparison.split(" / "))
        row = next(line for line in page.splitlines() if f"| {ours:,} |" in line and f": {other:,} |" in line)
        assert row.endswith(f"| {ratio:.2f} |")


def keys_of(schema: dict[str, Any]) -> set[str]:
    """All keys that a schema accepts, at any depth."""
    found = set(schema.get("properties", {}))
    children = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("oneOf", [])]
    return found.union(*(keys_of(child) for child in children))


def test_the_schema_has_the_documented_keys() -> None:
    schema = json.loads((ROOT / "docs" / "game-file.schema.json").read_text())
    page = (ROOT / "docs" / "game-file.md").read_text()
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert keys_of(schema) == documented | {"game", "scenario", "screen", "memory", "inputs", "state"}
    for definition in [schema, *schema["$defs"].values()]:
        if "properties" in definition:
            assert definition["additionalProperties"] is False
