"""What JSON Schema cannot judge of custom resources: their definitions' rules, and keys of items."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.manifests import Manifest, check_schemas
from tests.subjects import A_CLUSTER

Body = dict[str, Any]


def said(body: Body, **options: Any) -> list[str]:
    manifest = Manifest("", body, is_foreign=True, about=A_CLUSTER, trace=None, **options)
    return [problem.text for problem in check_schemas([manifest], "1.34")]


def a_flavor(**spec: object) -> Body:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "a"}, "spec": spec}


def a_queue(resource: Body, **spec: object) -> Body:
    flavors = [{"name": "a", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8, **resource}]}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "a"},
        "spec": {"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}], **spec},
    }


def a_driver(**spec: object) -> Body:
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "NVIDIADriver",
        "metadata": {"name": "a"},
        "spec": {"driverType": "gpu", "image": "driver", **spec},
    }


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (a_queue({"borrowingLimit": 1}), "`spec`: borrowingLimit must be nil when cohort is empty"),
        (a_flavor(topologyName="racks"), "`spec`: at least one nodeLabel is required when topology is set"),
        (
            a_flavor(nodeTaints=[{"key": "a", "effect": "Never"}]),
            "`spec.nodeTaints`: supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'",
        ),
        (a_driver(default=True, nodeSelector={"a": "b"}), "`spec`: default NVIDIADriver must not use nodeSelector"),
        (
            {
                "apiVersion": "nvidia.com/v1alpha1",
                "kind": "GPUCluster",
                "metadata": {"name": "other"},
                "spec": {"draDriver": {}},
            },
            "GPUCluster is a singleton, metadata.name must be 'gpu-cluster'",
        ),
    ],
)
def test_a_rule_that_does_not_hold_is_said_in_the_definitions_words(body: Body, problem: str) -> None:
    assert said(body) == [problem]


@pytest.mark.parametrize(
    "body",
    [
        a_queue({"borrowingLimit": 1}, cohortName="all"),
        a_queue({}),
        a_flavor(topologyName="racks", nodeLabels={"a": "b"}),
        a_flavor(tolerations=[{"key": "a"}]),  # by default its operator is `Equal`
        a_driver(default=True),
    ],
)
def test_the_closest_that_keeps_it_is_right(body: Body) -> None:
    assert said(body) == []


def test_items_differ_in_their_keys() -> None:
    body = a_queue({})
    body["spec"]["resourceGroups"][0]["flavors"] *= 2
    assert said(body) == ["`spec.resourceGroups[0].flavors[1]`: a second item with `name: a`"]
    assert said(body, is_partial=True) == ["`spec.resourceGroups[0].flavors[1]`: a second item with `name: a`"]


def test_rules_are_not_asked_of_a_part_of_an_object() -> None:
    assert said(a_flavor(topologyName="racks"), is_partial=True) == []
