"""Ray clusters on this machine, for tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster

from framewire.ray import FleetError, _actors, _connection

STORE = 100 << 20
"""The size of a node's object store in bytes."""


@contextmanager
def small_cluster(**head: Any) -> Iterator[Cluster]:
    """Starts a cluster with one node, and connects this program to it.

    Args:
        head: Settings of the node, such as `num_cpus`, which is 1 by default.
    """
    node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": STORE, **head}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


class Filler:
    """Fills the object store of its node."""

    def __init__(self) -> None:
        self.held: list[Any] = []

    def fill(self) -> str:
        # Ray cannot move arrays to the disk as long as they are in use.
        with pytest.raises(FleetError) as failure:
            while len(self.held) < 1000:
                self.held.append(ray.get(_actors.put(np.zeros(4 << 20, dtype=np.uint8))))
        return str(failure.value)

    def has_room(self) -> bool:
        """Whether the store has room for a large ROM."""
        try:
            ray.get(_actors.put(np.zeros(20 << 20, dtype=np.uint8)))
        except FleetError:
            return False
        return True


def interrupt_next_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupts the program after it has received the head of a message, as Ctrl-C does."""
    receive = _connection.Connection._bytes

    def interrupted(connection: _connection.Connection, length: int) -> bytearray:
        data = receive(connection, length)
        if threading.current_thread() is not threading.main_thread():
            return data
        monkeypatch.setattr(_connection.Connection, "_bytes", receive)
        raise KeyboardInterrupt

    monkeypatch.setattr(_connection.Connection, "_bytes", interrupted)
