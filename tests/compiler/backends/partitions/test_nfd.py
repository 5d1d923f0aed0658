"""With `nodeLabels: nfd`, a NodeFeatureRule labels and taints each pool's nodes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends import crds
from tests.compiler.backends.partitions.rendered import objects, table
from tests.plans import a_plan, resolve_text
from tests.subjects import A_CLUSTER

POOL = """
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: slices}}
spec:
  gpu: A100-80GB
  nodes: {{count: 2, gpusPerNode: 8, {nodes}}}
  sharing: {{mig: {{instances: {{1g.10gb: 7}}}}}}
"""
MORE = """\
  nodeLabels: {example.com/rack: r1}
  taints: [{key: nvidia.com/gpu, value: slices, effect: NoSchedule}, {key: example.com/team, effect: NoExecute}]
"""
BY_NAMES = a_plan(POOL.format(nodes="names: [gpu-b, gpu-a]") + MORE)
BY_PATTERN = a_plan(POOL.format(nodes="namePattern: 'gpu-[0-9]+|spare'"))


def rule(plan: Plan) -> dict[str, Any]:
    (body,) = objects(plan)
    (found,) = body["spec"]["rules"]
    return dict(found)


def test_a_rule() -> None:
    config_name = BY_NAMES.pools[0].labels["nvidia.com/mig.config"]
    (body,) = objects(BY_NAMES)
    assert body == {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeatureRule",
        "metadata": {"name": "gpuplan-pool-slices"},
        "spec": {
            "rules": [
                {
                    "name": "slices",
                    "labels": {
                        "example.com/rack": "r1",
                        "gpuplan.dev/pool": "slices",
                        "nvidia.com/device-plugin.config": "slices",
                        "nvidia.com/mig.config": config_name,
                    },
                    "taints": [
                        {"key": "example.com/team", "effect": "NoExecute"},
                        {"key": "nvidia.com/gpu", "value": "slices", "effect": "NoSchedule"},
                    ],
                    "matchFeatures": [
                        {
                            "feature": "system.name",
                            "matchExpressions": {"nodename": {"op": "In", "value": ["gpu-a", "gpu-b"]}},
                        },
                        {
                            "feature": "pci.device",
                            "matchExpressions": {
                                "vendor": {"op": "In", "value": ["10de"]},
                                "class": {"op": "In", "value": ["0300", "0302"]},
                            },
                        },
                    ],
                }
            ]
        },
    }


@pytest.mark.parametrize(
    ("name", "is_meant"),
    [("gpu-7", True), ("spare", True), ("gpu-7.example.com", False), ("old-gpu-7", False), ("spare-2", False)],
)
def test_a_pattern_matches_whole_names(name: str, is_meant: bool) -> None:
    expression = rule(BY_PATTERN)["matchFeatures"][0]["matchExpressions"]["nodename"]
    assert expression["op"] == "InRegexp"
    assert any(re.search(pattern, name) for pattern in expression["value"]) is is_meant


def test_a_pool_without_taints_has_none_in_its_rule() -> None:
    assert "taints" not in rule(BY_PATTERN)


def test_a_rule_does_not_select_nodes_by_what_it_changes() -> None:
    features = {match["feature"] for match in rule(BY_PATTERN)["matchFeatures"]}
    assert features == {"system.name", "pci.device"}


def test_a_pool_whose_nodes_nothing_names_gets_no_rule_for_all_nodes() -> None:
    plan, _ = resolve_text(POOL.format(nodes="").replace(", }", "}"))
    assert plan is not None
    assert objects(plan) == []


def test_there_is_no_table_since_nobody_else_has_to_do_anything() -> None:
    assert table(BY_NAMES) is None


@pytest.mark.parametrize("plan", [BY_NAMES, BY_PATTERN])
def test_a_rule_fits_its_definition(plan: Plan) -> None:
    assert crds.problems([Manifest("partitions", body, about=A_CLUSTER, trace=None) for body in objects(plan)]) == []


# --- OpenShift ---------------------------------------------------------------------------------------------------

OPENSHIFT = """
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: test}}
spec:
  kubernetes: "{kubernetes}"
  platform: openshift
  gpuOperator: {{install: olm, version: v26.3.1}}
---
"""


def on_openshift(kubernetes: str) -> dict[str, Any]:
    text = OPENSHIFT.format(kubernetes=kubernetes) + POOL.format(nodes="namePattern: 'gpu-[0-9]+'")
    (body,) = objects(a_plan(text))
    return body


def test_older_openshift_reads_rules_of_its_own_group() -> None:
    older, newer = on_openshift("1.32"), on_openshift("1.33")
    assert (older["apiVersion"], newer["apiVersion"]) == ("nfd.openshift.io/v1alpha1", "nfd.k8s-sigs.io/v1alpha1")
    assert older["spec"] == newer["spec"]


def test_a_rule_never_takes_over_the_copy_that_openshift_made_of_an_older_one() -> None:
    names = {on_openshift(kubernetes)["metadata"]["name"] for kubernetes in ("1.32", "1.33")}
    assert names == {"gpuplan-openshift-pool-slices", "gpuplan-pool-slices"}
