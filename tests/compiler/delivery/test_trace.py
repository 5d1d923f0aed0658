"""Where the objects for Argo CD and Flux come from."""

from __future__ import annotations

import pytest

from gpuplan.compiler.planning.plan import Plan
from tests.laws.tracing.asking import own, traced, whole
from tests.plans import a_plan

CLUSTER = """\
apiVersion: gpuplan.dev/v1
kind: Cluster
metadata: {{name: test}}
spec:
  kubernetes: "1.34"
  gpuOperator: {{install: {install}, version: v26.7.0}}
  scheduler: {{kind: kueue}}
  monitoring: {{}}
  {tool}
"""
ARGOCD = "argocd: {repoURL: 'https://git.example.com/gpu.git', destination: {name: test}}"
FLUX = "flux: {source: {name: fleet}, operatorApproval: manual}"
POLICIES = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: a}
spec:
  gpu: A100-80GB
  nodes: {count: 2, gpusPerNode: 8, namePattern: "a-[0-9]+"}
  sharing: {exclusive: {}}
  disruption:
    approval: manual
    windows: [{schedule: "0 2 * * 6", duration: 4h, timeZone: UTC}]
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: lab}
spec:
  namespaces: [lab-x]
  quotas: [{pool: a, guaranteed: 4}]
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {name: train}
spec:
  tenant: lab
  training: {}
  pool: a
  image: registry.example.com/train:1
"""
NAMESPACE = "Tenant/lab spec.namespaces.0"
INSTALL = "chosen by Cluster/test spec.gpuOperator.install"


def a_cluster(tool: str, install: str = "helm") -> Plan:
    return a_plan(CLUSTER.format(install=install, tool=tool) + POLICIES)


# --- Argo CD -----------------------------------------------------------------------------------------------------


def test_application_of_a_pool_is_there_by_its_name_and_waits_by_its_approval() -> None:
    found = traced(a_cluster(ARGOCD), "argocd/test/application-gpu-partitions-test-a.yaml")

    assert whole(found) == {"chosen by Pool/a metadata.name", "chosen by Cluster/test metadata.name"}
    assert own(found, "spec", "source", "path") == {"copied Pool/a metadata.name", "copied Cluster/test metadata.name"}
    wave = own(found, "metadata", "annotations", "argocd.argoproj.io/sync-wave")
    assert wave == {"chosen by Pool/a spec.disruption.approval"}
    assert own(found, "spec", "destination", "name") == {"copied Cluster/test spec.argocd.destination.name"}
    assert own(found, "spec", "syncPolicy", "retry", "limit") == set()


def test_chart_is_there_by_who_installs_the_operator() -> None:
    found = traced(a_cluster(ARGOCD), "argocd/test/application-gpu-operator-test.yaml")

    version = own(found, "spec", "sources", 0, "targetRevision")
    install = "chosen by Cluster/test spec.gpuOperator.install"
    assert version == {"copied Cluster/test spec.gpuOperator.version", install}
    assert install in own(found, "spec", "sources", 1, "repoURL")


def test_window_of_a_project_is_its_pools() -> None:
    found = traced(a_cluster(ARGOCD), "argocd/test/appproject-gpuplan-test.yaml")

    window = ("spec", "syncWindows", 0)
    assert "copied Pool/a spec.disruption.windows.0.schedule" in own(found, *window, "schedule")
    assert "copied Pool/a metadata.name" in own(found, *window, "applications", 0)


def test_kind_is_allowed_by_what_all_of_its_objects_are_there_by() -> None:
    found = traced(a_cluster(ARGOCD, "external"), "argocd/test/appproject-gpuplan-test.yaml")
    kinds = found.artifact.body["spec"]["clusterResourceWhitelist"]  # type: ignore[union-attr]
    policies = kinds.index({"group": "nvidia.com", "kind": "ClusterPolicy"})

    assert INSTALL in own(found, "spec", "clusterResourceWhitelist", policies, "kind")
    assert INSTALL not in own(found, "spec", "clusterResourceWhitelist", 0, "kind")


def test_project_names_the_namespaces_of_tenants() -> None:
    found = traced(a_cluster(ARGOCD), "argocd/test/appproject-gpuplan-test.yaml")
    entries = found.artifact.body["spec"]["destinations"]  # type: ignore[union-attr]

    index = next(index for index, entry in enumerate(entries) if entry["namespace"] == "lab-x")

    assert f"copied {NAMESPACE}" in own(found, "spec", "destinations", index, "namespace")


# --- Flux --------------------------------------------------------------------------------------------------------


def test_kustomization_of_a_namespace_is_there_by_its_name() -> None:
    found = traced(a_cluster(FLUX), "flux/test/kustomization-gpu-namespace-test-lab-x.yaml")

    assert f"chosen by {NAMESPACE}" in whole(found)
    assert own(found, "spec", "path") == {f"copied {NAMESPACE}", "copied Cluster/test metadata.name"}


def test_kustomization_waits_for_folders_that_have_names_of_their_own() -> None:
    found = traced(a_cluster(FLUX), "flux/test/kustomization-gpu-workloads-test-lab-x.yaml")

    assert f"copied {NAMESPACE}" in own(found, "spec", "dependsOn", 1, "name")


def test_health_of_the_operator_follows_from_what_is_in_its_config_maps() -> None:
    found = traced(a_cluster(FLUX), "flux/test/kustomization-gpu-operator-test.yaml")

    current = own(found, "spec", "healthCheckExprs", 0, "current")
    assert any(link.startswith("hash of Pool/a") for link in current)


def test_release_is_suspended_by_the_operators_approval() -> None:
    found = traced(a_cluster(FLUX), "flux/test/helmrelease-gpu-operator-test.yaml")

    assert own(found, "spec", "suspend") == {"chosen by Cluster/test spec.flux.operatorApproval"}


def test_olm_makes_a_kustomization_of_its_own() -> None:
    plan = a_plan(CLUSTER.format(install="olm", tool=f"platform: openshift\n  {FLUX}") + POLICIES)
    found = traced(plan, "flux/test/kustomization-gpu-subscriptions-test.yaml")

    assert "chosen by Cluster/test spec.gpuOperator.install" in whole(found)


# --- Annotations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", [ARGOCD, FLUX, ""])
def test_annotated_object_comes_from_where_it_came_from(tool: str) -> None:
    found = traced(a_cluster(tool), "test/namespaces/lab-x/resourcequota-gpuplan.yaml")

    assert f"chosen by {NAMESPACE}" in whole(found)


def test_dashboard_is_kept_from_substitution_by_what_makes_its_text() -> None:
    plan = a_plan(CLUSTER.format(install="helm", tool=f"platform: kubernetes\n  {FLUX}"))
    found = traced(plan, "test/monitoring/configmap-gpuplan-test.yaml")

    annotation = own(found, "metadata", "annotations", "kustomize.toolkit.fluxcd.io/substitute")
    assert annotation == {"chosen by Cluster/test spec.platform"}
