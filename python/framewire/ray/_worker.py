"""A worker of a fleet: an actor that owns a vector of environments and performs the calls of the program."""

from __future__ import annotations

import os
import socket
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import ray

import framewire
from framewire import _native
from framewire.envs._spaces import Array, Arrays, Observation
from framewire.envs.vector import GameVectorEnv
from framewire.errors import FramewireError
from framewire.ray import _connection
from framewire.ray._files import GameFiles
from framewire.ray._memory import MemoryKey, open_rows
from framewire.ray._merge import Rows, in_order
from framewire.ray.errors import FleetError


@dataclass(frozen=True)
class Setup:
    """The settings that all workers of a fleet or of a search share.

    Attributes:
        version: The program's version of Framewire.
        scenario: The name of the scenario, or None if there is only one.
        autoreset: The autoreset mode of the environments; empty for a search.
        start_hash: The result of `start_hash` in the program. For a search, the fingerprint of its explorer.
        memory: The memory that the program shares, or None.
    """

    version: str
    scenario: str | None
    autoreset: str
    start_hash: str
    memory: MemoryKey | None = None


class Result(NamedTuple):
    """The result of a reset or a step."""

    observations: Observation | None
    """None if they are in memory that the worker shares with the program."""
    rewards: Array
    terminated: Array
    truncated: Array
    info: dict[str, Any]
    """Gymnasium's info, without the masks of values that all environments have."""
    digest: int
    """A checksum of the other fields."""


class Started(NamedTuple):
    """A worker that has started: its process id, and the address at which it listens."""

    process: int
    host: str
    port: int
    shares: bool
    """Whether it writes observations directly into the memory of the program."""


class Saved(NamedTuple):
    """The saved states of a worker's environments, and their hashes."""

    states: list[bytes]
    hashes: list[str]


class Call(NamedTuple):
    """A reset or a step, which can be played again."""

    name: str
    arguments: tuple[Any, ...]


# If an array has more bytes than this, `_digest` adds them up as 64-bit numbers, and computes the checksum of the sum.
_LARGE = 65_536

# The program's log of a worker's calls also has an entry for each save, so that `Worker.replay` repeats it: after
# `Worker.save`, the environments continue from the saved states.
SAVE = Call("save", ())


class _Environments(GameVectorEnv):
    """Environments that can write their observations into arrays that the program shares."""

    def share(self, sets: Sequence[Observation]) -> None:
        """Sets the arrays that the program shares. There are none if the program is on another machine."""
        self._own = self._arrays
        self._shared = [Arrays(self._native, observations=each) for each in sets]

    def write_into(self, into: int | None) -> bool:
        """Chooses the set of arrays for the next observations. Returns whether the program shares this set.

        If `into` is None, or the program shares no sets, observations go into the worker's own arrays.
        """
        if into is None or not self._shared:
            self._arrays = self._own
            return False
        # Steps use two sets of arrays in turn. Here, both are the set that the program has chosen.
        self._arrays = (self._shared[into], self._shared[into])
        return True


