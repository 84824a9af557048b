"""Search: find the key presses that reach a goal, by trying many branches from saved states.

An `Explorer` plays branches of a scenario (docs/game-file.md) on all processors. `restarts`, `beam` and `go_explore` choose
the branches. All of them return a `Solution`: a list of actions, which `verify` plays again. The same seed finds the
same solution, with any number of threads. docs/search.md is the guide.
"""

from __future__ import annotations

from framewire.search._archive import Archive, Entry
from framewire.search._branches import Cell, Found, Job, Rollout, Runner, States
from framewire.search._explorer import Explorer
from framewire.search._go_explore import GoExplore, go_explore
from framewire.search._rounds import beam, restarts
from framewire.search._solution import Progress, Solution

__all__ = [
    "Archive",
    "Cell",
    "Entry",
    "Explorer",
    "Found",
    "GoExplore",
    "Job",
    "Progress",
    "Rollout",
    "Runner",
    "Solution",
    "States",
    "beam",
    "go_explore",
    "restarts",
]
