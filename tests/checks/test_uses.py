"""Where a plan asks for each concept of the capability matrix, and where its nearest neighbour does not."""

from __future__ import annotations

import pytest

from gpuplan.compiler.catalog.schedulers import concepts
from gpuplan.compiler.checks.losses import USES, uses
from tests.plans import a_cluster, a_plan

CLASSES = """\
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: urgent}
spec: {value: 200, preemptible: false}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: patient}
spec: {value: 50, preemptible: true}
"""


def a_pool(spec: str = "sharing: {timeSlicing: {replicas: 2}}", name: str = "a100") -> str:
    return f"""\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: {name}}}
spec:
  gpu: A100-80GB
  nodes: {{count: 1, gpusPerNode: 8}}
  {spec}
"""


def a_tenant(spec: str, name: str = "research") -> str:
    return f"""\
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {{name: {name}}}
spec:
  {spec}
"""


def a_workload(spec: str) -> str:
    return f"""\
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {{name: run}}
spec:
  tenant: research
  pool: a100
  image: registry.example.com/run:1.0
  {spec}
"""


ONE = "namespaces: [research], quotas: [{pool: a100, guaranteed: 4}]"
MIG = "sharing: {mig: {instances: {1g.10gb: 3, 2g.20gb: 2}}}"
RACKS = "sharing: {exclusive: {}}\n  topology: [example.com/rack]"
IN_ONE_RACK = "training: {pods: 4, topology: {required: example.com/rack}}"
FRACTION = "sharing: {fraction: {}}"


def one(more: str = "") -> str:
    return a_tenant(f"{{{ONE}{more}}}").replace("spec:\n  {", "spec: {")


