"""Searches whose branches are played on the nodes of a Ray cluster."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TextIO

import ray

import framewire
from framewire._arguments import check_counts
from framewire.envs import demo_game
from framewire.errors import FramewireError, InvalidData, InvalidRequest, StatesLost
from framewire.ray import _actors, _nodes
from framewire.ray._actors import LOST, Actors
from framewire.ray._files import GameFiles
from framewire.ray._metrics import Metrics, NodeStats
from framewire.ray._nodes import Place
from framewire.ray._progress import search_progress
from framewire.ray._shards import Shard, ShardedStates, Shards
from framewire.ray._worker import Setup, check_node, named_node
from framewire.ray.errors import FleetError
from framewire.search import Cell, Explorer, Job, Progress, Rollout, Solution

_log = logging.getLogger("framewire.ray")

# How many parts of a batch are sent to a worker at the same time, so that it does not wait for the next part.
_PARTS_PER_WORKER = 2

_Known = tuple[Cell, float, int]
"""A known cell, and the score and the frames of its best state."""


class _Branches:
    """The class of the workers' actors. Each has an `Explorer`."""

    def start(self, setup: Setup, files: GameFiles, options: dict[str, Any], threads: int) -> int:
        """Creates the explorer, and returns the id of this process."""
        host = check_node(setup)
        with named_node(host), files.unpacked() as (game, rom):
            self._explorer = Explorer(game, setup.scenario, rom=rom, threads=threads, **options)
        if self._explorer.fingerprint != setup.start_hash:
            raise FleetError(
                f"node {host} has another ROM or another build of Framewire than this program; use the same ROM and the "
                "same wheel on every node"
            )
        self._epoch = 0
        return os.getpid()

    def play(self, epoch: int, news: Sequence[_Known], jobs: Sequence[Job], shards: Shards) -> list[Rollout]:
        """Plays branches.

        `news` has the cells that became known since the last call. `epoch` is how many times the cells were forgotten. If
        this number has changed since the last call, this method first forgets all earlier cells.
        """
        if epoch != self._epoch:
            self._explorer.forget()
            self._epoch = epoch
        self._explorer.learn(news)
        return shards.keep(jobs, self._explorer.rollouts(shards.begin(jobs)))


@dataclass(eq=False)
class _Worker:
    place: Place
    actor: Any
    process: int = 0
    # How many of the known cells it has received.
    received: int = 0


