"""What each scheduler loses of a plan: nothing where it keeps a concept, and a finding for every loss."""

from __future__ import annotations

from itertools import product

import pytest

from gpuplan.compiler.catalog.schedulers import Support, capability, concepts
from gpuplan.compiler.checks import run
from gpuplan.compiler.checks.losses import PLACES, Ladder, contended, losses, uses
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from tests.checks.test_uses import CLASSES, FRACTION, MIG, RACKS, a_pool, a_tenant, a_workload
from tests.every import every_row
from tests.plans import a_cluster, a_plan

HUNGRY = a_tenant("namespaces: [hungry]\n  quotas: [{pool: a100, guaranteed: 0, limit: none}]", "hungry")


def research(quota: str = "guaranteed: 4", more: str = "") -> str:
    return a_tenant(f"namespaces: [research]\n  quotas: [{{pool: a100, {quota}}}]\n  {more}")


BORROWS = "guaranteed: 4, limit: 16"
URGENT = a_tenant(
    "namespaces: [urgent]\n  priorityClasses: [urgent]\n  quotas: [{pool: a100, guaranteed: 8}]", "urgent"
)
TWO_UNITS = (
    "namespaces: [a]\n"
    "  quotas: [{pool: a100, unit: 1g.10gb, guaranteed: 4, limit: 8}, {pool: a100, unit: 2g.20gb, guaranteed: 4}]"
)
CALM = """\
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: calm}
spec: {value: 60, preempts: false}
"""
TWO_POOLS = a_pool("sharing: {exclusive: {}}") + a_pool("sharing: {exclusive: {}}", "h100")
LOST = {
    "namespaces": a_pool() + a_tenant("namespaces: [a, b]\n  quotas: [{pool: a100, guaranteed: 4}]"),
    "parent": a_pool()
    + a_tenant("{}", "top")
    + a_tenant("parent: top\n  quotas: [{pool: a100, guaranteed: 4}]", "middle")
    + research("guaranteed: 4, limit: 8", "parent: middle"),
    "pool": a_pool("sharing: {exclusive: {}}")
    + a_pool("sharing: {exclusive: {}}", "h100")
    + a_tenant("namespaces: [a]\n  quotas: [{pool: a100, guaranteed: 4}, {pool: h100, guaranteed: 4}]"),
    "unit": a_pool(MIG) + a_tenant(TWO_UNITS),
    "guaranteed": a_pool() + research() + HUNGRY,
    "limit": a_pool() + research(BORROWS) + HUNGRY,
    "labelled-namespaces": a_pool("sharing: {exclusive: {}}\n  allocation: dra")
    + a_tenant("labelledNamespaces: true\n  quotas: [{pool: a100, guaranteed: 4}]"),
    "class-limits": CLASSES
    + a_pool("sharing: {exclusive: {}}\n  allocation: dra")
    + a_tenant(
        "namespaces: [a]\n  priorityClasses: [patient]\n"
        "  quotas: [{pool: a100, guaranteed: 4, classLimits: {patient: 2}}]"
    ),
    "lendable": a_pool() + research("guaranteed: 4, lendable: 2") + HUNGRY,
    "compute": TWO_POOLS
    + a_tenant("namespaces: [a]\n  quotas: [{pool: a100, guaranteed: 4, cpu: 8}, {pool: h100, guaranteed: 4, cpu: 8}]"),
    "pods": TWO_POOLS
    + a_tenant(
        "namespaces: [a]\n  quotas: [{pool: a100, guaranteed: 4, pods: 8}, {pool: h100, guaranteed: 4, pods: 8}]"
    ),
    "container-defaults": a_pool() + research("guaranteed: 4", "containers: {memory: {limit: 4Gi}}"),
    "time-limits": a_pool() + research("guaranteed: 4", "timeLimits: {trainings: {idle: 1h}}"),
    "surplus-weight": a_pool() + research(BORROWS, "surplus: {weight: 2}") + HUNGRY,
    "surplus-rank": a_pool()
    + research(BORROWS, "surplus: {rank: 1}")
    + HUNGRY
    + "".join(
        a_tenant(
            f"namespaces: [t{rank}]\n  surplus: {{rank: {rank}}}\n  quotas: [{{pool: a100, {BORROWS}}}]", f"t{rank}"
        )
        for rank in range(2, 6)
    ),
    "protect": a_pool() + research(BORROWS, "protect: {reclaim: 1h}") + HUNGRY,
    "priority": a_pool() + CLASSES + research(BORROWS, "priorityClasses: [patient]") + URGENT,
    "preemptible": a_pool()
    + CLASSES.replace("value: 50", "value: 250")
    + CLASSES.replace("urgent", "humble").replace("patient", "slow").replace("200, preemptible: false", "20")
    + research(BORROWS, "priorityClasses: [urgent, patient, humble]")
    + HUNGRY,
    "preempts": a_pool("sharing: {exclusive: {}}")
    + CLASSES
    + CALM
    + a_tenant(
        "namespaces: [a]\n  priorityClasses: [urgent, calm, patient]\n  quotas: [{pool: a100, guaranteed: 4, limit: 8}]"
    ),
    "class-access": a_pool() + CLASSES + research(more="priorityClasses: [patient]"),
    "whole-gpus": a_pool("sharing: {exclusive: {}}"),
    "mig": a_pool("sharing: {mig: {instances: {1g.10gb+me: 1, 2g.20gb: 3}}}"),
    "shares": a_pool(),
    "fraction": a_pool(FRACTION),
    "fraction-range": a_pool(FRACTION) + research() + a_workload("inference: {}\n  fraction: {min: 0.25, max: 0.75}"),
    "fraction-memory": a_pool(FRACTION) + research() + a_workload("inference: {}\n  fraction: {memory: 10Gi}"),
    "deadline": a_pool() + research() + a_workload("training: {pods: 4, deadline: 12h}"),
    "gang": a_pool() + research() + a_workload("training: {pods: 4, gang: 2}"),
    "topology": a_pool(RACKS),
    "topology-level": a_pool(RACKS)
    + research()
    + a_workload("training: {pods: 4, topology: {required: example.com/rack}}"),
    "placement": a_pool("sharing: {exclusive: {}}\n  placement: spread"),
    "fallback": a_pool("sharing: {exclusive: {}}\n  topology: [example.com/rack]\n  fallback: h100")
    + a_pool("sharing: {exclusive: {}}", "h100"),
    "autoscaling": a_pool()
    + research()
    + a_workload("inference: {autoscaling: {maxReplicas: 4, requestsPerSecond: 10}}"),
    "dra": a_pool(f"{MIG}\n  allocation: dra"),
    "dynamic-mig": a_pool("sharing: {dynamicMig: {profiles: [1g.10gb]}}\n  allocation: dra"),
}
"""A policy for each concept that every scheduler loses which does not keep it."""

