"""The exception that `Fleet` and `FleetExplorer` raise, in addition to those in `framewire.errors`."""

from __future__ import annotations

from framewire.errors import FramewireError


class FleetError(FramewireError):
    """A node cannot run its environments, or its results differ from those of an undisturbed run."""
