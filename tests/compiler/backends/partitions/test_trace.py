"""Where the leaves of what nodes get come from."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gpuplan.compiler.backends import partitions
from gpuplan.compiler.manifests import File
from gpuplan.compiler.planning.plan import Plan
from tests.laws.tracing.told import find, told, told_of_all
from tests.plans import a_plan

LABELS = "nodeLabels: node"


def a_pool(nodes: str, more: str = "", *, cluster: str = "nodeLabels: nfd", kubernetes: str = "1.34") -> Plan:
    return a_plan(f"""
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: test}}
spec: {{kubernetes: "{kubernetes}", gpuOperator: {{install: helm, nfd: false, version: v26.7.0}}, {cluster}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: p}}
spec:
  gpu: A100-80GB
  nodes: {{count: 3, gpusPerNode: 8, {nodes}}}
  sharing: {{mig: {{layout: halves}}}}
  nodeLabels: {{example.com/rack: r1}}
  {more}
---
apiVersion: gpuplan.dev/v1
kind: MigLayout
metadata: {{name: halves}}
spec: {{gpu: A100-80GB, instances: {{3g.40gb: 2}}}}
""")


ROLLOUT = "rollout: {sharing: {mig: {instances: {1g.10gb: 7}, strategy: single}}, nodes: [b]}"
PATTERN = "namePattern: '[a-z]'"


def rule(plan: Plan) -> Mapping[str, list[str]]:
    return told(plan, find(partitions.render(plan), "NodeFeatureRule"))


def table(plan: Plan) -> Mapping[str, list[str]]:
    (found,) = (item for item in partitions.render(plan) if isinstance(item, File))
    return told(plan, found)


# --- Rules -------------------------------------------------------------------------------------------------------


def test_the_label_that_repartitions_is_a_name_and_a_digest() -> None:
    found = rule(a_pool(PATTERN))

    assert found['spec.rules[0].labels["nvidia.com/mig.config"]'] == [
        "chosen by Pool/p spec.sharing.mig.layout",
        "copied MigLayout/halves metadata.name",
        'hash of MigLayout/halves spec.instances["3g.40gb"]',
    ]
    assert found['spec.rules[0].labels["example.com/rack"]'] == ['copied Pool/p spec.nodeLabels["example.com/rack"]']
    assert found["spec.rules[0].matchFeatures[0].matchExpressions.nodename.value[0]"] == [
        "copied Pool/p spec.nodes.namePattern"
    ]


def test_each_half_of_a_rollout_has_labels_of_its_own() -> None:
    found = rule(a_pool(PATTERN, ROLLOUT))

    assert found['spec.rules[1].labels["nvidia.com/mig.config"]'] == [
        "copied Pool/p metadata.name",
        'hash of Pool/p spec.rollout.sharing.mig.instances["1g.10gb"]',
    ]
    assert (
        "chosen by Pool/p spec.rollout.sharing.mig.strategy"
        in (found['spec.rules[1].labels["nvidia.com/device-plugin.config"]'])
    )
    left, moved = (
        found[f"spec.rules[{rule}].matchFeatures[{term}].matchExpressions.nodename.value[0]"]
        for rule, term in ((0, 1), (1, 0))
    )
    assert left == moved == ["copied Pool/p spec.rollout.nodes[0]"]


def test_names_are_sorted_and_a_rollout_takes_some_of_them() -> None:
    found = rule(a_pool("names: [c, b, a]", ROLLOUT))

    assert found["spec.rules[0].matchFeatures[0].matchExpressions.nodename.value[0]"] == [
        "chosen by Pool/p spec.rollout.nodes[0]",
        "copied Pool/p spec.nodes.names[2]",
        "order of Pool/p spec.nodes.names[0]",
    ]
    assert found["spec.rules[1].matchFeatures[0].matchExpressions.nodename.value[0]"] == [
        "copied Pool/p spec.nodes.names[1]",
        "copied Pool/p spec.rollout.nodes[0]",
    ]


def test_the_order_of_many_names_is_that_of_the_list() -> None:
    found = rule(a_pool("names: [n7, n6, n5, n4, n3, n2, n1]"))

    assert found["spec.rules[0].matchFeatures[0].matchExpressions.nodename.value[0]"] == [
        "copied Pool/p spec.nodes.names[6]",
        "order of Pool/p spec.nodes.names",
    ]


def test_taints_stand_by_their_keys() -> None:
    found = rule(a_pool(PATTERN, "taints: [{key: b.io/b, effect: NoSchedule}, {key: a.io/a, effect: NoExecute}]"))

    assert found["spec.rules[0].taints[0].key"] == [
        "copied Pool/p spec.taints[1].key",
        "order of Pool/p spec.taints[0].key",
    ]
    assert found["spec.rules[0].taints[1].effect"] == [
        "copied Pool/p spec.taints[0].effect",
        "order of Pool/p spec.taints[0].key",
        "order of Pool/p spec.taints[1].key",
    ]


def test_taints_with_one_key_stand_by_the_rest() -> None:
    """Another effect may bring one to the other's place, where the key looks the same."""
    found = rule(a_pool(PATTERN, "taints: [{key: a.io/a, effect: NoSchedule}, {key: a.io/a, effect: NoExecute}]"))

    assert found["spec.rules[0].taints[0].key"] == [
        "chosen by Pool/p spec.taints[1].key",
        "order of Pool/p spec.taints[0].effect",
        "order of Pool/p spec.taints[0].key",
    ]


