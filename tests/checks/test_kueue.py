"""Sizes of Kueue's queues that would make long cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.compiler.checks.queues import queue_too_large
from gpuplan.compiler.planning.plan import Plan
from tests.platforms import a_platform, pool, tenant


def platform(pools: int, quotas: str) -> Plan:
    documents = (pool(f"p{index}", nodes="count: 1, gpusPerNode: 8") for index in range(pools))
    return a_platform(*documents, tenant("research", quotas), scheduler="kueue")


def messages(plan: Plan) -> list[str]:
    return [f"{found.message}: {found.label}" for found in queue_too_large.find(plan)]


@pytest.mark.parametrize(
    ("pools", "expected"),
    [(65, []), (66, ["units that nobody has a guarantee on are too many for one cohort: 65 pools, 64 at most"])],
)
def test_what_nobody_has_a_guarantee_on_must_fit_into_a_cohort(pools: int, expected: list[str]) -> None:
    assert messages(platform(pools, "pool: p0, guaranteed: 8")) == expected


@pytest.mark.parametrize(
    ("pools", "resources", "label"),
    [
        (8, 64, ""),
        (19, 27, "19 pools with 27 resources each: 513, 512 at most"),
        (1, 65, "65 resources, 64 at most"),
        (65, 1, "65 pools, 64 at most"),
    ],
)
def test_a_queue_has_a_cell_for_every_pool_and_resource(pools: int, resources: int, label: str) -> None:
    plan = platform(1, "pool: p0, guaranteed: 8")
    (holder,), (quota,) = plan.tenants, plan.tenants[0].quotas
    quotas = [
        quota._replace(
            pool=quota.pool._replace(name=f"p{index % pools}"),
            unit=quota.unit._replace(resource=f"example.com/r{index % resources}"),
        )
        for index in range(pools * resources)
    ]
    crowded = replace(plan, tenants=(holder._replace(quotas=tuple(quotas)),))
    assert [found.label for found in queue_too_large.find(crowded)] == ([label] if label else [])
