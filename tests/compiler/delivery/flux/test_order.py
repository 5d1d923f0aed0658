"""What waits for what: labels for the operator that reads them, namespaces for the rules on their pods."""

from __future__ import annotations

from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from gpuplan.compiler.manifests import Identity
from tests.compiler.delivery.flux.rendered import Platform, a_cluster, folder, objects

CLUSTER = a_cluster(pools={"a100": "automatic"})
ALL = [
    folder("gpu-operator"),
    folder("monitoring"),
    folder("namespaces/research"),
    folder("namespaces/training"),
    folder("partitions/a100"),
    folder("queues/a100"),
    folder("scheduling"),
    folder("workloads", Identity("batch", "Job", "research", "warm-up"), Identity("", "ConfigMap", "other", "a")),
    folder("workloads/training", Identity("batch", "Job", "training", "run")),
]


def dependencies(*paths: str) -> dict[str, list[str]]:
    found = objects(CLUSTER, *(item for item in ALL if item.path in paths or not paths))
    bodies = [body for body in found.values() if body["kind"] == "Kustomization"]
    return {body["metadata"]["name"]: [item["name"] for item in body["spec"].get("dependsOn", ())] for body in bodies}


def test_the_order_of_all_folders() -> None:
    assert dependencies() == {
        "gpu-operator-prod": [],
        "gpu-monitoring-prod": [],
        "gpu-namespace-prod-research": ["gpu-tenancy-prod"],
        "gpu-namespace-prod-training": ["gpu-tenancy-prod"],
        "gpu-partitions-prod-a100": ["gpu-operator-prod"],
        "gpu-queues-prod-a100": ["gpu-tenancy-prod"],
        "gpu-tenancy-prod": [],
        "gpu-workloads-prod": ["gpu-tenancy-prod", "gpu-namespace-prod-research"],
        "gpu-workloads-prod-training": ["gpu-tenancy-prod", "gpu-namespace-prod-training"],
    }


def test_a_folder_that_is_not_there_is_not_waited_for() -> None:
    """Flux would wait for ever."""
    assert dependencies("namespaces/research", "partitions/a100") == {
        "gpu-namespace-prod-research": [],
        "gpu-partitions-prod-a100": [],
    }


@pytest.mark.parametrize("cluster", ["dev", "openshift", "prod"])
def test_the_order_of_the_example_has_a_beginning_and_an_end(tmp_path: Path, cluster: str) -> None:
    found = Platform(tmp_path).build(cluster).kustomizations
    graph = {name: [item["name"] for item in body["spec"].get("dependsOn", ())] for name, body in found.items()}
    assert {item for items in graph.values() for item in items} <= graph.keys()
    list(TopologicalSorter(graph).static_order())  # raises where there is a circle


@pytest.mark.parametrize("cluster", ["dev", "prod"])
def test_nothing_waits_for_what_a_person_starts(tmp_path: Path, cluster: str) -> None:
    found = Platform(tmp_path).build(cluster).kustomizations
    suspended = {name for name, body in found.items() if body["spec"].get("suspend")}
    waited_for = {item["name"] for body in found.values() for item in body["spec"].get("dependsOn", ())}
    assert suspended
    assert not suspended & waited_for
