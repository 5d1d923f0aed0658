"""While a rollout is under way, what is planned of a node depends on the half that it is in."""

from __future__ import annotations

from gpuplan.compiler.backends.monitoring.rules import Group, observed_groups, pool_group
from gpuplan.compiler.planning.plan import Plan
from tests.plans import CLUSTER, a_plan


def a_rollout(sharing: str, target: str, moved: str) -> Plan:
    return a_plan(f"""{CLUSTER}  monitoring: {{}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: p}}
spec:
  gpu: A100-80GB
  nodes: {{count: 3, gpusPerNode: 1, namePattern: 'n[0-9]+'}}
  sharing: {{{sharing}}}
  rollout: {{sharing: {{{target}}}, nodes: {moved}}}
""")


SHARED, LARGE = "timeSlicing: {replicas: 3}", "mig: {instances: {3g.40gb: 2}}"
MIXED = "mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}"


def recorded(group: Group, metric: str) -> list[tuple[str, str]]:
    rules = [(rule.get("labels", {}), rule["expr"]) for rule in group.rules if rule.get("record") == metric]
    return [(labels.get("unit", labels.get("mig_config", "")), expression) for labels, expression in rules]


def node_units(plan: Plan) -> list[tuple[str, str]]:
    assert plan.cluster.monitoring is not None
    return recorded(next(observed_groups(plan, plan.cluster.monitoring)), "node:gpuplan_planned_units:sum")


NODE = "node:gpuplan_pool:info"


def test_a_unit_of_one_half_is_planned_for_its_nodes() -> None:
    assert node_units(a_rollout(SHARED, LARGE, "[n1, n2]")) == [
        ("shared", f'{NODE}{{pool="p",node!~"n1|n2"}} * 3'),
        ("3g.40gb", f'{NODE}{{pool="p",node=~"n1|n2"}} * 2'),
    ]


def test_a_unit_of_both_is_one_rule() -> None:
    units = dict(node_units(a_rollout(LARGE, MIXED, "[n1]")))
    assert units["3g.40gb"] == f'{NODE}{{pool="p",node!~"n1"}} * 2\nor\n{NODE}{{pool="p",node=~"n1"}} * 1'


def test_nothing_is_planned_where_there_are_no_nodes() -> None:
    assert node_units(a_rollout(SHARED, LARGE, "[]")) == [("shared", f'{NODE}{{pool="p"}} * 3')]
    assert node_units(a_rollout(SHARED, LARGE, "[n1, n2, n3]")) == [("3g.40gb", f'{NODE}{{pool="p"}} * 2')]


def test_a_node_may_have_the_layout_of_either_half() -> None:
    plan = a_rollout(SHARED, LARGE, "[n1]")
    found = [config for config, _ in recorded(pool_group(plan), "pool:gpuplan_mig_config:info")]
    assert found == [part.labels["nvidia.com/mig.config"] for part in plan.parts]


def test_capacity_is_that_of_both_halves() -> None:
    found = recorded(pool_group(a_rollout(SHARED, LARGE, "[n1]")), "pool:gpuplan_planned_units:sum")
    assert found == [("shared", "vector(6)"), ("3g.40gb", "vector(2)")]