CASES: dict[str, tuple[str, list[str], str]] = {
    "namespaces": (
        a_pool() + a_tenant("namespaces: [a, b]\n  quotas: [{pool: a100, guaranteed: 4}]"),
        ["`research` has 2 namespaces"],
        a_pool() + one(),
    ),
    "parent": (
        a_pool() + a_tenant("{}", "top") + one(", parent: top"),
        ["`research` is part of `top`"],
        a_pool() + one(),
    ),
    "pool": (
        a_pool()
        + a_pool("sharing: {exclusive: {}}", "h100")
        + a_tenant("namespaces: [a]\n  quotas: [{pool: a100, guaranteed: 4}, {pool: h100, guaranteed: 4}]"),
        ["`research` has quotas on `a100` and `h100`"],
        a_pool() + a_pool("sharing: {exclusive: {}}", "h100") + one(),
    ),
    "unit": (
        a_pool(MIG)
        + a_tenant(
            "namespaces: [a]\n"
            "  quotas: [{pool: a100, unit: 1g.10gb, guaranteed: 4}, {pool: a100, unit: 2g.20gb, guaranteed: 4}]"
        ),
        ["`research` has `1g.10gb` and `2g.20gb` of `a100`"],
        a_pool(MIG) + a_tenant("namespaces: [a]\n  quotas: [{pool: a100, unit: 1g.10gb, guaranteed: 4}]"),
    ),
    "guaranteed": (
        a_pool() + one(),
        ["`research` is guaranteed 4 `shared` of `a100`"],
        a_pool() + a_tenant("namespaces: [a]\n  quotas: [{pool: a100, guaranteed: 0, limit: 4}]"),
    ),
    "limit": (
        a_pool() + a_tenant("namespaces: [a]\n  quotas: [{pool: a100, guaranteed: 4, limit: none}]"),
        ["`research` may use any number of `shared`, and 4 are guaranteed"],
        a_pool() + a_tenant("namespaces: [a]\n  quotas: [{pool: a100, guaranteed: 4, limit: 4}]"),
    ),
    "lendable": (
        a_pool() + a_tenant("namespaces: [a]\n  quotas: [{pool: a100, guaranteed: 4, lendable: 3}]"),
        ["`research` lends 3 of 4"],
        a_pool() + a_tenant("namespaces: [a]\n  quotas: [{pool: a100, guaranteed: 4, lendable: 4}]"),
    ),
    "compute": (
        a_pool() + a_tenant("namespaces: [a]\n  quotas: [{pool: a100, guaranteed: 4, cpu: 8, memory: 64Gi}]"),
        ["`research` has 8 cpu of `a100`", "`research` has 64Gi memory of `a100`"],
        a_pool() + a_tenant("namespaces: [a]\n  quotas: [{pool: a100, guaranteed: 4, pods: 8}]"),
    ),
    "pods": (
        a_pool() + a_tenant("namespaces: [a]\n  quotas: [{pool: a100, guaranteed: 4, pods: 8}]"),
        ["`research` may have 8 pods in `a100`"],
        a_pool() + a_tenant("namespaces: [a]\n  quotas: [{pool: a100, guaranteed: 4, cpu: 8}]"),
    ),
    "surplus-weight": (
        a_pool() + one(", surplus: {weight: 2}"),
        ["`research` has weight 2"],
        a_pool() + one(", surplus: {weight: 1, rank: 1}"),
    ),
    "surplus-rank": (
        a_pool() + one(", surplus: {rank: -1}"),
        ["`research` has rank -1"],
        a_pool() + one(", surplus: {weight: 2, rank: 0}"),
    ),
    "protect": (
        a_pool() + one(", protect: {preempt: 10m, reclaim: 1h}"),
        ["`research`: 10m", "`research`: 1h"],
        a_pool() + one(", protect: {}"),
    ),
    "priority": (
        a_pool() + CLASSES + one(", priorityClasses: [urgent, patient]"),
        ["`research` may name `urgent` and `patient`"],
        a_pool() + CLASSES + one(", priorityClasses: [urgent]"),
    ),
    "preemptible": (
        CLASSES,
        ["pods of `urgent` are not to be evicted"],
        CLASSES.replace("preemptible: false", "preemptible: true"),
    ),
    "preempts": (
        CLASSES.replace("value: 50", "value: 50, preempts: false"),
        ["pods of `patient` evict nobody"],
        CLASSES,
    ),
    "class-access": (
        a_pool() + CLASSES + one(", priorityClasses: [urgent]"),
        ["`research` may name `urgent`"],
        a_pool() + CLASSES + one(),
    ),
    "labelled-namespaces": (
        a_pool() + a_tenant("labelledNamespaces: true\n  quotas: [{pool: a100, guaranteed: 4}]"),
        ["`research` has namespaces by their label"],
        a_pool() + a_tenant("labelledNamespaces: false\n  quotas: [{pool: a100, guaranteed: 4}]"),
    ),
    "class-limits": (
        CLASSES
        + a_pool()
        + a_tenant(
            "namespaces: [a]\n  priorityClasses: [patient]\n"
            "  quotas: [{pool: a100, guaranteed: 4, classLimits: {patient: 2}}]"
        ),
        ["pods of `patient` of `research` use at most 2 `shared` of `a100`"],
        a_pool() + one(),
    ),
    "container-defaults": (
        a_pool() + one(", containers: {cpu: {request: 1}}"),
        ["`research` gives containers cpu that say nothing of it"],
        a_pool() + one(", containers: {cpu: {}}"),
    ),
    "time-limits": (
        a_pool() + one(", timeLimits: {workspaces: {idle: 1h}, trainings: {run: 8h}}"),
        ["`research`: 1h", "`research`: 8h"],
        a_pool() + one(", timeLimits: {workspaces: {}}"),
    ),
    "whole-gpus": (a_pool("sharing: {exclusive: {}}"), ["pool `a100`"], a_pool()),
    "mig": (a_pool(MIG), ["pool `a100`"], a_pool()),
    "shares": (
        a_pool("sharing: {mig: {instances: {1g.10gb: 7}, timeSlicing: {replicas: 2}}}") + a_pool(name="b"),
        ["pool `a100`", "pool `b`"],
        a_pool(MIG),
    ),
    "fraction": (a_pool(FRACTION), ["pool `a100`"], a_pool()),
    "fraction-range": (
        a_pool(FRACTION) + one() + a_workload("inference: {}\n  fraction: {min: 0.25, max: 0.75}"),
        ["`run` has 0.25 to 0.75 of a GPU"],
        a_pool(FRACTION) + one() + a_workload("inference: {}\n  fraction: {min: 0.5, max: 0.5}"),
    ),
    "fraction-memory": (
        a_pool(FRACTION) + one() + a_workload("inference: {}\n  fraction: {memory: 10Gi}"),
        ["`run` has 10240 MiB of a GPU"],
        a_pool(FRACTION) + one() + a_workload("inference: {}\n  fraction: 0.5"),
    ),
    "deadline": (
        a_pool() + one() + a_workload("training: {pods: 4, deadline: 12h}"),
        ["`run` may take 12h"],
        a_pool() + one() + a_workload("training: {pods: 4}"),
    ),
    "gang": (
        a_pool() + one() + a_workload("training: {pods: 4, gang: 2}"),
        ["`run` needs 2 of 4 pods at once"],
        a_pool() + one() + a_workload("training: {pods: 4, gang: 1}"),
    ),
    "topology": (
        a_pool(RACKS),
        ["pool `a100` knows `example.com/rack`"],
        a_pool("sharing: {exclusive: {}}\n  topology: []"),
    ),
    "topology-level": (
        a_pool(RACKS) + one() + a_workload("training: {pods: 4, topology: {required: example.com/rack}}"),
        ["pods of `run` must be in one `example.com/rack`"],
        a_pool(RACKS) + one() + a_workload("training: {pods: 4, gang: 4}"),
    ),
    "placement": (
        a_pool("sharing: {exclusive: {}}\n  placement: spread"),
        ["pool `a100`: spread"],
        a_pool("sharing: {exclusive: {}}"),
    ),
    "fallback": (
        a_pool("sharing: {exclusive: {}}\n  fallback: h100") + a_pool("sharing: {exclusive: {}}", "h100"),
        ["work of pool `a100` may go to `h100`"],
        a_pool("sharing: {exclusive: {}}") + a_pool("sharing: {exclusive: {}}", "h100"),
    ),
    "autoscaling": (
        a_pool()
        + one()
        + a_workload("inference: {autoscaling: {minReplicas: 2, maxReplicas: 4, requestsPerSecond: 10}}"),
        ["`run` has 2 to 4 pods"],
        a_pool() + one() + a_workload("inference: {replicas: 4}"),
    ),
    "dra": (
        a_pool("sharing: {exclusive: {}}\n  allocation: dra"),
        ["pool `a100`"],
        a_pool("sharing: {exclusive: {}}\n  allocation: devicePlugin"),
    ),
    "dynamic-mig": (
        a_pool("sharing: {dynamicMig: {profiles: [1g.10gb]}}\n  allocation: dra"),
        ["pool `a100`"],
        a_pool("sharing: {mig: {instances: {1g.10gb: 7}}}\n  allocation: dra"),
    ),
}


def test_every_concept_of_the_matrix_is_looked_for() -> None:
    assert list(USES) == [concept.id for concept in concepts()]
    assert set(CASES) == set(USES)


@pytest.mark.parametrize("concept", CASES)
def test_a_use_is_found_and_its_neighbour_is_none(concept: str) -> None:
    asked, texts, neighbour = CASES[concept]
    assert [use.text for use in uses(a_plan(a_cluster("kind: kai") + asked), concept)] == texts
    assert uses(a_plan(a_cluster("kind: kai") + neighbour), concept) == ()


def test_a_use_is_at_its_line() -> None:
    asked, _, _ = CASES["limit"]
    [use] = uses(a_plan(a_cluster("kind: kai") + asked), "limit")
    assert use.at.locate().file.lines[use.at.locate().span.start.line - 1].endswith("limit: none}]")
