"""A line on the terminal that shows the progress of a run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TextIO

from framewire.ray._metrics import NodeStats

# Seconds between two lines: on a terminal, where one replaces the other, and in a file.
_ON_TERMINAL = 0.5
_IN_FILE = 30.0


def progress(steps: int, stats: Callable[[], list[NodeStats]], file: TextIO | None) -> Iterator[int]:
    """Counts to `steps`, and writes how far the count is and what the nodes do."""
    out = sys.stderr if file is None else file
    is_terminal = out.isatty()
    begin = last = time.monotonic()
    before = sum(each.steps for each in stats())
    for step in range(steps):
        yield step
        now = time.monotonic()
        is_last = step == steps - 1
        if now - last < (_ON_TERMINAL if is_terminal else _IN_FILE) and not is_last:
            continue
        last = now
        line = _line(step + 1, steps, now - begin, stats(), before)
        # The end of the line is erased, in case that the line before was longer.
        out.write(f"\r{line}\x1b[K" if is_terminal else f"{line}\n")
        if is_terminal and is_last:
            out.write("\n")
        out.flush()


def _line(done: int, steps: int, seconds: float, nodes: list[NodeStats], before: int) -> str:
    played = sum(each.steps for each in nodes) - before
    left = timedelta(seconds=round(seconds * (steps - done) / done))
    restarts = sum(each.restarts for each in nodes)
    return (
        f"{done}/{steps} steps ({done / steps:.0%}), {played / max(seconds, 1e-9):,.0f} environment steps/s, "
        f"nodes: {len(nodes)}, restarts: {restarts}, {left} left"
    )
