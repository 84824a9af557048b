"""Predicts the speed of fleets of different sizes: `python -m framewire.ray.sizing FILE`.

The prediction is computed from measured constants; docs/fleets.md explains the model. `make bench-fleet` measures the
constants and writes them to the file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

# The fleets in the table, by their numbers of cores.
_CORES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)


@dataclass(frozen=True)
class Costs:
    """The measured constants.

    Attributes:
        step_seconds: The time for a step of one environment on one core, while the other cores of the machine are idle.
        busy_step_seconds: The same while all cores of the machine are busy.
        latency_seconds: The time that a message to a worker and its answer are on the way. It does not include the time
            that the worker and the program need for their work.
        worker_seconds: The time that a worker needs for each step of all its environments, without the emulation.
        call_seconds: The time that the program needs for each worker in each step.
        received_bytes_per_second: How fast the program can receive observations from other machines.
    """

    step_seconds: float
    busy_step_seconds: float
    latency_seconds: float
    worker_seconds: float
    call_seconds: float
    received_bytes_per_second: float

    @classmethod
    def of(cls, measured: Mapping[str, float]) -> Costs:
        """The constants from a file that `python/benches/fleet.py` has written."""
        return cls(**{field.name: measured[field.name] for field in fields(cls)})


@dataclass(frozen=True)
class Plan:
    """A fleet whose speed is predicted.

    Attributes:
        cores: The total number of cores of all workers.
        cores_per_worker: The number of cores of one worker.
        envs_per_core: The number of environments per core.
        observation_bytes: The size of one observation in bytes.
        network_bytes_per_second: How much the program's machine can receive; None if all workers are on this machine.
        machine_cores: The cores of the machine that all workers share; None if each worker has its own machine.
    """

    cores: int
    cores_per_worker: int = 8
    envs_per_core: int = 32
    observation_bytes: int = 28_224
    network_bytes_per_second: float | None = 1.25e9
    machine_cores: int | None = None


@dataclass(frozen=True)
class Prediction:
    """The predicted speed of a fleet.

    Attributes:
        workers: The number of workers.
        steps_per_second: Environment steps per second with `step`, which waits for all workers.
        steps_per_second_async: The same with `send` and `recv`.
        limit: What limits the speed with `send` and `recv`: "cores", "program" or "network".
        efficiency: `steps_per_second_async` divided by the steps per second of the cores alone.
    """

    workers: int
    steps_per_second: float
    steps_per_second_async: float
    limit: str
    efficiency: float


def predict(costs: Costs, plan: Plan) -> Prediction:
    """Predicts the speed of a fleet."""
    workers = max(1, -(-plan.cores // plan.cores_per_worker))
    envs = plan.cores * plan.envs_per_core
    size = envs * plan.observation_bytes
    # The time that each part (cores, program, network) needs for one step of all environments, if it never waits for
    # the other parts.
    real_cores = plan.cores if plan.machine_cores is None else min(plan.cores, plan.machine_cores)
    is_busy = plan.machine_cores is None or plan.cores >= plan.machine_cores
    step_seconds = costs.busy_step_seconds if is_busy else costs.step_seconds
    # `worker_seconds` counts for each core: while a worker does work other than emulation, all its cores wait.
    emulation = (envs * step_seconds + plan.cores * costs.worker_seconds) / real_cores
    program = workers * costs.call_seconds
    network = 0.0
    if plan.network_bytes_per_second is not None:
        # Only a fleet on several machines needs this time. On one machine, workers write observations into shared
        # memory.
        program += size / costs.received_bytes_per_second
        network = size / plan.network_bytes_per_second
    # `step` begins when all results of the previous step have arrived. Only the program and the network work in
    # parallel.
    together = emulation + costs.latency_seconds + max(program, network)
    parts = {"cores": emulation, "program": program, "network": network}
    if plan.machine_cores is not None and is_busy:
        # The program runs on the cores of the workers, so its time is added to theirs.
        parts["cores"] += program / plan.machine_cores
    limit = max(parts, key=lambda name: parts[name])
    alone = envs * step_seconds / real_cores
    return Prediction(workers, envs / together, envs / parts[limit], limit, alone / parts[limit])


def main() -> None:
    """Prints a table of predictions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the figures of `make bench-fleet`, docs/performance/fleets.json")
    parser.add_argument("--cores-per-worker", type=int, default=8)
    parser.add_argument("--envs-per-core", type=int, default=32)
    parser.add_argument("--bytes", type=int, default=28_224, help="bytes of one observation; 84x84x4 is 28224")
    parser.add_argument("--gbit", type=float, default=10.0, help="the network of the program's machine, in Gbit/s")
    options = parser.parse_args()
    for name in ("cores_per_worker", "envs_per_core", "bytes", "gbit"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name.replace('_', '-')} is {getattr(options, name)}; use a number greater than 0")
    try:
        costs = Costs.of(json.loads(options.file.read_text())["constants"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f"{options.file} has no constants ({error!r}); `make bench-fleet` writes a file with them")
    print("cores  workers  environments  step/s  send+recv/s  efficiency  limit")
    for cores in _CORES:
        plan = Plan(
            cores, min(cores, options.cores_per_worker), options.envs_per_core, options.bytes, options.gbit * 1e9 / 8
        )
        found = predict(costs, plan)
        print(
            f"{cores:5}  {found.workers:7}  {cores * plan.envs_per_core:12}  {found.steps_per_second:6.0f}  "
            f"{found.steps_per_second_async:11.0f}  {found.efficiency:9.0%}   {found.limit}"
        )


if __name__ == "__main__":
    main()
