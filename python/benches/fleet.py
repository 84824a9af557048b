"""Measures fleets on a Ray cluster on this machine: python benches/fleet.py [--json FILE] [--seconds N]

Each node of the cluster has one processor core. Fleets of 1, 2 and 4 nodes are compared with the same environments in
one process, which has as many threads as the fleet has nodes, but not more than the machine has cores. The machine may be
noisy, so they run in turn, in several rounds, and medians are compared. The medians are also compared with the
predictions of `framewire.ray.sizing`. Then nodes and workers are killed in runs of 10,000 steps on 2 and on 4 nodes.
The rewards and the states at the end are compared with those of one process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# By default, Ray's workers have a low priority, and any other program on the machine takes processor time from them.
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112

import numpy as np
import ray
from peers import rate
from ray.cluster_utils import Cluster

import framewire.envs
from framewire.envs import GameVectorEnv
from framewire.ray import Fleet
from framewire.ray import fleet as fleet_module
from framewire.ray._memory import SharedMemory
from framewire.ray.sizing import Costs, Plan, predict

NODES = (1, 2, 4)
ENVS = 512
ROUNDS = 3
STORE = 200 << 20
"""The size of the object store of each node, in bytes."""
BYTES = 84 * 84 * 4
"""The size of an observation: four grey pictures."""


def stepping(vector: GameVectorEnv | Fleet) -> Callable[[], int]:
    """A function that plays a step in all environments, and returns their number."""
    vector.reset(seed=0)
    actions = np.ones(vector.num_envs, dtype=np.int64)

    def work() -> int:
        vector.step(actions)
        return vector.num_envs

    return work


def receiving(fleet: Fleet) -> Callable[[], int]:
    """A function that receives a step of the worker that is ready first, and begins its next step."""
    fleet.send_reset(seed=0)

    def work() -> int:
        numbers = fleet.recv()[-1]["env_id"]
        fleet.send(np.ones(len(numbers), dtype=np.int64), numbers)
        return len(numbers)

    return work


def speeds(nodes: int, seconds: float) -> dict[str, float]:
    """Measures one round with this number of nodes."""
    threads = min(nodes, os.cpu_count() or 1)
    one = framewire.envs.make_vec(scenario="pixels", num_envs=ENVS, threads=threads)
    found = {"one_process": rate(stepping(one), seconds)}
    one.close()
    with Fleet(None, "pixels", num_envs=ENVS, workers=nodes) as fleet:
        found["step"] = rate(stepping(fleet), seconds)
    with Fleet(None, "pixels", num_envs=ENVS, workers=nodes) as fleet:
        found["send_recv"] = rate(receiving(fleet), seconds)
    return found


class Calls(NamedTuple):
    """The overhead of a step with one environment per worker, in seconds.

    Attributes:
        clock: Elapsed time, without that of the same step in one process.
        program: Processor time of the program.
        worker: Processor time of each worker, without that of the same step in one process.
    """

    clock: float
    program: float
    worker: float


def calls(workers: int, seconds: float) -> Calls:
    """Measures the overhead of a step in a fleet, without the step itself."""
    one = framewire.envs.make_vec(scenario="memory", num_envs=1, threads=1)
    clock, own = each_call(stepping(one), seconds, [])
    one.close()
    with Fleet(None, "memory", num_envs=workers, workers=workers) as fleet:
        processes = [group.process for group in fleet._groups]
        fleet_clock, program, *used = each_call(stepping(fleet), seconds, processes)
    return Calls(fleet_clock - clock, program, sum(used) / workers - own)


def each_call(work: Callable[[], int], seconds: float, processes: list[int]) -> list[float]:
    """Seconds per call: elapsed time, and processor time of this process and of each of these processes."""

    def now() -> list[float]:
        return [time.perf_counter(), time.process_time(), *map(processor_seconds, processes)]

    work()
    before, count = now(), 0
    while time.perf_counter() - before[0] < seconds:
        work()
        count += 1
    return [(end - begin) / count for begin, end in zip(before, now(), strict=True)]


def slowdown_in_worker(worker_seconds: float) -> float:
    """The processor time of a step in a worker, divided by that of the same step in one process; at least 1.

    Args:
        worker_seconds: The overhead of a step in a worker, which is subtracted first.
    """
    envs = ENVS // max(NODES)
    one = framewire.envs.make_vec(scenario="pixels", num_envs=envs, threads=1)
    _, own = each_call(stepping(one), 2.0, [])
    one.close()
    with Fleet(None, "pixels", num_envs=envs, workers=1) as fleet:
        _, _, used = each_call(stepping(fleet), 2.0, [fleet._groups[0].process])
    return max((used - worker_seconds) / own, 1.0)


def processor_seconds(process: int) -> float:
    """The processor time that a process has used, in seconds."""
    numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


class Unshared(SharedMemory):
    """Memory that no worker can open, as if all workers were on other machines."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.close()


def received_bytes_per_second(seconds: float) -> float:
    """How many bytes of observations the program receives per second of its processor time."""
    with patch.object(fleet_module, "SharedMemory", Unshared):
        fleet = Fleet(None, "pixels", num_envs=ENVS, workers=1)
    with fleet:
        _, program = each_call(stepping(fleet), seconds, [])
    return ENVS * BYTES / program


def kill(cluster: Cluster, node: Any, fleet: Fleet) -> None:
    """Ends all processes of a node."""
    cluster.remove_node(node, allow_graceful=False)
    for group in fleet._groups:
        if group.place.node.id == node.node_id:
            # The process may have ended together with its node.
            with suppress(ProcessLookupError):
                os.kill(group.process, signal.SIGKILL)