class FleetExplorer:
    """Plays branches of a scenario on all nodes of a Ray cluster.

    All searches accept it instead of a `framewire.search.Explorer`. The same seed finds the same solution, with any
    number of nodes. If a node is lost, the other nodes play its branches again.

    The states that branches find stay in the cluster: each node stores the states of some cells. `Found.state` is only
    the name of such a state. A job can begin at a name, and `states.get` returns the states themselves. `Rollout.state`,
    for jobs with `keep`, is the state itself.

    Attributes:
        cells: The expressions of `cell`, as a list.
        states: The states that branches found.
        start: The state in which episodes begin.
        fingerprint: Equal for explorers whose states and actions can be exchanged.
        frame_skip: The number of frames that an action lasts.

    Args:
        game: The game file. The default is that of the demo game. All of its files are sent to each node once.
        scenario: The name of a scenario. It can be left out if there is only one.
        score: An expression: how good a state is. The default is the sum of the scenario's rewards.
        goal: An expression. A branch ends with success at the first frame in which it is true.
        cell: One or several expressions. States with the same values, rounded down, belong to the same cell.
        rom: The path of the ROM, instead of the one in the game file.
        node_rom: The path of the ROM on every node. If it is given, the ROM is not sent.
        workers: The number of actors. The default is one per node, or as many as fit with `cores_per_worker`.
        cores_per_worker: The number of cores per actor. The default is all cores of its node.
        resources: The Ray resources that each actor needs in addition to cores.
        start_timeout: How many seconds a worker may take to start.
        batch_timeout: How many seconds the program waits until the next worker has played its part of a batch.
        runtime_env: The runtime environment of the actors, as in `ray.init`.
    """

    def __init__(
        self,
        game: str | os.PathLike[str] | None = None,
        scenario: str | None = None,
        *,
        score: str | None = None,
        goal: str | None = None,
        cell: str | Sequence[str] = (),
        rom: str | os.PathLike[str] | None = None,
        node_rom: str | None = None,
        workers: int | None = None,
        cores_per_worker: int | None = None,
        resources: Mapping[str, float] | None = None,
        start_timeout: float = 120.0,
        batch_timeout: float = 600.0,
        runtime_env: Mapping[str, Any] | None = None,
    ) -> None:
        check_counts(workers=workers, cores_per_worker=cores_per_worker)
        game = game or demo_game()
        self.cells = [cell] if isinstance(cell, str) else list(cell)
        self._options: dict[str, Any] = {"score": score, "goal": goal, "cell": self.cells}
        # This local explorer checks the arguments before anything is sent.
        local_rom = node_rom if rom is None else rom
        self._local = Explorer(game, scenario, rom=local_rom, threads=1, **self._options)
        self.start = self._local.start
        self.fingerprint = self._local.fingerprint
        self.frame_skip = self._local.frame_skip
        self._setup = Setup(framewire.__version__, scenario, "", self.fingerprint)
        pool = partial(
            Actors,
            resources=resources,
            runtime_env=runtime_env,
            start_timeout=start_timeout,
            call_timeout=batch_timeout,
            timeout_name="batch_timeout",
        )
        self._pool = pool(_Branches)
        self.states = ShardedStates(pool(Shard))
        self._metrics = Metrics("search")
        self._cores_per_worker = cores_per_worker
        self._epoch = 0
        self._known: list[_Known] = []
        self._workers: list[_Worker] = []
        files = GameFiles.collect(game, scenario, rom, node_rom)
        if not ray.is_initialized():
            ray.init()
        try:
            self._files = _actors.put(files)
            self.rescale(workers)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> FleetExplorer:
        """The explorer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the actors."""
        self.close()

    def close(self) -> None:
        """Ends the actors. Their states are lost."""
        if ray.is_initialized():
            self._end_workers()
            self.states.close()

    def _end_workers(self) -> None:
        for worker in self._workers:
            _actors.end(worker.actor)
            self._metrics.stopped(worker.place.node, [])
        self._workers = []

    def rescale(self, workers: int | None = None) -> int:
        """Starts actors on the cluster's present nodes, and moves the states there. Returns the number of actors."""
        places = _nodes.plan(_nodes.usable(self._pool.resources), workers, self._cores_per_worker, None)
        self._end_workers()
        self._workers = [_Worker(place, self._pool.make(place)) for place in places]
        starting = [self._begin(worker) for worker in self._workers]
        for worker, reference in zip(list(self._workers), starting, strict=True):
            try:
                worker.process = self._pool.started(worker.place.node, reference)
            except LOST as error:
                self._replace(worker, error)
        self.states.start(worker.place.node for worker in self._workers)
        return len(self._workers)

    def rollouts(self, jobs: Sequence[Job]) -> list[Rollout]:
        """Plays branches on all nodes in parallel. The results are in the order of the jobs.

        Raises:
            StatesLost: A branch begins at a lost state, or a node that should store new states is lost.
        """
        self._check_open()
        total = sum(worker.place.cores for worker in self._workers)
        size = max(1, -(-len(jobs) // (total * _PARTS_PER_WORKER)))
        # A part has `size` jobs for each core of the worker that takes it.
        waiting = deque(range(len(jobs)))
        results: list[Rollout | None] = [None] * len(jobs)
        playing: dict[Any, tuple[_Worker, list[int]]] = {}
        while waiting or playing:
            for worker in self._workers:
                while waiting and sum(other is worker for other, _ in playing.values()) < _PARTS_PER_WORKER:
                    numbers = [waiting.popleft() for _ in range(min(size * worker.place.cores, len(waiting)))]
                    playing[self._play(worker, [jobs[number] for number in numbers])] = (worker, numbers)
            ready, _ = ray.wait(list(playing), timeout=self._pool.call_timeout)
            if not ready:
                slowest, _ = next(iter(playing.values()))
                raise self._pool.too_late(slowest.place.node)
            reference = ready[0]
            worker, numbers = playing[reference]
            try:
                found = self._pool.answer(worker.place.node, reference)
            except StatesLost:
                del playing[reference]
                self._discard(playing)
                raise
            except LOST as error:
                for other in [key for key, (owner, _) in playing.items() if owner is worker]:
                    waiting.extendleft(reversed(playing.pop(other)[1]))
                self._replace(worker, error)
                continue
            del playing[reference]
            self._metrics.stepped(worker.place.node, sum(len(each.actions) for each in found))
            for number, rollout in zip(numbers, found, strict=True):
                results[number] = rollout
        return [rollout for rollout in results if rollout is not None]

    def learn(self, cells: Iterable[_Known]) -> None:
        """Learns about known cells. Each item has the cell, and the score and the frames of its best state."""
        self._known.extend(cells)

    def forget(self) -> None:
        """Forgets all cells, and removes all states."""
        self.states.clear()
        self._known = []
        self._epoch += 1
        for worker in self._workers:
            worker.received = 0

    def action_name(self, action: int) -> str:
        """The keys of an action, such as `Up+B`; `.` if it has no keys."""
        return self._local.action_name(action)

    def verify(self, solution: Solution) -> list[str]:
        """Plays a solution on every node, and compares the results. Returns the names of the nodes, without lost ones.

        Raises:
            InvalidData: A node has a different result. The message names the node.
        """
        self._check_open()
        by_node = {worker.place.node.id: worker for worker in self._workers}
        verified = []
        for worker in by_node.values():
            try:
                solution.verify(_OneNode(self, worker))
            except LOST as error:
                self._replace(worker, error)
                continue
            except InvalidData as error:
                self._metrics.mismatched(worker.place.node)
                raise InvalidData(f"node {worker.place.node}: {error}") from None
            verified.append(str(worker.place.node))
        return verified

    def stats(self) -> list[NodeStats]:
        """Steps, steps per second, restarts and mismatches of each node. Ray's metrics have the same figures."""
        return self._metrics.stats()

    def progress(self, file: TextIO | None = None) -> AbstractContextManager[Callable[[Progress], None]]:
        """Shows the progress of a search: `with explorer.progress() as show: go_explore(explorer, progress=show)`.

        The line has the branches, the speed, the best score, the cells, the nodes and the restarts. A terminal shows the
        current line. A file gets a line every 30 seconds, and one at the end.

        Args:
            file: The file for the line. The default is standard error.
        """
        return search_progress(self.stats, file)

    def _check_open(self) -> None:
        if not self._workers:
            raise InvalidRequest("the explorer is closed; make a new one")

    def _begin(self, worker: _Worker) -> Any:
        return worker.actor.start.remote(self._setup, self._files, self._options, worker.place.cores)

    def _play(self, worker: _Worker, jobs: list[Job]) -> Any:
        news = self._known[worker.received :]
        worker.received = len(self._known)
        return worker.actor.play.remote(self._epoch, news, jobs, self.states.reference)

    def _discard(self, playing: Mapping[Any, tuple[_Worker, list[int]]]) -> None:
        """Waits for answers that are no longer needed, so that Ray does not report their errors."""
        for reference, (worker, _) in playing.items():
            with suppress(*LOST, FramewireError):
                self._pool.answer(worker.place.node, reference)

    def _replace(self, worker: _Worker, cause: Exception) -> None:
        """Replaces a lost actor. If no node has free cores or no new actor starts, the others continue without it."""
        _actors.check_import(worker.place.node, cause)
        self._workers.remove(worker)
        _actors.end(worker.actor)
        self._metrics.stopped(worker.place.node, [other.place.node for other in self._workers])
        for attempt in range(1, _actors.ATTEMPTS + 1):
            used = [other.place for other in self._workers]
            place = _nodes.replacement(_nodes.usable(self._pool.resources), used, worker.place.cores)
            if place is None or (place.is_guest and self._workers):
                break
            other = _Worker(place, self._pool.make(place))
            try:
                other.process = self._pool.started(place.node, self._begin(other))
            except LOST as error:
                cause = error
                _actors.end(other.actor)
                time.sleep(_actors.PAUSE * attempt)
                continue
            except BaseException as error:
                # Otherwise, the actor would take the cores when they become free.
                _actors.end(other.actor)
                if not isinstance(error, _actors.NotStartedError):
                    raise
                cause = error
                break
            _log.warning("the worker on node %s is lost; another one runs on node %s", worker.place.node, place.node)
            self._workers.append(other)
            self._metrics.restarted(place.node)
            return
        if not self._workers:
            raise FleetError(
                f"the last worker, on node {worker.place.node}, was lost, and no other one starts: "
                f"{_actors.first_line(cause)}"
            )
        _log.warning("the worker on node %s is lost (%s)", worker.place.node, _actors.first_line(cause))


class _OneNode:
    """A runner that plays on one node only, for `verify`."""

    def __init__(self, fleet: FleetExplorer, worker: _Worker) -> None:
        self._fleet = fleet
        self._worker = worker
        self.states = fleet.states
        self.start = fleet.start
        self.fingerprint = fleet.fingerprint
        self.frame_skip = fleet.frame_skip

    def rollouts(self, jobs: Sequence[Job]) -> list[Rollout]:
        found: list[Rollout] = self._fleet._pool.answer(
            self._worker.place.node, self._fleet._play(self._worker, list(jobs))
        )
        return found

    def learn(self, cells: Iterable[_Known]) -> None:
        self._fleet.learn(cells)

    def forget(self) -> None:
        self._fleet.forget()

    def action_name(self, action: int) -> str:
        return self._fleet.action_name(action)
