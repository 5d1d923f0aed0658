"""Guarantees that plain ResourceQuotas do not keep: what is left when all others use their caps."""

from __future__ import annotations

import pytest

from gpuplan.compiler.checks.caps import grants_by_unit, shortfalls
from tests.platforms import a_platform, pool, tenant


def left(**quotas: str) -> dict[str, int]:
    """What is left of 16 GPUs to each tenant whose guarantee does not hold."""
    tenants = (tenant(name, f"pool: p, {quota}") for name, quota in quotas.items())
    [granted] = grants_by_unit(a_platform(pool("p"), *tenants, scheduler="kubernetes, cap: limit")).values()
    return {found.grant.tenant.name: int(found.remaining) for found in shortfalls(granted, 16)}


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("guaranteed: 8", "guaranteed: 8", {}),
        ("guaranteed: 8", "guaranteed: 8, limit: 9", {"one": 7}),
        ("guaranteed: 8, limit: 9", "guaranteed: 8, limit: 9", {"one": 7, "other": 7}),
        ("guaranteed: 1", "guaranteed: 8, limit: 15", {}),
        ("guaranteed: 1", "guaranteed: 8, limit: 16", {"one": 0}),
        ("guaranteed: 1", "guaranteed: 8, limit: 20", {"one": 0}),
        ("guaranteed: 1", "guaranteed: 8, limit: none", {"one": 0}),
        ("guaranteed: 0", "guaranteed: 8, limit: none", {}),
        ("guaranteed: 8, limit: none", "guaranteed: 8", {"other": 0}),
        ("guaranteed: 8, limit: none", "guaranteed: 1, limit: none", {"one": 0, "other": 0}),
    ],
)
def test_what_is_left_when_all_others_use_their_caps(one: str, other: str, found: dict[str, int]) -> None:
    assert left(one=one, other=other) == found
