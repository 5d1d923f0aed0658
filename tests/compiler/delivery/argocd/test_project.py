"""The AppProject: what a cluster's Applications may read and write, and when."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.catalog.operators import chart_kinds
from gpuplan.compiler.manifests import Identity
from tests.compiler.delivery.argocd.platform import is_permitted
from tests.compiler.delivery.argocd.rendered import (
    REPO,
    a_cluster,
    a_pool,
    config_map,
    folder,
    get,
    manifests,
    namespace,
    the_project,
)

OLM = {"operator": "install: olm, version: v26.7.0", "kubernetes": "1.33", "spec": "platform: openshift"}
RULE = Identity("nfd.k8s-sigs.io", "NodeFeatureRule", "", "gpuplan-pool-a")


def kinds(project: dict[str, Any], scope: str) -> set[tuple[str, str]]:
    return {(item["group"], item["kind"]) for item in project["spec"][f"{scope}ResourceWhitelist"]}


def test_a_project_whose_names_an_old_argo_cd_drops_allows_no_namespace() -> None:
    """The definition of AppProjects before Argo CD 3.3 has no `name`, and an API server drops what it does not have."""
    project = the_project(a_cluster(), folder("namespaces/b", namespace("b")))
    others = [Identity("", "Namespace", "", name) for name in ("kube-system", "default")]
    mine = Identity("", "Namespace", "", "b")
    assert [is_permitted(project, one) for one in (mine, *others)] == [True, False, False]
    for entries in (project["spec"]["clusterResourceWhitelist"], project["spec"]["clusterResourceBlacklist"]):
        for entry in entries:
            entry.pop("name", None)
    assert [is_permitted(project, one) for one in (mine, *others)] == [False, False, False]
    assert is_permitted(project, Identity("scheduling.k8s.io", "PriorityClass", "", "any"))


def test_a_project_as_a_whole() -> None:
    plan = a_cluster(operator="install: external, version: v26.7.0", more="labels: {team: gpu}")
    assert the_project(plan, folder("namespaces/b", namespace("b"), config_map("x", "b"))) == {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {
            "name": "gpuplan-test",
            "namespace": "argocd",
            "labels": {"team": "gpu"},
            "annotations": {"argocd.argoproj.io/sync-wave": "-10"},
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
        },
        "spec": {
            "description": "GPU configuration of the cluster test",
            "sourceRepos": [REPO],
            "destinations": [
                {"server": "https://kubernetes.default.svc", "namespace": "b"},
                {"server": "https://kubernetes.default.svc", "namespace": "gpu-operator"},
            ],
            "clusterResourceBlacklist": [{"group": "", "kind": "Namespace", "name": "needs-argo-cd-3.3"}],
            "clusterResourceWhitelist": [
                {"group": "", "kind": "Namespace", "name": "b"},
                {"group": "admissionregistration.k8s.io", "kind": "ValidatingAdmissionPolicy"},
                {"group": "admissionregistration.k8s.io", "kind": "ValidatingAdmissionPolicyBinding"},
                *({"group": "kai.scheduler", "kind": kind} for kind in ("SchedulingShard", "Topology")),
                {"group": "kueue.x-k8s.io", "kind": "AdmissionCheck"},
                {"group": "kueue.x-k8s.io", "kind": "ClusterQueue"},
                {"group": "kueue.x-k8s.io", "kind": "Cohort"},
                {"group": "kueue.x-k8s.io", "kind": "ResourceFlavor"},
                {"group": "kueue.x-k8s.io", "kind": "Topology"},
                {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass"},
                {"group": "nfd.k8s-sigs.io", "kind": "NodeFeatureRule"},
                {"group": "resource.k8s.io", "kind": "DeviceClass"},
                {"group": "scheduling.k8s.io", "kind": "PriorityClass"},
                {"group": "scheduling.run.ai", "kind": "Queue"},
            ],
            "namespaceResourceWhitelist": [
                {"group": "", "kind": "ConfigMap"},
                {"group": "", "kind": "PersistentVolumeClaim"},
                {"group": "", "kind": "ResourceQuota"},
                {"group": "", "kind": "Service"},
                {"group": "apps", "kind": "Deployment"},
                {"group": "autoscaling", "kind": "HorizontalPodAutoscaler"},
                {"group": "batch", "kind": "Job"},
                {"group": "kueue.x-k8s.io", "kind": "LocalQueue"},
                {"group": "rbac.authorization.k8s.io", "kind": "RoleBinding"},
                {"group": "resource.k8s.io", "kind": "ResourceClaimTemplate"},
            ],
        },
    }


def test_the_chart_and_its_kinds_are_allowed_where_helm_installs_the_operator() -> None:
    project = the_project(a_cluster())
    assert project["spec"]["sourceRepos"] == [REPO, "https://helm.ngc.nvidia.com/nvidia"]
    assert kinds(project, "cluster") >= chart_kinds().cluster
    assert kinds(project, "namespace") >= chart_kinds().namespaced


def test_the_job_that_the_operators_chart_runs_before_its_removal_is_allowed() -> None:
    """Argo CD does not see what the project does not allow, and would take it for done (`executeHooks`)."""
    project = the_project(a_cluster())
    assert ("batch", "Job") in kinds(project, "namespace")
    assert "gpu-operator" in {item["namespace"] for item in project["spec"]["destinations"]}


def test_the_chart_is_not_allowed_where_olm_installs_the_operator() -> None:
    project = the_project(a_cluster(**OLM))
    assert project["spec"]["sourceRepos"] == [REPO]
    assert ("apiextensions.k8s.io", "CustomResourceDefinition") not in kinds(project, "cluster")


def test_a_registry_of_charts_is_named_without_its_scheme() -> None:
    operator = "install: helm, version: v26.7.0, chartRepoURL: oci://registry.example.com/charts"
    assert the_project(a_cluster(operator=operator))["spec"]["sourceRepos"] == [REPO, "registry.example.com/charts"]


def test_hand_written_kinds_are_allowed_where_they_live() -> None:
    pod_monitor = Identity("example.com", "Widget", "gpu-operator", "a")
    gadget = Identity("example.com", "Gadget", "", "a")
    project = the_project(a_cluster(**OLM), folder("gpu-operator", gadget, pod_monitor))
    assert ("example.com", "Widget") in kinds(project, "namespace") - kinds(project, "cluster")
    assert ("example.com", "Gadget") in kinds(project, "cluster") - kinds(project, "namespace")


def test_hand_written_objects_without_a_namespace_are_in_that_of_their_application() -> None:
    secret = Identity("", "Secret", "", "a")
    project = the_project(a_cluster(**OLM), folder("workloads", secret))
    assert ("", "Secret") in kinds(project, "namespace") - kinds(project, "cluster")


def test_what_the_policy_has_the_chart_add_is_allowed() -> None:
    extra = "[{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}}, {apiVersion: v1, kind: Secret}, text]"
    project = the_project(a_cluster(operator=f"install: helm, version: v26.7.0, values: {{extraObjects: {extra}}}"))
    assert ("example.com", "Gadget") in kinds(project, "cluster")
    assert ("", "Secret") in kinds(project, "namespace")


@pytest.mark.parametrize(
    ("apis", "allowed"),
    [
        ("", set()),
        ("apis: [JobSet]", {("jobset.x-k8s.io", "JobSet")}),
        ("apis: [TrainJob]", {("trainer.kubeflow.org", "TrainJob"), ("trainer.kubeflow.org", "TrainingRuntime")}),
    ],
)
def test_kinds_of_trainings_are_allowed_where_the_cluster_has_them(apis: str, allowed: set[tuple[str, str]]) -> None:
    """Also without any in the policy: those that were there have to be removed."""
    found = kinds(the_project(a_cluster(spec=apis)), "namespace")
    groups = {"jobset.x-k8s.io", "trainer.kubeflow.org"}
    assert {item for item in found if item[0] in groups} == allowed


def test_rules_stay_allowed_without_pools_since_argo_cd_ignores_what_is_not() -> None:
    assert ("nfd.k8s-sigs.io", "NodeFeatureRule") in kinds(the_project(a_cluster()), "cluster")
    older = a_cluster(**{**OLM, "kubernetes": "1.31"})
    assert ("nfd.openshift.io", "NodeFeatureRule") in kinds(the_project(older), "cluster")


def test_rules_stay_allowed_when_something_else_labels_nodes() -> None:
    plan = a_cluster(operator="install: external, version: v26.7.0", spec="nodeLabels: external")
    assert ("nfd.k8s-sigs.io", "NodeFeatureRule") in kinds(the_project(plan), "cluster")


@pytest.mark.parametrize(
    ("destination", "written"),
    [("name: prod", {"name": "prod"}), ('server: "https://prod.example.com"', {"server": "https://prod.example.com"})],
)
def test_the_cluster_is_named_as_the_policy_names_it(destination: str, written: dict[str, str]) -> None:
    project = the_project(a_cluster(more=f"destination: {{{destination}}}"))
    assert project["spec"]["destinations"] == [{**written, "namespace": "gpu-operator"}]


def test_name_and_namespace_can_be_chosen() -> None:
    found = get(manifests(a_cluster(more="namespace: gitops, project: gpus")), "AppProject", "gpus")
    assert found["metadata"]["namespace"] == "gitops"


# --- Sync windows ------------------------------------------------------------------------------------------------

WINDOW = 'windows: [{schedule: "0 2 * * 6", duration: 4h, timeZone: Europe/Berlin}]'


def test_windows_are_for_their_own_pool_alone_and_for_persons_too() -> None:
    plan = a_cluster(a_pool("a", WINDOW), a_pool("b"))
    project = the_project(plan, folder("partitions/a", RULE), folder("partitions/b", RULE))
    assert project["spec"]["syncWindows"] == [
        {
            "kind": "allow",
            "schedule": "0 2 * * 6",
            "duration": "4h",
            "timeZone": "Europe/Berlin",
            "applications": ["gpu-partitions-test-a"],
            "manualSync": False,
        }
    ]


def test_no_windows_for_what_is_not_applied() -> None:
    assert "syncWindows" not in the_project(a_cluster(a_pool("a", WINDOW)))["spec"]
