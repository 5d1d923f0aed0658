"""Each row of the table of what tenants may do to running work is what the admission policies say, on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from gpuplan.compiler.admission.policies import RunningWork, known_rules, policies, running_work
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from tests.compiler.admission.running_cases import CASES, JOB, POD, Case, deletion, of_pod, update, with_spec
from tests.compiler.backends.scheduling.cel import refusals
from tests.compiler.backends.scheduling.platform import parameters_of
from tests.every import every_row
from tests.platforms import a_platform, pool, priority_class, tenant

ROWS = {row.id: row for row in running_work()}
KUEUE, JOB_CONTROLLER = (
    f"system:serviceaccount:{name}" for name in ("kueue-system:kueue-controller-manager", "kube-system:job-controller")
)

TOLD = ("JobSet", "LeaderWorkerSet", "MPIJob", "PyTorchJob", "RayJob", "RayService", "TrainJob")
"""What Kueue is told of."""


@cache
def plan_with(scheduler: str) -> Plan:
    return a_platform(
        pool("whole"),
        priority_class("spot", 50),
        priority_class("production", 1000, "preemptible: false"),
        tenant("research", "pool: whole, guaranteed: 8, cpu: 64", more="priorityClasses: [spot, production]"),
        scheduler=f"kueue, kueue: {{frameworks: [{', '.join(TOLD)}]}}" if scheduler == "kueue" else scheduler,
    )


def judged(case: Case, scheduler: str, user: str = "jane", *, rule: str = "") -> list[str]:
    """What refuses a request; only the rule of a name, if one is given."""
    plan = plan_with(scheduler)
    found = next((found for found in policies(plan) if found.name == case.policy), None)
    if found is None:
        return []
    parameters = parameters_of("research", plan) if found.has_parameters else None
    kept = replace(found, rules=tuple(one for one in found.rules if rule in ("", one.name)))
    return refusals(
        kept.body,
        case.new,
        parameters,
        old=case.old,
        options=case.options,
        subresource=case.subresource or None,
        user=user,
    )


def requests(scheduler: str, *, refused: bool) -> Iterator[tuple[RunningWork, int]]:
    """Return the rows of the table that are about a scheduler, each with the number of a case."""
    for row in ROWS.values():
        if bool(row.by) is refused and scheduler in (row.schedulers or SCHEDULERS):
            yield from ((row, number) for number in range(len(CASES[row.id])))


def name_of(row: RunningWork, number: int) -> str:
    return f"{row.id} {number}"


def test_every_row_has_its_cases_and_names_a_rule_that_there_is() -> None:
    assert ROWS.keys() == CASES.keys()
    assert {row.by for row in ROWS.values() if row.by} <= known_rules().keys()
    assert {name for row in ROWS.values() for name in row.schedulers} <= SCHEDULERS.keys()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_what_the_table_refuses_is_refused_by_its_rule_to_a_tenant(scheduler: str) -> None:
    @every_row(requests(scheduler, refused=True), name_of)
    def is_refused(row: RunningWork, number: int) -> None:
        [told] = judged(CASES[row.id][number], scheduler, rule=row.by)
        assert not told.startswith("error")

    is_refused()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_what_the_table_allows_is_refused_by_nothing(scheduler: str) -> None:
    @every_row(requests(scheduler, refused=False), name_of)
    def is_allowed(row: RunningWork, number: int) -> None:
        assert judged(CASES[row.id][number], scheduler) == []

    is_allowed()


WHOEVER_IT_IS = {
    "begun-work-stays-preemptible",
    "counted-pods-keep-their-size",
    "gpu-groups-by-kai",
    "role-hash-by-kueue",
    "work-in-own-project",
}
"""Rules for controllers too: what they make or write says what a tenant has asked for."""


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_controllers_may_do_it(scheduler: str) -> None:
    @every_row(requests(scheduler, refused=True), name_of)
    def is_allowed_to_controllers(row: RunningWork, number: int) -> None:
        found = judged(CASES[row.id][number], scheduler, KUEUE, rule=row.by)
        assert bool(found) is (row.by in WHOEVER_IT_IS)

    is_allowed_to_controllers()


DELETING = (
    "system:node:gpu-n1",
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:node-controller",
    "system:kube-scheduler",
    JOB_CONTROLLER,
)


@pytest.mark.parametrize("user", DELETING)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_who_deletes_pods_everywhere_says_how_long_they_have(scheduler: str, user: str) -> None:
    assert judged(of_pod(600), scheduler, user) == []


@pytest.mark.parametrize("scheduler", ["kueue", "kai", "runai"])
def test_namespaces_go_with_all_that_is_in_them(scheduler: str) -> None:
    namespace_controller = DELETING[1]
    assert judged(deletion(JOB, propagationPolicy="Background"), scheduler, namespace_controller) == []
    assert judged(deletion(JOB, propagationPolicy="Orphan"), scheduler, namespace_controller) == []


def test_a_pod_may_be_deleted_with_the_grace_period_that_it_has() -> None:
    slow = Case(policy="gpuplan-grace", new=None, old=with_spec(POD, terminationGracePeriodSeconds=600))
    assert judged(replace(slow, options={"gracePeriodSeconds": 600}), "kueue") == []
    assert judged(replace(slow, options={"gracePeriodSeconds": 601}), "kueue")


def test_work_without_gpus_is_left_alone() -> None:
    plain = with_spec(JOB, template={"metadata": {}, "spec": {"containers": [{"name": "main"}]}})
    assert judged(deletion(plain, propagationPolicy="Orphan"), "kueue") == []
    assert judged(update(plain, with_spec(plain, parallelism=8)), "kueue") == []
