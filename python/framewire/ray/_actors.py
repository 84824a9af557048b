"""Starts Ray actors on chosen nodes, and converts their failures to exceptions that say what to do."""

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

# The exceptions of a call whose actor is lost, or whose result was on a lost node.
LOST = (RayActorError, ObjectLostError, ActorUnschedulableError, ConnectionLostError)
# The exceptions of a call whose objects do not fit into the object store.
FULL = (ObjectStoreFullError, OutOfDiskError)

# While a worker does not answer, the program asks Ray at this interval, in seconds, whether the worker still exists.
_ASK_RAY_EVERY = 0.5

# Ray notices within this many seconds that a worker has ended, if its node still exists.
_NOTICED_AFTER = 10.0

# How many times the program tries to replace a lost actor, and the pause in seconds after the first failed attempt. Later
# pauses are longer.
ATTEMPTS = 5
PAUSE = 1.0


class NotStartedError(FleetError):
    """A worker did not start in time."""


class Actors:
    """Creates actors of one class, and waits for their answers.

    Args:
        kind: The class of the actors.
        resources: The Ray resources that each actor needs in addition to cores.
        runtime_env: Ray's runtime environment of the actors.
        start_timeout: Seconds in which an actor has to start.
        call_timeout: Seconds in which an actor has to answer other calls.
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
        """Creates an actor at a place."""
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
        """Waits for an actor's answer to its first call, which includes the start of the actor.

        Raises:
            NotStartedError: The actor does not start in time. It may start later.
        """
        if not ray.wait([reference], timeout=self._start_timeout)[0]:
            raise NotStartedError(
                f"the worker on node {node} did not start within {self._start_timeout:g} s; maybe its {node.cores} cores "
                "are in use by other actors: see `ray status`. Use fewer cores_per_worker or a greater start_timeout"
            )
        return self.answer(node, reference)

    def answer(self, node: Node, reference: Any) -> Any:
        """Waits for the answer of an actor on this node. Raises one of `LOST` if the actor is lost."""
        return result(reference, node, self.call_timeout, self.timeout_name)

    def too_late(self, node: Node) -> FleetError:
        """The exception for an answer that did not come in time."""
        return _too_late(node, self.call_timeout, self.timeout_name)

    def link(self, node: Node, actor: Any, started: Started) -> Link:
        """Connects to a worker that has started."""
        secret = secrets.token_bytes(_connection.SECRET_BYTES)
        serving = actor.serve.remote(secret, self._start_timeout)
        try:
            connection = _connection.connect((started.host, started.port), secret, self.call_timeout)
        except OSError as error:
            # If the worker has ended, Ray notices it after a moment, and `answer` raises an exception.
            if ray.wait([serving], timeout=_NOTICED_AFTER)[0]:
                self.answer(node, serving)
            raise FleetError(
                f"this program cannot connect to the worker on node {node} at {started.host}:{started.port} ({error}); run "
                "it on a machine of the cluster, and let the machines connect to each other on all ports, as Ray does"
            ) from None
        return Link(self, node, serving, connection)


class Link:
    """Sends calls to one worker, which answers them in order.

    Args:
        pool: The object that created the worker's actor.
        node: The worker's node.
        serving: The call of the worker's method `serve`. Ray ends this call when the worker or its node is lost.
        connection: The connection to the worker.
    """

    def __init__(self, pool: Actors, node: Node, serving: Any, connection: Connection) -> None:
        self._pool = pool
        self._node = node
        self._serving = serving
        self._connection = connection
        # Why a call could not be sent.
        self._unsent: ConnectionLostError | None = None
        # Whether Ray has reported that the worker has ended.
        self._has_ended = False
        # How many of the next answers belong to calls that nobody waits for any more.
        self._late = 0

    def call(self, name: str, *arguments: Any) -> Any:
        """Calls a method of a worker that has no other open call, and waits for the answer.

        If the wait times out, the answer is dropped when it comes. If it is interrupted, the connection ends. Raises one of
        `LOST` if the worker is lost.
        """
        try:
            self.ask(name, *arguments)
            reply = self.reply()
        except FleetError:
            self._late += 1
            raise
        except BaseException:
            # It is not known whether the answer has come.
            self.cut()
            raise
        return self.value(reply)

    def ask(self, name: str, *arguments: Any) -> None:
        """Sends a method call. If the worker is lost, `reply` raises the exception."""
        try:
            self._connection.send((name, arguments))
        except ConnectionLostError as error:
            self._unsent = error

    def reply(self, places: Sequence[Array] = (), *, has_come: bool = False) -> Reply:
        """Waits for the reply to the oldest open call. Raises one of `LOST` if the worker is lost.

        Args:
            places: Arrays that receive the large arrays of the reply, if the sizes are equal.
            has_come: Whether `wait` has already returned this link.
        """
        while self._late:
            self._next((), has_come)
            self._late -= 1
            has_come = False
        return self._next(places, has_come)

    def value(self, reply: Reply) -> Any:
        """Returns the value of a reply, or raises its exception."""
        if isinstance(reply.error, str):
            raise FleetError(f"the worker on node {self._node} failed: {reply.error}")
        if reply.error is not None:
            raise reply.error
        return reply.value

    def has_ended(self) -> bool:
        """Whether the worker has ended, according to Ray."""
        self._has_ended = self._has_ended or bool(ray.wait([self._serving], timeout=0)[0])
        return self._has_ended

    def fileno(self) -> int:
        """The file descriptor of the socket, for selectors."""
        return self._connection.fileno()

    def cut(self) -> None:
        """Makes the worker count as lost: the next reply raises one of `LOST`."""
        self._connection.cut()

    def close(self) -> None:
        """Ends the connection, and with it the worker's method `serve`."""
        self._connection.close()

    def _next(self, places: Sequence[Array], has_come: bool) -> Reply:
        """Waits for the next reply, even if it belongs to a call that timed out or was interrupted."""
        if self._unsent is not None:
            raise self._unsent
        if not has_come and not wait([self], self._pool.call_timeout):
            raise self._pool.too_late(self._node)
        if self._has_ended:
            # If `serve` has failed, or its actor is lost, this raises the exception.
            self._pool.answer(self._node, self._serving)
        reply: Reply = self._connection.receive([place.data.cast("B") for place in places])
        return reply


def wait(links: Sequence[Link], timeout: float) -> list[Link]:
    """Waits until some workers have answered or ended. Returns their links; an empty list after `timeout` seconds."""
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
    """Waits for the answer of an actor on this node. Raises one of `LOST` if the actor is lost.

    Args:
        reference: The answer, as a Ray object reference.
        node: The node of the actor.
        timeout: Seconds in which the answer has to come.
        timeout_name: The name of the argument that set `timeout`.
    """
    try:
        return ray.get(reference, timeout=timeout)
    except GetTimeoutError:
        raise _too_late(node, timeout, timeout_name) from None
    except RayTaskError as error:
        # This exception is also an instance of its cause's class, so this clause comes before `except FULL`. If the
        # cause is a FramewireError, the cause itself is raised, because its message does not contain the traceback.
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
    """Raises an exception if a node cannot import this package, because another attempt would also fail."""
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
    """The message of a Ray exception, without the log that follows the first line."""
    return str(error).strip().split("\n", 1)[0]


def full(where: str) -> FleetError:
    """The exception for a full object store. It leaves out Ray's message, which may contain the bytes of an object."""
    return FleetError(
        f"the object store of {where} is full, and so is the disk that Ray moves objects to. Drop references to Ray "
        "objects that you no longer need, start Ray with a greater --object-store-memory, or free space in its --temp-dir"
    )
