"""What Argo CD and Flux read on objects: their order, and what it takes to remove them."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.delivery.annotations import annotate
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.plan import Cluster
from tests.plans import a_plan
from tests.subjects import A_CLUSTER

CLUSTER = """
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: test}}
spec:
  kubernetes: "1.34"
  gpuOperator: {{install: helm, version: v26.7.0}}
  {delivery}
"""

OPTIONS = "argocd.argoproj.io/sync-options"
WAVE = "argocd.argoproj.io/sync-wave"
PRUNE = "kustomize.toolkit.fluxcd.io/prune"
CUSTOM = "SkipDryRunOnMissingResource=true"
CONFIRM = "Prune=confirm,Delete=confirm"
SSA = "kustomize.toolkit.fluxcd.io/ssa"


def a_cluster(delivery: str = "") -> Cluster:
    return a_plan(CLUSTER.format(delivery=delivery)).cluster


ANYBODY = a_cluster()
ARGO_CD = a_cluster("argocd: {repoURL: https://git.example.com/gpu.git}")
FLUX = a_cluster("flux: {}")


def told(
    kind: str,
    api: str = "v1",
    *,
    cluster: Cluster = ARGO_CD,
    folder: str = "x",
    is_partial: bool = False,
    order: int = 0,
) -> dict[str, Any]:
    body = {"apiVersion": api, "kind": kind, "metadata": {"name": "a"}}
    manifest = Manifest(folder, body, is_partial, order, is_foreign=True, about=A_CLUSTER, trace=None)
    return dict(annotate(manifest, cluster).body["metadata"].get("annotations", {}))


@pytest.mark.parametrize(
    ("api", "kind", "options", "wave"),
    [
        ("v1", "Namespace", "Prune=confirm,Delete=confirm", "-20"),
        ("scheduling.k8s.io/v1", "PriorityClass", "Prune=confirm,Delete=confirm", "-15"),
        ("v1", "ConfigMap", "PruneLast=true", "-10"),
        (
            "nvidia.com/v1",
            "ClusterPolicy",
            "ServerSideApply=true,SkipDryRunOnMissingResource=true,Prune=false,Delete=confirm",
            None,
        ),
        (
            "nfd.k8s-sigs.io/v1alpha1",
            "NodeFeatureRule",
            "SkipDryRunOnMissingResource=true,Prune=confirm,Delete=confirm,PruneLast=true",
            "10",
        ),
        ("v1", "Node", "ServerSideApply=true,Prune=false,Delete=false", "10"),
        ("kai.scheduler/v1", "SchedulingShard", "SkipDryRunOnMissingResource=true,Prune=confirm,Delete=confirm", "-8"),
        ("scheduling.run.ai/v2", "Queue", "SkipDryRunOnMissingResource=true,Prune=confirm,Delete=confirm", "-7"),
        ("v1", "ResourceQuota", None, "20"),
        ("v1", "PersistentVolumeClaim", CONFIRM, None),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "Prune=confirm,Delete=confirm", "20"),
        ("kueue.x-k8s.io/v1beta2", "WorkloadPriorityClass", f"{CUSTOM},{CONFIRM}", "-15"),
        ("kueue.x-k8s.io/v1beta2", "Topology", f"{CUSTOM},{CONFIRM}", "-9"),
        ("kueue.x-k8s.io/v1beta2", "ResourceFlavor", f"{CUSTOM},{CONFIRM}", "-8"),
        ("kueue.x-k8s.io/v1beta2", "Cohort", CUSTOM, "-7"),
        ("kueue.x-k8s.io/v1beta2", "ClusterQueue", f"{CUSTOM},{CONFIRM}", "-5"),
        ("kueue.x-k8s.io/v1beta2", "LocalQueue", CUSTOM, "25"),
        ("monitoring.coreos.com/v1", "PrometheusRule", "SkipDryRunOnMissingResource=true", "30"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding", None, "30"),
    ],
)
def test_argo_cds_options_and_wave_by_kind(api: str, kind: str, options: str | None, wave: str | None) -> None:
    found = told(kind, api)
    assert (found.pop(OPTIONS, None), found.pop(WAVE, None)) == (options, wave)
    assert found == {}


def test_a_part_of_a_custom_resource_is_applied_unjudged_and_never_removed() -> None:
    assert told("ClusterPolicy", "nvidia.com/v1", is_partial=True)[OPTIONS] == (
        "ServerSideApply=true,Validate=false,SkipDryRunOnMissingResource=true,Prune=false,Delete=false"
    )


def test_a_kind_of_the_same_name_in_another_group_is_left_alone() -> None:
    assert told("ClusterPolicy", "kyverno.io/v1") == {}


def test_waves_follow_what_needs_what() -> None:
    kinds = [
        ("Namespace", "v1"),
        ("OperatorGroup", "operators.coreos.com/v1"),
        ("ConfigMap", "v1"),
        ("ClusterPolicy", "nvidia.com/v1"),
        ("NodeFeatureRule", "nfd.k8s-sigs.io/v1alpha1"),
        ("ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1"),
        ("ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1"),
    ]
    waves = [int(told(kind, api).get(WAVE, "0")) for kind, api in kinds]
    assert waves == sorted(set(waves))


def test_an_old_configuration_of_the_operator_may_stay() -> None:
    assert told("ConfigMap", folder="gpu-operator") == {
        "argocd.argoproj.io/compare-options": "IgnoreExtraneous",
        OPTIONS: "PruneLast=true",
        WAVE: "-10",
    }


def test_dashboards_come_last_and_nothing_waits_for_their_removal() -> None:
    assert told("ConfigMap", folder="monitoring") == {WAVE: "30"}


def test_the_configuration_of_a_workload_may_stay_since_a_training_would_hold_up_its_removal() -> None:
    assert told("ConfigMap", folder="workloads/research") == {
        "argocd.argoproj.io/compare-options": "IgnoreExtraneous",
        OPTIONS: "Prune=false",
        WAVE: "-10",
    }


def test_an_object_may_come_after_others_of_its_kind() -> None:
    assert told("Deployment", "apps/v1", order=1) == {WAVE: "1"}
    assert told("PersistentVolumeClaim", order=2)[WAVE] == "2"
    assert told("Deployment", "apps/v1", order=1, cluster=FLUX) == {}


@pytest.mark.parametrize(
    ("api", "kind", "is_partial", "expected"),
    [
        ("v1", "Node", True, {PRUNE: "disabled", SSA: "merge"}),
        ("nvidia.com/v1", "ClusterPolicy", True, {PRUNE: "disabled", SSA: "merge"}),
        ("nvidia.com/v1", "ClusterPolicy", False, {PRUNE: "disabled"}),
        ("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule", False, {PRUNE: "disabled"}),
        ("v1", "Namespace", False, {PRUNE: "disabled"}),
        ("v1", "ConfigMap", False, {PRUNE: "disabled"}),
        ("v1", "ResourceQuota", False, {}),
    ],
)
def test_flux_keeps_what_argo_cd_would_ask_about(
    api: str, kind: str, is_partial: bool, expected: dict[str, str]
) -> None:
    found = told(kind, api, cluster=FLUX, is_partial=is_partial)
    found.pop(OPTIONS, None)
    assert found == expected


@pytest.mark.parametrize(
    ("api", "kind", "options"),
    [
        ("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule", "Prune=confirm,Delete=confirm"),
        ("v1", "Node", "Prune=false,Delete=false"),
        ("nvidia.com/v1", "ClusterPolicy", "Prune=false,Delete=confirm"),
        ("v1", "ResourceQuota", None),
        ("monitoring.coreos.com/v1", "PrometheusRule", None),
    ],
)
def test_an_argo_cd_that_gives_way_to_flux_still_asks(api: str, kind: str, options: str | None) -> None:
    """It may sync the objects as they are for Flux before it deletes its Applications, with all that they applied."""
    assert told(kind, api, cluster=FLUX).get(OPTIONS) == options


def test_without_a_tool_both_are_told() -> None:
    assert told("Node", cluster=ANYBODY, is_partial=True) == {
        OPTIONS: "ServerSideApply=true,Prune=false,Delete=false",
        WAVE: "10",
        PRUNE: "disabled",
        SSA: "merge",
    }


def test_annotations_that_an_object_has_stay() -> None:
    metadata = {"name": "a", "annotations": {"example.com/owner": "us"}}
    manifest = Manifest(
        "x", {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata}, about=A_CLUSTER, trace=None
    )
    assert annotate(manifest, ARGO_CD).body["metadata"]["annotations"] == {"example.com/owner": "us", WAVE: "20"}
    assert metadata["annotations"] == {"example.com/owner": "us"}


def substituted(cluster: Cluster, text: str) -> str | None:
    """What the annotations of an object with this text say of Flux's variables."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": text}, "c": [{"d": 1}]}
    found: dict[str, str] = (
        annotate(Manifest("monitoring", body, about=A_CLUSTER, trace=None), cluster)
        .body["metadata"]
        .get("annotations", {})
    )
    return found.get("kustomize.toolkit.fluxcd.io/substitute")


def test_flux_replaces_no_variables_of_others() -> None:
    assert substituted(FLUX, '{"uid": "${datasource}"}') == "disabled"


@pytest.mark.parametrize("text", ["{{ $labels.node }}", "$datasource", "costs 3$"])
def test_flux_is_told_nothing_of_text_without_variables(text: str) -> None:
    assert substituted(FLUX, text) is None


@pytest.mark.parametrize("cluster", [ARGO_CD, ANYBODY], ids=["Argo CD", "anybody"])
def test_others_are_told_nothing_of_variables(cluster: Cluster) -> None:
    assert substituted(cluster, "${datasource}") is None
