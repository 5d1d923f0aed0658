"""What a policy gains and loses by another scheduler, and what a build with it would refuse."""

from __future__ import annotations

from gpuplan.compiler.checks.comparison import ConceptChange, SchedulerComparison, compare
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.schedulers import SCHEDULERS, SchedulerTraits
from tests.checks.test_losses import BORROWS, HUNGRY, LOST, research
from tests.checks.test_uses import CLASSES, a_pool
from tests.plans import a_cluster, a_plan


def a_policy(scheduler: str = "kind: kueue") -> Plan:
    more = "surplus: {weight: 2, rank: 1}\n  protect: {reclaim: 1h}"
    quota = f"{BORROWS}, lendable: 2"
    return a_plan(a_cluster(scheduler) + a_pool("sharing: {exclusive: {}}") + research(quota, more) + HUNGRY)


def ids(changes: tuple[ConceptChange, ...]) -> list[str]:
    return [change.concept.id for change in changes]


def from_kueue(other: SchedulerTraits) -> SchedulerComparison:
    return compare(a_policy(), other)


def test_to_kai_ranks_and_run_times_are_gained_and_the_bound_on_lending_is_lost() -> None:
    found = from_kueue(SCHEDULERS["kai"])
    assert ids(found.gained) == ["surplus-rank", "protect"]
    assert ids(found.lost) == ["lendable"]
    assert ids(found.kept) == ["guaranteed", "limit", "surplus-weight", "whole-gpus"]
    assert found.lost_by_both == ()


def test_to_plain_kubernetes_every_guarantee_is_lost() -> None:
    found = from_kueue(SCHEDULERS["kubernetes"])
    assert ids(found.gained) == []
    assert ids(found.lost) == ["guaranteed", "limit", "lendable", "surplus-weight"]
    assert ids(found.lost_by_both) == ["surplus-rank", "protect"]


def test_the_way_back_gains_what_was_lost_and_needs_configuration() -> None:
    found = compare(a_policy("kind: kubernetes"), SCHEDULERS["kueue"])
    assert ids(found.gained) == ["guaranteed", "limit", "lendable", "surplus-weight"]
    assert ids(found.lost) == []
    assert ids(found.settings) == ["surplus-weight"]


def test_a_change_names_the_places() -> None:
    [change] = from_kueue(SCHEDULERS["kai"]).lost
    assert [(str(use.at), use.text) for use in change.places] == [
        ("spec.quotas[0].lendable", "`research` lends 2 of 4")
    ]


def test_one_concept_may_be_gained_here_and_stay_lost_there() -> None:
    plan = a_plan(a_cluster("kind: kubernetes") + LOST["gang"].replace("gang: 2", "gang: 4"))
    assert ids(compare(plan, SCHEDULERS["kueue"]).gained) == ["gang"]
    partial = a_plan(a_cluster("kind: kubernetes") + LOST["gang"])
    assert ids(compare(partial, SCHEDULERS["kueue"]).lost_by_both) == ["gang"]


def test_a_scheduler_compared_with_itself_changes_nothing() -> None:
    found = from_kueue(SCHEDULERS["kueue"])
    assert (found.gained, found.lost, found.errors) == ((), (), ())
    assert ids(found.lost_by_both) == ["surplus-rank", "protect"]


def test_what_a_build_would_refuse_is_said_before_it() -> None:
    plan = a_plan(a_cluster("kind: kueue") + a_pool() + CLASSES)
    found = compare(plan, SCHEDULERS["kai"])
    assert [error.code for error in found.errors] == ["GPU516"]
    assert compare(plan, SCHEDULERS["kubernetes"]).errors == ()


def a_gang(*more: str, scheduler: str = "kueue") -> Plan:
    return a_plan(a_cluster(f"kind: {scheduler}") + LOST["gang"].replace("gang: 2", "gang: 4") + "".join(more))


def felt(plan: Plan, other: str) -> tuple[list[str], list[str], list[str]]:
    [found] = compare(plan, SCHEDULERS[other]).workloads
    gained, lost = ([concept.id for concept in concepts] for concepts in (found.gained, found.lost))
    return gained, lost, [error.code for error in found.errors]


def test_a_workload_feels_what_it_asks_for_and_what_its_pool_is() -> None:
    assert felt(a_gang(), "kubernetes") == ([], ["gang"], [])
    assert felt(a_gang(), "kai") == ([], ["shares"], ["GPU516"])
    assert felt(a_gang(), "kueue") == ([], [], [])
    assert felt(a_gang(scheduler="kai"), "kueue") == (["shares"], [], [])


def test_a_workload_feels_its_tenants_quota_and_no_other_one() -> None:
    assert felt(a_gang(HUNGRY), "kubernetes") == ([], ["guaranteed", "gang"], [])


def test_a_workload_feels_nothing_of_pools_that_it_is_not_in() -> None:
    racks = a_pool("sharing: {exclusive: {}}\n  topology: [example.com/rack]", "h100")

    assert [change.concept.id for change in compare(a_gang(racks), SCHEDULERS["kubernetes"]).lost] == [
        "gang",
        "topology",
    ]
    assert felt(a_gang(racks), "kubernetes") == ([], ["gang"], [])
