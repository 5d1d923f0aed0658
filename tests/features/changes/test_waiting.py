"""Which Applications wait after a step, and for whom or for what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.compiler.delivery.annotations import HOOK, SYNC_WAVE
from gpuplan.compiler.manifests import Identity, Manifest
from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Component, Plan
from gpuplan.features.changes.model import Wait
from gpuplan.features.changes.objects import Objects
from gpuplan.features.changes.states import ClusterState, compare, waits as told
from tests.plans import CLUSTER, a_plan
from tests.platforms import document, pool, priority_class, tenant

ARGOCD = "  argocd: {repoURL: https://git.example.com/p.git}\n"
FLUX = "  flux: {}\n"
QUEUED = "  scheduler: {kind: kueue}\n"
LAB = tenant("lab", "pool: a, guaranteed: 4")
SHOP = tenant("shop", "pool: a, guaranteed: 4")
JOB = Identity("batch", "Job", "lab", "own")
FETCHED = "model: {size: 1Gi, download: {image: 'e.example/f:1'}}"


def a_platform(*documents: str, delivery: str = ARGOCD) -> Plan:
    return a_plan(CLUSTER + delivery + pool("a") + LAB + "".join(documents))


def waits(before: Plan, after: Plan) -> tuple[Wait, ...]:
    return compare(*([ClusterState.of(plan, artifacts(plan))] for plan in (before, after))).waits


def namespaces(plan: Plan) -> set[str]:
    manifests = [artifact for _, artifact in artifacts(plan) if isinstance(artifact, Manifest)]
    return {item.body["metadata"]["name"] for item in manifests if item.kind == "Namespace"}


def service(name: str, *more: str) -> str:
    return document("Workload", name, "tenant: lab", "pool: a", "image: 'e.example/a:1'", "inference: {}", *more)


def training(name: str, image: str = "e.example/t:1") -> str:
    return document("Workload", name, "tenant: lab", "pool: a", f"image: '{image}'", "training: {}")


def named(found: tuple[Wait, ...]) -> list[tuple[str, list[str], list[str]]]:
    return [(wait.application, [*map(str, wait.pruned)], [*map(str, wait.ended)]) for wait in found]


# --- What a person confirms --------------------------------------------------------------------------------------


def test_a_class_that_leaves_waits_for_a_person() -> None:
    found = waits(a_platform(priority_class("late", 10)), a_platform())

    assert named(found) == [("gpu-tenancy-test", ["PriorityClass.scheduling.k8s.io late"], [])]


def test_a_class_that_comes_waits_for_nobody() -> None:
    assert waits(a_platform(), a_platform(priority_class("late", 10))) == ()


def test_a_queue_of_a_tenant_that_leaves_waits_for_a_person() -> None:
    delivery = ARGOCD + QUEUED
    _, found = waits(a_platform(SHOP, delivery=delivery), a_platform(delivery=delivery))

    assert found.application == "gpu-tenancy-test"
    assert "ClusterQueue.kueue.x-k8s.io shop" in [*map(str, found.pruned)]


def test_beside_a_chart_nothing_is_pruned_so_nobody_is_asked() -> None:
    """Without a person, Argo CD leaves there what carries `Prune=confirm`, too."""
    before = a_platform()
    elsewhere = CLUSTER.replace("install: helm", "install: helm, namespace: nvidia")
    after = a_plan(elsewhere + ARGOCD + pool("a") + LAB)

    assert "gpu-operator" in namespaces(before) - namespaces(after)
    assert waits(before, after) == ()


@pytest.mark.parametrize("delivery", [FLUX, ""])
def test_only_argo_cd_asks(delivery: str) -> None:
    assert waits(a_platform(priority_class("late", 10), delivery=delivery), a_platform(delivery=delivery)) == ()


# --- What the API server refuses ---------------------------------------------------------------------------------


def test_a_class_whose_value_changes_keeps_its_application_from_syncing() -> None:
    (found,) = waits(a_platform(priority_class("late", 10)), a_platform(priority_class("late", 20)))

    assert found.application == "gpu-tenancy-test"
    assert [*map(str, found.refused)] == ["PriorityClass.scheduling.k8s.io late"]


def test_a_namespace_that_goes_to_another_tenant_keeps_its_application_from_syncing() -> None:
    delivery = ARGOCD + QUEUED
    found = waits(
        a_platform(delivery=delivery), a_plan(CLUSTER + delivery + pool("a") + LAB.replace("name: lab", "name: den"))
    )

    assert {wait.folder: [*map(str, wait.refused)] for wait in found if wait.refused} == {
        "namespaces/lab": ["LocalQueue.kueue.x-k8s.io lab/default"]
    }


def test_a_volume_that_is_made_smaller_keeps_its_application_from_syncing() -> None:
    before = a_platform(service("chat", FETCHED.replace("1Gi", "2Gi")))
    (found,) = waits(before, a_platform(service("chat", FETCHED)))

    assert [*map(str, found.refused)] == ["PersistentVolumeClaim lab/chat-model"]


def test_a_hook_is_deleted_before_it_is_applied_again() -> None:
    hook = {"metadata": {"annotations": {HOOK: "PreSync"}}}
    before, after = ({("partitions/a", JOB): {**hook, "spec": {"template": text}}} for text in ("old", "new"))

    assert list(told(a_platform(), before, after)) == []


@pytest.mark.parametrize(("folder", "refused"), [("gpu-operator", []), ("scheduling", ["gpuplan-a"])])
def test_beside_a_chart_the_server_is_asked_in_a_sync_alone(folder: str, refused: list[str]) -> None:
    """What is compared without it begins a sync, which fails at the object and applies the others."""
    driver = Identity("nvidia.com", "NVIDIADriver", "", "gpuplan-a")
    before, after = ({(folder, driver): {"spec": {"usePrecompiled": value}}} for value in (False, True))

    assert [item.name for wait in told(a_platform(), before, after) for item in wait.refused] == refused


# --- What is left ------------------------------------------------------------------------------------------------


def test_an_application_whose_folder_goes_leaves_what_it_applied() -> None:
    (found,) = waits(a_platform(SHOP), a_platform())

    assert found.application == "gpu-namespace-test-shop"
    assert {"Namespace shop", "ResourceQuota shop/gpuplan"} <= {*map(str, found.left)}


def test_the_last_work_of_a_namespace_leaves_its_pods() -> None:
    (found,) = waits(a_platform(service("chat")), a_platform())

    assert found.application == "gpu-workloads-test-lab"
    assert "Deployment.apps lab/chat" in [*map(str, found.left)]


def test_a_folder_that_a_component_keeps_goes_on() -> None:
    after = a_platform()
    kept = Component("workloads", "lab", "overlays/test/kustomize/workloads/lab", "Component", None)
    before: Objects = {("workloads/lab", Identity("apps", "Deployment", "lab", "chat")): {}}

    assert [wait.folder for wait in told(after, before, {})] == ["workloads/lab"]
    assert list(told(replace(after, components=(kept,)), before, {})) == []


def test_nothing_is_left_of_a_folder_of_files() -> None:
    before = {("monitoring", Identity("", "File", "", "values.yaml")): {"data": ""}}

    assert list(told(a_platform(), before, {})) == []


# --- What must end -----------------------------------------------------------------------------------------------


def test_a_download_holds_the_work_of_its_namespace() -> None:
    (found,) = waits(a_platform(), a_platform(service("chat", FETCHED)))

    assert found.application == "gpu-workloads-test-lab"
    assert [job.name.rpartition("-")[0] for job in found.ended] == ["chat-download"]


@pytest.mark.parametrize("beside", [(), (service("chat", FETCHED),), (service("chat", "config: {a.yaml: b}"),)])
def test_a_training_is_applied_last_and_holds_nothing(beside: tuple[str, ...]) -> None:
    assert waits(a_platform(*beside), a_platform(*beside, training("tune"))) == ()


def test_a_download_that_is_there_already_is_not_told_again() -> None:
    before = a_platform(service("chat", FETCHED))

    assert waits(before, a_platform(service("chat", FETCHED, "cpu: '2'"))) == ()


def test_a_claim_that_leaves_and_a_download_that_comes_are_told_together() -> None:
    (found,) = waits(a_platform(service("talk", FETCHED)), a_platform(service("chat", FETCHED)))

    assert [str(item) for item in found.pruned] == ["PersistentVolumeClaim lab/talk-model"]
    assert [job.name.rpartition("-")[0] for job in found.ended] == ["chat-download"]


@pytest.mark.parametrize(
    ("wave", "is_told"), [("1", True), ("0", False), ("-1", False), ("first", False), ("9" * 5000, False), ([], False)]
)
def test_a_wave_that_somebody_wrote_is_a_number_or_none(wave: object, is_told: bool) -> None:
    """As `Wave` in `gitops-engine/pkg/sync/syncwaves/waves.go` of Argo CD reads it."""
    folder, later = "workloads/lab", Identity("", "ConfigMap", "lab", "own")
    after = {(folder, JOB): {}, (folder, later): {"metadata": {"annotations": {SYNC_WAVE: wave}}}}

    assert [wait.ended for wait in told(a_platform(), {}, after)] == [(JOB,)] * is_told
