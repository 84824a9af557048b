"""Ray actors on chosen nodes, and their answers as exceptions that say what to do."""

from __future__ import annotations

import secrets
import selectors
import time
from collections.abc import Mapping, Sequence
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
from framewire.envs._spaces import Array
from framewire.errors import FramewireError
from framewire.ray import _connection
from framewire.ray._connection import Connection, ConnectionLostError, Reply
from framewire.ray._nodes import Node, Place
from framewire.ray._worker import Started
from framewire.ray.errors import FleetError

# What a call raises if its actor, or the node that has its result, is gone.
LOST = (RayActorError, ObjectLostError, ActorUnschedulableError, ConnectionLostError)
FULL = (ObjectStoreFullError, OutOfDiskError)

# Seconds between questions to Ray whether a worker that does not answer still exists.
_ASK_RAY_EVERY = 0.5

# Seconds after which Ray knows that a worker has ended, if its node still exists.
_NOTICED_AFTER = 10.0

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
        self.timeout_name = timeout_name

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
        return result(reference, node, self.call_timeout, self.timeout_name)

    def too_late(self, node: Node) -> FleetError:
        """The exception for an answer that does not come."""
        return _too_late(node, self.call_timeout, self.timeout_name)

    def link(self, node: Node, actor: Any, started: Started) -> Link:
        """Connects to a worker that has started."""
        secret = secrets.token_bytes(_connection.SECRET_BYTES)
        serving = actor.serve.remote(secret, self._start_timeout)
        try:
            connection = _connection.connect((started.host, started.port), secret, self.call_timeout)
        except OSError as error:
            # Ray needs a moment to notice that it has ended.
            if ray.wait([serving], timeout=_NOTICED_AFTER)[0]:
                self.answer(node, serving)
            raise FleetError(
                f"this program cannot connect to the worker on node {node} at {started.host}:{started.port} ({error}); run "
                "it on a machine of the cluster, and let the machines connect to each other on all ports, as Ray does"
            ) from None
        return Link(self, node, serving, connection)


class Link:
    """Calls to one worker, which it answers in their order.

    Args:
        pool: What made the worker.
        node: Its node.
        serving: The call of its method `serve`. Ray ends it when the worker or its node is lost.
        connection: The connection to it.
    """

    def __init__(self, pool: Actors, node: Node, serving: Any, connection: Connection) -> None:
        self._pool = pool
        self._node = node
        self._serving = serving
        self._connection = connection
        # Why a call could not be sent, and whether Ray says that the worker has ended.
        self._unsent: ConnectionLostError | None = None
        self._has_ended = False

    def ask(self, name: str, *arguments: Any) -> None:
        """Calls a method. If the worker is lost, `reply` says so."""
        try:
            self._connection.send((name, arguments))
        except ConnectionLostError as error:
            self._unsent = error

    def answer(self) -> Any:
        """What the first call that has no answer returns or raises. The exceptions `LOST` are those of a lost worker."""
        return self.value(self.reply())

    def reply(self, places: Sequence[Array] = (), *, has_come: bool = False) -> Reply:
        """Waits for the reply to the first call that has none.

        Args:
            places: Where large arrays of the answer are written, if they have these sizes.
            has_come: Whether `wait` has returned this worker.
        """
        if self._unsent is not None:
            raise self._unsent
        if not has_come and not wait([self], self._pool.call_timeout):
            raise self._pool.too_late(self._node)
        if self._has_ended:
            self._pool.answer(self._node, self._serving)
        reply: Reply = self._connection.receive([place.data.cast("B") for place in places])
        return reply

    def value(self, reply: Reply) -> Any:
        """What a reply contains, or raises what the worker raised."""
        if isinstance(reply.error, str):
            raise FleetError(f"the worker on node {self._node} failed: {reply.error}")
        if reply.error is not None:
            raise reply.error
        return reply.value

    def has_ended(self) -> bool:
        """Whether Ray says that the worker has ended."""
        self._has_ended = self._has_ended or bool(ray.wait([self._serving], timeout=0)[0])
        return self._has_ended

    def fileno(self) -> int:
        """For selectors."""
        return self._connection.fileno()

    def close(self) -> None:
        """Ends the connection, and with it the worker's method `serve`."""
        self._connection.close()


def wait(links: Sequence[Link], timeout: float) -> list[Link]:
    """Waits until some workers have answered or have ended, and returns them; none if the time is over."""
    end = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        for link in links:
            selector.register(link, selectors.EVENT_READ)
        while True:
            left = end - time.monotonic()
            if ready := selector.select(max(0.0, min(left, _ASK_RAY_EVERY))):
                return [key.fileobj for key, _ in ready]  # type: ignore[misc]
            if ended := [link for link in links if link.has_ended()]:
                return ended
            if left <= 0:
                return []


def result(reference: Any, node: Node, timeout: float, timeout_name: str) -> Any:
    """Waits for an answer of an actor on this node. The exceptions `LOST` are those of a lost actor.

    Args:
        reference: The answer.
        node: The node of the actor.
        timeout: Seconds for the answer.
        timeout_name: The name of the argument that set it.
    """
    try:
        return ray.get(reference, timeout=timeout)
    except GetTimeoutError:
        raise _too_late(node, timeout, timeout_name) from None
    except RayTaskError as error:
        # Its cause has the message alone, so this comes before the other exceptions.
        if isinstance(error.cause, FULL):
            raise full(f"node {node}") from None
        if isinstance(error.cause, FramewireError):
            raise error.cause from None
        raise FleetError(f"the worker on node {node} failed: {error}") from None
    except FULL:
        raise full(f"node {node}") from None


def _too_late(node: Node, timeout: float, timeout_name: str) -> FleetError:
    return FleetError(
        f"the worker on node {node} did not answer within {timeout:g} s; use a greater {timeout_name} if the node is only "
        "slow"
    )


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
    except FULL:
        raise full("this node") from None


def end(actor: Any) -> None:
    """Ends an actor at once."""
    if actor is not None and ray.is_initialized():
        ray.kill(actor)


def first_line(error: Exception) -> str:
    """The message of an exception of Ray without the log that follows it."""
    return str(error).strip().split("\n", 1)[0]


def full(where: str) -> FleetError:
    """The exception for a full object store. Ray's own message says nothing more, or contains an object's bytes."""
    return FleetError(
        f"the object store of {where} is full, and so is the disk that Ray moves objects to. Drop batches that "
        "you do not use any more, start Ray with a greater --object-store-memory, or free space in its --temp-dir"
    )
