"""The states of a search, spread over the nodes of a cluster.

Each node has a shard: an actor that stores the states of some cells. Each state has a name, which also identifies the
cell. Workers send the states that they find to the shards, and get from the shards the states at which branches begin.
So the program handles only the names.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from framewire.errors import InvalidRequest, StatesLost
from framewire.ray import _actors, _nodes
from framewire.ray._actors import LOST, Actors
from framewire.ray._nodes import Node, Place
from framewire.ray.errors import FleetError
from framewire.search import Cell, Job, Rollout

_log = logging.getLogger("framewire.ray")

# The name of a state has three parts: these bytes, with which no state begins; the first bytes of the hash of its cell;
# and a hash of the way to the state. The way is the name of the state at which the branch began, and the actions from
# there. The state itself is not hashed, because it is not the same each time: the state of the sound unit depends on what
# the console has played before. The way to a state that the program adds is not known, so `ShardedStates.add` does hash
# the state.
_MARK = b"framewire-state:"
_CELL_BYTES = 8

# The largest number of states in one message to another shard. Together, they take about 8 MB.
_MOVED_AT_ONCE = 256


class ShardSize(NamedTuple):
    """How much a shard stores."""

    states: int
    size: int
    """The total size of the states in bytes."""


class Shard:
    """The actor that stores the states of some cells."""

    def __init__(self) -> None:
        self._states: dict[bytes, bytes] = {}

    def add(self, states: dict[bytes, bytes]) -> None:
        """Adds states, given with their names."""
        self._states.update(states)

    def get(self, names: Sequence[bytes]) -> list[bytes | None]:
        """The states with these names, and None for those that are not here."""
        return [self._states.get(name) for name in names]

    def lost(self, names: Sequence[bytes]) -> list[bytes]:
        """The names whose states are not here."""
        return [name for name in names if name not in self._states]

    def remove(self, names: Sequence[bytes]) -> None:
        """Removes states."""
        for name in names:
            self._states.pop(name, None)

    def clear(self) -> None:
        """Removes all states."""
        self._states.clear()

    def size(self) -> ShardSize:
        """The number of states, and their total size."""
        return ShardSize(len(self._states), sum(map(len, self._states.values())))

    def move(self, shards: Shards, own: int | None) -> None:
        """Moves states that belong to other shards. `own` is the number of this shard, or None if it will end."""
        moving = iter([name for name in self._states if shards.number(name) != own])
        while names := list(islice(moving, _MOVED_AT_ONCE)):
            shards.add({name: self._states.pop(name) for name in names})


@dataclass(frozen=True)
class Shards:
    """Access to the shards of a search, for the program and for its workers.

    Attributes:
        nodes: The node of each shard.
        actors: The actor of each shard.
        timeout: Seconds in which a shard has to answer.
        timeout_name: The name of the argument that set `timeout`.
    """

    nodes: tuple[Node, ...]
    actors: tuple[Any, ...]
    timeout: float
    timeout_name: str

    def number(self, name: bytes) -> int:
        """The number of the shard that has the state with this name. It depends on the hash of the cell."""
        cell = name[len(_MARK) : len(_MARK) + _CELL_BYTES]
        return int.from_bytes(cell, "big") % len(self.actors)

    def add(self, states: Mapping[bytes, bytes]) -> None:
        """Sends states to their shards."""
        parts = self.parts(states)
        self._ask("add", {shard: {name: states[name] for name in names} for shard, names in parts.items()})

    def get(self, names: Iterable[bytes]) -> dict[bytes, bytes]:
        """The states with these names.

        Raises:
            StatesLost: Some of the states are lost.
        """
        parts = self.parts(set(names))
        found: dict[bytes, bytes] = {}
        for shard, states in self._ask("get", parts).items():
            found.update((name, state) for name, state in zip(parts[shard], states, strict=True) if state is not None)
        if missing := sum(map(len, parts.values())) - len(found):
            raise StatesLost(f"{missing} states of the search are lost with the nodes that had them")
        return found

    def begin(self, jobs: Sequence[Job]) -> list[Job]:
        """The same jobs, with states instead of names."""
        states = self.get(job.state for job in jobs if job.state.startswith(_MARK))
        return [replace(job, state=states.get(job.state, job.state)) for job in jobs]

    def keep(self, jobs: Sequence[Job], rollouts: Sequence[Rollout]) -> list[Rollout]:
        """Sends the states that branches found to the shards. Returns the rollouts, with names of states in `found`."""
        states: dict[bytes, bytes] = {}
        named = []
        for job, rollout in zip(jobs, rollouts, strict=True):
            kept = []
            for found in rollout.found:
                way = job.state + repr(rollout.actions[: found.steps]).encode()
                name = _name(found.cell, way)
                states[name] = found.state
                kept.append(replace(found, state=name))
            named.append(replace(rollout, found=tuple(kept)))
        self.add(states)
        return named

    def parts(self, names: Iterable[bytes]) -> dict[int, list[bytes]]:
        """Groups names by the number of their shard."""
        parts: dict[int, list[bytes]] = defaultdict(list)
        for name in names:
            parts[self.number(name)].append(name)
        return parts

    def _ask(self, method: str, arguments: dict[int, Any]) -> dict[int, Any]:
        """Calls a method of several shards in parallel."""
        asked = {shard: getattr(self.actors[shard], method).remote(argument) for shard, argument in arguments.items()}
        found = {}
        for shard, reference in asked.items():
            try:
                found[shard] = _actors.result(reference, self.nodes[shard], self.timeout, self.timeout_name)
            except LOST as error:
                node = self.nodes[shard]
                raise StatesLost(f"the states of the search on node {node} are lost: {_actors.first_line(error)}") from None
        return found


class ShardedStates:
    """The states of a search, for the program. Starts the shards, and replaces lost shards with empty ones.

    Args:
        pool: Creates the shards.
    """

    def __init__(self, pool: Actors) -> None:
        self._pool = pool
        self._shards = Shards((), (), pool.call_timeout, pool.timeout_name)
        # A reference to `_shards` in Ray's object store, so that the shards are not sent with each job.
        self.reference: Any = None

    def start(self, nodes: Iterable[Node]) -> None:
        """Starts a shard on each of these nodes, if it has none. Then moves the states, and ends the other shards."""
        self._repair()
        old = list(zip(self._shards.nodes, self._shards.actors, strict=True))
        kept = {node.id: (node, actor) for node, actor in reversed(old)}
        shards = [kept.get(node.id) or self._make(node) for node in dict.fromkeys(nodes)]
        self._use(shards)
        for node, actor in old:
            own = next((number for number, (_, other) in enumerate(shards) if other is actor), None)
            try:
                # One shard at a time, because a shard that sends states does not receive any at the same time.
                self._pool.answer(node, actor.move.remote(self._shards, own))
            except (*LOST, StatesLost) as error:
                _warn_lost(node, error)
            if own is None:
                _actors.end(actor)

    def add(self, states: Sequence[tuple[Cell, bytes]]) -> list[bytes]:
        """Stores states, each with its cell, and returns their names."""
        names = [_name(cell, state) for cell, state in states]
        self.restore(dict(zip(names, (state for _, state in states), strict=True)))
        return names

    def restore(self, states: Mapping[bytes, bytes]) -> None:
        """Stores states under these names. If a shard is lost, replaces it first."""
        try:
            try:
                self._open().add(states)
            except StatesLost:
                self._repair()
                self._shards.add(states)
        except _actors.FULL:
            raise _actors.full("this node") from None

    def get(self, names: Sequence[bytes]) -> list[bytes]:
        """The states with these names.

        Raises:
            StatesLost: Some of the states are lost.
        """
        found = self._open().get(names)
        return [found[name] for name in names]

    def lost(self, names: Sequence[bytes]) -> list[bytes]:
        """Returns the names whose states are lost. Also replaces lost shards, so that states can be stored again."""
        shards = self._open()
        lost = []
        for shard, part in shards.parts(names).items():
            try:
                lost += self._pool.answer(shards.nodes[shard], shards.actors[shard].lost.remote(part))
            except LOST as error:
                _warn_lost(shards.nodes[shard], error)
                lost += part
        self._repair()
        return lost

    def remove(self, names: Sequence[bytes]) -> None:
        """Removes states at which no branch begins any more."""
        shards = self._open()
        for shard, part in shards.parts(names).items():
            # There is no need to wait. If the shard is lost, its states are gone anyway.
            shards.actors[shard].remove.remote(part)

    def clear(self) -> None:
        """Removes all states."""
        self._repair()
        for node, actor in zip(self._shards.nodes, self._shards.actors, strict=True):
            self._pool.answer(node, actor.clear.remote())

    def sizes(self) -> dict[str, ShardSize]:
        """The number and total size of the states on each node that is not lost."""
        sizes: dict[str, ShardSize] = {}
        for node, actor in zip(self._shards.nodes, self._shards.actors, strict=True):
            try:
                states, size = self._pool.answer(node, actor.size.remote())
            except LOST:
                continue
            before = sizes.get(str(node), ShardSize(0, 0))
            sizes[str(node)] = ShardSize(before.states + states, before.size + size)
        return sizes

    def close(self) -> None:
        """Ends the shards."""
        for actor in self._shards.actors:
            _actors.end(actor)
        self._use([])

    def _open(self) -> Shards:
        if not self._shards.actors:
            raise InvalidRequest("the explorer is closed, and its states are gone; save a search before that")
        return self._shards

    def _use(self, shards: Sequence[tuple[Node, Any]]) -> None:
        nodes = tuple(node for node, _ in shards)
        self._shards = replace(self._shards, nodes=nodes, actors=tuple(actor for _, actor in shards))
        self.reference = _actors.put(self._shards) if shards else None

    def _repair(self) -> None:
        """Replaces lost shards with empty ones."""
        shards = list(zip(self._shards.nodes, self._shards.actors, strict=True))
        is_changed = False
        for number, (node, actor) in enumerate(shards):
            try:
                # A call of any method shows whether the shard is lost.
                self._pool.answer(node, actor.lost.remote([]))
            except LOST:
                _actors.end(actor)
                shards[number] = self._make(node)
                is_changed = True
        if is_changed:
            self._use(shards)

    def _make(self, wanted: Node) -> tuple[Node, Any]:
        """Starts a shard, which reserves no CPU: on this node, or else on the node with the fewest shards."""
        taken = Counter(node.id for node in self._shards.nodes)
        cause: Exception | None = None
        for node in sorted(_nodes.usable(self._pool.resources), key=lambda node: (node.id != wanted.id, taken[node.id])):
            actor = self._pool.make(Place(node, 0, is_guest=True))
            try:
                self._pool.started(node, actor.clear.remote())
            except (*LOST, _actors.NotStartedError) as error:
                cause = error
                _actors.end(actor)
                continue
            return node, actor
        why = "the cluster has no usable node" if cause is None else _actors.first_line(cause)
        raise FleetError(f"no node can keep the states of the search: {why}")


def _warn_lost(node: Node, error: Exception) -> None:
    _log.warning("the states of the search on node %s are lost (%s)", node, _actors.first_line(error))


def _name(cell: Cell, way: bytes) -> bytes:
    return _MARK + hashlib.sha256(repr(cell).encode()).digest()[:_CELL_BYTES] + hashlib.sha256(way).digest()
