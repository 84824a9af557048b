"""Fixtures for pytest: games in the test's process, and golden pictures.

pytest finds this plugin by itself if the package is installed. `pytest --framewire-update` replaces the golden
pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from framewire.core import Core
    from framewire.emulator import Emulator
    from framewire.screen import Screen


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--framewire-update`."""
    group = parser.getgroup("framewire")
    group.addoption(
        "--framewire-update",
        action="store_true",
        help="replace the golden pictures of framewire_golden, instead of comparing with them",
    )


@pytest.fixture
def framewire_load() -> Iterator[Callable[..., Core]]:
    """Like `framewire.load`, but the cores are closed at the end of the test."""
    import framewire

    with ExitStack() as stack:

        def load(rom: Any, **options: Any) -> Core:
            return stack.enter_context(framewire.load(rom, **options))

        yield load


@pytest.fixture
def framewire_golden(request: pytest.FixtureRequest) -> Callable[[Emulator | Screen, str], None]:
    """Compares pictures with files: `framewire_golden(emulator, "title")`.

    The file is `golden/NAME.png` next to the test's file. If the picture differs, the test fails, and the picture is
    written to `golden/NAME.actual.png`.
    """
    folder = request.path.parent / "golden"
    update = bool(request.config.getoption("--framewire-update"))

    def compare(source: Emulator | Screen, name: str) -> None:
        from framewire.screen import Screen

        screen = source if isinstance(source, Screen) else source.screen()
        _compare(screen, folder / f"{name}.png", update)

    return compare


def _compare(screen: Screen, file: Path, update: bool) -> None:
    import numpy as np

    from framewire.screen import Screen

    actual = file.with_suffix(".actual.png")
    if update:
        file.parent.mkdir(parents=True, exist_ok=True)
        screen.save(file)
        actual.unlink(missing_ok=True)
        return
    if not file.exists():
        pytest.fail(
            f"there is no golden picture {file}; if the game looks right, run pytest --framewire-update to write it",
            pytrace=False,
        )
    try:
        expected = Screen.from_png(file.read_bytes()).array
    except (OSError, SyntaxError, ValueError):
        pytest.fail(
            f"the golden picture {file} is not a readable PNG file; write it again with pytest --framewire-update",
            pytrace=False,
        )
    picture = screen.array
    if expected.shape == picture.shape:
        differs = (expected != picture).any(axis=2)
        if not differs.any():
            actual.unlink(missing_ok=True)
            return
        rows, columns = np.nonzero(differs)
        what = (
            f"{differs.sum()} of {differs.size} pixels differ, between ({columns.min()}, {rows.min()}) and "
            f"({columns.max()}, {rows.max()})"
        )
    else:
        sizes = [f"{array.shape[1]}x{array.shape[0]}" for array in (picture, expected)]
        what = f"it has {sizes[0]} pixels, and the golden one {sizes[1]}"
    screen.save(actual)
    pytest.fail(
        f"the picture differs from {file}: {what}. The new picture is {actual}; if it is right, run "
        "pytest --framewire-update",
        pytrace=False,
    )