REPORTED = {
    "namespaces": {"GPU415", "GPU530"},
    "parent": {"GPU511", "GPU518"},
    "pool": {"GPU416"},
    "unit": {"GPU531"},
    "guaranteed": {"GPU418"},
    "limit": {"GPU418", "GPU512"},
    "labelled-namespaces": {"GPU556"},
    "class-limits": {"GPU555"},
    "lendable": {"GPU513"},
    "compute": {"GPU456"},
    "pods": {"GPU456"},
    "time-limits": {"GPU554"},
    "surplus-weight": {"GPU514"},
    "surplus-rank": {"GPU514"},
    "protect": {"GPU515"},
    "priority": {"GPU532"},
    "preemptible": {"GPU506", "GPU533"},
    "preempts": {"GPU547", "GPU590"},
    "mig": {"GPU516"},
    "shares": {"GPU516"},
    "fraction": {"GPU516"},
    "fraction-range": {"GPU516", "GPU534"},
    "fraction-memory": {"GPU516"},
    "deadline": {"GPU594"},
    "gang": {"GPU535"},
    "topology": {"GPU536"},
    "topology-level": {"GPU536"},
    "placement": {"GPU537"},
    "fallback": {"GPU553"},
    "dra": {"GPU538"},
    "dynamic-mig": {"GPU444"},
}
"""The rules that say so of each."""

every_capability = every_row(
    product((concept.id for concept in concepts()), SCHEDULERS), lambda concept, scheduler: f"{concept} {scheduler}"
)


@every_capability
def test_what_is_not_kept_is_a_loss_and_a_finding_and_what_is_kept_is_neither(concept: str, scheduler: str) -> None:
    plan = a_plan(a_cluster(f"kind: {scheduler}") + LOST[concept])
    is_exact = capability(concept, scheduler).support is Support.EXACT
    assert bool(losses(plan, concept, SCHEDULERS[scheduler])) != is_exact
    found = {diagnostic.code for diagnostic in run(plan)} & REPORTED.get(concept, set())
    assert bool(found) != is_exact


@every_capability
def test_what_is_not_asked_for_is_not_lost(concept: str, scheduler: str) -> None:
    plan = a_plan(a_cluster(f"kind: {scheduler}"))
    assert losses(plan, concept, SCHEDULERS[scheduler]) == ()


