"""The exception that `Fleet` and `FleetExplorer` raise, in addition to those in `framewire.errors`."""

from __future__ import annotations

from framewire.errors import FramewireError


class FleetError(FramewireError):
    """A node cannot do its part of the work, or work that was repeated has different results."""
