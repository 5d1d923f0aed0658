"""What the owner of a ClusterPolicy is to merge, where gpuplan applies none of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from gpuplan.compiler.backends import gpu_operator
from gpuplan.compiler.catalog.operators import reads_value
from gpuplan.compiler.manifests import File
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.gpu_operator.rendered import a_cluster, a_pool, config_map, objects

MIXED = "{mig: {instances: {1g.10gb: 7}}}"


def a_handed_over(*pools: str, more: str = "", **given: Any) -> Plan:
    snippet = ", ".join(filter(None, ("clusterPolicyPatch: snippet", more)))
    return a_cluster(*(pools or (a_pool(sharing=MIXED),)), install="external", more=snippet, **given)


def texts(plan: Plan) -> dict[str, str]:
    files = [item for item in gpu_operator.render(plan) if isinstance(item, File)]
    return {file.path.removeprefix("gpu-operator/"): file.data.decode() for file in files}


def patch(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(texts(plan)["merge-into-cluster-policy.yaml"])
    return found


def values(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(texts(plan)["merge-into-values.yaml"])
    return found


def test_only_config_maps_are_applied() -> None:
    plan = a_handed_over()
    assert objects(plan, "ClusterPolicy") == []
    assert len(objects(plan, "ConfigMap")) == 2
    assert list(texts(plan)) == ["merge-into-cluster-policy.yaml", "merge-into-values.yaml"]


def test_by_default_the_patch_is_applied_as_ever() -> None:
    plan = a_cluster(a_pool(sharing=MIXED), install="external")
    assert len(objects(plan, "ClusterPolicy")) == 1
    assert texts(plan) == {}


def test_both_forms_name_the_config_maps_that_are_applied() -> None:
    plan = a_handed_over()
    mig, plugin = (config_map(plan, f"gpuplan-{of}-")["metadata"]["name"] for of in ("mig-parted", "device-plugin"))
    assert patch(plan)["metadata"] == {"name": "cluster-policy"}
    assert patch(plan)["spec"] == {
        "mig": {"strategy": None},
        "migManager": {"config": {"name": mig, "default": "all-disabled"}},
        "devicePlugin": {"config": {"name": plugin, "default": ""}},
    }
    assert values(plan) == {
        "mig": {"strategy": ""},
        "migManager": {"config": {"create": False, "name": mig, "default": "all-disabled"}},
        "devicePlugin": {"config": {"create": False, "name": plugin, "default": ""}},
    }


def test_the_patch_says_what_would_be_applied() -> None:
    """But for the strategy, which a merge can take away, and an apply cannot."""
    given = {"more": "migStrategy: mixed, rebootOnMigChange: true", "monitoring": "{}"}
    (applied,) = objects(a_cluster(a_pool(sharing=MIXED), install="external", **given), "ClusterPolicy")
    assert patch(a_handed_over(a_pool(sharing=MIXED), **given))["spec"] == applied["spec"]


def test_the_header_says_how_to_see_that_it_is_merged() -> None:
    text = texts(a_handed_over(more="clusterPolicy: gpus, namespace: nvidia"))["merge-into-values.yaml"]
    merged = "An owner that installs the GPU Operator from its chart merges it there,\n"
    assert f"# Nothing applies this file. {merged}" in text
    assert (
        "#   kubectl patch clusterpolicies.nvidia.com gpus --type merge --dry-run=server "
        "--patch-file merge-into-cluster-policy.yaml\n" in text
    )
    assert "-n nvidia daemonset/nvidia-mig-manager" in text


def test_the_values_say_that_the_client_applies_their_chart() -> None:
    """What is empty in them is null in the ClusterPolicy, of which a server-side apply is refused."""
    text = texts(a_handed_over())["merge-into-values.yaml"]
    assert (
        "# Have the client apply the chart (Argo CD: without ServerSideApply=true, Helm 4: --server-side=false)."
        in text
    )


@pytest.mark.parametrize("version", ["v24.6.2", "v24.9.2", "v25.3.4", "v25.10.1", "v26.3.3", "v26.7.0"])
def test_every_chart_reads_all_of_the_values(version: str) -> None:
    def leaves(part: Mapping[str, Any], route: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
        below = [
            leaves(value, (*route, key)) if isinstance(value, dict) else [(*route, key)] for key, value in part.items()
        ]
        return [leaf for found in below for leaf in found]

    plan = a_handed_over(version=version, more="rebootOnMigChange: true", monitoring="{}")
    assert [leaf for leaf in leaves(values(plan)) if not reads_value(version, *leaf)] == []
