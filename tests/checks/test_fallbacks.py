"""What checks on workloads say where these may go to another pool when their own is full."""

from __future__ import annotations

import pytest

from gpuplan.compiler.checks import run
from gpuplan.compiler.planning.plan import Plan
from tests.platforms import a_platform, document, pool, tenant

FIRST = pool("first", "exclusive: {}", "fallback: second", nodes="count: 1, gpusPerNode: 8")
SECOND = pool("second", nodes="count: 1, gpusPerNode: 8")
LAB = tenant("lab", "pool: first, guaranteed: 4", "pool: second, guaranteed: 2, limit: 6")


def service(pods: int, *more: str, name: str = "app") -> str:
    asked = ("tenant: lab", "pool: first", f"inference: {{replicas: {pods}}}", "image: registry.example.com/app:1")
    return document("Workload", name, *asked, *more)


def said(*documents: str, scheduler: str = "kueue") -> list[str]:
    """The codes of what is said of workloads."""
    plan: Plan = a_platform(FIRST, SECOND, LAB, *documents, scheduler=scheduler)
    return sorted(found.code for found in run(plan) if "GPU570" <= found.code <= "GPU589" or found.code == "GPU453")


@pytest.mark.parametrize("scheduler", ["kubernetes", "kueue"])
def test_work_has_room_in_all_pools_that_it_may_go_to(scheduler: str) -> None:
    assert "GPU571" not in said(service(10), scheduler=scheduler)
    assert "GPU571" in said(service(11), scheduler=scheduler)


def test_work_that_stays_leaves_less_to_what_falls_back() -> None:
    stays = service(5).replace("pool: first", "pool: second").replace("app}", "stays}")
    assert "GPU571" not in said(service(5), stays)
    assert "GPU571" in said(service(6), stays)


def test_where_one_pool_is_one_scheduler_the_own_pool_is_all() -> None:
    assert "GPU571" in said(service(5), scheduler="kai")


def test_what_lasts_has_the_guarantees_of_both() -> None:
    lasting = document("PriorityClass", "lasting", "value: 1000", "preemptible: false")
    named = "priorityClass: lasting"
    assert "GPU572" not in said(lasting, service(6, named))
    assert "GPU572" in said(lasting, service(7, named))


def test_units_beyond_both_guarantees_are_borrowed() -> None:
    other = tenant("office", "pool: second, guaranteed: 6")
    assert "GPU573" not in said(other, service(6))
    assert "GPU573" in said(other, service(7))


def test_a_pod_that_fits_on_nodes_of_the_fallback_fits() -> None:
    small = FIRST.replace("gpusPerNode: 8", "gpusPerNode: 4, cpu: 8")
    large = SECOND.replace("gpusPerNode: 8", "gpusPerNode: 8, cpu: 16")
    lab = tenant("lab", "pool: first, guaranteed: 4", "pool: second, guaranteed: 8")
    plan = a_platform(small, large, lab, service(1, "count: 8", "cpu: '12'"), scheduler="kueue")
    assert not {found.code for found in run(plan)} & {"GPU453", "GPU574", "GPU575"}
    alone = a_platform(small.replace("fallback: second", ""), large, lab, service(1, "count: 8", "cpu: '12'"))
    assert {found.code for found in run(alone)} >= {"GPU453", "GPU574"}


def test_a_volume_of_one_node_is_too_little_for_pods_in_two_pools() -> None:
    model = "model: {size: 10Gi, accessMode: ReadWriteOnce}"
    assert "GPU585" in said(service(2, model))
    assert "GPU585" not in said(service(2, model).replace("pool: first", "pool: second"))
