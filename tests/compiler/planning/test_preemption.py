"""Who can evict whom, for each scheduler: by value, on one pool of eight GPUs."""

from __future__ import annotations

import pytest

from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.preemption import Condition, Eviction, Mechanism, Party, evictions
from tests.plans import a_cluster, a_plan

POOL = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: h100}
spec: {gpu: H100-80GB, nodes: {count: 1, gpusPerNode: 8, names: [a]}, sharing: {exclusive: {}}}
"""


def a_class(name: str, value: int, more: str = "") -> str:
    return f"""\
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {{name: {name}}}
spec: {{value: {value}{more}}}
"""


def a_tenant(name: str, quota: str, classes: str = "urgent, batch", more: str = "") -> str:
    return f"""\
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {{name: {name}}}
spec: {{namespaces: [{name}], priorityClasses: [{classes}], quotas: [{{pool: h100, {quota}}}]{more}}}
"""


CLASSES = a_class("urgent", 125, ", preemptible: false") + a_class("batch", 50)


def plan_of(kind: str, *documents: str) -> Plan:
    return a_plan(a_cluster(f"kind: {kind}") + POOL + "".join(documents))


def found(kind: str, *documents: str) -> list[Eviction]:
    return [item for item in evictions(plan_of(kind, *documents)) if item.counted is None]


def ways(found: list[Eviction], evictor: tuple[str, str | None], victim: tuple[str, str | None]) -> list[Mechanism]:
    return [item.mechanism for item in found if item.holds(Party(*evictor), Party(*victim))]


# --- kube-scheduler ----------------------------------------------------------------------------------------------


def test_kube_scheduler_evicts_lower_classes_of_any_tenant() -> None:
    known = found("kubernetes", CLASSES, a_tenant("a", "guaranteed: 4"), a_tenant("b", "guaranteed: 4"))

    assert known == [
        Eviction(
            pool="h100",
            unit="gpu",
            mechanism=Mechanism.PRIORITY,
            evictors=(Party("a", "urgent"), Party("b", "urgent")),
            victims=(Party("a", "batch"), Party("b", "batch")),
            when=(Condition.NODE_FULL, Condition.QUOTA_HAS_ROOM),
        )
    ]
    assert ways(known, ("a", "urgent"), ("b", "batch")) == [Mechanism.PRIORITY]
    assert ways(known, ("a", "urgent"), ("a", "batch")) == [Mechanism.PRIORITY]
    assert ways(known, ("a", "batch"), ("b", "batch")) == []


def test_caps_that_do_not_fit_fill_the_pool() -> None:
    (only,) = found("kubernetes", CLASSES, a_tenant("a", "guaranteed: 4, limit: 8"), a_tenant("b", "guaranteed: 4"))

    assert only.when == (Condition.POOL_FULL, Condition.QUOTA_HAS_ROOM)


def test_a_class_that_does_not_preempt_evicts_nobody() -> None:
    classes = a_class("urgent", 125, ", preempts: false") + a_class("batch", 50)

    assert found("kubernetes", classes, a_tenant("a", "guaranteed: 4"), a_tenant("b", "guaranteed: 4")) == []


def test_no_field_protects_a_class_from_kube_scheduler() -> None:
    classes = a_class("urgent", 125) + a_class("batch", 50, ", preemptible: false")

    assert ways(found("kubernetes", classes, a_tenant("a", "guaranteed: 4")), ("a", "urgent"), ("a", "batch")) == [
        Mechanism.PRIORITY
    ]


def test_pods_without_a_class_have_the_default_one() -> None:
    classes = CLASSES + a_class("usual", 60, ", default: true")
    known = found("kubernetes", classes, a_tenant("a", "guaranteed: 4"), a_tenant("b", "guaranteed: 4", ""))

    assert ways(known, ("b", None), ("a", "batch")) == [Mechanism.PRIORITY]
    assert ways(known, ("a", "urgent"), ("b", None)) == [Mechanism.PRIORITY]


def test_who_may_use_nothing_takes_part_in_nothing() -> None:
    known = found("kubernetes", CLASSES, a_tenant("a", "guaranteed: 4"), a_tenant("b", "guaranteed: 0"))

    assert {party.tenant for item in known for party in (*item.evictors, *item.victims)} == {"a"}


# --- Kueue -------------------------------------------------------------------------------------------------------


def test_kueue_reclaims_whatever_the_priority() -> None:
    known = found("kueue", CLASSES, a_tenant("a", "guaranteed: 4"), a_tenant("b", "guaranteed: 4, limit: 8"))

    assert ways(known, ("a", "batch"), ("b", "urgent")) == [Mechanism.RECLAIM]
    assert ways(known, ("b", "urgent"), ("a", "batch")) == []
    reclaim = next(item for item in known if item.mechanism is Mechanism.RECLAIM)
    assert reclaim.when == (Condition.VICTIM_OVER_GUARANTEE, Condition.EVICTOR_WITHIN_GUARANTEE)
    assert reclaim.min_run_time is None


def test_borrowers_get_fair_shares_from_one_another() -> None:
    known = found("kueue", CLASSES, a_tenant("a", "guaranteed: 0, limit: 8"), a_tenant("b", "guaranteed: 4, limit: 8"))

    assert ways(known, ("a", "batch"), ("b", "urgent")) == [Mechanism.FAIR_SHARE]
    assert ways(known, ("b", "batch"), ("a", "urgent")) == [Mechanism.RECLAIM, Mechanism.FAIR_SHARE]


def test_a_queue_of_kueue_has_one_rule_for_all_its_classes() -> None:
    classes = CLASSES + a_class("calm", 100, ", preempts: false, preemptible: false")
    known = found("kueue", classes, a_tenant("a", "guaranteed: 4", "urgent, calm, batch"))

    assert ways(known, ("a", "calm"), ("a", "batch")) == [Mechanism.QUEUE]
    assert ways(known, ("a", "urgent"), ("a", "calm")) == [Mechanism.QUEUE]


def test_no_class_of_kueue_evicts_where_none_may() -> None:
    classes = a_class("urgent", 125, ", preempts: false") + a_class("batch", 50)

    assert found("kueue", classes, a_tenant("a", "guaranteed: 4")) == []


def test_a_part_takes_back_what_the_whole_is_guaranteed() -> None:
    whole = """\
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: whole}
spec: {quotas: [{pool: h100, guaranteed: 4}]}
"""
    part = a_tenant("part", "guaranteed: 0, limit: 4", "batch", ", parent: whole")
    known = found("kueue", CLASSES, whole, part, a_tenant("other", "guaranteed: 4, limit: 8", "batch"))

    assert Mechanism.RECLAIM in ways(known, ("part", "batch"), ("other", "batch"))


# --- KAI-Scheduler -----------------------------------------------------------------------------------------------


def test_kai_evicts_what_is_preemptible_alone() -> None:
    known = found("kai", CLASSES, a_tenant("a", "guaranteed: 4"), a_tenant("b", "guaranteed: 4, limit: 8"))

    assert ways(known, ("b", "urgent"), ("b", "batch")) == [Mechanism.QUEUE]
    assert ways(known, ("a", "urgent"), ("b", "batch")) == [Mechanism.RECLAIM]
    assert ways(known, ("a", "batch"), ("b", "batch")) == [Mechanism.RECLAIM]
    assert ways(known, ("a", "batch"), ("b", "urgent")) == []
    assert ways(known, ("b", "urgent"), ("a", "batch")) == []


def test_what_is_not_preemptible_has_no_share_in_the_surplus() -> None:
    quotas = "guaranteed: 0, limit: 8"
    known = found("kai", CLASSES, a_tenant("a", quotas), a_tenant("b", quotas))

    assert ways(known, ("a", "batch"), ("b", "batch")) == [Mechanism.FAIR_SHARE]
    assert ways(known, ("a", "urgent"), ("b", "batch")) == []


def test_no_weight_is_no_share_in_the_surplus() -> None:
    idle = ", surplus: {weight: 0}"
    quotas = "guaranteed: 0, limit: 8"
    known = found("kai", CLASSES, a_tenant("a", quotas, more=idle), a_tenant("b", quotas))

    assert ways(known, ("a", "batch"), ("b", "batch")) == []


def test_kai_does_not_look_at_preempts() -> None:
    classes = a_class("urgent", 125, ", preemptible: false, preempts: false") + a_class("batch", 50)

    known = found("kai", classes, a_tenant("a", "guaranteed: 4"))
    assert ways(known, ("a", "urgent"), ("a", "batch")) == [Mechanism.QUEUE]


def test_protection_is_the_victims() -> None:
    safe = ", protect: {preempt: 10m, reclaim: 1h}"
    known = found(
        "kai", CLASSES, a_tenant("a", "guaranteed: 4", "batch"), a_tenant("b", "guaranteed: 4, limit: 8", more=safe)
    )

    assert {item.mechanism: item.min_run_time for item in known} == {Mechanism.QUEUE: "10m", Mechanism.RECLAIM: "1h"}


@pytest.mark.parametrize(("own", "time"), [(", protect: {reclaim: 1h}", "1h"), ("", "2h")])
def test_who_says_nothing_is_protected_as_what_it_is_part_of(own: str, time: str) -> None:
    whole = """\
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: whole}
spec: {quotas: [{pool: h100, guaranteed: 4, limit: 8}], protect: {reclaim: 2h}}
"""
    known = found(
        "kai",
        CLASSES,
        whole,
        a_tenant("part", "guaranteed: 2, limit: 8", "batch", f", parent: whole{own}"),
        a_tenant("other", "guaranteed: 4", "batch"),
    )
    (way,) = [item for item in known if item.holds(Party("other", "batch"), Party("part", "batch"))]
    assert way.min_run_time == time


# --- Run:ai ------------------------------------------------------------------------------------------------------


def test_a_node_pool_of_runai_has_the_longest_time_for_everybody() -> None:
    known = found(
        "runai",
        CLASSES,
        a_tenant("a", "guaranteed: 4, limit: 8", more=", protect: {preempt: 10m}"),
        a_tenant("b", "guaranteed: 4, limit: 8", more=", protect: {reclaim: 90m}"),
    )

    assert {item.min_run_time for item in known} == {"1h30m"}
    assert ways(known, ("a", "urgent"), ("b", "batch")) == [Mechanism.RECLAIM]


# --- All ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["kubernetes", "kueue", "kai", "runai"])
def test_units_are_looked_at_one_by_one(kind: str) -> None:
    pool = """\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: mixed}
