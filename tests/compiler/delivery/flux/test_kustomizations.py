"""Each folder has a Kustomization, with what the policy says of Flux."""

from __future__ import annotations

import pytest

from gpuplan.compiler.manifests import Identity
from gpuplan.compiler.planning.sync_names import sync_name
from tests.compiler.delivery.flux.rendered import a_cluster, folder, kustomization, objects

CLUSTER = a_cluster()


def test_a_kustomization() -> None:
    assert kustomization(CLUSTER, "scheduling") == {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "gpu-tenancy-prod", "namespace": "flux-system"},
        "spec": {
            "interval": "10m",
            "retryInterval": "1m",
            "timeout": "5m",
            "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
            "path": "./out/prod/scheduling",
            "prune": True,
            "deletionPolicy": "Orphan",
            "wait": True,
        },
    }


def test_what_the_policy_says_of_flux() -> None:
    plan = a_cluster(
        "namespace: gitops, interval: 1h, path: gpu/out, labels: {team: gpu, example.com/stage: live}, "
        "source: {kind: OCIRepository, name: platform, namespace: sources}, "
        "serviceAccountName: gpu-applier, kubeConfigSecret: prod-kubeconfig"
    )
    body = kustomization(plan, "scheduling")
    assert body["metadata"] == {
        "name": "gpu-tenancy-prod",
        "namespace": "gitops",
        "labels": {"example.com/stage": "live", "team": "gpu"},
    }
    assert list(body["metadata"]["labels"]) == ["example.com/stage", "team"]
    assert body["spec"] == {
        "interval": "1h",
        "retryInterval": "1m",
        "timeout": "5m",
        "serviceAccountName": "gpu-applier",
        "kubeConfig": {"secretRef": {"name": "prod-kubeconfig"}},
        "sourceRef": {"kind": "OCIRepository", "name": "platform", "namespace": "sources"},
        "path": "./gpu/out/prod/scheduling",
        "prune": True,
        "deletionPolicy": "Orphan",
        "wait": True,
    }


def test_output_at_the_top_of_the_source() -> None:
    assert kustomization(a_cluster("path: ."), "scheduling")["spec"]["path"] == "./prod/scheduling"


def test_alerts_go_with_their_kustomization() -> None:
    assert kustomization(CLUSTER, "monitoring")["spec"]["deletionPolicy"] == "Delete"


def test_alerts_stay_where_what_was_added_to_them_could_hold_data() -> None:
    added = folder("monitoring", Identity("", "ConfigMap", "default", "a"), Identity("", "Namespace", "", "grafana"))
    found = objects(CLUSTER, added)["Kustomization/gpu-monitoring-prod"]
    assert found["spec"]["deletionPolicy"] == "Orphan"


def test_a_folder_has_the_name_that_it_has_in_argo_cd() -> None:
    paths = ("gpu-operator", "partitions/a100", "scheduling", "namespaces/research", "monitoring", "workloads")
    found = {
        body["spec"]["path"]: name
        for name, body in objects(CLUSTER, *map(folder, paths)).items()
        if "path" in body["spec"]
    }
    assert found == {f"./out/prod/{path}": f"Kustomization/{sync_name('prod', path)}" for path in paths}


def test_a_folder_of_no_part() -> None:
    """Where there are no pools or namespaces, a hand-written Component makes a folder of the stage."""
    names = [kustomization(CLUSTER, path)["metadata"]["name"] for path in ("partitions", "namespaces")]
    assert names == ["gpu-partitions-prod", "gpu-namespaces-prod"]


# --- Long names --------------------------------------------------------------------------------------------------

LONG = a_cluster(name="a-cluster-with-a-name-of-forty-characters")


def test_a_name_that_no_label_could_hold_is_cut() -> None:
    name = kustomization(LONG, "namespaces/a-namespace-with-a-long-name")["metadata"]["name"]
    assert name == "gpu-namespace-a-cluster-with-a-name-of-forty-character-dfcc01f2"
    assert len(name) == 63


def test_names_that_are_cut_stay_apart() -> None:
    one, other = (kustomization(LONG, f"namespaces/a-namespace-with-a-long-name-{end}") for end in "ab")
    assert one["metadata"]["name"] != other["metadata"]["name"]


# --- Approval ----------------------------------------------------------------------------------------------------

POOLS = a_cluster(pools={"by-hand": "manual", "by-itself": "automatic"})


def test_a_person_starts_the_changes_of_a_manual_pool() -> None:
    assert kustomization(POOLS, "partitions/by-hand")["spec"]["suspend"] is True


def test_an_automatic_pool_can_be_suspended_by_hand() -> None:
    """A field that the manifest states is restored at each reconciliation."""
    assert "suspend" not in kustomization(POOLS, "partitions/by-itself")["spec"]


def test_what_is_for_no_known_pool_is_for_a_person_to_start() -> None:
    assert kustomization(POOLS, "partitions")["spec"]["suspend"] is True


@pytest.mark.parametrize("path", ["gpu-operator", "scheduling", "namespaces/by-hand", "monitoring", "workloads"])
def test_nothing_else_waits_for_a_person(path: str) -> None:
    assert "suspend" not in kustomization(POOLS, path)["spec"]


def test_nodes_are_not_waited_for() -> None:
    """A Node that reboots is not ready, and a Kustomization that waits for it could not be applied meanwhile."""
    assert not {"wait", "healthChecks"} & kustomization(POOLS, "partitions/by-itself")["spec"].keys()


def test_work_that_waits_for_its_turn_is_no_failure() -> None:
    assert not {"wait", "healthChecks"} & kustomization(POOLS, "workloads/research")["spec"].keys()
