"""What a pool gave to nodes that it has let go stays as a rule of its own, which every pool's rule comes after."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.partitions.rendered import objects
from tests.plans import CLUSTER, a_plan, resolve_text

POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: right}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, names: [b, c]}
  sharing: {exclusive: {}}
"""
KEPT = """\
apiVersion: gpuplan.dev/v1
kind: Retained
metadata: {name: moved}
spec:
  nodes:
    pool: left
    NODES
    labels: {nvidia.com/mig.config: all-disabled, gpuplan.dev/pool: left}
  until: "`kubectl get nodes -l gpuplan.dev/pool=left` lists none of `b`"
"""
LEFT = POOL.replace("right", "left").replace("[b, c]", "[a, d]")


def a_platform(*documents: str, cluster: str = "", nodes: str = "names: [c, b]") -> Plan:
    return a_plan("---\n".join((CLUSTER + cluster, POOL, KEPT.replace("NODES", nodes), *documents)))


def by_name(plan: Plan) -> dict[str, dict[str, Any]]:
    return {body["metadata"]["name"]: body for body in objects(plan)}


def test_the_rule_is_as_the_document_has_it() -> None:
    [rule] = by_name(a_platform(LEFT))["gpuplan-kept-moved"]["spec"]["rules"]
    assert {key: value for key, value in rule.items() if key != "matchFeatures"} == {
        "name": "moved",
        "labels": {"gpuplan.dev/pool": "left", "nvidia.com/mig.config": "all-disabled"},
    }
    assert rule["matchFeatures"][0] == {
        "feature": "system.name",
        "matchExpressions": {"nodename": {"op": "In", "value": ["b", "c"]}},
    }


def test_it_gives_no_taints() -> None:
    """It is there before the pool's rule lets go: NFD fails at a node that gets one taint from two rules."""
    tainted = LEFT + "  taints: [{key: example.com/left, effect: NoSchedule}]\n"
    [rule] = by_name(a_platform(tainted))["gpuplan-kept-moved"]["spec"]["rules"]
    assert "taints" not in rule


def test_nodes_by_a_pattern_but_for_some() -> None:
    plan = a_platform(LEFT, nodes="namePattern: '[a-z]'\n    exceptNames: [d, a]")
    [rule] = by_name(plan)["gpuplan-kept-moved"]["spec"]["rules"]
    assert [term["matchExpressions"]["nodename"] for term in rule["matchFeatures"][:2]] == [
        {"op": "InRegexp", "value": ["^(?:[a-z])$"]},
        {"op": "NotIn", "value": ["a", "d"]},
    ]


def test_its_name_comes_before_those_of_all_pools_wherever_it_is() -> None:
    openshift = "  platform: openshift\n"
    for plan in (a_platform(LEFT), a_platform(LEFT, cluster=openshift)):
        names = sorted(by_name(plan))
        assert [("kept" in name, "pool" in name) for name in names] == [(True, False), (False, True), (False, True)]


def test_it_is_applied_with_the_pool_that_lets_the_nodes_go_and_before_its_rule() -> None:
    found = [item for _, item in artifacts(a_platform(LEFT)) if isinstance(item, Manifest)]
    waves = {
        item.name: (item.folder, item.body["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"])
        for item in found
        if item.folder == "partitions/left"
    }
    assert waves == {"gpuplan-kept-moved": ("partitions/left", "9"), "gpuplan-pool-left": ("partitions/left", "10")}


def test_the_rule_of_a_pool_that_is_gone_is_there_and_says_nothing() -> None:
    """Flux does not delete it, nor does `kubectl apply`: with its nodes it would go on to hold them."""
    assert by_name(a_platform())["gpuplan-pool-left"]["spec"] == {"rules": []}


@pytest.mark.parametrize("way", ["node", "external"])
def test_where_no_rules_label_nodes_there_is_none(way: str) -> None:
    plan = a_platform(LEFT, cluster=f"  nodeLabels: {way}\n")
    assert not any("kept" in item.name for _, item in artifacts(plan) if isinstance(item, Manifest))


def test_a_name_that_is_none_leads_nowhere() -> None:
    hostile = KEPT.replace("NODES", "names: [b]").replace("pool: left\n", "pool: ../../../left\n", 1)
    plan, _ = resolve_text("---\n".join((CLUSTER, POOL, hostile)))
    assert plan is not None
    paths = [item.folder if isinstance(item, Manifest) else item.path for _, item in artifacts(plan)]
    assert not any(".." in path or "left" in path for path in paths)
