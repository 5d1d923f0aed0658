"""Workloads and what they may use: the numbers that findings prove, against packing and sums done by hand."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given, strategies as st

from gpuplan.compiler.base.diagnostics import Finding, Severity
from gpuplan.compiler.checks import workload_sums
from gpuplan.compiler.checks.registry import Check
from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.preemption import Party, evictions
from tests.checks.found import lines, only
from tests.plans import a_cluster, a_plan

CLASSES = {"low": (30, True), "high": (60, True), "lasting": (150, False), "first": (200, False)}
"""Value and whether preemptible, as KAI-Scheduler takes them."""


def a_pool(sharing: str, nodes: int = 1, gpus: int = 8) -> str:
    return f"""\
---
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {{name: gpus}}
spec:
  gpu: A100-80GB
  nodes: {{count: {nodes}, gpusPerNode: {gpus}}}
  sharing: {{{sharing}}}
"""


def a_tenant(name: str, quota: str, more: str = "") -> str:
    return f"""\
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {{name: {name}}}
spec:
  namespaces: [{name}]
  priorityClasses: [{", ".join(CLASSES)}]
  quotas: [{{pool: gpus, {quota}}}]
{more}"""


def a_job(name: str, pods: int, asks: str = "count: 1", priority: str = "low", tenant: str = "research") -> str:
    return f"""\
---
apiVersion: gpuplan.dev/v1
kind: Workload
metadata: {{name: {name}}}
spec:
  tenant: {tenant}
  pool: gpus
  {asks}
  priorityClass: {priority}
  image: example.com/{name}:1
  training: {{pods: {pods}}}