SPLIT = a_tenant("namespaces: [a, b]\n  quotas: [{pool: a100, guaranteed: 4, split: {a: 3, b: 1}}]")
ALL_GPUS = "guaranteed: 0, limit: 8"
KEPT = {
    ("namespaces", "kubernetes"): a_pool() + SPLIT,
    ("namespaces", "runai"): a_pool() + SPLIT,
    ("parent", "kubernetes"): a_pool() + a_tenant("{}", "top") + research("guaranteed: 4", "parent: top"),
    ("parent", "runai"): a_pool() + a_tenant("{}", "top") + research("guaranteed: 4", "parent: top"),
    ("pool", "kubernetes"): a_pool("sharing: {exclusive: {}}")
    + a_pool("sharing: {exclusive: {}}", "h100")
    + a_tenant(f"namespaces: [a]\n  quotas: [{{pool: a100, {ALL_GPUS}}}, {{pool: h100, {ALL_GPUS}}}]"),
    ("unit", "kai"): a_pool(MIG) + a_tenant(TWO_UNITS.replace(", limit: 8", "")),
    ("unit", "runai"): a_pool(MIG) + a_tenant(TWO_UNITS.replace(", limit: 8", "")),
    **{
        ("class-limits", scheduler): CLASSES
        + a_pool()
        + research("guaranteed: 4, classLimits: {patient: 2}", "priorityClasses: [patient]")
        for scheduler in SCHEDULERS
    },
    ("labelled-namespaces", "kueue"): a_pool()
    + a_tenant("labelledNamespaces: true\n  quotas: [{pool: a100, guaranteed: 4}]"),
    ("lendable", "kai"): a_pool() + research("guaranteed: 4, lendable: 2"),
    ("lendable", "runai"): a_pool() + research("guaranteed: 4, lendable: 2"),
    ("compute", "kubernetes"): a_pool() + research("guaranteed: 4, cpu: 8, memory: 64Gi") + HUNGRY,
    ("pods", "kubernetes"): a_pool() + research("guaranteed: 4, pods: 8") + HUNGRY,
    ("surplus-rank", "kueue"): a_pool() + research("guaranteed: 4", "surplus: {rank: 1}") + HUNGRY,
    ("protect", "kueue"): a_pool() + research("guaranteed: 4", "protect: {preempt: 1h, reclaim: 1h}") + HUNGRY,
    ("preemptible", "kubernetes"): CLASSES,
    ("preemptible", "kueue"): a_pool() + CLASSES + research("guaranteed: 4", "priorityClasses: [urgent, patient]"),
    ("preempts", "kueue"): a_pool() + CLASSES + CALM + research("guaranteed: 4", "priorityClasses: [calm, patient]"),
    ("preempts", "kai"): a_pool() + CLASSES + CALM + research("guaranteed: 4", "priorityClasses: [urgent, calm]"),
    ("preempts", "runai"): a_pool() + CLASSES + CALM + research("guaranteed: 4", "priorityClasses: [urgent, calm]"),
    ("priority", "kubernetes"): a_pool()
    + CLASSES
    + research(BORROWS, "priorityClasses: [urgent, patient]")
    + a_tenant("namespaces: [idle]", "idle"),
    ("mig", "kai"): a_pool(MIG),
    ("dra", "kai"): a_pool("sharing: {exclusive: {}}\n  allocation: dra"),
    ("fallback", "kueue"): a_pool("sharing: {exclusive: {}}\n  fallback: h100")
    + a_pool("sharing: {exclusive: {}}", "h100"),
    ("gang", "kueue"): a_pool() + research() + a_workload("training: {pods: 4, gang: 4}"),
}
"""Policies that ask for what is kept only in part, and lose nothing."""


@pytest.mark.parametrize(("concept", "scheduler"), KEPT)
def test_what_is_kept_in_part_may_be_enough(concept: str, scheduler: str) -> None:
    plan = a_plan(a_cluster(f"kind: {scheduler}, cap: limit") + KEPT[concept, scheduler])
    assert len(uses(plan, concept)) > 0
    assert losses(plan, concept, SCHEDULERS[scheduler]) == ()


FITS = a_tenant("namespaces: [modest]\n  quotas: [{pool: a100, guaranteed: 0, limit: 4}]", "modest")


def test_a_guarantee_of_cpu_is_lost_where_the_caps_are_more_than_the_nodes_have() -> None:
    pool = a_pool("sharing: {exclusive: {}}").replace("gpusPerNode: 8", "gpusPerNode: 8, cpu: 16")
    modest = research("guaranteed: 4, cpu: 8")
    within = modest + a_tenant("namespaces: [b]\n  quotas: [{pool: a100, guaranteed: 4, cpu: 8}]", "b")
    beyond = within.replace("cpu: 8}]\n", "cpu: {guaranteed: 8, limit: 9}}]\n")
    assert losses(a_plan(pool + within), "compute", SCHEDULERS["kubernetes"]) == ()
    assert [use.text for use in losses(a_plan(pool + beyond), "compute", SCHEDULERS["kubernetes"])] == [
        "`b` is guaranteed 8 cpu of `a100`",
        "`research` is guaranteed 8 cpu of `a100`",
    ]


