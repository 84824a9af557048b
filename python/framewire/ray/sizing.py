"""How many machines a fleet needs: `python -m framewire.ray.sizing FILE`.

It prints the expected speed of a fleet from constants that were measured: docs/fleets.md explains the model. `make
bench-fleet` measures them and writes the file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

_CORES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)


@dataclass(frozen=True)
class Costs:
    """What was measured.

    Attributes:
        step_seconds: A step of one environment on one core of a machine whose other cores are idle.
        busy_step_seconds: The same while all cores of the machine are busy.
        latency_seconds: The time from the program to a worker and back, without the work of both.
        worker_seconds: The work of a worker for each step of all its environments, without the steps themselves.
        call_seconds: The work of the program for each worker and step.
        received_bytes_per_second: Observations that the program receives from other machines, if it does nothing else.
    """

    step_seconds: float
    busy_step_seconds: float
    latency_seconds: float
    worker_seconds: float
    call_seconds: float
    received_bytes_per_second: float

    @classmethod
    def of(cls, measured: Mapping[str, float]) -> Costs:
        """The constants in a file of `benches/fleet.py`."""
        return cls(**{field.name: measured[field.name] for field in fields(cls)})


@dataclass(frozen=True)
class Plan:
    """A fleet to predict.

    Attributes:
        cores: The cores of all workers together.
        cores_per_worker: The cores of one worker.
        envs_per_core: Environments for each core.
        observation_bytes: Bytes of one observation.
        network_bytes_per_second: What the machine of the program receives; None if all workers are on its machine.
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
    """What a fleet does.

    Attributes:
        workers: How many workers it has.
        steps_per_second: Steps of single environments with `step`, which waits for all workers.
        steps_per_second_async: The same with `send` and `recv`.
        limit: What bounds `send` and `recv`: "cores", "program" or "network".
        efficiency: `steps_per_second_async` divided by the steps per second of the cores alone.
    """

    workers: int
    steps_per_second: float
    steps_per_second_async: float
    limit: str
    efficiency: float


def predict(costs: Costs, plan: Plan) -> Prediction:
    """The expected speed of a fleet."""
    workers = max(1, -(-plan.cores // plan.cores_per_worker))
    envs = plan.cores * plan.envs_per_core
    size = envs * plan.observation_bytes
    # Seconds for one step of all environments: the time that each part needs if it does not wait for others.
    real_cores = plan.cores if plan.machine_cores is None else min(plan.cores, plan.machine_cores)
    is_busy = plan.machine_cores is None or plan.cores >= plan.machine_cores
    step_seconds = costs.busy_step_seconds if is_busy else costs.step_seconds
    emulation = (envs * step_seconds + plan.cores * costs.worker_seconds) / real_cores
    program = workers * costs.call_seconds
    network = 0.0
    if plan.network_bytes_per_second is not None:
        # On one machine, workers write observations into memory that the program shares.
        program += size / costs.received_bytes_per_second
        network = size / plan.network_bytes_per_second
    # `step` begins when all results of the step before have arrived. Only the network works while the program does.
    together = emulation + costs.latency_seconds + max(program, network)
    parts = {"cores": emulation, "program": program, "network": network}
    if plan.machine_cores is not None and is_busy:
        # The program takes its time from the cores of the workers.
        parts["cores"] += program / plan.machine_cores
    limit = max(parts, key=lambda name: parts[name])
    alone = envs * step_seconds / plan.cores
    return Prediction(workers, envs / together, envs / parts[limit], limit, alone / parts[limit])


def main() -> None:
    """Prints a table."""
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
