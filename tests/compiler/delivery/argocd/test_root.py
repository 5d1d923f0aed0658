"""The root Application, and the Applications that it syncs in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuplan.compiler.delivery import Folder, argocd
from gpuplan.compiler.manifests import File, Manifest, render_tree
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.crds import problems
from tests.compiler.delivery.argocd.rendered import REPO, a_cluster, a_pool, folder, get, manifests
from tests.kustomizing import kustomize

AUTOMATIC = "approval: automatic"
WINDOW = "windows: [{schedule: 0 2 * * 6, duration: 4h}]"
WAVE = "argocd.argoproj.io/sync-wave"
RETRY = {"limit": 5, "backoff": {"duration": "30s", "factor": 2, "maxDuration": "10m"}}
OPTIONS = ["FailOnSharedResource=true", "PruneLast=true", "ServerSideApply=true"]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def a_rooted(*pools: str, more: str = "", **others: str) -> Plan:
    return a_cluster(*pools, more=f"root: true, {more}", **others)


def digested(path: str, digest: str = "12345678") -> Folder:
    return folder(path)._replace(digest=digest)


def applications(plan: Plan, *paths: str) -> dict[str, dict[str, Any]]:
    found = manifests(plan, *map(digested, paths))
    return {item.name: dict(item.body) for item in found if item.kind == "Application"}


# --- The root ----------------------------------------------------------------------------------------------------


def test_the_root_as_a_whole() -> None:
    plan = a_rooted(more="labels: {team: gpu}, revision: stable")
    assert applications(plan)["gpu-root-test"] == {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": "gpu-root-test",
            "namespace": "argocd",
            "labels": {"team": "gpu"},
            "annotations": {WAVE: "0"},
        },
        "spec": {
            "project": "gpu-root-test",
            "source": {
                "repoURL": REPO,
                "targetRevision": "stable",
                "path": "out/argocd/test/applications",
                "kustomize": {
                    "commonAnnotations": {"gpuplan.dev/revision": "$ARGOCD_APP_REVISION"},
                    "commonAnnotationsEnvsubst": True,
                },
            },
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "argocd"},
            "ignoreDifferences": [
                {
                    "group": "argoproj.io",
                    "kind": "*",
                    "jsonPointers": ["/operation", "/metadata/annotations/gpuplan.dev~1revision"],
                }
            ],
            "syncPolicy": {"automated": {"selfHeal": True}, "retry": {**RETRY, "refresh": True}},
        },
    }


def test_its_own_project_allows_what_makes_others_sync_and_the_clusters_does_not() -> None:
    found = manifests(a_rooted(more="namespace: gitops, destination: {name: prod}"), folder("gpu-operator"))
    root = get(found, "AppProject", "gpu-root-test")["spec"]
    assert root["sourceRepos"] == [REPO]
    assert root["destinations"] == [{"server": "https://kubernetes.default.svc", "namespace": "gitops"}]
    kinds = [entry["kind"] for entry in root["namespaceResourceWhitelist"]]
    assert kinds == ["AppProject", "Application", "ApplicationSet"]
    assert "clusterResourceWhitelist" not in root
    allowed = get(found, "AppProject", "gpuplan-test")["spec"]["namespaceResourceWhitelist"]
    assert "argoproj.io" not in {entry["group"] for entry in allowed}


def test_what_the_root_syncs_lies_below_what_syncs_the_root() -> None:
    found = manifests(a_rooted(a_pool()), folder("gpu-operator"), folder("namespaces/x"))
    assert {item.folder for item in found if item.name == "gpu-root-test"} == {""}
    assert {item.folder for item in found if item.name != "gpu-root-test"} == {"applications"}


def test_without_a_root_there_is_none() -> None:
    found = manifests(a_cluster(a_pool(), more="root: false"), folder("gpu-operator"))
    assert {(item.folder, item.name) for item in found} == {("", "gpu-operator-test"), ("", "gpuplan-test")}


# --- What it syncs in order --------------------------------------------------------------------------------------


def test_an_automatic_pools_sync_is_an_operation_that_the_root_applies() -> None:
    pool = applications(a_rooted(a_pool("a", AUTOMATIC)), "partitions/a")["gpu-partitions-test-a"]
    assert pool["metadata"]["annotations"] == {
        "argocd.argoproj.io/compare-options": "ServerSideDiff=true",
        "argocd.argoproj.io/manifest-generate-paths": ".",
        WAVE: "10",
        "gpuplan.dev/content": "12345678",
        "gpuplan.dev/revision": "main",
    }
    assert pool["spec"]["syncPolicy"] == {"syncOptions": OPTIONS, "retry": {**RETRY, "refresh": True}}
    assert pool["operation"] == {
        "initiatedBy": {"username": "gpu-root-test"},
        "sync": {"revision": "main", "prune": True, "syncOptions": OPTIONS},
        "retry": RETRY,
    }


def test_the_operators_operation_has_the_charts_version_beside_the_commit_and_prunes_nothing() -> None:
    operator = applications(a_rooted(), "gpu-operator")["gpu-operator-test"]
    assert operator["operation"]["sync"] == {"revisions": ["v26.7.0", "main"], "syncOptions": OPTIONS[:2]}
    assert operator["metadata"]["annotations"][WAVE] == "0"
    assert "automated" not in operator["spec"]["syncPolicy"]


def test_without_a_chart_the_operator_has_one_revision() -> None:
    plan = a_rooted(operator="install: olm, version: v26.7.0", spec="platform: openshift")
    assert applications(plan, "gpu-operator")["gpu-operator-test"]["operation"]["sync"]["revision"] == "main"


@pytest.mark.parametrize("disruption", ["", "approval: manual", f"{AUTOMATIC}, {WINDOW}", WINDOW])
def test_what_waits_for_a_person_or_a_window_is_in_the_last_wave_and_has_no_operation(disruption: str) -> None:
    pool = applications(a_rooted(a_pool("a", disruption)), "partitions/a")["gpu-partitions-test-a"]
    assert pool["metadata"]["annotations"][WAVE] == "40"
    assert "operation" not in pool
    assert "gpuplan.dev/content" not in pool["metadata"]["annotations"]
    assert ("automated" in pool["spec"]["syncPolicy"]) == (AUTOMATIC in disruption)


def test_nothing_is_in_order_behind_an_operator_that_waits_for_a_person() -> None:
    plan = a_rooted(a_pool("a", AUTOMATIC), more="operatorApproval: manual")
    found = applications(plan, "gpu-operator", "partitions/a")
    assert [name for name, body in found.items() if "operation" in body] == []
    assert "automated" in found["gpu-partitions-test-a"]["spec"]["syncPolicy"]


@pytest.mark.parametrize("path", ["scheduling", "queues/a", "monitoring"])
def test_what_no_label_hangs_on_is_synced_by_itself(path: str) -> None:
    with_root, without = (plan(a_pool("a", AUTOMATIC)) for plan in (a_rooted, a_cluster))
    found = applications(with_root, path)
    del found["gpu-root-test"]
    assert found == applications(without, path)


# --- The commit --------------------------------------------------------------------------------------------------


def built(plan: Plan, to: Path, *paths: str) -> dict[str, dict[str, Any]]:
    """What Argo CD makes of the folder that the root syncs, when it is at a commit (`Build` in `util/kustomize`)."""
    folders = [digested(path) for path in paths]
    artifacts, apart = list(argocd.render(plan, folders)), argocd.apart(plan, folders)
    objects, others = ([item for item in artifacts if isinstance(item, kind)] for kind in (Manifest, File))
    for path, data in render_tree("test", objects, others, {}, apart=apart).files.items():  # type: ignore[arg-type]
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        (to / path).write_bytes(data)
    with (to / "test/applications/kustomization.yaml").open("a") as file:
        file.write(f"commonAnnotations:\n  gpuplan.dev/revision: {COMMIT}\n")  # `kustomize edit add annotation`
    bodies = yaml.safe_load_all(kustomize(to / "test/applications"))
    return {body["metadata"]["name"]: body for body in bodies}


def test_all_operations_are_at_the_commit_that_argo_cd_builds(tmp_path: Path) -> None:
    plan = a_rooted(a_pool("a", AUTOMATIC), a_pool("b", AUTOMATIC), a_pool("c"))
    found = built(plan, tmp_path, "gpu-operator", "partitions/a", "partitions/b", "partitions/c")
    assert found["gpu-operator-test"]["operation"]["sync"]["revisions"] == ["v26.7.0", COMMIT]
    assert found["gpu-partitions-test-a"]["operation"]["sync"]["revision"] == COMMIT
    assert found["gpu-partitions-test-b"]["operation"]["sync"]["revision"] == COMMIT
    assert found["gpu-partitions-test-a"]["metadata"]["annotations"]["gpuplan.dev/revision"] == COMMIT
    assert found["gpu-partitions-test-a"]["spec"]["source"]["targetRevision"] == "main"


def test_where_nothing_is_in_order_there_is_nothing_to_tell_the_commit(tmp_path: Path) -> None:
    plan = a_rooted(a_pool("a", AUTOMATIC), more="operatorApproval: manual")
    found = built(plan, tmp_path, "gpu-operator", "partitions/a")
    assert set(found) == {"gpu-operator-test", "gpu-partitions-test-a", "gpuplan-test"}
    assert not (tmp_path / "test/applications/revisions.yaml").exists()


def test_whoever_applies_the_clusters_folder_applies_the_root_alone(tmp_path: Path) -> None:
    built(a_rooted(a_pool("a", AUTOMATIC)), tmp_path, "gpu-operator", "partitions/a")
    bodies = list(yaml.safe_load_all(kustomize(tmp_path / "test")))
    assert sorted(body["kind"] for body in bodies) == ["AppProject", "Application"]
    assert {body["metadata"]["name"] for body in bodies} == {"gpu-root-test"}


# --- Argo CD's own definitions -----------------------------------------------------------------------------------


def test_objects_fit_their_definitions() -> None:
    plan = a_rooted(a_pool("a", AUTOMATIC), a_pool("b"), more="labels: {team: gpu}")
    assert problems(manifests(plan, *map(digested, ("gpu-operator", "partitions/a", "partitions/b")))) == []