spec:
  gpu: H100-80GB
  nodes: {count: 1, gpusPerNode: 8, names: [a]}
  sharing: {mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}}
"""
    tenants = [
        f"""\
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {{name: {name}}}
spec:
  namespaces: [{name}]
  priorityClasses: [urgent, batch]
  quotas: [{{pool: mixed, unit: {unit}, guaranteed: 4, limit: 8}}]
"""
        for name, unit in (("a", "3g.40gb"), ("b", "2g.20gb"))
    ]

    known = list(evictions(a_plan(a_cluster(f"kind: {kind}") + pool + CLASSES + "".join(tenants))))
    units = [item for item in known if item.counted is None]
    assert units
    assert all(not item.holds(Party("a", name), Party("b", "batch")) for item in units for name in ("urgent", "batch"))


def test_nobody_evicts_where_there_is_nobody() -> None:
    assert found("kueue") == []


def test_who_has_nobody_to_evict_is_left_out() -> None:
    known = found("kai", CLASSES, a_tenant("a", "guaranteed: 4"), a_tenant("b", "guaranteed: 4, limit: 8"))

    (reclaim,) = [item for item in known if item.mechanism is Mechanism.RECLAIM]
    assert {party.tenant for party in reclaim.evictors} == {"a"}
    assert {party.tenant for party in reclaim.victims} == {"b"}


def test_tenants_with_the_same_classes_stand_together() -> None:
    known = found("kai", CLASSES, a_tenant("a", "guaranteed: 4"), a_tenant("b", "guaranteed: 4"))

    assert [item.victims for item in known] == [(Party("a", "batch"), Party("b", "batch"))]
    assert ways(known, ("a", "urgent"), ("b", "batch")) == []


# --- At the limit ------------------------------------------------------------------------------------------------


def within(kind: str, *documents: str) -> tuple[Condition, ...]:
    """What must be so before a tenant's higher class evicts its lower one."""
    (when,) = {item.when for item in found(kind, *documents) if item.mechanism is Mechanism.QUEUE}
    return when


