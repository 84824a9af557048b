"""Checks the documentation: its examples run, and its lists and figures are complete and up to date.

The examples in docs/python.md and both READMEs run as they are written, except that they connect to a test server. In
docs/environments.md and docs/search.md, the demo game replaces the `my-game.toml` of the examples.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import framewire
import framewire.errors
from framewire import Client
from tests.servers import ROOT, Server


def examples(*pages: str) -> list[Any]:
    """The Python examples in these pages, as the parameters of a test."""
    return [
        pytest.param(page, block, id=f"{page}-{number}")
        for page in pages
        for number, block in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL))
    ]


@pytest.mark.parametrize(("page", "block"), examples("README.md", "docs/python.md", "python/README.md"))
def test_example_runs(page: str, block: str, server: Server, emulator: Client, tmp_path: Path) -> None:
    environment = {**os.environ, "FRAMEWIRE_URL": server.url, "PYTHONPATH": str(ROOT / "python")}
    if page == "python/README.md":
        block = block.replace("http://127.0.0.1:5000", server.url)
    command = [sys.executable, "-W", "error", "-c", block]
    run = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert not run.stderr
    assert emulator.info().run == "running"


@pytest.mark.parametrize(("page", "block"), examples("docs/environments.md", "docs/search.md"))
def test_example_of_environments_runs(page: str, block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "my-game.toml" in block:
        block = block.replace('"my-game.toml", "level-1"', 'scenario="pixels"')
    exec(compile(block, page, "exec"), {})


def test_every_exception_is_documented() -> None:
    page = (ROOT / "docs/python.md").read_text()
    errors = {
        name
        for name, each in vars(framewire.errors).items()
        if isinstance(each, type) and issubclass(each, framewire.FramewireError)
    }
    # `RequestFailed` is only a base class of others.
    assert {name for name in errors if f"`{name}`" not in page} <= {"RequestFailed"}


def test_figures_are_those_of_the_last_measurement() -> None:
    page = (ROOT / "docs/python.md").read_text()
    for figure in json.loads((ROOT / "docs/performance/python.json").read_text())["figures"]:
        assert f"| {figure['name']} | {figure['per_second']:,} |" in page


def test_without_websockets_the_client_says_what_to_install() -> None:
    program = "import sys; sys.modules['websockets'] = None; import framewire; framewire.Screen; framewire.connect()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert "pip install 'framewire[client]'" in run.stderr


def test_the_synchronous_client_is_up_to_date() -> None:
    subprocess.run([sys.executable, str(ROOT / "python/generate.py"), "--check"], check=True)


def test_the_notebook_has_the_outputs_of_its_cells(tmp_path: Path) -> None:
    check = [sys.executable, "-W", "error", str(ROOT / "python/notebook.py"), "--check"]
    run = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
