"""The examples of docs/environments.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "environments.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.strip().splitlines()[-1] for example in EXAMPLES])
def test_example_runs(example: str) -> None:
    if "my-game.toml" in example:
        example = example.replace('"my-game.toml", "level-1"', 'scenario="pixels"')
    exec(compile(example, str(PAGE), "exec"), {})
