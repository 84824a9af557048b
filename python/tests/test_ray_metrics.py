"""The metrics of a fleet and of a search, read from the nodes of a Ray cluster as Prometheus reads them.

Ray exports metrics only with the extra `ray[default]`, which `make test-python-checks` installs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest
import ray
from ray.cluster_utils import Cluster

from framewire import search
from framewire.errors import InvalidData
from framewire.ray import Fleet, FleetError, FleetExplorer
from tests.clusters import STORE, small_cluster

pytest.importorskip("opentelemetry.exporter.prometheus", reason="make test-python-checks installs it")
parser = pytest.importorskip("prometheus_client.parser", reason="make test-python-checks installs it")

# Ray's own code causes warnings, for example about sockets that it leaves open for its processes.
pytestmark = [pytest.mark.filterwarnings("ignore")]

ENVS = 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with small_cluster(_system_config={"metrics_report_interval_ms": 500}) as cluster:
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
        yield cluster


Figures: TypeAlias = dict[str, dict[str, float]]
"""The values of each metric by the label `node`."""


def scraped() -> Figures:
    """Framewire's metrics that the nodes export."""
    found: Figures = {}
    for node in ray.nodes():
        address = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
        with urllib.request.urlopen(address, timeout=10) as response:
            text = response.read().decode()
        for family in parser.text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name.startswith("ray_framewire_"):
                    values = found.setdefault(sample.name, {})
                    values[sample.labels["node"]] = values.get(sample.labels["node"], 0.0) + sample.value
    return found


def exported(fits: Callable[[Figures], bool]) -> Figures:
    """Reads the exported metrics until `fits` accepts them, but for at most a minute. Returns those that it read last."""
    end = time.monotonic() + 60
    while True:
        # The exporter of a node starts a moment after the node.
        found: Figures = {}
        with contextlib.suppress(OSError):
            found = scraped()
        if fits(found) or time.monotonic() > end:
            return found
        time.sleep(0.5)


def assert_exported(expected: Figures) -> None:
    """Checks that the nodes export these metrics with these values."""

    def of_expected(found: Figures) -> Figures:
        return {name: values for name, values in found.items() if name in expected}

    assert of_expected(exported(lambda found: of_expected(found) == expected)) == expected


def test_prometheus_reads_speed_restarts_and_mismatches(cluster: Cluster) -> None:
    with Fleet(None, "memory", num_envs=ENVS) as fleet:
        fleet.reset(seed=1)
        os.kill(fleet._groups[0].process, signal.SIGKILL)
        fleet.step([1] * ENVS)
        end = time.monotonic() + 3
        while time.monotonic() < end:
            fleet.step([1] * ENVS)
        nodes = {stats.node for stats in fleet.stats()}
        assert len(nodes) == 2
        speed = "ray_framewire_fleet_steps_per_second"

        def plays(found: Figures) -> bool:
            # The restart has set the speed of a node to 0. The next report of its speed comes with a later step.
            fleet.step([1] * ENVS)
            values = found.get(speed, {})
            return set(values) == nodes and min(values.values()) > 0

        playing = exported(plays)[speed]
        assert min(playing.values()) > 0
        fleet._groups[1].log[-1].digest = 0
        os.kill(fleet._groups[1].process, signal.SIGKILL)
        with pytest.raises(FleetError, match="have other results"):
            fleet.step([1] * ENVS)
    expected: Figures = {
        "ray_framewire_fleet_steps_total": {stats.node: stats.steps for stats in fleet.stats()},
        "ray_framewire_fleet_restarts_total": {stats.node: stats.restarts for stats in fleet.stats() if stats.restarts},
        "ray_framewire_fleet_hash_mismatches_total": {
            stats.node: stats.mismatches for stats in fleet.stats() if stats.mismatches
        },
        # The fleet has ended.
        speed: dict.fromkeys(nodes, 0.0),
    }
    assert sum(expected["ray_framewire_fleet_restarts_total"].values()) == 1
    assert sum(expected["ray_framewire_fleet_hash_mismatches_total"].values()) == 1
    assert_exported(expected)


def test_prometheus_reads_the_figures_of_a_search(cluster: Cluster) -> None:
    with FleetExplorer(scenario="memory", score="-bricks_left", cell=["ball_x / 640"]) as explorer:
        running = search.GoExplore(explorer, seed=1)
        running.run(max_frames=4000)
        solution = running.solution()
        with pytest.raises(InvalidData):
            explorer.verify(dataclasses.replace(solution, frames=solution.frames + 1))
    stats = explorer.stats()
    assert_exported(
        {
            "ray_framewire_search_steps_total": {each.node: each.steps for each in stats if each.steps},
            "ray_framewire_search_hash_mismatches_total": {each.node: each.mismatches for each in stats if each.mismatches},
        }
    )