@pytest.mark.parametrize(
    ("kubernetes", "places"),
    [("1.32", ["gpuOperator.install", "gpuOperator.nfd", "kubernetes", "platform"]), ("1.34", ["kubernetes"])],
)
def test_older_openshift_has_rules_of_its_own(kubernetes: str, places: list[str]) -> None:
    plan = a_pool(PATTERN, cluster="platform: openshift", kubernetes=kubernetes)

    whole = told_of_all(plan, find(partitions.render(plan), "NodeFeatureRule"))
    assert [text for text in whole if "Cluster/test spec" in text] == [
        f"chosen by Cluster/test spec.{place}" for place in places
    ]


# --- Node objects ------------------------------------------------------------------------------------------------


def test_a_rollout_chooses_the_labels_of_a_node() -> None:
    plan = a_pool("names: [a, b, c]", ROLLOUT, cluster=LABELS)
    node = next(item for item in partitions.render(plan) if not isinstance(item, File) and item.name == "a")

    assert "copied Pool/p spec.nodes.names[0]" in told(plan, node)["metadata.name"]
    assert "chosen by Pool/p spec.rollout.nodes[0]" in told(plan, node)['metadata.labels["nvidia.com/mig.config"]']
    assert told(plan, node)['metadata.labels["gpuplan.dev/pool"]'] == ["copied Pool/p metadata.name"]
    assert "chosen by Cluster/test spec.nodeLabels" in told_of_all(plan, node)


# --- The table ---------------------------------------------------------------------------------------------------


def test_the_rows_of_the_table_count_nodes() -> None:
    found = table(a_pool("names: [a, b, c]", cluster="nodeLabels: external"))

    assert found["nodeGroups[0].nodes"] == ["copied Pool/p spec.nodes.count"]
    assert "copied Pool/p spec.nodes.names[1]" in found["nodeGroups[0].names[1]"]


def test_a_rollout_takes_its_nodes_off_the_count() -> None:
    found = table(a_pool("names: [a, b, c]", ROLLOUT, cluster="nodeLabels: external"))

    assert "sum of Pool/p spec.rollout.nodes[0]" in found["nodeGroups[0].nodes"]
    assert "sum of Pool/p spec.nodes.count" in found["nodeGroups[0].nodes"]
    assert "sum of Pool/p spec.nodes.count" not in found["nodeGroups[1].nodes"]


def test_machine_sets_have_what_the_table_has() -> None:
    found = table(
        a_pool(
            PATTERN, "taints: [{key: a.io/a, effect: NoSchedule}]", cluster="nodeLabels: external, platform: openshift"
        )
    )

    at = "nodeGroups[0].machineSet.spec.template.spec"
    assert "copied Pool/p spec.taints[0].key" in found[f"{at}.taints[0].key"]
    assert "copied MigLayout/halves metadata.name" in found[f'{at}.metadata.labels["nvidia.com/mig.config"]']
    assert "chosen by Cluster/test spec.platform" in found[f"{at}.taints[0].effect"]


def test_rows_stand_by_the_names_of_all_pools() -> None:
    found = table(
        a_plan("""
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {name: test}
spec: {kubernetes: "1.34", nodeLabels: external, gpuOperator: {install: helm, version: v26.7.0}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: p}
spec: {gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8, namePattern: p}, sharing: {exclusive: {}}}
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: q}
spec: {gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8, namePattern: q}, sharing: {exclusive: {}}}
""")
    )

    assert [text for text in found["nodeGroups[0].gpusPerNode"] if "order" in text] == [
        "order of Pool/p metadata.name",
        "order of Pool/q metadata.name",
    ]
