"""Shows the progress of a fleet or a search: one line on a terminal, or lines in a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TextIO

from framewire.ray._metrics import NodeStats
from framewire.search import Progress

# Seconds between two lines: on a terminal, where each line replaces the previous one, and in a file.
_ON_TERMINAL = 0.5
_IN_FILE = 30.0


class _Line:
    """Writes lines of progress. On a terminal, each line replaces the previous one. In a file, each is a new line."""

    def __init__(self, file: TextIO | None) -> None:
        self._out = sys.stderr if file is None else file
        self._is_terminal = self._out.isatty()
        self._last = time.monotonic()

    def is_due(self) -> bool:
        """Whether it is time for the next line."""
        return time.monotonic() - self._last >= (_ON_TERMINAL if self._is_terminal else _IN_FILE)

    def show(self, text: str, *, is_last: bool = False) -> None:
        """Writes a line. On a terminal, the next call replaces it, unless it is the last one."""
        self._last = time.monotonic()
        # Erase the rest of the line, because the previous line may have been longer.
        self._out.write(f"\r{text}\x1b[K" if self._is_terminal else f"{text}\n")
        if self._is_terminal and is_last:
            self._out.write("\n")
        self._out.flush()


def progress(steps: int, stats: Callable[[], list[NodeStats]], file: TextIO | None) -> Iterator[int]:
    """Yields the numbers below `steps`, and shows the progress and the statistics of the nodes."""
    line = _Line(file)
    begin = time.monotonic()
    before = sum(each.steps for each in stats())
    for step in range(steps):
        yield step
        is_last = step == steps - 1
        if is_last or line.is_due():
            line.show(_of_fleet(step + 1, steps, time.monotonic() - begin, stats(), before), is_last=is_last)


@contextmanager
def search_progress(stats: Callable[[], list[NodeStats]], file: TextIO | None) -> Iterator[Callable[[Progress], None]]:
    """Yields a function that a search calls after each batch. It shows the progress and the nodes' statistics."""
    line = _Line(file)
    begin = time.monotonic()
    before = sum(each.steps for each in stats())
    last: Progress | None = None

    def show(now: Progress) -> None:
        nonlocal last
        last = now
        if line.is_due():
            line.show(_of_search(now, time.monotonic() - begin, stats(), before))

    try:
        yield show
    finally:
        if last is not None:
            line.show(_of_search(last, time.monotonic() - begin, stats(), before), is_last=True)


def _of_fleet(done: int, steps: int, seconds: float, nodes: list[NodeStats], before: int) -> str:
    played = sum(each.steps for each in nodes) - before
    left = timedelta(seconds=round(seconds * (steps - done) / done))
    restarts = sum(each.restarts for each in nodes)
    return (
        f"{done}/{steps} steps ({done / steps:.0%}), {played / max(seconds, 1e-9):,.0f} environment steps/s, "
        f"nodes: {len(nodes)}, restarts: {restarts}, {left} left"
    )


def _of_search(now: Progress, seconds: float, nodes: list[NodeStats], before: int) -> str:
    played = sum(each.steps for each in nodes) - before
    restarts = sum(each.restarts for each in nodes)
    return (
        f"{now.branches:,} branches, {played / max(seconds, 1e-9):,.0f} steps/s, best score {now.score:g}, "
        f"cells: {now.cells:,}, nodes: {len(nodes)}, restarts: {restarts}"
    )
