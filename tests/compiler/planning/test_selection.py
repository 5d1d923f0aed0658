"""The part of a plan that somebody asks for."""

from __future__ import annotations

import pytest

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.planning.selection import Selection, select, selection_of
from tests.platforms import a_platform, document, pool, priority_class, tenant


def work(name: str, of: str, where: str) -> str:
    return document(
        "Workload", name, f"tenant: {of}", f"pool: {where}", "training: {pods: 1}", "image: registry.example.com/a:1"
    )


HIGH = "priorityClasses: [high]"
PLAN = a_platform(
    pool("small", "mig: {layout: seven}", "fallback: whole"),
    pool("whole"),
    pool("spare"),
    document("MigLayout", "seven", "gpu: A100-80GB", "instances: {1g.10gb: 7}"),
    document("MigLayout", "unused", "gpu: A100-80GB", "instances: {7g.80gb: 1}"),
    priority_class("high", 100),
    priority_class("low", 10),
    tenant("lab", "pool: whole, guaranteed: 8", namespaces="", more=HIGH),
    tenant("vision", "pool: whole, guaranteed: 2", more="parent: lab, priorityClasses: [low]"),
    tenant("agents", "pool: small, guaranteed: 7", "pool: whole, guaranteed: 1, limit: 4", more=HIGH),
    tenant("research", "pool: whole, guaranteed: 2, limit: 6", more="priorityClasses: [high, low]"),
    tenant("guests"),
    work("train", "vision", "whole"),
    work("answer", "agents", "small"),
    scheduler="kueue",
)


def names(found: Selection) -> dict[str, list[str]]:
    return {
        "pools": [item.name for item in found.pools],
        "layouts": [item.name for item in found.layouts],
        "tenants": [item.name for item in found.tenants],
        "quotas": [f"{item.name} {quota.pool.name}" for item in found.tenants for quota in item.quotas],
        "workloads": [item.name for item in found.workloads],
        "classes": [item.name for item in found.priority_classes],
    }


def test_a_pool_has_its_layout_quotas_and_workloads() -> None:
    (found,) = select([PLAN], pools=["small"])

    assert names(found) == {
        "pools": ["small"],
        "layouts": ["seven"],
        "tenants": ["agents"],
        "quotas": ["agents small"],
        "workloads": ["answer"],
        "classes": ["high"],
    }


def test_a_tenant_has_what_is_part_of_it_and_the_pools_of_that() -> None:
    (found,) = select([PLAN], tenants=["lab"])

    assert names(found) == {
        "pools": ["whole"],
        "layouts": [],
        "tenants": ["lab", "vision"],
        "quotas": ["lab whole", "vision whole"],
        "workloads": ["train"],
        "classes": ["high", "low"],
    }
    assert found.guaranteed == {("whole", "gpu"): 8}, "what a tenant has includes what those have that are part of it"


def test_of_a_pool_and_a_tenant_it_is_what_belongs_to_both() -> None:
    (found,) = select([PLAN], pools=["whole"], tenants=["agents"])

    assert (names(found)["pools"], names(found)["quotas"]) == (["whole"], ["agents whole"])
    assert found.guaranteed == {("whole", "gpu"): 1}


def test_a_part_of_a_tenant_alone_has_its_own_guarantee() -> None:
    (found,) = select([PLAN], tenants=["vision"])

    assert found.guaranteed == {("whole", "gpu"): 2}


def test_names_may_be_patterns_and_several() -> None:
    assert names(*select([PLAN], pools=["s*", "whol?"]))["pools"] == ["small", "spare", "whole"]
    assert names(*select([PLAN], tenants=["[av]*"]))["tenants"] == ["agents", "vision"]


def test_a_tenant_without_anything_is_shown_as_such() -> None:
    (found,) = select([PLAN], tenants=["guests"])

    assert (names(found)["tenants"], found.pools, found.evictions) == (["guests"], (), ())


def test_clusters_that_have_none_of_it_are_left_out() -> None:
    other = a_platform(pool("elsewhere"))

    assert [found.plan for found in select([PLAN, other], pools=["elsewhere"])] == [other]
    assert len(select([PLAN, other])) == 2


@pytest.mark.parametrize(
    ("pools", "tenants", "message", "hint"),
    [
        (["smal"], [], "no pool `smal`", "did you mean `small`?"),
        (["x*"], [], "no pool `x*`", "the pools are `small`, `spare` and `whole`"),
        ([], ["agnets"], "no tenant `agnets`", "did you mean `agents`?"),
        (["spare"], ["lab"], "tenant `lab` has nothing in pool `spare`", "ask for one of the two"),
    ],
)
def test_what_is_nowhere_is_trouble(pools: list[str], tenants: list[str], message: str, hint: str) -> None:
    with pytest.raises(GpuplanError) as caught:
        select([PLAN], pools, tenants)

    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_without_any_tenant_the_hint_says_so() -> None:
    with pytest.raises(GpuplanError, match="no tenant `lab`") as caught:
        select([a_platform(pool("a"))], tenants=["lab"])

    assert caught.value.hint == "no cluster that is shown has a tenant"


def test_all_of_a_plan_has_what_is_used_by_nobody() -> None:
    assert names(selection_of(PLAN))["layouts"] == ["seven", "unused"]
    assert selection_of(PLAN).guaranteed == {total.key: total.guaranteed for total in PLAN.totals}


def pairs(found: Selection) -> set[tuple[str, ...]]:
    """Who evicts whom for which reason in the part that is shown."""
    return {
        (eviction.pool, eviction.unit, eviction.mechanism, str(evictor), str(victim))
        for eviction in found.evictions
        for evictor in eviction.evictors
        for victim in eviction.victims
        if eviction.holds(evictor, victim)
    }


def test_of_evictions_exactly_those_with_the_tenant_are_shown() -> None:
    (found,) = select([PLAN], tenants=["agents"])

    of_all = pairs(selection_of(PLAN))
    assert pairs(found) == {pair for pair in of_all if "'agents'" in pair[3] + pair[4]}
    assert pairs(found) != of_all
