"""What a platform itself asks for: its quotas and its workloads, each counted once."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpuplan.compiler.planning.plan import Isolation, Plan
from gpuplan.features.packing.sizing.demand import from_plan
from gpuplan.features.packing.sizing.needs import Basis, Need
from tests.platforms import a_platform, document, pool, tenant

MIXED = pool("mixed", "mig: {instances: {1g.10gb: 3, 2g.20gb: 2}}")
WHOLE = pool("whole")


def needs(plan: Plan, *pools: str, basis: Basis = Basis.GUARANTEED) -> tuple[Need, ...]:
    found, diagnostics = from_plan(plan, pools, basis)
    assert diagnostics == ()
    return found


def told(found: tuple[Need, ...]) -> list[tuple[str, str, int]]:
    return [(need.team, need.name, need.pods) for need in found]


def workload(name: str, team: str, at: str, what: str) -> str:
    return document("Workload", name, f"tenant: {team}", f"pool: {at}", "image: 'a:1'", what)


def test_a_quota_on_partitions_is_pods_with_what_a_partition_has() -> None:
    (need,) = needs(a_platform(MIXED, tenant("lab", "pool: mixed, unit: 2g.20gb, guaranteed: 5")))
    assert (need.team, need.name, need.pods, need.gpus) == ("lab", "2g.20gb", 5, 0)
    assert (need.memory_mib, need.compute, need.isolation) == (19968, Fraction(2, 7), Isolation.HARDWARE)
    assert (need.models, need.today, dict(need.engines)) == (("A100-80GB",), ("mixed", "2g.20gb"), {})
    assert str(need.at) == "spec.quotas[0]"


def test_media_engines_are_needed_where_a_profile_was_chosen_for_them() -> None:
    plan = a_platform(pool("a", "mig: {instances: {1g.10gb+me: 1}}"), tenant("lab", "pool: a, guaranteed: 2"))
    (need,) = needs(plan)
    assert {"jpeg": 1, "ofa": 1}.items() <= need.engines.items()


@pytest.mark.parametrize(("way", "isolation"), [("timeSlicing", Isolation.NONE), ("mps", Isolation.MPS)])
def test_a_share_has_its_part_of_memory_and_compute(way: str, isolation: Isolation) -> None:
    plan = a_platform(pool("a", f"{way}: {{replicas: 4}}"), tenant("lab", "pool: a, guaranteed: 3"))
    (need,) = needs(plan)
    assert (need.pods, need.memory_mib, need.compute, need.isolation) == (3, 20480, Fraction(1, 4), isolation)


def test_a_share_of_a_partition_has_its_part_of_that() -> None:
    plan = a_platform(
        pool("a", "mig: {instances: {1g.10gb: 7}, timeSlicing: {replicas: 2}}"), tenant("lab", "pool: a, guaranteed: 3")
    )
    (need,) = needs(plan)
    assert (need.memory_mib, need.compute, need.isolation) == (4864, Fraction(1, 14), Isolation.NONE)


def test_what_lies_within_the_guarantee_of_a_parent_is_counted_once() -> None:
    plan = a_platform(
        MIXED,
        tenant("org", "pool: mixed, unit: 1g.10gb, guaranteed: 10", namespaces=""),
        tenant("lab", "pool: mixed, unit: 1g.10gb, guaranteed: 6", more="parent: org"),
    )
    assert told(needs(plan)) == [("lab", "1g.10gb", 6), ("org", "1g.10gb", 4)]


def test_limits_count_what_the_outermost_tenants_may_use() -> None:
    plan = a_platform(
        MIXED,
        tenant("org", "pool: mixed, unit: 1g.10gb, guaranteed: 10, limit: 12", namespaces=""),
        tenant("lab", "pool: mixed, unit: 1g.10gb, guaranteed: 6, limit: 12", more="parent: org"),
        tenant("any", "pool: mixed, unit: 2g.20gb, guaranteed: 1, limit: none"),
    )
    found = needs(plan, basis=Basis.LIMIT)
    assert told(found) == [("any", "2g.20gb", 32), ("lab", "1g.10gb", 6), ("org", "1g.10gb", 6)]


def test_pools_choose() -> None:
    plan = a_platform(
        MIXED, WHOLE, tenant("lab", "pool: mixed, unit: 1g.10gb, guaranteed: 1", "pool: whole, guaranteed: 2")
    )
    assert told(needs(plan, "whole")) == [("lab", "gpu", 2)]


def test_whole_gpus_are_counted_in_pods_as_large_as_those_of_workloads() -> None:
    plan = a_platform(
        WHOLE,
        tenant("lab", "pool: whole, guaranteed: 11"),
        workload("train", "lab", "whole", "count: 4, training: {pods: 2}"),
    )
    found = needs(plan)
    assert [(need.name, need.pods, need.gpus, need.compute) for need in found] == [
        ("train", 2, 4, Fraction(1)),
        ("gpu", 3, 1, Fraction(1)),
    ]


def test_workloads_count_no_more_than_the_quota_has() -> None:
    plan = a_platform(
        WHOLE,
        tenant("lab", "pool: whole, guaranteed: 6, limit: 16"),
        workload("train", "lab", "whole", "count: 4, training: {pods: 4}"),
    )
    assert [(need.name, need.pods, need.gpus) for need in needs(plan)] == [("train", 1, 4), ("gpu", 2, 1)]


def test_workloads_are_a_basis_of_their_own() -> None:
    """Services run first; of what ends as much as the limit lets run at once."""
    plan = a_platform(
        MIXED,
        tenant("lab", "pool: mixed, unit: 1g.10gb, guaranteed: 4, limit: 8"),
        workload("batch", "lab", "mixed", "unit: 1g.10gb, batch: {pods: 40}"),
        workload("chat", "lab", "mixed", "unit: 1g.10gb, inference: {replicas: 3, port: 8080}"),
    )
    assert told(needs(plan, basis=Basis.WORKLOADS)) == [("lab", "chat", 3), ("lab", "batch", 5)]


FRACTIONS = pool("frac", "fraction: {}")


def test_fractions_are_counted_as_their_workloads_divide_them() -> None:
    plan = a_platform(
        FRACTIONS,
        tenant("lab", "pool: frac, guaranteed: 2"),
        workload("half", "lab", "frac", "fraction: 0.5, inference: {replicas: 4, port: 8080}"),
        scheduler="kai",
    )
    (need,) = needs(plan)
    assert (need.name, need.pods, need.compute, need.isolation) == ("half", 4, Fraction(1, 2), Isolation.NONE)
    assert need.memory_mib == 40960


def test_gpu826_a_quota_of_fractions_without_workloads_says_no_size() -> None:
    plan = a_platform(FRACTIONS, tenant("lab", "pool: frac, guaranteed: 2.5"), scheduler="kai")
    found, (diagnostic,) = from_plan(plan)
    assert [(need.pods, need.compute, need.memory_mib) for need in found] == [
        (2, Fraction(1), 81920),
        (1, Fraction(1, 2), 40960),
    ]
    assert (diagnostic.code, diagnostic.severity) == ("GPU826", "note")
    assert diagnostic.finding.label == "2.5 of its GPUs are counted as pods of a GPU each"
