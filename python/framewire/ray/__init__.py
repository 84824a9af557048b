"""Environments and searches on the machines of a Ray cluster.

`Fleet` is a `gymnasium.vector.VectorEnv` whose environments run on all nodes of the cluster. `FleetExplorer` does the
same for searches. docs/fleets.md is the guide.
"""

from __future__ import annotations

try:
    import ray as _  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "ray":
        raise
    raise ImportError("framewire.ray needs the package ray: pip install 'framewire[ray]'", name="ray") from None

from framewire.ray.errors import FleetError
from framewire.ray.explorer import FleetExplorer
from framewire.ray.fleet import Fleet, NodeStats

__all__ = ["Fleet", "FleetError", "FleetExplorer", "NodeStats"]