class Worker:
    """The class of the actor. An exception in its constructor would lose its type, so `start` does the work."""

    def start(self, setup: Setup, files: GameFiles, rows: Rows, threads: int) -> Started:
        """Starts the environments of the fleet that `rows` selects, and listens for the program.

        Raises:
            FleetError: If this node has another version of Framewire, or starts episodes in another state.
            FramewireError: If the ROM is missing, or is not the one of the game file.
        """
        host = check_node(setup)
        with named_node(host), files.unpacked() as (game, rom):
            found = start_hash(game, setup.scenario, rom)
            vector = _Environments(
                game,
                setup.scenario,
                num_envs=rows.stop - rows.start,
                rom=rom,
                threads=threads,
                autoreset_mode=setup.autoreset,
            )
        if found != setup.start_hash:
            raise FleetError(
                f"node {host} starts episodes in another state than this program: it has another ROM, or another build of "
                "Framewire; use the same ROM and the same wheel on every node"
            )
        self._vector = vector
        self._masks = {f"_{name}" for name in vector._native.info_names}
        shared = open_rows(setup.memory, rows)
        vector.share(shared)
        host = ray.util.get_node_ip_address()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        return Started(os.getpid(), host, self._listener.getsockname()[1], bool(shared))

    def serve(self, secret: bytes, timeout: float) -> None:
        """Performs the other methods for the program, until it closes its connection.

        Args:
            secret: The bytes that the program sends first.
            timeout: Seconds in which the program has to connect.
        """
        with self._listener as listener:
            listener.settimeout(timeout)
            connection = _connection.accept(listener, secret)
        _connection.serve(connection, lambda name, arguments: getattr(self, name)(*arguments))

    def play(self, call: Call, into: int | None = None) -> Result:
        """Plays a reset or a step.

        Args:
            call: The reset or step.
            into: The number of the set of shared arrays that gets the observations. If it is None, or no memory is shared,
                the result contains them.
        """
        vector = self._vector
        is_shared = vector.write_into(into)
        if call.name == "reset":
            seeds, mask = call.arguments
            observations, info = vector.reset(seed=seeds, options=None if mask is None else {"reset_mask": mask})
            rewards, ended = np.zeros(vector.num_envs), np.zeros(vector.num_envs, dtype=np.bool_)
            result = Result(observations, rewards, ended, ended, info, 0)
        else:
            result = Result(*vector.step(*call.arguments), 0)
        info = {name: values for name, values in result.info.items() if name not in self._masks}
        result = result._replace(info=info)
        result = result._replace(digest=_digest(result))
        # The program expects the arrays in this order.
        return result._replace(observations=None if is_shared else in_order(result.observations))

    def replay(self, calls: Sequence[Call]) -> list[int | None]:
        """Plays calls again, and returns the checksum of each result; None for a save."""
        digests: list[int | None] = []
        for call in calls:
            if call.name == SAVE.name:
                self.save()
                digests.append(None)
            else:
                digests.append(self.play(call).digest)
        return digests

    def save(self) -> Saved:
        """Saves the state of each environment, to continue on another node.

        The environments here also load the saved states: libmgba does not restore all timing of the sound unit, and a
        game can read that timing. So an environment behaves the same whether or not it moves to another node.
        """
        states = [state for state in self._vector.save_states() if state is not None]
        self._vector.load_states(states)
        return Saved(states, self._vector.state_hashes())

    def restore(self, states: list[bytes]) -> list[str]:
        """Loads states that `save` returned, and returns the hashes of the states of the consoles."""
        self._vector.load_states(states)
        return self._vector.state_hashes()

    def hashes(self) -> list[str]:
        """The SHA-256 of the state of each console without its sound unit, in hexadecimal digits."""
        return self._vector.state_hashes()


def check_node(setup: Setup) -> str:
    """Returns the name of this machine.

    Raises:
        FleetError: If its version of Framewire differs from that of the program.
    """
    host = socket.gethostname()
    if framewire.__version__ != setup.version:
        raise FleetError(
            f"node {host} has Framewire {framewire.__version__}, and this program has {setup.version}; install "
            f"framewire=={setup.version} on every node"
        )
    return host


@contextmanager
def named_node(host: str) -> Iterator[None]:
    """Adds the node's name to exceptions."""
    try:
        yield
    except FramewireError as error:
        raise type(error)(f"node {host}: {error}") from None
    except OSError as error:
        raise FleetError(f"node {host}: {error}") from None


def start_hash(game: str, scenario: str | None, rom: str | None) -> str:
    """The SHA-256, without the sound unit, of the state in which the first episode of seed 0 begins."""
    native = _native.VectorEnv(game, scenario, 1, rom=rom, threads=1)
    native.reset([0], None, native.batch())
    return bytes(native.hashes()[0]).hex()


def _digest(value: Any, before: int = 0) -> int:
    """A checksum of all arrays in a result. `before` is the checksum of what comes before them."""
    if isinstance(value, dict):
        for name in sorted(value):
            before = _digest(value[name], before)
    elif isinstance(value, tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        for each in value:
            before = _digest(each, before)
    elif isinstance(value, np.ndarray):
        values = np.ascontiguousarray(value)
        if values.nbytes > _LARGE and values.nbytes % 8 == 0:
            # Such an array contains pictures. The checksum of their sum takes a tenth of the time, and it is enough to
            # detect a different picture.
            values = values.reshape(-1).view(np.uint64).sum(keepdims=True)
        before = zlib.crc32(values.data, before)
    return before
