"""ResourceFlavors, Topologies and WorkloadPriorityClasses."""

from __future__ import annotations

from typing import Any

from tests.compiler.backends.kueue.platform import found, manifests, platform, team
from tests.platforms import document


def pool(more: str) -> str:
    return document("Pool", "mine", f"gpu: A100-80GB, nodes: {{count: 1, gpusPerNode: 8}}, {more}")


def flavor(more: str) -> Any:
    return found(platform(pools=pool(more)), "ResourceFlavor", "mine")


def test_a_pool_is_a_flavor_of_its_nodes() -> None:
    assert flavor("sharing: {exclusive: {}}") == {"nodeLabels": {"gpuplan.dev/pool": "mine"}}


def test_pods_that_are_admitted_tolerate_the_pools_taints() -> None:
    taints = "taints: [{key: gpu, value: a100, effect: NoSchedule}, {key: batch, effect: PreferNoSchedule}]"
    assert flavor(f"sharing: {{exclusive: {{}}}}, {taints}")["tolerations"] == [
        {"key": "gpu", "operator": "Equal", "value": "a100", "effect": "NoSchedule"},
        {"key": "batch", "operator": "Exists", "effect": "PreferNoSchedule"},
    ]


def test_a_pool_that_says_where_its_nodes_are_has_a_topology() -> None:
    plan = platform(pools=pool("sharing: {exclusive: {}}, topology: [example.com/rack, kubernetes.io/hostname]"))
    assert found(plan, "ResourceFlavor", "mine")["topologyName"] == "mine"
    assert found(plan, "Topology", "mine") == {
        "levels": [{"nodeLabel": "example.com/rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    }


def test_a_pool_of_fractions_has_nothing_that_kueue_counts() -> None:
    plan = platform(team("research", "pool: mine, guaranteed: 2"), pools=pool("sharing: {fraction: {}}"))
    assert [item.kind for item in manifests(plan)] == ["Cohort"]


def test_a_class_of_workloads_has_the_name_and_value_of_that_of_pods() -> None:
    plan = platform(document("PriorityClass", "urgent", "value: 500, description: For what cannot wait."))
    (body,) = [item.body for item in manifests(plan) if item.kind == "WorkloadPriorityClass"]
    assert body == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": "urgent"},
        "value": 500,
    }
