"""Every object against the real definitions of its kind, and against what Kueue's webhooks say beyond them."""

from __future__ import annotations

from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends import crds
from tests.compiler.backends.kueue.platform import manifests, platform, team, tenant
from tests.compiler.backends.kueue.webhook import refusals
from tests.platforms import document

RACKS = document(
    "Pool",
    "racks",
    "gpu: A100-80GB, nodes: {count: 2, gpusPerNode: 8}, sharing: {exclusive: {}}, "
    "topology: [example.com/block, example.com/rack, kubernetes.io/hostname], "
    "taints: [{key: nvidia.com/gpu, value: racks, effect: NoSchedule}, {key: batch, effect: NoExecute}]",
)


def everything() -> Plan:
    """All kinds with all of their fields."""
    return platform(
        RACKS,
        document("PriorityClass", "urgent", "value: 500"),
        document("PriorityClass", "idle", "value: -5, preempts: false"),
        tenant(
            "science",
            "namespaces: [science], priorityClasses: [urgent, idle], surplus: {weight: 0.5}, "
            "quotas: [{pool: shared, guaranteed: 20, limit: 24, lendable: 10}]",
        ),
        team("physics", "pool: shared, guaranteed: 8, limit: none", more=", parent: science, surplus: {weight: 0}"),
        team(
            "serving",
            "pool: racks, guaranteed: 4, limit: 8",
            "pool: split, unit: 2g.20gb, guaranteed: 8, lendable: 2",
            "pool: split, unit: 3g.40gb, guaranteed: 8",
        ),
    )


def test_objects_are_what_their_definitions_want() -> None:
    assert {item.kind for item in manifests(everything())} == {
        "ClusterQueue",
        "Cohort",
        "LocalQueue",
        "ResourceFlavor",
        "Topology",
        "WorkloadPriorityClass",
    }
    assert crds.problems(manifests(everything())) == []


def test_objects_are_what_the_webhooks_want() -> None:
    assert [refusals(item.body.get("spec", {})) for item in manifests(everything())] == [
        [] for _ in manifests(everything())
    ]
