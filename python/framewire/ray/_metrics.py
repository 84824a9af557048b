"""Statistics of fleets and searches, for the program that uses them and for Ray's metrics."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from ray.util.metrics import Counter, Gauge

from framewire.ray._nodes import Node

# The shortest time between two reports to Ray, in seconds.
_EVERY = 1.0


@dataclass
class NodeStats:
    """Statistics of the environments on a node, or of the branches of a search there.

    Attributes:
        node: The name of the machine and the first digits of the node's id.
        steps: The number of steps. A step of several environments counts once for each of them.
        steps_per_second: Steps per second, measured over the last second or more.
        restarts: Workers that were started on this node to replace lost ones.
        mismatches: Results that differed from earlier results of the same steps, or from those of other nodes.
    """

    node: str
    steps: int = 0
    steps_per_second: float = 0.0
    restarts: int = 0
    mismatches: int = 0


@dataclass
class _Rate:
    since: float = field(default_factory=time.monotonic)
    steps: int = 0


class Metrics:
    """Keeps statistics, and reports them to Ray, for Prometheus and Ray's dashboard.

    Args:
        kind: What is counted: `fleet` or `search`. Ray exports the metrics under names that begin with
            `ray_framewire_` and this word.
    """

    def __init__(self, kind: str) -> None:
        self._nodes: dict[str, NodeStats] = {}
        self._rates: dict[str, _Rate] = {}
        tags = ("node",)
        self._steps = Counter(f"framewire_{kind}_steps", "Steps of single environments.", tags)
        self._speed = Gauge(f"framewire_{kind}_steps_per_second", "Steps of single environments per second.", tags)
        self._restarts = Counter(f"framewire_{kind}_restarts", "Workers that replaced lost ones.", tags)
        self._mismatches = Counter(
            f"framewire_{kind}_hash_mismatches", "Results that differ from those of another run or node.", tags
        )

    def stepped(self, node: Node, count: int) -> None:
        """Counts steps that environments on a node have played."""
        stats, rate = self._of(node), self._rates[node.id]
        stats.steps += count
        rate.steps += count
        if time.monotonic() - rate.since >= _EVERY:
            self._report(node.id)

    def restarted(self, node: Node) -> None:
        """Counts a worker on this node that has replaced a lost one."""
        stats = self._of(node)
        stats.restarts += 1
        self._restarts.inc(1, {"node": stats.node})

    def mismatched(self, node: Node) -> None:
        """Counts a result of this node that differs from the expected one."""
        stats = self._of(node)
        stats.mismatches += 1
        self._mismatches.inc(1, {"node": stats.node})

    def stopped(self, node: Node, running: Iterable[Node]) -> None:
        """Reports the last steps of a node whose worker has ended, and sets its speed to 0.

        Does nothing if other workers run on this node. `running` has the nodes of all other workers.
        """
        if node.id in self._nodes and all(other.id != node.id for other in running):
            self._report(node.id)
            self._nodes[node.id].steps_per_second = 0.0
            self._speed.set(0.0, {"node": self._nodes[node.id].node})

    def stats(self) -> list[NodeStats]:
        """The statistics of each node."""
        return list(self._nodes.values())

    def _report(self, node: str) -> None:
        stats, rate = self._nodes[node], self._rates[node]
        now = time.monotonic()
        stats.steps_per_second = rate.steps / max(now - rate.since, 1e-9)
        if rate.steps > 0:
            self._steps.inc(rate.steps, {"node": stats.node})
        self._speed.set(stats.steps_per_second, {"node": stats.node})
        self._rates[node] = _Rate(now)

    def _of(self, node: Node) -> NodeStats:
        if node.id not in self._nodes:
            self._nodes[node.id] = NodeStats(str(node))
            self._rates[node.id] = _Rate()
        return self._nodes[node.id]
