"""A pool that gets a taint closes: which class that has, and what does not come there any more."""

from __future__ import annotations

import json
from typing import Any

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes.model import Change
from gpuplan.features.changes.pods import Outsider, find_outsiders, read_pods
from gpuplan.features.changes.states import ClusterState, compare
from tests.plans import CLUSTER, a_plan
from tests.platforms import pool

TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}
OTHERS = "count: 1, gpusPerNode: 8, names: [gpu-3]"
NODES = "count: 2, gpusPerNode: 8, names: [gpu-1, gpu-2]"


def platform(*, closed: bool) -> Plan:
    cluster = f"{CLUSTER}  taintPools: {str(closed).lower()}\n"
    own = pool(
        "own",
        "exclusive: {}",
        "taints: [{key: lab, effect: NoSchedule}]",
        nodes="count: 1, gpusPerNode: 8, names: [gpu-3]",
    )
    return a_plan(cluster + pool("a", nodes=NODES) + own)


def changes(before: Plan, after: Plan) -> tuple[Change, ...]:
    return compare(*([ClusterState.of(plan, artifacts(plan))] for plan in (before, after))).changes


def listed_pod(name: str, node: str, *tolerations: dict[str, str], kind: str = "", owner: str = "") -> dict[str, Any]:
    references = [{"kind": kind, "name": owner, "controller": True}] if kind else []
    labels = {"pod-template-hash": "6d4"} if kind == "ReplicaSet" else {}
    return {
        "kind": "Pod",
        "metadata": {"namespace": "eye", "name": name, "labels": labels, "ownerReferences": references},
        "spec": {"nodeName": node, "containers": [], "tolerations": list(tolerations)},
        "status": {"phase": "Running"},
    }


def test_a_pool_that_gets_the_taint_of_its_cluster_closes() -> None:
    (change,) = changes(platform(closed=False), platform(closed=True))

    assert (change.subject.name, change.change_class) == ("a", ChangeClass.TAINT)
    assert change.what == "gets `nvidia.com/gpu=present:NoSchedule`"
    assert change.at.path[-1] == "taintPools"
    assert change.pods == 0


def test_a_pool_that_loses_it_opens() -> None:
    (change,) = changes(platform(closed=True), platform(closed=False))

    assert change.change_class is ChangeClass.ADMISSION


def test_what_does_not_tolerate_it_is_named() -> None:
    (change,) = changes(before := platform(closed=False), platform(closed=True))
    listed = [
        listed_pod("exporter-1", "gpu-1", kind="DaemonSet", owner="exporter"),
        listed_pod("exporter-2", "gpu-2", kind="DaemonSet", owner="exporter"),
        listed_pod("web-1", "gpu-1", kind="ReplicaSet", owner="web-6d4"),
        listed_pod("alone", "gpu-2"),
        listed_pod("plugin", "gpu-1", TOLERATION, kind="DaemonSet", owner="plugin"),
        listed_pod("static", "gpu-1", kind="Node", owner="gpu-1"),
        listed_pod("far", "cpu-1", kind="DaemonSet", owner="far"),
    ]

    assert find_outsiders(change, before, read_pods(json.dumps({"items": listed}), "pods.json")) == (
        Outsider("eye", "DaemonSet", "exporter", 2),
        Outsider("eye", "Deployment", "web", 1),
        Outsider("eye", "Pod", "alone", 1),
    )
