"""Applications, one for each folder, and the ApplicationSet over the namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.planning.plan import Component
from tests.compiler.delivery.argocd.rendered import REPO, a_cluster, a_pool, an_application, folder, get, manifests

AUTOMATED = {"prune": True, "selfHeal": True}
OPTIONS = ["FailOnSharedResource=true", "PruneLast=true", "ServerSideApply=true"]
RETRY = {"limit": 5, "backoff": {"duration": "30s", "factor": 2, "maxDuration": "10m"}, "refresh": True}
WAVE = "argocd.argoproj.io/sync-wave"
PATHS = "argocd.argoproj.io/manifest-generate-paths"


def wave(application: dict[str, Any]) -> int:
    return int(application["metadata"]["annotations"][WAVE])


def test_a_pools_application_as_a_whole() -> None:
    plan = a_cluster(a_pool(disruption="approval: automatic"), more="labels: {team: gpu}")
    assert an_application(plan, "partitions/a", "gpu-partitions-test-a") == {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": "gpu-partitions-test-a",
            "namespace": "argocd",
            "labels": {"team": "gpu"},
            "annotations": {"argocd.argoproj.io/compare-options": "ServerSideDiff=true", PATHS: ".", WAVE: "10"},
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
        },
        "spec": {
            "project": "gpuplan-test",
            "source": {"repoURL": REPO, "targetRevision": "main", "path": "out/test/partitions/a"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "gpu-operator"},
            "syncPolicy": {"automated": AUTOMATED, "syncOptions": OPTIONS, "retry": RETRY},
        },
    }


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("gpu-operator", "gpu-operator-test"),
        ("partitions", "gpu-partitions-test"),
        ("partitions/a", "gpu-partitions-test-a"),
        ("scheduling", "gpu-tenancy-test"),
        ("queues/a", "gpu-queues-test-a"),
        ("namespaces", "gpu-namespaces-test"),
        ("monitoring", "gpu-monitoring-test"),
        ("workloads", "gpu-workloads-test"),
    ],
)
def test_each_folder_has_an_application(path: str, name: str) -> None:
    plan = a_cluster(a_pool(), operator="install: external, version: v26.7.0")
    source = an_application(plan, path, name)["spec"]["source"]
    assert source["path"] == f"out/test/{path}"


def test_a_folder_that_is_not_listed_has_none() -> None:
    assert [found.kind for found in manifests(a_cluster(a_pool()))] == ["AppProject"]


def test_only_what_labels_nodes_is_removed_with_its_application() -> None:
    plan = a_cluster(a_pool())
    found = manifests(plan, folder("gpu-operator"), folder("partitions/a"), folder("scheduling"), folder("monitoring"))
    applications = [item for item in found if item.kind == "Application"]
    assert [item.name for item in applications if "finalizers" in item.body["metadata"]] == ["gpu-partitions-test-a"]


def test_a_pool_takes_over_nodes_that_another_pools_application_tracks() -> None:
    """Nodes are never deleted, so one that changes pools would be a shared resource for ever."""
    found = {}
    for node_labels in ("node", "nfd"):
        plan = a_cluster(a_pool(), spec=f"nodeLabels: {node_labels}")
        for path, name in (("partitions/a", "gpu-partitions-test-a"), ("scheduling", "gpu-tenancy-test")):
            found[node_labels, path] = an_application(plan, path, name)["spec"]["syncPolicy"]["syncOptions"]
    assert found.pop(("node", "partitions/a")) == ["PruneLast=true", "ServerSideApply=true"]
    assert all(options == OPTIONS for options in found.values())


# --- Approval and order ------------------------------------------------------------------------------------------


def test_a_person_starts_what_is_to_be_approved() -> None:
    application = an_application(a_cluster(a_pool()), "partitions/a", "gpu-partitions-test-a")
    assert "automated" not in application["spec"]["syncPolicy"]


def test_a_person_starts_syncs_of_the_operator_where_the_policy_says_so() -> None:
    manual = an_application(a_cluster(more="operatorApproval: manual"), "gpu-operator", "gpu-operator-test")
    automatic = an_application(a_cluster(), "gpu-operator", "gpu-operator-test")
    assert "automated" not in manual["spec"]["syncPolicy"]
    assert automatic["spec"]["syncPolicy"]["automated"] == {"selfHeal": True}


@pytest.mark.parametrize(("approval", "is_automatic"), [("", False), ("operatorApproval: automatic", True)])
def test_a_person_starts_syncs_of_the_operator_where_they_end_what_runs_under_mps(
    approval: str, *, is_automatic: bool
) -> None:
    pool = a_pool().replace("exclusive: {}", "mps: {replicas: 4}")
    operator = an_application(a_cluster(pool, more=approval), "gpu-operator", "gpu-operator-test")
    assert ("automated" in operator["spec"]["syncPolicy"]) == is_automatic


def test_mps_that_a_rollout_comes_to_counts_from_its_first_node() -> None:
    rollout = "\n  rollout: {{sharing: {{mps: {{replicas: 4}}}}, nodes: {}}}\n"
    for nodes, is_automatic in (("[]", True), ("[a-1]", False)):
        plan = a_cluster(a_pool().replace("disruption", rollout.format(nodes).strip() + "\n  disruption"))
        operator = an_application(plan, "gpu-operator", "gpu-operator-test")
        assert ("automated" in operator["spec"]["syncPolicy"]) == is_automatic


def test_hand_written_partitions_of_no_known_pool_wait_for_a_person() -> None:
    for path, name in (("partitions", "gpu-partitions-test"), ("partitions/x", "gpu-partitions-test-x")):
        assert "automated" not in an_application(a_cluster(), path, name)["spec"]["syncPolicy"]


def test_the_operator_comes_first_and_namespaces_after_what_they_use() -> None:
    plan = a_cluster(a_pool(disruption="approval: automatic"))
    paths = ("gpu-operator", "partitions/a", "scheduling", "namespaces/x", "monitoring")
    found = manifests(plan, *(folder(path) for path in paths))
    waves = {item.name: wave(dict(item.body)) for item in found}
    assert waves["gpuplan-test"] < waves["gpu-operator-test"] < waves["gpu-partitions-test-a"]
    assert waves["gpu-operator-test"] < waves["gpu-tenancy-test"] < waves["gpu-namespaces-test"]
    assert waves["gpu-namespaces-test"] < waves["gpu-monitoring-test"]


def test_what_waits_for_a_person_is_in_the_last_wave() -> None:
    plan = a_cluster(a_pool(), more="operatorApproval: manual")
    paths = ("gpu-operator", "partitions/a", "scheduling", "namespaces/x", "monitoring", "workloads")
    waves = {item.name: wave(dict(item.body)) for item in manifests(plan, *(folder(path) for path in paths))}
    last = {name for name, number in waves.items() if number == max(waves.values())}
    assert last == {"gpu-operator-test", "gpu-partitions-test-a"}


# --- Sources -----------------------------------------------------------------------------------------------------


def test_the_chart_takes_its_values_from_the_folder_whose_config_maps_are_applied() -> None:
    plan = a_cluster(more="path: clusters/out, revision: released")
    spec = an_application(plan, "gpu-operator", "gpu-operator-test")["spec"]
    assert spec["sources"] == [
        {
            "repoURL": "https://helm.ngc.nvidia.com/nvidia",
            "chart": "gpu-operator",
            "targetRevision": "v26.7.0",
            "helm": {
                "releaseName": "gpu-operator",
                "valueFiles": ["$values/clusters/out/test/gpu-operator/values.yaml"],
            },
        },
        {"repoURL": REPO, "targetRevision": "released", "path": "clusters/out/test/gpu-operator", "ref": "values"},
    ]
    assert "source" not in spec


@pytest.mark.parametrize(
    ("operator", "spec"),
    [("install: external, version: v26.7.0", ""), ("install: olm, version: v26.7.0", "platform: openshift")],
)
def test_without_helm_there_is_one_source(operator: str, spec: str) -> None:
    application = an_application(a_cluster(operator=operator, spec=spec), "gpu-operator", "gpu-operator-test")
    assert application["spec"]["source"]["path"] == "out/test/gpu-operator"
    assert "sources" not in application["spec"]


def test_the_output_may_be_the_whole_repository() -> None:
    application = an_application(a_cluster(more="path: ."), "scheduling", "gpu-tenancy-test")
    assert application["spec"]["source"]["path"] == "test/scheduling"


def test_argo_cd_renders_anew_when_a_hand_written_component_changes() -> None:
    folders = {
        ("partitions", None): "overlays/test/kustomize/partitions",
        ("partitions", "a"): "overlays/test/kustomize/partitions/a",
        ("partitions", "b"): "overlays/test/kustomize/partitions/b",
        ("scheduling", None): "overlays/test/kustomize/scheduling",
    }
    components = tuple(Component(stage, part, path, "Component", None) for (stage, part), path in folders.items())
    plan = a_cluster(a_pool())
    object.__setattr__(plan, "components", components)
    annotations = an_application(plan, "partitions/a", "gpu-partitions-test-a")["metadata"]["annotations"]
    assert annotations[PATHS].split(";") == [
        ".",
        "../../../../overlays/test/kustomize/partitions",
        "../../../../overlays/test/kustomize/partitions/a",
    ]


# --- Namespaces --------------------------------------------------------------------------------------------------


def test_one_application_set_for_all_namespaces() -> None:
    plan = a_cluster(more="labels: {team: gpu}, destination: {name: prod}")
    found = manifests(plan, folder("namespaces/a"), folder("namespaces/b"))
    assert [item.kind for item in found] == ["AppProject", "ApplicationSet"]
    assert get(found, "ApplicationSet", "gpu-namespaces-test") == {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {
            "name": "gpu-namespaces-test",
            "namespace": "argocd",
            "labels": {"team": "gpu"},
            "annotations": {WAVE: "20"},
        },
        "spec": {
            "goTemplate": True,
            "goTemplateOptions": ["missingkey=error"],
            "generators": [
                {"git": {"repoURL": REPO, "revision": "main", "directories": [{"path": "out/test/namespaces/*"}]}}
            ],
            "syncPolicy": {"applicationsSync": "create-update", "preserveResourcesOnDeletion": True},
            "template": {
                "metadata": {
                    "name": "gpu-namespace-test-{{.path.basename}}",
                    "labels": {"team": "gpu"},
                    "annotations": {"argocd.argoproj.io/compare-options": "ServerSideDiff=true", PATHS: "."},
                },
                "spec": {
                    "project": "gpuplan-test",
                    "source": {"repoURL": REPO, "targetRevision": "main", "path": "{{.path.path}}"},
                    "destination": {"name": "prod", "namespace": "{{.path.basename}}"},
                    "syncPolicy": {
                        "automated": AUTOMATED,
                        "syncOptions": [*OPTIONS, "PrunePropagationPolicy=background"],
                        "retry": RETRY,
                    },
                },
            },
        },
    }


# --- Workloads ---------------------------------------------------------------------------------------------------


def test_one_application_set_for_the_workloads_of_all_namespaces() -> None:
    found = manifests(a_cluster(), folder("namespaces/a"), folder("workloads/a"), folder("workloads/b"))
    assert [item.name for item in found] == ["gpuplan-test", "gpu-namespaces-test", "gpu-workloads-test"]
    body = get(found, "ApplicationSet", "gpu-workloads-test")
    (generator,) = body["spec"]["generators"]
    assert generator["git"]["directories"] == [{"path": "out/test/workloads/*"}]
    assert body["spec"]["template"]["metadata"]["name"] == "gpu-workloads-test-{{.path.basename}}"
    assert body["spec"]["syncPolicy"] == {"applicationsSync": "create-update", "preserveResourcesOnDeletion": True}
    namespaces = get(found, "ApplicationSet", "gpu-namespaces-test")
    assert wave(namespaces) < wave(body)


def test_no_sync_of_workloads_waits_until_a_training_has_ended() -> None:
    """With `PruneLast` whatever is pruned waits for all else (`gitops-engine/pkg/sync/sync_context.go` of Argo CD)."""
    body = get(manifests(a_cluster(), folder("workloads/a")), "ApplicationSet", "gpu-workloads-test")
    policy = body["spec"]["template"]["spec"]["syncPolicy"]
    assert policy == {
        "automated": AUTOMATED,
        "syncOptions": ["FailOnSharedResource=true", "ServerSideApply=true"],
        "retry": RETRY,
    }