@pytest.mark.parametrize("quota", ["guaranteed: 4", "guaranteed: 4, limit: 8"])
def test_where_the_queue_is_the_cap_no_quota_is_in_the_way(quota: str) -> None:
    assert within("kai", CLASSES, a_tenant("a", quota)) == (Condition.QUEUE_FULL,)
    assert within("kueue", CLASSES, a_tenant("a", quota)) == (Condition.QUEUE_FULL,)


def test_a_quota_refuses_a_pod_before_it_evicts_any() -> None:
    assert within("kai, cap: limit", CLASSES, a_tenant("a", "guaranteed: 4")) == (
        Condition.QUEUE_FULL,
        Condition.QUOTA_HAS_ROOM,
    )


def test_jobs_of_kueue_wait_without_pods_that_a_quota_counts() -> None:
    assert within("kueue, cap: limit", CLASSES, a_tenant("a", "guaranteed: 4")) == (
        Condition.QUEUE_FULL,
        Condition.QUOTA_HAS_ROOM_OR_JOB,
    )


def test_parts_of_gpus_are_in_no_quota() -> None:
    shared = POOL.replace("exclusive", "fraction")
    plan = a_plan(a_cluster("kind: kai, cap: limit") + shared + CLASSES + a_tenant("a", "guaranteed: 4"))
    assert {item.when for item in evictions(plan) if item.counted is None} == {(Condition.QUEUE_FULL,)}


