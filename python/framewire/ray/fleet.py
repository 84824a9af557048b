"""A vector of environments on the nodes of a Ray cluster."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, TextIO

import gymnasium
import numpy as np
import numpy.typing as npt
import ray
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

import framewire
from framewire._arguments import check_counts
from framewire.envs import GameVectorEnv, demo_game
from framewire.envs._spaces import Array, Observation, checked_mask, checked_seeds, rows_of
from framewire.envs.vector import checked_mode
from framewire.errors import InvalidRequest
from framewire.model import array_of
from framewire.ray import _actors, _nodes
from framewire.ray._actors import LOST, Actors, Link
from framewire.ray._connection import LARGE, ConnectionLostError
from framewire.ray._files import GameFiles
from framewire.ray._memory import SharedMemory
from framewire.ray._merge import Rows, arrays, merge_infos, write
from framewire.ray._metrics import Metrics, NodeStats
from framewire.ray._nodes import Place
from framewire.ray._progress import progress
from framewire.ray._worker import SAVE, Call, Result, Saved, Setup, Worker, start_hash
from framewire.ray.errors import FleetError

__all__ = ["Fleet", "NodeStats"]

_log = logging.getLogger("framewire.ray")

# The largest number of calls that one request to a worker plays again, so that no request takes long.
_REPLAYED_AT_ONCE = 32

# Sets of observations: two for `step`, which uses them in turn, and two for `recv`, which does the same for each worker.
_SETS = 4
_RECV_SETS = (2, 3)


@dataclass
class _Entry:
    """A call since the last saved state, and the checksum of its result once it has arrived."""

    call: Call
    digest: int | None = None


@dataclass
class _Group:
    """The environments of one worker."""

    rows: Rows
    place: Place
    actor: Any
    # The id of the actor's process on its node.
    process: int = 0
    # The connection to the worker; None until it has started.
    link: Link | None = None
    # With `saved` and `log`, the environments can continue on another node, which loads the states and plays the calls.
    # `saved` is None if no states were saved since the reset with which `log` begins.
    saved: Saved | None = None
    log: list[_Entry] = field(default_factory=list)
    # Whether the worker writes observations into the memory of the program.
    shares: bool = False
    # Whether the result of the last call has not been received yet.
    is_playing: bool = False
    # The set of arrays for the observations of the last call.
    into: int = 0
    # If saved states were requested and have not been received: how many entries of the log they include.
    saving: int | None = None
    # Calls since the states were saved, or since a reset of all environments with seeds.
    calls: int = 0

    @property
    def count(self) -> int:
        return int(self.rows.stop - self.rows.start)


class Fleet(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Environments of one scenario on the nodes of a Ray cluster.

    With the same arguments, seeds and actions, it has the same results as `framewire.envs.make_vec`, with any number of
    nodes. The exception is a game that reads the timing of the console's sound unit: every `checkpoint_every` steps, the
    environments save their states and load them again, and libmgba does not restore all of this timing.

    The environments are divided among *workers*. A worker is a Ray actor; by default, there is one on each node. The
    program keeps a saved state of each environment, and the actions that came after it. So if a node is lost, its
    environments continue on another node, at the same step.

    Steps and resets write their results into two sets of arrays in turn. So the result of a call does not change during
    the next call, but the call after that overwrites it. The observations of `recv` do not change during the next step
    of the same environments.

    Args:
        game: The game file. The default is that of the demo game. The game's ROM, symbols and start state are sent
            to each node once.
        scenario: The name of a scenario. It can be left out if there is only one.
        num_envs: The total number of environments.
        rom: The path of the ROM, instead of the one in the game file.
        node_rom: The path of the ROM on every node. If it is given, the ROM is not sent.
        workers: The number of actors. The default is one per node, or as many as fit with `cores_per_worker`.
        cores_per_worker: The number of cores per actor. The default is all cores of its node.
        resources: The Ray resources that each actor needs in addition to cores, such as `{"emulation": 1}`. Nodes
            without them are not used.
        autoreset_mode: When the next episode begins after the end of an episode: one of Gymnasium's modes.
        checkpoint_every: After how many steps the states of a worker's environments are saved.
        start_timeout: Seconds in which a worker has to start.
        step_timeout: Seconds in which a worker has to finish a step.
        runtime_env: The runtime environment of the actors, as in `ray.init`.
    """

    def __init__(
        self,
        game: str | os.PathLike[str] | None = None,
        scenario: str | None = None,
        *,
        num_envs: int,
        rom: str | os.PathLike[str] | None = None,
        node_rom: str | None = None,
        workers: int | None = None,
        cores_per_worker: int | None = None,
        resources: Mapping[str, float] | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        checkpoint_every: int = 256,
        start_timeout: float = 120.0,
        step_timeout: float = 120.0,
        runtime_env: Mapping[str, Any] | None = None,
    ) -> None:
        # There is nothing to close yet.
        self.closed = True
        check_counts(
            num_envs=num_envs, workers=workers, cores_per_worker=cores_per_worker, checkpoint_every=checkpoint_every
        )
        mode = checked_mode(autoreset_mode)
        game = game or demo_game()
        # This local environment provides the observation and action spaces. It also checks the files before they are sent.
        local_rom = node_rom if rom is None else rom
        with closing(GameVectorEnv(game, scenario, rom=local_rom)) as probe:
            self.single_observation_space = probe.single_observation_space
            self.single_action_space = probe.single_action_space
            self._info_names = probe._native.info_names
            initial = start_hash(os.fspath(game), scenario, None if local_rom is None else os.fspath(local_rom))
        files = GameFiles.collect(game, scenario, rom, node_rom)
        self.metadata = {"autoreset_mode": mode, "render_modes": []}
        self.num_envs = num_envs
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._pool = Actors(
            Worker,
            resources=resources,
            runtime_env=runtime_env,
            start_timeout=start_timeout,
            call_timeout=step_timeout,
            timeout_name="step_timeout",
        )
        self._cores_per_worker = cores_per_worker
        self._checkpoint_every = checkpoint_every
        self._keeps_over = mode is AutoresetMode.DISABLED
        # Without autoreset: which environments have ended an episode, so that they must be reset before the next step.
        self._over = np.zeros(num_envs, dtype=np.bool_)
        # Which environments have been reset at least once.
        self._has_begun = np.zeros(num_envs, dtype=np.bool_)
        self._metrics = Metrics("fleet")
        self._groups: list[_Group] = []

        if not ray.is_initialized():
            ray.init()
        self._memory = SharedMemory(self.single_observation_space, num_envs, _SETS)
        self._setup = Setup(framewire.__version__, scenario, mode.value, initial, self._memory.key)
        self.closed = False
        try:
            places = _nodes.plan(_nodes.usable(self._pool.resources), workers, cores_per_worker, num_envs)
            self._files = _actors.put(files)
            self._start_all(places)
        except BaseException:
            self.close()
            raise
        self._step_results = tuple(
            (np.zeros(num_envs), np.zeros(num_envs, dtype=np.bool_), np.zeros(num_envs, dtype=np.bool_)) for _ in range(2)
        )
        self._all = np.ones(num_envs, dtype=np.bool_)
        # Which of the two sets of arrays the last call of `step` or `reset` used.
        self._last = 0
        # The states of all environments while `rescale` moves them, and after it has failed.
        self._moving: Saved | None = None

    def __enter__(self) -> Fleet:
        """The fleet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the actors."""
        self.close()

    # ---- Gymnasium ----

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins episodes in all environments. With `options={"reset_mask": mask}`, only in those where `mask` is true.

        Each environment has random numbers from its own seed. If `seed` is one number, the seeds are `seed`, `seed + 1`
        and so on. Without a seed, the random numbers of an environment continue; those of a new environment begin with
        its number as the seed.
        """
        mask = None if options is None else options.get("reset_mask")
        into = 1 - self._last
        self._begin_reset(seed, mask, into)
        self._last = into
        infos = [(group.rows, self._receive(group).info) for group in self._groups]
        return self._memory.sets[into], self._with_masks(merge_infos(infos, self.num_envs), self.num_envs)

    def step(self, actions: npt.ArrayLike) -> tuple[Observation, Array, Array, Array, dict[str, Any]]:
        """Plays a step in each environment."""
        into = 1 - self._last
        self._begin_steps(actions, into)
        self._last = into
        rewards, terminated, truncated = self._step_results[into]
        infos = []
        for group in self._groups:
            result = self._receive(group)
            rewards[group.rows] = result.rewards
            terminated[group.rows] = result.terminated
            truncated[group.rows] = result.truncated
            infos.append((group.rows, result.info))
        info = self._with_masks(merge_infos(infos, self.num_envs), self.num_envs)
        return self._memory.sets[into], rewards, terminated, truncated, info

    def close_extras(self, **_: Any) -> None:
        """Ends the actors."""
        for group in self._groups:
            self._end(group)
        self._groups = []
        self._memory.close()

    # ---- worker by worker ----

    def send_reset(self, *, seed: int | Sequence[int | None] | None = None, mask: npt.ArrayLike | None = None) -> None:
        """Begins a reset like `reset`, but returns at once. The result of each worker comes from `recv`."""
        self._begin_reset(seed, mask, None)

    def _begin_reset(self, seed: int | Sequence[int | None] | None, mask: npt.ArrayLike | None, into: int | None) -> None:
        self._check_idle("reset")
        chosen = None if mask is None else checked_mask(mask, "reset_mask", self.num_envs).copy()
        if chosen is not None and chosen.shape != (self.num_envs,):
            raise InvalidRequest(f"reset_mask has the shape {chosen.shape}; use {(self.num_envs,)}", parameter="reset_mask")
        seeds = self._seeds(seed)
        rows = slice(None) if chosen is None else chosen
        self._has_begun[rows] = True
        self._over[rows] = False
        for group in self._groups:
            own = None if chosen is None else chosen[group.rows]
            self._call(group, Call("reset", (seeds[group.rows], own)), into)

    def send(self, actions: npt.ArrayLike, env_id: npt.ArrayLike | None = None) -> None:
        """Begins a step of the environments of one worker, or of all, and returns at once. The results come from `recv`.

        Args:
            actions: One action for each of these environments.
            env_id: The numbers of the environments, as `recv` returned them in `info["env_id"]`. None means all.
        """
        if env_id is None:
            self._begin_steps(actions, None)
            return
        ids = array_of(env_id)
        first = ids.flat[0] if ids.size and ids.dtype != object else -1
        one = next((group for group in self._groups if group.rows.start == first), None)
        if one is None or not np.array_equal(ids, _ids(one)):
            raise InvalidRequest(
                "env_id does not name all environments of one worker; use info['env_id'] of recv", parameter="env_id"
            )
        if one.is_playing:
            raise InvalidRequest("the last step of these environments was not received; call recv first")
        self._check_moved("send")
        values = self._checked(actions, one.count)
        self._check_playable(ids)
        self._call(one, Call("step", (values,)), None)

    def _begin_steps(self, actions: npt.ArrayLike, into: int | None) -> None:
        values = self._checked(actions, self.num_envs)
        self._check_idle("step")
        self._check_playable(np.arange(self.num_envs))
        for group in self._groups:
            self._call(group, Call("step", (values[group.rows],)), into)

    def recv(self) -> tuple[Observation, Array, Array, Array, dict[str, Any]]:
        """Waits for the worker that finishes first, and returns its environments' results in the format of `step`.

        `info["env_id"]` has the numbers of the environments, one for each row. The observations do not change during
        the next step of these environments; copy them to keep them longer. The other arrays are new in each call.
        """
        group = self._first()
        while group.saving is not None:
            # Saved states that were requested arrive before the result.
            self._take_saved(group)
            group = self._first()
        _, rewards, terminated, truncated, info, _ = self._receive(group, has_come=True)
        observations = rows_of(self._memory.sets[group.into], group.rows)
        info = self._with_masks(info, group.count)
        return observations, rewards, terminated, truncated, {**info, "env_id": _ids(group)}

    # ---- the fleet ----

    def state_hashes(self) -> list[str]:
        """The SHA-256 of the state of each console without its sound unit, in hexadecimal digits."""
        self._check_idle("state_hashes")
        return [each for group in self._groups for each in self._hashes(group)]

    def rescale(self, workers: int | None = None) -> int:
        """Distributes the environments over the cluster's present nodes again, and returns the number of workers.

        Call this after nodes were added, or before nodes are removed. The environments continue from their present
        states.

        Args:
            workers: The number of actors. The default is one per node, or as many as fit with `cores_per_worker`.

        Raises:
            FleetError: The workers did not start. No state is lost: call `rescale` again.
        """
        self._check_idle("rescale")
        places = _nodes.plan(_nodes.usable(self._pool.resources), workers, self._cores_per_worker, self.num_envs)
        if self._moving is None:
            self.checkpoint()
            moving = Saved([], [])
            for group in self._groups:
                if group.saved is not None:
                    moving.states.extend(group.saved.states)
                    moving.hashes.extend(group.saved.hashes)
            self._moving = moving
        for group in self._groups:
            self._end(group)
        self._start_all(places)
        for group in self._groups:
            group.into = self._last
            group.saved = Saved(self._moving.states[group.rows], self._moving.hashes[group.rows])
        for group in self._groups:
            try:
                self._restore(group)
            except LOST as error:
                self._replace(group, error)
        self._moving = None
        return len(self._groups)

    def checkpoint(self) -> None:
        """Saves the states of all environments now. The next automatic save is `checkpoint_every` steps later."""
        self._check_idle("checkpoint")
        for group in self._groups:
            self._take_saved(group)
            self._begin_saving(group)
        for group in self._groups:
            self._take_saved(group)
            while group.log:
                # The worker was lost before it answered. Save again with the new one.
                self._begin_saving(group)
                self._take_saved(group)

    def stats(self) -> list[NodeStats]:
        """Steps, steps per second, restarts and mismatches of each node. Ray's metrics have the same figures."""
        return self._metrics.stats()

    def progress(self, steps: int, file: TextIO | None = None) -> Iterator[int]:
        """Counts the steps of a loop, and shows the progress: `for step in fleet.progress(10_000)`.

        The line has the speed, the nodes, the restarts and the time that is left. A terminal shows the current line. A
        file gets a line every 30 seconds, and one at the end.

        Args:
            steps: The number of steps in the loop.
            file: The file for the line. The default is standard error.
        """
        return progress(steps, self.stats, file)

    # ---- calls ----

    def _hashes(self, group: _Group) -> list[str]:
        self._take_saved(group)
        while True:
            try:
                hashes: list[str] = self._link(group).call("hashes")
                return hashes
            except LOST as error:
                self._replace(group, error)

    def _first(self) -> _Group:
        """Waits until a worker's next answer arrives, and returns its environments."""
        playing = [group for group in self._groups if group.is_playing]
        if not playing:
            raise InvalidRequest("no step was begun; call send or send_reset first")
        waiting: dict[Link, _Group] = {}
        for group in playing:
            if group.link is None:
                return group
            waiting[group.link] = group
        ready = _actors.wait(list(waiting), self._pool.call_timeout)
        if not ready:
            raise self._pool.too_late(next(iter(waiting.values())).place.node)
        return waiting[ready[0]]

    def _link(self, group: _Group) -> Link:
        """The link to a worker. Raises one of `LOST` if the worker was not started, after an interrupt or an error."""
        if group.link is None:
            raise ConnectionLostError("it was not started")
        return group.link

    def _call(self, group: _Group, call: Call, into: int | None) -> None:
        """Begins a reset or a step. Observations go into the set of arrays `into`; None is the next set of `recv`."""
        if into is None:
            into = _RECV_SETS[1] if group.into == _RECV_SETS[0] else _RECV_SETS[0]
        if call.name == "reset" and call.arguments[1] is None and None not in call.arguments[0]:
            # After a reset of all environments with seeds, nothing depends on the calls before it.
            self._take_saved(group)
            group.saved, group.log, group.calls = None, [], 0
        group.log.append(_Entry(call))
        group.calls += 1
        group.into = into
        self._play(group)

    def _play(self, group: _Group) -> None:
        """Sends the last call of the log to the worker."""
        # If Ctrl-C interrupts the program now, the result of this call can still be received.
        group.is_playing = True
        if group.link is not None:
            group.link.ask("play", group.log[-1].call, group.into)

    def _receive(self, group: _Group, *, has_come: bool = False) -> Result:
        """Waits for the result of the call that was begun. If the worker is lost, another worker plays the call.

        The observations are in the set of arrays that was chosen for the call.

        Args:
            group: The environments.
            has_come: Whether the worker is known to have answered or to be lost.
        """
        target = rows_of(self._memory.sets[group.into], group.rows)
        self._take_saved(group)
        while True:
            try:
                link = self._link(group)
                places = [] if group.shares else [each for each in arrays(target) if each.nbytes >= LARGE]
                reply = link.reply(places, has_come=has_come)
                break
            except LOST as error:
                has_come = False
                self._replace(group, error)
        group.is_playing = False
        if reply.error is not None:
            group.log.pop()
        result: Result = link.value(reply)
        if result.observations is not None:
            write(target, result.observations)
        group.log[-1].digest = result.digest
        self._metrics.stepped(group.place.node, group.count)
        if self._keeps_over:
            self._over[group.rows] |= result.terminated | result.truncated
        if group.calls >= self._checkpoint_every:
            # Saving also loads the saved states into the environments, which can change what they do next. So each run
            # saves after the same number of calls, and a run that loses a worker has the same results as one that does
            # not.
            self._begin_saving(group)
        return result

    def _begin_saving(self, group: _Group) -> None:
        group.log.append(_Entry(SAVE))
        group.saving = len(group.log)
        group.calls = 0
        if group.link is not None:
            group.link.ask("save")

    def _take_saved(self, group: _Group) -> None:
        """Receives saved states, if they were requested. If the worker is lost, they are not saved this time."""
        if group.saving is None:
            return
        try:
            link = self._link(group)
            reply = link.reply()
        except LOST as error:
            self._replace(group, error)
            return
        saving, group.saving = group.saving, None
        group.saved = link.value(reply)
        group.log = group.log[saving:]

    # ---- workers ----

    def _start_all(self, places: list[Place]) -> None:
        counts = _nodes.shares(places, self.num_envs)
        self._groups = []
        start = 0
        for place, count in zip(places, counts, strict=True):
            group = _Group(slice(start, start + count), place, None)
            group.actor = self._pool.make(place)
            self._groups.append(group)
            start += count
        starting = [self._begin(group) for group in self._groups]
        for group, reference in zip(self._groups, starting, strict=True):
            try:
                self._started(group, reference)
            except LOST as error:
                self._replace(group, error)

    def _begin(self, group: _Group) -> Any:
        return group.actor.start.remote(self._setup, self._files, group.rows, group.place.cores)

    def _started(self, group: _Group, reference: Any) -> None:
        started = self._pool.started(group.place.node, reference)
        group.process = started.process
        group.shares = started.shares
        group.link = self._pool.link(group.place.node, group.actor, started)

    def _end(self, group: _Group) -> None:
        link, group.link = group.link, None
        if link is not None:
            link.close()
        _actors.end(group.actor)
        if ray.is_initialized():
            running = [other.place.node for other in self._groups if other.link is not None]
            self._metrics.stopped(group.place.node, running)

    def _replace(self, group: _Group, cause: Exception) -> None:
        """Continues the environments of a lost worker on another one, after the last step that was received."""
        _actors.check_import(group.place.node, cause)
        for attempt in range(1, _actors.ATTEMPTS + 1):
            lost = group.place.node
            self._end(group)
            used = [other.place for other in self._groups if other is not group]
            place = _nodes.replacement(_nodes.usable(self._pool.resources), used, group.place.cores)
            if place is None:
                break
            if isinstance(cause, _actors.NotStartedError):
                # Other actors may have taken the free cores, which `replacement` does not know.
                place = replace(place, is_guest=True)
            _log.warning(
                "the worker on node %s is lost (%s); continuing on node %s", lost, _actors.first_line(cause), place.node
            )
            group.place = place
            group.actor = self._pool.make(place)
            try:
                self._started(group, self._begin(group))
                self._restore(group)
                self._replay(group)
            except (*LOST, _actors.NotStartedError) as error:
                cause = error
                time.sleep(_actors.PAUSE * attempt)
                continue
            except BaseException:
                if group.link is not None:
                    # The new worker may not have the states of the environments. So the next call replaces it again.
                    group.link.cut()
                raise
            self._metrics.restarted(place.node)
            return
        raise FleetError(
            f"the worker on node {group.place.node} was lost, and no other node took its {group.count} environments in "
            f"{_actors.ATTEMPTS} attempts: {_actors.first_line(cause)}"
        )

    def _restore(self, group: _Group) -> None:
        """Loads the saved states on a new worker, and compares their hashes."""
        if group.saved is None:
            return
        hashes = self._link(group).call("restore", group.saved.states)
        if hashes != group.saved.hashes:
            self._differs(group, "states that were restored have other hashes than those that were saved")

    def _replay(self, group: _Group) -> None:
        """Plays the calls since the saved states. Begins the last call again if its result was not received."""
        group.saving = None
        known = group.log[:-1] if group.is_playing else group.log
        for start in range(0, len(known), _REPLAYED_AT_ONCE):
            part = known[start : start + _REPLAYED_AT_ONCE]
            digests = self._link(group).call("replay", [entry.call for entry in part])
            if any(entry.digest not in (None, digest) for entry, digest in zip(part, digests, strict=True)):
                self._differs(group, "steps that were played again have other results")
        if group.is_playing:
            self._play(group)

    def _differs(self, group: _Group, what: str) -> None:
        self._metrics.mismatched(group.place.node)
        raise FleetError(
            f"node {group.place.node}: {what}; the nodes do not compute the same, so the run cannot continue. Use the same "
            "wheel on every node, and test the memory of this one"
        )

    def _with_masks(self, info: dict[str, Any], count: int) -> dict[str, Any]:
        """Adds Gymnasium's masks, which say which environments have a value: all of them."""
        return info | {f"_{name}": self._all[:count] for name in self._info_names}

    # ---- checks ----

    def _checked(self, actions: npt.ArrayLike, count: int) -> Array:
        """Converts the actions to an array, and checks them before any environment plays a step."""
        # Copy the array, because the log keeps it, and the caller may change its own.
        values = array_of(actions).copy()
        space = self.single_action_space
        shape = (count, *(space.shape or ()))
        if values.shape != shape:
            raise InvalidRequest(f"actions has the shape {values.shape}; use {shape}", parameter="actions")
        # The workers refuse booleans as the number of an action.
        last, kinds = (int(space.n) - 1, "iu") if isinstance(space, gymnasium.spaces.Discrete) else (1, "iub")
        if values.dtype.kind not in kinds:
            raise InvalidRequest(f"actions has the type {values.dtype}; use whole numbers", parameter="actions")
        wrong = values[(values < 0) | (values > last)]
        if wrong.size:
            raise InvalidRequest(f"there is no action {wrong[0]}; use a number from 0 to {last}", parameter="actions")
        return values

    def _check_idle(self, name: str) -> None:
        if self.closed:
            raise InvalidRequest("the fleet is closed; make a new one")
        if name != "rescale":
            self._check_moved(name)
        if any(group.is_playing for group in self._groups):
            raise InvalidRequest(f"{name} needs the results of all steps that were begun; call recv until all are received")

    def _check_moved(self, name: str) -> None:
        if self._moving is not None:
            raise InvalidRequest(f"{name} needs all workers, but rescale has failed; call rescale again")

    def _check_playable(self, ids: Array) -> None:
        new = ids[~self._has_begun[ids]]
        if new.size:
            raise InvalidRequest(f"environment {new[0]} has not begun an episode; call reset first")
        ended = ids[self._over[ids]]
        if ended.size:
            raise InvalidRequest(
                f"the episode of environment {ended[0]} has ended; reset it first, with options={{'reset_mask': mask}}"
            )

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        seeds = checked_seeds(seed, self.num_envs)
        if len(seeds) != self.num_envs:
            raise InvalidRequest(f"seed has {len(seeds)} values for {self.num_envs} environments; give one for each")
        # Without a seed in its first reset, the seed of an environment is its number, as in one process.
        return [index if each is None and not self._has_begun[index] else each for index, each in enumerate(seeds)]


def _ids(group: _Group) -> npt.NDArray[np.int64]:
    return np.arange(group.rows.start, group.rows.stop)
