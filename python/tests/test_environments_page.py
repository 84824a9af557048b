"""Tests that the examples in docs/environments.md and docs/search.md run.

The demo game replaces the `my-game.toml` of the examples.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLES = [
    (page, example)
    for page in ("environments.md", "search.md")
    for example in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
]


@pytest.mark.parametrize(("page", "example"), EXAMPLES, ids=[f"{page}-{n}" for n, (page, _) in enumerate(EXAMPLES)])
def test_example_runs(page: str, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "my-game.toml" in example:
        example = example.replace('"my-game.toml", "level-1"', 'scenario="pixels"')
    exec(compile(example, str(DOCS / page), "exec"), {})