def test_without_a_limit_nothing_refuses_a_pod() -> None:
    assert within("kueue", CLASSES, a_tenant("a", "guaranteed: 4, limit: none")) == (Condition.QUEUE_FULL,)


# --- CPU and memory ----------------------------------------------------------------------------------------------

KNOWN = POOL.replace("gpusPerNode: 8", "gpusPerNode: 8, cpu: 128, memory: 1000Gi")
TAINTED = KNOWN.replace("exclusive: {}}", "exclusive: {}}, taints: [{key: nvidia.com/gpu, effect: NoSchedule}]")
OTHER = POOL.replace("{name: h100}", "{name: other}").replace("names: [a]", "names: [b]")
ELSEWHERE = """\
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: elsewhere}
spec: {namespaces: [elsewhere], priorityClasses: [urgent], quotas: [{pool: other, guaranteed: 4}]}
"""
BORROWER = a_tenant("b", "guaranteed: 4, limit: 8")


def for_nodes(kind: str, *documents: str, pool: str = TAINTED, name: str = "cpu", more: str = "") -> list[Eviction]:
    """Those for what is counted of the nodes of the pool `h100`; ``more`` is of the cluster."""
    plan = a_plan(f"{a_cluster(f'kind: {kind}')}{more}{pool}{''.join(documents)}")
    return [item for item in evictions(plan) if item.pool == "h100" and item.counted is not None and item.unit == name]


@pytest.mark.parametrize("name", ["cpu", "memory"])
def test_kube_scheduler_evicts_for_cpu_and_memory_whoever_holds_a_gpu(name: str) -> None:
    known = for_nodes("kubernetes", CLASSES, a_tenant("a", "guaranteed: 4"), a_tenant("b", "guaranteed: 4"), name=name)

    assert known == [
        Eviction(
            pool="h100",
            unit=name,
            mechanism=Mechanism.PRIORITY,
            evictors=(Party("a", "urgent"), Party("b", "urgent")),
            victims=(Party("a", "batch"), Party("b", "batch")),
            when=(Condition.POOL_FULL,),
        )
    ]


@pytest.mark.parametrize(("cpu", "when"), [(64, Condition.NODE_FULL), (65, Condition.POOL_FULL)])
def test_caps_on_cpu_that_fit_leave_room_on_some_node(cpu: int, when: Condition) -> None:
    quota = f"guaranteed: 4, cpu: {cpu}"
    (only,) = for_nodes("kubernetes", CLASSES, a_tenant("a", quota), a_tenant("b", "guaranteed: 4, cpu: 64"))

    assert only.when == (when, Condition.QUOTA_HAS_ROOM)


def test_a_cap_on_cpu_is_that_of_all_pools_together() -> None:
    quotas = "guaranteed: 4, cpu: 60}, {pool: other, guaranteed: 4, cpu: 60"
    (only,) = for_nodes("kubernetes", CLASSES, OTHER, a_tenant("a", quotas), a_tenant("b", "guaranteed: 4, cpu: 60"))

    assert only.when == (Condition.POOL_FULL, Condition.QUOTA_HAS_ROOM)


def test_what_claims_evict_nobody_for_they_do_for_cpu() -> None:
    claimed = TAINTED.replace("exclusive: {}}", "exclusive: {}}, allocation: dra")
    plan = a_plan(a_cluster("kind: kubernetes") + claimed + CLASSES + a_tenant("a", "guaranteed: 4"))

    assert [item.unit for item in evictions(plan)] == ["cpu", "memory"]


@pytest.mark.parametrize("kind", ["kubernetes", "kai", "runai"])
def test_a_taint_keeps_tenants_of_other_pools_from_evicting(kind: str) -> None:
    documents = CLASSES, OTHER, ELSEWHERE, a_tenant("a", "guaranteed: 4", "batch")

    assert Mechanism.PRIORITY not in ways(for_nodes(kind, *documents), ("elsewhere", "urgent"), ("a", "batch"))
    opened = for_nodes(kind, *documents, pool=KNOWN)
    assert ways(opened, ("elsewhere", "urgent"), ("a", "batch")) == [Mechanism.PRIORITY]
    (only,) = [item for item in opened if item.mechanism is Mechanism.PRIORITY]
    assert only.when[0] is Condition.POOL_FULL