@pytest.mark.parametrize("concept", ["limit", "lendable", "surplus-weight", "surplus-rank", "protect"])
def test_nothing_is_lost_where_all_caps_fit(concept: str) -> None:
    more = "surplus: {weight: 2, rank: 1}\n  protect: {preempt: 1h, reclaim: 1h}"
    text = a_pool() + research("guaranteed: 4, limit: 12, lendable: 2", more) + FITS
    assert losses(a_plan(text), concept, SCHEDULERS["kubernetes"]) == ()
    contested = text.replace("limit: 12", "limit: 13")
    assert len(losses(a_plan(contested), concept, SCHEDULERS["kubernetes"])) > 0


def test_a_guarantee_is_kept_as_long_as_the_others_leave_room_for_it() -> None:
    text = a_pool() + research("guaranteed: 12, limit: 16") + FITS
    assert losses(a_plan(text), "guaranteed", SCHEDULERS["kubernetes"]) == ()
    crowded = text.replace("limit: 4", "limit: 5")
    assert len(losses(a_plan(crowded), "guaranteed", SCHEDULERS["kubernetes"])) == 1


def test_one_tenant_alone_contends_with_nobody() -> None:
    assert contended(a_plan(a_pool() + research("guaranteed: 4, limit: none"))) == frozenset()


def test_kueue_evicts_within_a_queue_and_takes_back_what_was_lent() -> None:
    plan = a_plan(LOST["preemptible"])
    assert [use.text for use in losses(plan, "preemptible", SCHEDULERS["kueue"])] == [
        "pods of `urgent` are evicted by those of `patient`",
        "pods of `urgent` give back what `research` borrowed",
    ]


def test_a_queue_of_kueue_evicts_nobody_where_no_class_is_meant_to() -> None:
    plan = a_plan(LOST["preemptible"].replace("patient, humble]", "patient]"))
    assert [use.text for use in losses(plan, "preemptible", SCHEDULERS["kueue"])] == [
        "pods of `urgent` give back what `research` borrowed"
    ]


def test_run_ai_has_one_time_for_a_pool_and_seven_ranks() -> None:
    both = "protect: {preempt: 1h, reclaim: 60m}"
    alike = a_pool() + research(more=both)
    assert losses(a_plan(alike), "protect", SCHEDULERS["runai"]) == ()
    assert len(losses(a_plan(alike + HUNGRY), "protect", SCHEDULERS["runai"])) == 2
    assert [use.text for use in losses(a_plan(LOST["surplus-rank"]), "surplus-rank", SCHEDULERS["runai"])] == [
        "`t4` has rank 4",
        "`t5` has rank 5",
    ]


def test_a_weight_of_a_parent_is_lost_where_its_children_borrow() -> None:
    top = a_tenant("surplus: {weight: 3}", "top")
    plan = a_plan(a_pool() + top + research(BORROWS, "parent: top") + HUNGRY)
    assert [use.text for use in losses(plan, "surplus-weight", SCHEDULERS["kubernetes"])] == ["`top` has weight 3"]


def test_evictions_across_tenants_name_who_suffers() -> None:
    plan = a_plan(LOST["priority"])
    assert [use.text for use in losses(plan, "priority", SCHEDULERS["kubernetes"])] == [
        "pods with `urgent` evict lower ones of `research`"
    ]


def test_whole_gpus_beside_partitions_are_lost_to_kai() -> None:
    devices = "[{gpus: [0, 1, 2, 3, 4, 5, 6], instances: {1g.10gb: 7}}, {gpus: [7], enabled: false}]"
    [use] = losses(a_plan(a_pool(f"sharing: {{mig: {{devices: {devices}}}}}")), "mig", SCHEDULERS["kai"])
    assert use.text == "`gpu` of pool `a100`"


def test_the_matrix_names_the_places_that_are_known_and_all_of_them() -> None:
    named = {kept.lost for concept in concepts() for kept in concept.capabilities.values()} - {""}
    assert named == set(PLACES)


def test_what_is_kept_is_lost_nowhere() -> None:
    kept = [kept for concept in concepts() for kept in concept.capabilities.values() if kept.support is Support.EXACT]
    assert {found.lost for found in kept} == {""}


def test_a_ladder_knows_what_is_above_and_below_a_value() -> None:
    low, mid, top = a_plan(CLASSES.replace("value: 50", "value: 5") + CALM).priority_classes
    ladder = Ladder([top, low, mid])
    values = sorted(found.spec.value for found in (low, mid, top))
    assert [found.spec.value for found in ladder.above(values[0])] == values[1:]
    assert len(ladder.names_above(values[1])) == len(ladder.names_below(values[1])) == 1
    assert ladder.names_above(values[2]) == ladder.names_below(values[0]) == []
