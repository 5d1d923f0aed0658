"""CPU and memory in Run:ai's departments and projects."""

from __future__ import annotations

import json
from typing import Any

from gpuplan.compiler.backends import runai
from gpuplan.compiler.planning.plan import Plan
from tests.platforms import a_platform, pool, tenant

POOLS = pool("p", nodes="count: 2, gpusPerNode: 8, cpu: 64, memory: 1Ti") + pool("q")


def platform(*tenants: str) -> Plan:
    return a_platform(POOLS, *tenants, scheduler="runai")


def resources(plan: Plan, file: str) -> Any:
    """By pool."""
    (data,) = [item.data for item in runai.render(plan) if item.path.endswith(f"runai/{file}.json")]
    return {part["nodePool"]["name"]: part for part in json.loads(data)["resources"]}


def test_cpu_is_in_thousandths_and_memory_in_millions_of_bytes() -> None:
    quota = "pool: p, guaranteed: 4, cpu: {guaranteed: 8, limit: none}, memory: 64G"
    found = resources(platform(tenant("a", quota, more="surplus: {weight: 2}")), "projects/a")
    assert found["p"]["cpu"] == {"deserved": 8000, "limit": None, "overQuotaWeight": 2}
    assert found["p"]["memory"] == {"deserved": 64000, "limit": 64000, "overQuotaWeight": 2}
    assert "cpu" not in found["q"]


def test_a_project_has_its_namespaces_part_and_the_department_all_of_it() -> None:
    quota = "pool: p, guaranteed: 3, split: {a: 2, b: 1}, cpu: 10"
    plan = platform(tenant("t", quota, namespaces="a, b"))
    parts = [resources(plan, name)["p"]["cpu"]["deserved"] for name in ("projects/a", "projects/b", "departments/t")]
    assert parts == [6667, 3333, 10000]


def test_a_project_has_what_its_tenant_leaves_to_none_of_its_children() -> None:
    plan = platform(
        tenant("dept", "pool: p, guaranteed: 8, cpu: 64"),
        tenant("a", "pool: p, guaranteed: 2, cpu: 24", more="parent: dept"),
    )
    assert resources(plan, "projects/dept")["p"]["cpu"]["deserved"] == 40000
    assert resources(plan, "projects/a")["p"]["cpu"]["deserved"] == 24000
    assert resources(plan, "departments/dept")["p"]["cpu"]["deserved"] == 64000


def test_who_has_no_weight_gets_no_more_than_its_guarantee() -> None:
    quota = "pool: p, guaranteed: 4, cpu: {guaranteed: 8, limit: 16}"
    found = resources(platform(tenant("a", quota, more="surplus: {weight: 0}")), "projects/a")
    assert found["p"]["cpu"] == {"deserved": 8000, "limit": 8000}


def test_the_page_says_what_is_not_certain_of_it() -> None:
    plans = platform(tenant("a", "pool: p, guaranteed: 4, cpu: 8")), platform(tenant("a", "pool: p, guaranteed: 4"))
    pages = [item.data.decode() for plan in plans for item in runai.render(plan) if item.path.endswith("README.md")]
    assert ["thousandths of a CPU" in page for page in pages] == [True, False]
