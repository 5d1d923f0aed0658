"""Reports, checks and losses are of one mind about who evicts whom: all small cases, with each scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from gpuplan.compiler.checks.losses import losses
from gpuplan.compiler.planning.plan import Plan, PriorityClass, Tenant
from gpuplan.compiler.planning.preemption import (
    Eviction,
    Mechanism,
    Party,
    evictions,
    evicts_within,
    may_evict,
    pairs_within,
)
from gpuplan.compiler.planning.schedulers import SCHEDULERS, SchedulerTraits
from tests.plans import a_cluster, a_plan

EACH = pytest.mark.parametrize("scheduler", SCHEDULERS.values(), ids=list(SCHEDULERS))
FLAGS = tuple(product((True, False), repeat=2))

POLICY = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: p}
spec: {gpu: A100-80GB, nodes: {count: 1, gpusPerNode: 8, names: [a]}, sharing: {exclusive: {}}}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: high}
spec: {value: 90}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: low}
spec: {value: 10}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: one}
spec: {namespaces: [one], quotas: [{pool: p, guaranteed: 2, limit: 8}], priorityClasses: [high, low]}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: other}
spec: {namespaces: [other], quotas: [{pool: p, guaranteed: 2, limit: 8}], priorityClasses: [high, low]}
"""
_PLAN = a_plan(f"{a_cluster('kind: kubernetes')}---\n{POLICY}")


def plans(scheduler: SchedulerTraits) -> Iterator[Plan]:
    """Whatever two classes can say of evicting and of being evicted."""
    high, low = _PLAN.priority_classes
    plan = _PLAN.under(scheduler)
    for one, other in product(FLAGS, repeat=2):
        classes = (_saying(high, *one), _saying(low, *other))
        tenants = tuple(tenant._replace(priority_classes=classes) for tenant in plan.tenants)
        yield _with(plan, classes, tenants)


def for_units(plan: Plan) -> list[Eviction]:
    """Those for units: for CPU and memory of nodes of which nobody says what they have, losses tell of none."""
    return [found for found in evictions(plan) if found.counted is None]


def _saying(found: PriorityClass, preempts: bool, preemptible: bool) -> PriorityClass:
    return found._replace(spec=found.spec.model_copy(update={"preempts": preempts, "preemptible": preemptible}))


def _with(plan: Plan, classes: tuple[PriorityClass, ...], tenants: tuple[Tenant, ...]) -> Plan:
    return Plan(plan.cluster, plan.pools, plan.layouts, classes, tenants, plan.totals)


@EACH
def test_the_report_lets_a_class_evict_another_of_its_tenant_where_the_relation_does(
    scheduler: SchedulerTraits,
) -> None:
    for plan in plans(scheduler):
        for tenant in plan.tenants:
            for higher, lower in product(tenant.priority_classes, repeat=2):
                parties = Party(tenant.name, higher.name), Party(tenant.name, lower.name)
                told = any(eviction.holds(*parties) for eviction in for_units(plan))
                assert told == may_evict(scheduler, tenant, higher.spec, lower.spec)
                assert told == ((higher, lower) in pairs_within(scheduler, tenant))


@EACH
def test_a_class_that_is_to_evict_nobody_is_lost_where_the_report_lets_it(scheduler: SchedulerTraits) -> None:
    for plan in plans(scheduler):
        within = [item for item in for_units(plan) if item.mechanism.is_within_tenants]
        evictors = {party.priority_class for item in within for party in item.evictors}
        calm = {found.name for found in plan.priority_classes if not found.spec.preempts}
        assert _classes_of(plan, "preempts", scheduler) == evictors & calm


@EACH
def test_a_class_that_is_not_to_be_evicted_is_lost_where_the_report_names_it(scheduler: SchedulerTraits) -> None:
    for plan in plans(scheduler):
        victims = {party.priority_class for item in for_units(plan) for party in item.victims}
        safe = {found.name for found in plan.priority_classes if not found.spec.preemptible}
        assert _classes_of(plan, "preemptible", scheduler) == victims & safe


@EACH
def test_evicting_other_tenants_by_class_is_lost_where_the_report_has_it(scheduler: SchedulerTraits) -> None:
    for plan in plans(scheduler):
        by_class = [item for item in for_units(plan) if item.mechanism is Mechanism.PRIORITY]
        evictors = {party.priority_class for item in by_class for party in item.evictors}
        assert _classes_of(plan, "priority", scheduler) == evictors


def test_for_claims_kube_scheduler_evicts_nobody_and_nothing_is_lost() -> None:
    text = f"{a_cluster('kind: kubernetes')}---\n{POLICY}"
    plan = a_plan(text.replace("sharing: {exclusive: {}}", "sharing: {exclusive: {}}, allocation: dra"))
    assert for_units(plan) == []
    assert losses(plan, "priority", plan.scheduler) == ()
    assert len(losses(a_plan(text), "priority", plan.scheduler)) == 1


@pytest.mark.parametrize(
    ("bounds", "lost"), [("", 1), (", cpu: 64, memory: 500Gi", 0), (", cpu: 65, memory: 500Gi", 1)]
)
def test_evicting_others_for_cpu_is_lost_where_caps_do_not_fit_on_nodes_that_are_known(bounds: str, lost: int) -> None:
    text = f"{a_cluster('kind: kubernetes')}---\n{POLICY}".replace("guaranteed: 2, limit: 8", f"guaranteed: 4{bounds}")
    known = text.replace("gpusPerNode: 8", "gpusPerNode: 8, cpu: 128, memory: 1000Gi").replace(
        "exclusive: {}}", "exclusive: {}}, taints: [{key: nvidia.com/gpu, effect: NoSchedule}]"
    )
    assert len(losses(a_plan(known), "priority", SCHEDULERS["kubernetes"])) == lost
    assert losses(a_plan(text), "priority", SCHEDULERS["kubernetes"]) == ()


def _classes_of(plan: Plan, concept: str, scheduler: SchedulerTraits) -> set[str | None]:
    places = {found.at.source: found.name for found in plan.priority_classes}
    return {places[use.at.source] for use in losses(plan, concept, scheduler)}


def test_a_queue_evicts_for_all_where_one_class_may_evict_another() -> None:
    for plan in plans(SCHEDULERS["kueue"]):
        (tenant, _) = plan.tenants
        classes = [found.spec for found in tenant.priority_classes]
        meant = [
            (higher, lower)
            for higher, lower in product(classes, repeat=2)
            if higher.preempts and lower.preemptible and lower.value < higher.value
        ]
        assert evicts_within(tenant) == bool(meant)
