"""Which Applications wait in the middle of a sync, for whom or for what, and take no other commit until then."""

from __future__ import annotations

import pytest

from gpuplan.compiler.pipeline.rendering import artifacts
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.changes.model import Hold
from gpuplan.features.changes.states import ClusterState, compare
from tests.plans import CLUSTER, a_plan
from tests.platforms import document, pool, priority_class, tenant

ARGOCD = "  argocd: {repoURL: https://git.example.com/p.git}\n"
FLUX = "  flux: {}\n"
QUEUED = "  scheduler: {kind: kueue}\n"
LAB = tenant("lab", "pool: a, guaranteed: 4")
SHOP = tenant("shop", "pool: a, guaranteed: 4")
FETCHED = "model: {size: 1Gi, download: {image: 'e.example/f:1'}}"


def a_platform(*documents: str, delivery: str = ARGOCD) -> Plan:
    return a_plan(CLUSTER + delivery + pool("a") + LAB + "".join(documents))


def holds(before: Plan, after: Plan) -> tuple[Hold, ...]:
    return compare(*([ClusterState.of(plan, artifacts(plan))] for plan in (before, after))).holds


def service(name: str, *more: str) -> str:
    return document("Workload", name, "tenant: lab", "pool: a", "image: 'e.example/a:1'", "inference: {}", *more)


def training(name: str, image: str = "e.example/t:1") -> str:
    return document("Workload", name, "tenant: lab", "pool: a", f"image: '{image}'", "training: {}")


def named(found: tuple[Hold, ...]) -> list[tuple[str, list[str], list[str]]]:
    return [(hold.application, [*map(str, hold.pruned)], [*map(str, hold.ended)]) for hold in found]


# --- What a person confirms --------------------------------------------------------------------------------------


def test_a_class_that_leaves_waits_for_a_person() -> None:
    found = holds(a_platform(priority_class("late", 10)), a_platform())

    assert named(found) == [("gpu-tenancy-test", ["PriorityClass.scheduling.k8s.io late"], [])]


def test_a_class_that_comes_waits_for_nobody() -> None:
    assert holds(a_platform(), a_platform(priority_class("late", 10))) == ()


def test_a_queue_of_a_tenant_that_leaves_waits_for_a_person() -> None:
    delivery = ARGOCD + QUEUED
    (found,) = holds(a_platform(SHOP, delivery=delivery), a_platform(delivery=delivery))

    assert "ClusterQueue.kueue.x-k8s.io shop" in [*map(str, found.pruned)]


def test_a_folder_that_leaves_as_a_whole_is_synced_no_more() -> None:
    assert {hold.folder for hold in holds(a_platform(SHOP), a_platform())} <= {"scheduling"}


def test_an_operators_configuration_that_leaves_is_pruned_of_nobody() -> None:
    before, after = (a_plan(CLUSTER + ARGOCD + pool("a", f"timeSlicing: {{replicas: {size}}}")) for size in (2, 3))

    assert holds(before, after) == ()


@pytest.mark.parametrize("delivery", [FLUX, ""])
def test_only_argo_cd_asks(delivery: str) -> None:
    assert holds(a_platform(priority_class("late", 10), delivery=delivery), a_platform(delivery=delivery)) == ()


# --- What must end -----------------------------------------------------------------------------------------------


def test_a_download_holds_the_work_of_its_namespace() -> None:
    (found,) = holds(a_platform(), a_platform(service("chat", FETCHED)))

    assert found.application == "gpu-workloads-test-lab"
    assert [job.name.rpartition("-")[0] for job in found.ended] == ["chat-download"]


def test_a_training_holds_what_comes_with_a_download() -> None:
    before = a_platform(service("chat", FETCHED))
    (found,) = holds(before, a_platform(service("chat", FETCHED), training("tune")))

    assert [job.name.rpartition("-")[0] for job in found.ended] == ["tune"]


@pytest.mark.parametrize("beside", [(), (service("chat"),), (service("chat", "config: {a.yaml: b}"),)])
def test_a_training_holds_nothing_where_nothing_is_downloaded(beside: tuple[str, ...]) -> None:
    assert holds(a_platform(*beside), a_platform(*beside, training("tune"))) == ()


def test_a_training_that_runs_holds_no_later_commit() -> None:
    before = a_platform(service("chat", FETCHED), training("tune"))
    after = a_platform(service("chat", FETCHED, "cpu: '2'"), training("tune"))

    assert holds(before, after) == ()


def test_a_training_and_a_claim_that_leave_are_told_together() -> None:
    before = a_platform(service("chat", FETCHED), service("talk", FETCHED))
    (found,) = holds(before, a_platform(service("chat", FETCHED), training("tune")))

    assert [str(item) for item in found.pruned] == ["PersistentVolumeClaim lab/talk-model"]
    assert len(found.ended) == 1
