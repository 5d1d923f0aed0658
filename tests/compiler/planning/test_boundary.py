"""Which taints pools have, and what they make of the objects that are written."""

from __future__ import annotations

import pytest
import yaml

from gpuplan.compiler.backends import kueue, partitions
from gpuplan.compiler.backends.gpu_operator import settings
from gpuplan.compiler.catalog.operators import OPERAND_TOLERATIONS
from gpuplan.compiler.manifests import File, Manifest
from gpuplan.compiler.planning.grants import barriers
from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_cluster, a_plan
from tests.platforms import pool, tenant

DEFAULT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}
NODES = "count: 2, gpusPerNode: 8, namePattern: 'gpu-[0-9]+'"


def platform(*documents: str, closed: bool = True, cluster: str = "", scheduler: str = "kubernetes") -> Plan:
    more = f"spec:\n  taintPools: {str(closed).lower()}\n{cluster}"
    return a_plan(a_cluster(f"kind: {scheduler}").replace("spec:\n", more, 1) + "".join(documents))


def taints_of(plan: Plan, name: str = "a") -> list[dict[str, str]]:
    found = next(item for item in plan.pools if item.name == name)
    return [{"key": taint.key, "value": taint.value, "effect": taint.effect.value} for taint in found.taints]


def test_a_pool_has_the_taint_of_its_cluster_where_none_of_its_own_keeps_pods_off() -> None:
    own = {"key": "lab", "value": "", "effect": "NoSchedule"}
    polite = {"key": "lab", "value": "", "effect": "PreferNoSchedule"}
    plan = platform(
        pool("a"),
        pool("own", "exclusive: {}", "taints: [{key: lab, effect: NoSchedule}]"),
        pool("polite", "exclusive: {}", "taints: [{key: lab, effect: PreferNoSchedule}]"),
    )

    assert taints_of(plan) == [DEFAULT]
    assert taints_of(plan, "own") == [own]
    assert taints_of(plan, "polite") == [polite, DEFAULT]


def test_a_cluster_that_says_nothing_gives_no_taint() -> None:
    assert taints_of(platform(pool("a"), closed=False)) == []


def test_node_feature_discovery_sets_it() -> None:
    plan = platform(pool("a", nodes=NODES))
    (rule,) = next(item.body for item in partitions.render(plan) if isinstance(item, Manifest))["spec"]["rules"]

    assert rule["taints"] == [DEFAULT]


def test_the_operators_own_pods_tolerate_it_already() -> None:
    assert settings.missing_tolerations(platform(pool("a")), OPERAND_TOLERATIONS) == []


@pytest.mark.parametrize("labels", ["node", "external"])
def test_the_table_of_node_groups_names_it_for_who_makes_the_nodes(labels: str) -> None:
    plan = platform(pool("a", nodes="count: 1, gpusPerNode: 8, names: [gpu-1]"), cluster=f"  nodeLabels: {labels}\n")
    table = next(item for item in partitions.render(plan) if isinstance(item, File))

    assert yaml.safe_load(table.data)["nodeGroups"][0]["taints"] == [DEFAULT]


def test_kueue_tolerates_it_for_what_it_sends_there() -> None:
    plan = platform(pool("a"), tenant("lab", "pool: a, guaranteed: 4"), scheduler="kueue")
    written = (item for item in kueue.render(plan) if isinstance(item, Manifest))
    flavor = next(item.body for item in written if item.kind == "ResourceFlavor")

    assert flavor["spec"]["tolerations"] == [TOLERATION]


def test_a_usual_taint_is_guarded_whatever_its_value() -> None:
    plan = platform(pool("a"), pool("b", "exclusive: {}", "taints: [{key: lab, value: x, effect: NoSchedule}]"))

    assert barriers(plan) == (
        (("lab", "x", "NoSchedule"),),
        (("node-role.kubernetes.io/control-plane", "*", "NoSchedule"),),
        (("node-role.kubernetes.io/master", "*", "NoSchedule"),),
        (("nvidia.com/gpu", "*", "NoSchedule"),),
    )