"""


def a_service(name: str, replicas: int, asks: str = "count: 1", priority: str = "low", tenant: str = "research") -> str:
    return a_job(name, replicas, asks, priority, tenant).replace("training: {pods:", "inference: {replicas:")


def find(check: Check[Plan], *documents: str, scheduler: str = "kind: kai") -> list[Finding]:
    return list(check.find(a_plan(a_repository(*documents, scheduler=scheduler))))


def a_repository(*documents: str, scheduler: str = "kind: kai") -> str:
    classes = (
        f"---\napiVersion: gpuplan.dev/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\n"
        f"spec: {{value: {value}, preemptible: {str(preemptible).lower()}}}\n"
        for name, (value, preemptible) in CLASSES.items()
    )
    return a_cluster(scheduler) + "".join((*classes, *documents))


# --- Quotas ------------------------------------------------------------------------------------------------------


def test_the_finding_stands_at_the_workload_that_is_too_much_and_says_what_still_fits() -> None:
    finding = only(
        find(
            workload_sums.workloads_over_quota,
            a_pool("exclusive: {}"),
            a_tenant("research", "guaranteed: 6"),
            *(a_service(name, pods, "count: 2") for name, pods in (("a", 1), ("b", 4), ("c", 1))),
        )
    )
    assert finding.message == "3 workloads ask for up to 12 `gpu` of pool `gpus`, and tenant `research` may use 6"
    assert lines(finding) == ["inference: {replicas: 4}"]
    assert finding.notes[0] == "`b`: 4 pods of 2 `gpu` = 8"
    assert finding.notes[-1] == "`a` 2 + `b` 8 + `c` 2 = 12 of 6"
    assert finding.help.startswith("write `replicas: 1`, or raise `guaranteed` to 12 and raise `nodes.count`")


AMOUNTS = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@given(AMOUNTS, st.integers(1, 8), st.sampled_from(["kubernetes", "kueue", "kai"]))
def test_workloads_are_too_much_exactly_when_their_sum_is(amounts: list[int], limit: int, scheduler: str) -> None:
    found = find(
        workload_sums.workloads_over_quota,
        a_pool("exclusive: {}"),
        a_tenant("research", f"guaranteed: {limit}"),
        *(a_service(f"w{index}", pods) for index, pods in enumerate(amounts)),
        scheduler=f"kind: {scheduler}",
    )
    assert len(found) == (sum(amounts) > limit)


@given(AMOUNTS, AMOUNTS, st.integers(1, 12))
def test_jobs_that_fit_one_by_one_take_turns(services: list[int], jobs: list[int], limit: int) -> None:
    found = find(
        workload_sums.workloads_over_quota,
        a_pool("exclusive: {}", 2),
        a_tenant("research", f"guaranteed: {limit}"),
        *(a_service(f"s{index}", pods) for index, pods in enumerate(services)),
        *(a_job(f"j{index}", pods) for index, pods in enumerate(jobs)),
    )
    if sum(services) + max(jobs) > limit:
        assert [finding.severity for finding in found] == [None]
    else:
        assert [finding.severity for finding in found] == [Severity.NOTE] * (sum(services) + sum(jobs) > limit)


@given(AMOUNTS, st.integers(1, 8))
def test_children_are_too_much_exactly_when_their_sum_is(amounts: list[int], limit: int) -> None:
    children = [
        text
        for index, pods in enumerate(amounts)
        for text in (
            a_tenant(f"t{index}", "guaranteed: 0, limit: none", "  parent: top\n"),
            a_service(f"w{index}", pods, tenant=f"t{index}"),
        )
    ]
    top = a_tenant("top", f"guaranteed: {limit}")
    found = find(workload_sums.workloads_over_quota, a_pool("exclusive: {}"), top, *children)
    assert len(found) == (sum(amounts) > limit)


def test_what_a_child_asks_too_much_is_not_said_of_its_parent_again() -> None:
    finding = only(
        find(
            workload_sums.workloads_over_quota,
            a_pool("exclusive: {}"),
            a_tenant("top", "guaranteed: 2"),
            a_tenant("research", "guaranteed: 1", "  parent: top\n"),
            a_job("tune", 3),
        )
    )
    assert "tenant `research` may use 1" in finding.message


def test_quota_of_a_cluster_that_caps_at_guarantees_is_the_guarantee() -> None:
    scheduler = "kind: kubernetes, cap: guaranteed"
    documents = (a_pool("exclusive: {}"), a_tenant("research", "guaranteed: 2, limit: 4"), a_job("tune", 3))
    finding = only(find(workload_sums.workloads_over_quota, *documents, scheduler=scheduler))
    assert "namespace `research` may use 2" in finding.message
    assert not find(workload_sums.workloads_over_quota, *documents)


def test_no_resource_quota_holds_fractions_to_the_guarantee() -> None:
    documents = (a_pool("fraction: {}"), a_tenant("research", "guaranteed: 2, limit: 4"))
    scheduler = "kind: kai, cap: guaranteed"
    assert not find(workload_sums.workloads_over_quota, *documents, a_job("a", 6, "fraction: 0.5"), scheduler=scheduler)
    assert find(workload_sums.workloads_over_quota, *documents, a_job("a", 9, "fraction: 0.5"), scheduler=scheduler)


def test_whole_gpus_of_a_lower_class_make_no_room_because_a_resource_quota_counts_them() -> None:
    pool = a_pool("exclusive: {}")
    documents = (pool, a_tenant("research", "guaranteed: 1"), a_service("a", 1), a_job("b", 1, priority="high"))
    assert find(workload_sums.workloads_over_quota, *documents, scheduler="kind: kai, cap: limit")
    assert not find(workload_sums.workloads_over_quota, *documents, scheduler="kind: kai")


FRACTIONS = st.sampled_from(["0.1", "0.2", "0.25", "0.3", "0.33", "0.34", "0.4", "0.5", "0.6", "0.7", "0.9"])


@given(FRACTIONS, st.integers(1, 12), FRACTIONS, st.integers(1, 3))
def test_fractions_of_each_class_fit_by_themselves(low: str, many: int, high: str, few: int) -> None:
    found = find(
        workload_sums.workloads_over_quota,
        a_pool("fraction: {}", gpus=2),
        a_tenant("research", "guaranteed: 2"),
        a_job("chat", many, f"fraction: {low}"),
        a_job("tune", few, f"fraction: {high}", "high"),
    )
    assert bool(found) == (many * Decimal(low) > 2 or few * Decimal(high) > 2)


@given(FRACTIONS, st.integers(1, 12), FRACTIONS)
def test_fractions_that_nobody_evicts_fit_together(lasting: str, many: int, other: str) -> None:
    found = find(
        workload_sums.workloads_over_quota,
        a_pool("fraction: {}", gpus=2),
        a_tenant("research", "guaranteed: 2"),
        a_service("chat", many, f"fraction: {lasting}", "lasting"),
        a_job("tune", 1, f"fraction: {other}", "lasting"),
    )
    assert bool(found) == (many * Decimal(lasting) + Decimal(other) > 2)


# --- Guarantees --------------------------------------------------------------------------------------------------


@given(st.integers(0, 8), st.integers(0, 8), st.integers(1, 10))
def test_borrowed_is_what_the_others_guarantees_leave_no_room_for(own: int, others: int, pods: int) -> None:
    if own + others > 8:
        return
    found = find(
        workload_sums.workloads_on_borrowed_units,
        a_pool("exclusive: {}"),
        a_tenant("research", f"guaranteed: {own}, limit: 8"),
        a_tenant("other", f"guaranteed: {others}, limit: 8"),
        a_job("tune", pods),
    )
    at_risk = max(pods + others - 8, 0) if own < pods <= 8 else 0  # more than the limit is an error
    assert [int(finding.message.partition(" of ")[0]) for finding in found] == ([at_risk] if at_risk else [])


@given(st.integers(0, 8), st.integers(1, 8))
def test_lasting_work_stays_within_the_guarantee(guaranteed: int, pods: int) -> None:
    documents = (
        a_pool("exclusive: {}"),
        a_tenant("research", f"guaranteed: {guaranteed}, limit: 8"),
        a_job("tune", pods, priority="lasting"),
    )
    assert len(find(workload_sums.lasting_work_over_guarantee, *documents)) == (pods > guaranteed)
    assert not find(workload_sums.lasting_work_over_guarantee, *documents, scheduler="kind: kubernetes")
    assert not find(workload_sums.workloads_on_borrowed_units, *documents)


# --- Nodes -------------------------------------------------------------------------------------------------------


@given(st.integers(1, 3), st.integers(1, 8), st.integers(1, 24))
def test_pods_fit_exactly_when_they_can_be_put_onto_nodes(nodes: int, count: int, pods: int) -> None:
    found = find(
        workload_sums.pods_do_not_fit_pool,
        a_pool("exclusive: {}", nodes),
        a_tenant("research", f"guaranteed: {8 * nodes}"),
        a_job("tune", pods, f"count: {count}"),
    )
    free = [Decimal(8)] * nodes
    assert bool(found) == (pods * count <= 8 * nodes and not are_put(free, [Decimal(count)] * pods))


@given(st.integers(1, 3), FRACTIONS, st.integers(1, 12))
def test_fractions_fit_exactly_when_they_can_be_put_onto_gpus(gpus: int, fraction: str, pods: int) -> None:
    found = find(
        workload_sums.pods_do_not_fit_pool,
        a_pool("fraction: {}", gpus=gpus),
        a_tenant("research", f"guaranteed: {gpus}"),
        a_job("chat", pods, f"fraction: {fraction}"),
    )
    free = [Decimal(1)] * gpus
    assert bool(found) == (pods * Decimal(fraction) <= gpus and not are_put(free, [Decimal(fraction)] * pods))


def are_put(free: list[Decimal], wanted: list[Decimal]) -> bool:
    """Equal pieces into the first place that has room, which is as good as any other for them."""
    for piece in wanted:
        place = next((index for index, left in enumerate(free) if left >= piece), None)
        if place is None:
            return False
        free[place] -= piece
    return True


# --- Eviction ----------------------------------------------------------------------------------------------------


@given(FRACTIONS, FRACTIONS)
def test_as_many_leave_a_full_gpu_as_make_room(low: str, high: str) -> None:
    found = find(
        workload_sums.workload_makes_room,
        a_pool("fraction: {}", gpus=1),
        a_tenant("research", "guaranteed: 1"),
        a_job("chat", int(1 / Decimal(low)), f"fraction: {low}"),
        a_job("tune", 1, f"fraction: {high}", "high"),
    )
    running = [Decimal(low)] * int(1 / Decimal(low))
    leaving = next(count for count in range(len(running) + 1) if sum(running[count:]) + Decimal(high) <= 1)
    evicted = [finding.message.split()[5] for finding in found]
    assert evicted == ([str(leaving)] if leaving else [])


@given(st.sampled_from(list(CLASSES)), st.sampled_from(list(CLASSES)), st.sampled_from(["kai", "runai"]))
def test_who_makes_room_for_whom_is_who_can_evict_whom(one: str, other: str, scheduler: str) -> None:
    text = a_repository(
        a_pool("fraction: {}", gpus=1),
        a_tenant("research", "guaranteed: 1"),
        a_service("a", 1, "fraction: 0.7", one),
        a_service("b", 1, "fraction: 0.7", other),
        scheduler=f"kind: {scheduler}",
    )
    plan = a_plan(text)
    first, second = Party("research", one), Party("research", other)
    for_gpus = [item for item in evictions(plan) if item.counted is None]
    evicts = [item for item in for_gpus if item.holds(first, second) or item.holds(second, first)]
    assert bool(list(workload_sums.workload_makes_room.find(plan))) == bool(evicts)
    assert bool(list(workload_sums.workloads_over_quota.find(plan))) == (not evicts)
