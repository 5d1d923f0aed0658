"""Where the leaves of priority classes and admission policies come from."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gpuplan.compiler.backends import scheduling
from gpuplan.compiler.planning.plan import Plan
from tests.laws.tracing.told import told, told_of_all
from tests.platforms import a_platform, pool, priority_class


def told_of(plan: Plan, kind: str, name: str) -> Mapping[str, list[str]]:
    (found,) = [item for item in scheduling.render(plan) if (item.kind, item.name) == (kind, name)]
    return told(plan, found)


def whole(plan: Plan, kind: str, name: str) -> list[str]:
    (found,) = [item for item in scheduling.render(plan) if (item.kind, item.name) == (kind, name)]
    return told_of_all(plan, found)


# --- Classes -----------------------------------------------------------------------------------------------------


def test_a_class_says_its_value_and_what_it_is_for() -> None:
    plan = a_platform(priority_class("high", 100, "default: true, description: Services."))
    found = told_of(plan, "PriorityClass", "high")

    assert found["value"] == ["copied PriorityClass/high spec.value"]
    assert found["globalDefault"] == ["copied PriorityClass/high spec.default"]
    assert found["description"] == ["copied PriorityClass/high spec.description"]


@pytest.mark.parametrize(
    ("scheduler", "preempts", "sources"),
    [
        ("kubernetes", "true", ["Cluster/test spec.scheduler.kind", "PriorityClass/high spec.preempts"]),
        ("kubernetes", "false", ["PriorityClass/high spec.preempts"]),
        ("kueue", "true", ["Cluster/test spec.scheduler.kind"]),
        ("kueue", "false", []),
    ],
)
def test_a_class_preempts_where_both_it_and_the_scheduler_do(scheduler: str, preempts: str, sources: list[str]) -> None:
    plan = a_platform(priority_class("high", 100, f"preempts: {preempts}"), scheduler=scheduler)

    assert told_of(plan, "PriorityClass", "high")["preemptionPolicy"] == [f"chosen by {found}" for found in sources]


# --- Policies ----------------------------------------------------------------------------------------------------

POLICY = "ValidatingAdmissionPolicy"


@pytest.mark.parametrize("kind", [POLICY, f"{POLICY}Binding"])
def test_the_version_of_kubernetes_decides_that_there_are_policies(kind: str) -> None:
    assert "chosen by Cluster/test spec.kubernetes" in whole(a_platform(), kind, "gpuplan-grants")


def test_only_a_scheduler_that_suspends_jobs_has_a_policy_on_them() -> None:
    plan = a_platform(scheduler="kueue")

    assert "chosen by Cluster/test spec.scheduler.kind" in whole(plan, POLICY, "gpuplan-jobs")
    assert "chosen by Cluster/test spec.scheduler.kind" not in whole(plan, POLICY, "gpuplan-grants")


def test_expressions_that_are_the_same_with_any_scheduler_do_not_come_from_it() -> None:
    body = told_of(a_platform(scheduler="kueue"), POLICY, "gpuplan-grants")

    assert body["spec.matchConstraints.resourceRules[0].resources[0]"] == []
    assert ["chosen by Cluster/test spec.scheduler.kind"] in body.values()


def test_the_default_class_says_what_priority_needs_no_class() -> None:
    plan = a_platform(priority_class("base", 50, "default: true"), priority_class("high", 90))
    found = [sources for sources in told_of(plan, POLICY, "gpuplan-grants").values() if sources]

    assert ["chosen by PriorityClass/base spec.default", "copied PriorityClass/base spec.value"] in [
        [source for source in sources if "PriorityClass" in source] for sources in found
    ]
    assert not [sources for sources in found if any("high" in source for source in sources)]


def test_the_way_of_allocation_decides_what_is_said_of_claims() -> None:
    plan = a_platform(pool("a", "exclusive: {}", "allocation: dra"))
    found = told_of(plan, POLICY, "gpuplan-grants")

    assert ["chosen by Pool/a spec.allocation"] in found.values()
