"""Ray clusters on this machine, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray.cluster_utils import Cluster

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
