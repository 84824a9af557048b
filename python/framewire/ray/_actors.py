"""Ray actors on chosen nodes, and their answers as exceptions that say what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ray
from ray.exceptions import (
    ActorUnschedulableError,
    GetTimeoutError,
    ObjectLostError,
    ObjectStoreFullError,
    OutOfDiskError,
    RayActorError,
    RayTaskError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import framewire
from framewire.errors import FramewireError
from framewire.ray._nodes import Node, Place
from framewire.ray.errors import FleetError

# What a call raises if its actor, or the node that has its result, is gone.
LOST = (RayActorError, ObjectLostError, ActorUnschedulableError)
_FULL = (ObjectStoreFullError, OutOfDiskError)

# How many times an actor is started again before its owner gives up, and the seconds before the second attempt.
ATTEMPTS = 5
PAUSE = 1.0


class Actors:
    """Makes actors of one class, and waits for their answers.

    Args:
        kind: The class.
        resources: What each actor needs in addition to cores.
        runtime_env: Ray's runtime environment of the actors.
        start_timeout: Seconds for a start.
        call_timeout: Seconds for other calls.
        timeout_name: The name of the argument that set `call_timeout`.
    """

    def __init__(
        self,
        kind: type,
        *,
        resources: Mapping[str, float] | None,
        runtime_env: Mapping[str, Any] | None,
        start_timeout: float,
        call_timeout: float,
        timeout_name: str,
    ) -> None:
        self._kind: Any = ray.remote(kind)
        self.resources = dict(resources or {})
        self._runtime_env = None if runtime_env is None else dict(runtime_env)
        self._start_timeout = start_timeout
        self.call_timeout = call_timeout
        self._timeout_name = timeout_name

    def make(self, place: Place) -> Any:
        """An actor at a place. It has no environments before its method `start`."""
        options: dict[str, Any] = {
            "num_cpus": 0 if place.is_guest else place.cores,
            "resources": {} if place.is_guest else self.resources,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(place.node.id, soft=False),
            "max_restarts": 0,
        }
        if self._runtime_env is not None:
            options["runtime_env"] = self._runtime_env
        return self._kind.options(**options).remote()

    def started(self, node: Node, reference: Any) -> Any:
        """Waits for the answer of `start`."""
        if not ray.wait([reference], timeout=self._start_timeout)[0]:
            raise FleetError(
                f"the worker on node {node} did not start within {self._start_timeout:g} s; maybe its {node.cores} cores "
                "are in use by other actors: see `ray status`. Use fewer cores_per_worker or a greater start_timeout"
            )
        return self.answer(node, reference)

    def answer(self, node: Node, reference: Any) -> Any:
        """Waits for an answer of an actor on this node. The exceptions `LOST` are those of a lost actor."""
        try:
            return ray.get(reference, timeout=self.call_timeout)
        except GetTimeoutError:
            raise FleetError(
                f"the worker on node {node} did not answer within {self.call_timeout:g} s; use a greater "
                f"{self._timeout_name} if the node is only slow"
            ) from None
        except RayTaskError as error:
            # Its cause has the message alone, so this comes before the other exceptions.
            if isinstance(error.cause, _FULL):
                raise full(f"node {node}", error.cause) from None
            if isinstance(error.cause, FramewireError):
                raise error.cause from None
            raise FleetError(f"the worker on node {node} failed: {error}") from None
        except _FULL as error:
            raise full(f"node {node}", error) from None


def check_import(node: Node, cause: Exception) -> None:
    """Another attempt does not help if a node cannot import this package."""
    if "No module named 'framewire" in str(cause):
        raise FleetError(
            f"node {node} cannot import framewire; install framewire[ray]=={framewire.__version__} on every node, or give "
            "a runtime_env that has it"
        ) from None


def put(value: Any) -> Any:
    """Puts an object into the object store of this node."""
    try:
        return ray.put(value)
    except _FULL as error:
        raise full("this node", error) from None


def end(actor: Any) -> None:
    """Ends an actor at once."""
    if actor is not None and ray.is_initialized():
        ray.kill(actor)


def first_line(error: Exception) -> str:
    """The message of an exception of Ray without the log that follows it."""
    return str(error).strip().split("\n", 1)[0]


def full(where: str, error: Exception) -> FleetError:
    """The exception for an object store that is full."""
    return FleetError(
        f"the object store of {where} is full, and so is the disk that Ray moves objects to: {first_line(error)}. Drop "
        "batches that are no longer needed, start Ray with a greater --object-store-memory, or free space in its --temp-dir"
    )