def test_a_taint_that_anybody_may_tolerate_keeps_nobody_off() -> None:
    documents = CLASSES, OTHER, ELSEWHERE, a_tenant("a", "guaranteed: 4", "batch")

    assert for_nodes("kubernetes", *documents) == []
    known = for_nodes("kubernetes", *documents, more="  admission: {without: [tolerations-within-pools]}\n")
    assert ways(known, ("elsewhere", "urgent"), ("a", "batch")) == [Mechanism.PRIORITY]


def test_kueue_evicts_nobody_for_what_its_queues_do_not_count() -> None:
    assert for_nodes("kueue", CLASSES, a_tenant("a", "guaranteed: 4"), BORROWER) == []


def test_kueue_evicts_for_cpu_as_for_units_where_queues_count_it() -> None:
    borrows = a_tenant("b", "guaranteed: 4, cpu: {guaranteed: 60, limit: 128}")
    known = for_nodes("kueue", CLASSES, a_tenant("a", "guaranteed: 4, cpu: 60"), borrows)

    assert ways(known, ("b", "urgent"), ("b", "batch")) == [Mechanism.QUEUE]
    assert ways(known, ("a", "batch"), ("b", "urgent")) == [Mechanism.RECLAIM]
    assert ways(known, ("b", "urgent"), ("a", "batch")) == []
    assert {item.when for item in known if item.mechanism is Mechanism.QUEUE} == {(Condition.QUEUE_FULL,)}
    assert for_nodes("kueue", CLASSES, a_tenant("a", "guaranteed: 4, cpu: 60"), borrows, name="memory") == []


def test_kueue_evicts_across_the_units_of_a_pool_for_cpu() -> None:
    pool = KNOWN.replace("exclusive: {}", "mig: {instances: {3g.40gb: 1, 2g.20gb: 2}}")
    tenants = (
        a_tenant("a", "unit: 3g.40gb, guaranteed: 4, cpu: 60"),
        a_tenant("b", "unit: 2g.20gb, guaranteed: 4, cpu: {guaranteed: 60, limit: none}"),
    )

    assert ways(for_nodes("kueue", CLASSES, *tenants, pool=pool), ("a", "batch"), ("b", "batch")) == [Mechanism.RECLAIM]


def test_a_queue_that_says_nothing_of_cpu_has_its_own() -> None:
    documents = CLASSES, a_tenant("a", "guaranteed: 4, cpu: 60"), BORROWER

    assert {party.tenant for item in for_nodes("kueue", *documents) for party in item.evictors} == {"a"}


def test_pods_go_for_pods_where_queues_count_them() -> None:
    documents = CLASSES, a_tenant("a", "guaranteed: 4, pods: 10"), BORROWER

    (only,) = for_nodes("kueue", *documents, name="pods")
    assert (only.mechanism, only.evictors) == (Mechanism.QUEUE, (Party("a", "urgent"),))
    assert for_nodes("kai", *documents, name="pods") == []


@pytest.mark.parametrize("kind", ["kai", "runai"])
def test_queues_that_place_pods_make_room_for_cpu_without_quotas_of_it(kind: str) -> None:
    known = for_nodes(kind, CLASSES, a_tenant("a", "guaranteed: 4"), BORROWER)

    assert ways(known, ("b", "urgent"), ("b", "batch")) == [Mechanism.QUEUE, Mechanism.PRIORITY]
    assert ways(known, ("a", "batch"), ("b", "batch")) == [Mechanism.RECLAIM]
    assert ways(known, ("a", "batch"), ("b", "urgent")) == []


def test_beside_kai_pods_without_gpus_evict_by_class_alone() -> None:
    (by_class,) = [
        item
        for item in for_nodes("kai", CLASSES, a_tenant("a", "guaranteed: 4"), BORROWER)
        if item.mechanism is Mechanism.PRIORITY
    ]

    assert by_class.holds(Party("b", "urgent"), Party("a", "batch"))
    assert by_class.when == (Condition.POOL_FULL, Condition.BY_KUBE_SCHEDULER)


def test_a_quota_of_no_cpu_takes_none_back() -> None:
    none = a_tenant("a", "guaranteed: 4, cpu: {guaranteed: 0, limit: 60}", "batch")

    assert Mechanism.RECLAIM not in ways(for_nodes("kai", CLASSES, none, BORROWER), ("a", "batch"), ("b", "batch"))