def losses(cluster: Cluster, workers: int, steps: int) -> dict[str, Any]:
    """Kills a node or a worker in each tenth of a run, and compares the results with those of one process."""
    envs = 2 * workers
    one = framewire.envs.make_vec(scenario="memory", num_envs=envs)
    rng = np.random.default_rng(1)
    actions = rng.integers(0, 4, (steps, envs))
    one.reset(seed=1)
    rewards = sum(one.step(each)[1].sum() for each in actions)
    expected = one.state_hashes()
    one.close()
    nodes, found = 0, 0.0
    with Fleet(None, "memory", num_envs=envs, workers=workers) as fleet:
        fleet.reset(seed=1)
        for step, each in enumerate(actions):
            if step % (steps // 10) == steps // 20:
                victim = fleet._groups[step // (steps // 10) % workers]
                node = next((node for node in cluster.worker_nodes if node.node_id == victim.place.node.id), None)
                if node is None:
                    # The worker is on the head node, which is not in `worker_nodes`. Only the worker is killed.
                    os.kill(victim.process, signal.SIGKILL)
                else:
                    kill(cluster, node, fleet)
                    nodes += 1
                    cluster.add_node(num_cpus=1, object_store_memory=STORE)
            found += fleet.step(each)[1].sum()
        is_equal = fleet.state_hashes() == expected and bool(found == rewards)
        restarts = sum(stats.restarts for stats in fleet.stats())
    return {
        "nodes": workers,
        "steps": steps,
        "environments": envs,
        "nodes_killed": nodes,
        "restarts": restarts,
        "equal": is_equal,
    }


def main() -> None:
    """Prints the figures, and writes them as JSON if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="the file for the figures; figures of other kinds in it are kept")
    parser.add_argument("--only", choices=("speeds", "losses"))
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--steps", type=int, default=10_000)
    options = parser.parse_args()
    figures: dict[str, Any] = {
        "command": "make bench-fleet",
        "ray": ray.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count() or 1,
        "niceness_of_workers": 0,
    }
    with ExitStack() as stack:
        cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": STORE}
        )
        stack.callback(cluster.shutdown)
        for _ in range(max(NODES) - 1):
            cluster.add_node(num_cpus=1, object_store_memory=STORE)
        ray.init(address=cluster.address, log_to_driver=False)
        stack.callback(ray.shutdown)
        if options.only != "losses":
            rounds = [{nodes: speeds(nodes, options.seconds) for nodes in NODES} for _ in range(ROUNDS)]
            figures |= summary(rounds, measured_costs(rounds))
        if options.only != "speeds":
            figures["losses"] = [losses(cluster, workers, options.steps) for workers in NODES[1:]]
    if options.json is not None:
        before = json.loads(options.json.read_text()) if options.json.exists() else {}
        options.json.write_text(json.dumps(before | figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


def median(rounds: list[dict[int, dict[str, float]]], nodes: int, name: str) -> float:
    """The median of a figure over the rounds."""
    return statistics.median(each[nodes][name] for each in rounds)


def measured_costs(rounds: list[dict[int, dict[str, float]]]) -> Costs:
    """Measures the constants from which `framewire.ray.sizing` predicts speeds.

    None of them comes from the fleets whose speed is predicted.

    The largest number of nodes must be at least the number of cores of this machine, so that all cores are busy.
    """
    threads = min(max(NODES), os.cpu_count() or 1)
    one, two = (
        Calls(*map(statistics.median, zip(*(calls(workers, 1.0) for _ in range(3)), strict=True))) for workers in (1, 2)
    )
    worker = max(one.worker, 0.0)
    more = statistics.median(slowdown_in_worker(worker) for _ in range(3))
    return Costs(
        step_seconds=more / median(rounds, 1, "one_process"),
        busy_step_seconds=more * threads / median(rounds, max(NODES), "one_process"),
        latency_seconds=max(one.clock - one.program - worker, 0.0),
        worker_seconds=worker,
        call_seconds=two.program / 2,
        received_bytes_per_second=received_bytes_per_second(1.0),
    )


def summary(rounds: list[dict[int, dict[str, float]]], costs: Costs) -> dict[str, Any]:
    """The speeds, the constants of the model, and its predictions for these fleets."""
    fleets = []
    for nodes in NODES:
        measured = {name: median(rounds, nodes, name) for name in ("one_process", "step", "send_recv")}
        prediction = predict(costs, Plan(nodes, 1, ENVS // nodes, BYTES, None, os.cpu_count() or 1))
        predicted = {"step": prediction.steps_per_second, "send_recv": prediction.steps_per_second_async}
        fleets.append(
            {
                "nodes": nodes,
                **{name: round(value) for name, value in measured.items()},
                **{f"{name}_of_one_process": round(measured[name] / measured["one_process"], 3) for name in predicted},
                **{f"predicted_{name}": round(value) for name, value in predicted.items()},
                **{f"{name}_of_predicted": round(measured[name] / value, 3) for name, value in predicted.items()},
            }
        )
    return {
        "environments": ENVS,
        "scenario": "pixels of the demo game: four frames a step, 28,224 bytes an observation",
        "unit": "steps of single environments per second",
        "fleets": fleets,
        "constants": {name: float(f"{value:.4g}") for name, value in vars(costs).items()},
        "rounds": [
            {str(nodes): {name: round(value) for name, value in found.items()} for nodes, found in each.items()}
            for each in rounds
        ],
    }


if __name__ == "__main__":
    main()
