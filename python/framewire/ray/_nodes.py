"""The nodes of a cluster, and the distribution of workers over them."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import ray

from framewire._arguments import check_counts
from framewire.errors import InvalidRequest
from framewire.ray.errors import FleetError

_CONNECT_SECONDS = 5.0


@dataclass(frozen=True)
class Node:
    """A node of the cluster.

    Attributes:
        id: The id that Ray gave it.
        host: The name of its machine.
        cores: The number of its CPUs, as Ray counts them.
        address: Host and port of its Ray process.
    """

    id: str
    host: str
    cores: int
    address: tuple[str, int]

    def __str__(self) -> str:
        """The name of the machine and the first digits of the id."""
        return f"{self.host} ({self.id[:8]})"


@dataclass(frozen=True)
class Place:
    """Where a worker runs.

    Attributes:
        node: The node.
        cores: How many cores, and therefore how many threads, the worker has.
        is_guest: Whether Ray reserves no cores for the worker, because no node has free cores or the worker needs none.
    """

    node: Node
    cores: int
    is_guest: bool = False


def usable(resources: Mapping[str, float]) -> list[Node]:
    """The nodes that have a CPU and these resources. Nodes with the most CPUs come first.

    Ray notices a lost machine only after some seconds, so a node must accept connections as well. If no node does,
    this program is outside of the cluster's network, and all nodes are returned.
    """
    nodes = []
    for each in ray.nodes():
        has = each["Resources"]
        cores = int(has.get("CPU", 0))
        if each["Alive"] and cores > 0 and all(has.get(name, 0) >= amount for name, amount in resources.items()):
            address = (each["NodeManagerAddress"], each["NodeManagerPort"])
            nodes.append(Node(each["NodeID"], each["NodeManagerHostname"], cores, address))
    nodes.sort(key=lambda node: (-node.cores, node.id))
    return [node for node in nodes if _accepts(node)] or nodes


def _accepts(node: Node) -> bool:
    try:
        with socket.create_connection(node.address, timeout=_CONNECT_SECONDS):
            return True
    except OSError:
        return False


def plan(nodes: list[Node], workers: int | None, cores: int | None, envs: int | None) -> list[Place]:
    """Chooses places for workers: one per node with all of its cores, or as many as fit with `cores` each."""
    check_counts(workers=workers)
    if not nodes:
        raise FleetError(
            "no node of the cluster has a CPU and the resources of the fleet; start Ray with --num-cpus and --resources"
        )
    places = []
    for node in nodes:
        each = node.cores if cores is None else cores
        places += [Place(node, each)] * (node.cores // each)
    if workers is not None:
        if workers > len(places):
            raise InvalidRequest(
                f"workers is {workers}; the cluster has cores for {len(places)}: "
                + ", ".join(f"{node.cores} on {node}" for node in nodes),
                parameter="workers",
            )
        places = places[:workers]
    if not places:
        raise InvalidRequest(
            f"cores_per_worker is {cores}; the largest node has {nodes[0].cores}", parameter="cores_per_worker"
        )
    # A worker without an environment would have nothing to do. For searches, `envs` is None.
    return places[:envs]


def replacement(nodes: list[Node], used: list[Place], cores: int) -> Place | None:
    """A place for a worker that was lost: on free cores, or else on the node with the smallest share of used cores."""
    if not nodes:
        return None
    taken = {node.id: sum(place.cores for place in used if place.node.id == node.id) for node in nodes}
    for node in nodes:
        if node.cores - taken[node.id] >= min(cores, node.cores):
            return Place(node, min(cores, node.cores))
    node = min(nodes, key=lambda node: taken[node.id] / node.cores)
    return Place(node, min(cores, node.cores), is_guest=True)


def shares(places: list[Place], envs: int) -> list[int]:
    """How many environments each worker gets: in proportion to its cores, and at least one."""
    total = sum(place.cores for place in places)
    bounds, cores = [0], 0
    for index, place in enumerate(places):
        cores += place.cores
        least, most = bounds[-1] + 1, envs - (len(places) - index - 1)
        bounds.append(min(max(round(envs * cores / total), least), most))
    return [end - start for start, end in pairwise(bounds)]
