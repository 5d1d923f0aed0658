"""What a cluster's settings are where the policy leaves them out: they follow from its platform and its pools."""

from __future__ import annotations

import pytest

from gpuplan.compiler.planning.plan import Cluster
from gpuplan.compiler.policy.models import Approval
from tests.plans import CLUSTER, a_plan
from tests.platforms import pool

OPENSHIFT = "  platform: openshift\n"
ARGOCD = "  argocd: {repoURL: https://example.com/gpu.git"
MONITORING = "  monitoring: {"


def a_cluster(more: str = "", *documents: str, install: str = "helm") -> Cluster:
    return a_plan(CLUSTER.replace("install: helm", f"install: {install}") + more + "".join(documents)).cluster


@pytest.mark.parametrize(
    ("more", "install", "namespace", "name"),
    [
        ("", "helm", "gpu-operator", "cluster-policy"),
        ("", "olm", "nvidia-gpu-operator", "gpu-cluster-policy"),
        (OPENSHIFT, "helm", "nvidia-gpu-operator", "gpu-cluster-policy"),
    ],
)
def test_the_operator_is_where_its_installation_puts_it(more: str, install: str, namespace: str, name: str) -> None:
    operator = a_cluster(more, install=install).gpu_operator
    assert (operator.namespace, operator.cluster_policy) == (namespace, name)


def test_what_is_written_of_the_operator_holds() -> None:
    operator = a_cluster(OPENSHIFT, install="helm, namespace: gpus, clusterPolicy: ours").gpu_operator
    assert (operator.namespace, operator.cluster_policy) == ("gpus", "ours")


@pytest.mark.parametrize("version", ["v26.7.0", "26.7.0"])
def test_versions_have_their_letter(version: str) -> None:
    text = CLUSTER.replace("v26.7.0", version) + f"  scheduler: {{kind: kueue, version: {version}}}\n"
    cluster = a_plan(text).cluster
    assert (cluster.gpu_operator.version, cluster.scheduler.version) == ("v26.7.0", "v26.7.0")


def test_a_scheduler_without_a_version_has_none() -> None:
    assert a_cluster().scheduler.version == ""


@pytest.mark.parametrize(("more", "namespace"), [("", "argocd"), (OPENSHIFT, "openshift-gitops")])
def test_argo_cd_is_where_its_platform_has_it(more: str, namespace: str) -> None:
    argocd = a_cluster(f"{more}{ARGOCD}}}\n").argocd
    assert argocd is not None
    assert (argocd.namespace, argocd.project, argocd.path) == (namespace, "gpuplan-test", "out")


def test_what_is_written_of_argo_cd_holds() -> None:
    argocd = a_cluster(f"{OPENSHIFT}{ARGOCD}, namespace: gitops, project: gpus, path: ./a/../b/}}\n").argocd
    assert argocd is not None
    assert (argocd.namespace, argocd.project, argocd.path) == ("gitops", "gpus", "b")


FLUX = "  flux: {interval: 10m"


@pytest.mark.parametrize(
    ("sharing", "written", "approval"),
    [
        ("timeSlicing: {replicas: 4}", "", Approval.AUTOMATIC),
        ("mps: {replicas: 4}", "", Approval.MANUAL),
        ("mps: {replicas: 4}", ", operatorApproval: automatic", Approval.AUTOMATIC),
        ("timeSlicing: {replicas: 4}", ", operatorApproval: manual", Approval.MANUAL),
    ],
)
def test_a_sync_that_ends_the_work_of_mps_waits_for_a_person(sharing: str, written: str, approval: Approval) -> None:
    pools = (pool("a"), pool("b", sharing))
    argocd = a_cluster(f"{ARGOCD}{written}}}\n", *pools).argocd
    flux = a_cluster(f"{FLUX}{written}}}\n", *pools).flux
    assert argocd is not None
    assert flux is not None
    assert (argocd.operator_approval, flux.operator_approval) == (approval, approval)


@pytest.mark.parametrize(
    ("more", "namespaces", "labels"),
    [
        ("", ("monitoring", "monitoring"), {"grafana_dashboard": "1"}),
        (
            OPENSHIFT,
            ("nvidia-gpu-operator", "openshift-config-managed"),
            {"console.openshift.io/dashboard": "true", "console.openshift.io/odc-dashboard": "true"},
        ),
    ],
)
def test_monitoring_is_where_its_platform_looks(more: str, namespaces: tuple[str, str], labels: dict[str, str]) -> None:
    monitoring = a_cluster(f"{more}{MONITORING}}}\n").monitoring
    assert monitoring is not None
    assert (monitoring.namespace, monitoring.dashboards.namespace) == namespaces
    assert monitoring.dashboards.labels == labels


def test_what_is_written_of_monitoring_holds() -> None:
    monitoring = a_cluster(f"{MONITORING}namespace: watch, dashboards: {{labels: {{}}}}}}\n").monitoring
    assert monitoring is not None
    assert (monitoring.namespace, monitoring.dashboards.namespace, monitoring.dashboards.labels) == (
        "watch",
        "watch",
        {},
    )


def test_dashboards_may_be_elsewhere() -> None:
    monitoring = a_cluster(f"{OPENSHIFT}{MONITORING}namespace: watch, dashboards: {{namespace: boards}}}}\n").monitoring
    assert monitoring is not None
    assert (monitoring.namespace, monitoring.dashboards.namespace) == ("watch", "boards")


def test_what_is_not_asked_for_is_not_there() -> None:
    cluster = a_cluster()
    assert (cluster.argocd, cluster.flux, cluster.monitoring) == (None, None, None)
