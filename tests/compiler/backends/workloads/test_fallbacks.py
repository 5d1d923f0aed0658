"""Where pods may go when their pool is full."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.compiler.backends import workloads
from gpuplan.compiler.planning.fallbacks import in_order
from tests.platforms import a_platform, document, pool, tenant

FIRST = pool("first", "exclusive: {}", "fallback: second", "taints: [{key: first, effect: NoSchedule}]")
SECOND = pool("second", "exclusive: {}", "fallback: third", "taints: [{key: second, effect: NoSchedule}]")
THIRD = pool("third", "exclusive: {}", "taints: [{key: second, effect: NoSchedule}]")
LAB = tenant("lab", "pool: third, guaranteed: 1", "pool: second, guaranteed: 1", "pool: first, guaranteed: 1")


def job(*more: str, **changes: str) -> str:
    asked = {
        "tenant": "lab",
        "pool": "first",
        "training": "{pods: 1}",
        "image": "registry.example.com/run:1",
        **changes,
    }
    return document("Workload", "run", *(f"{field}: {value}" for field, value in asked.items()), *more)


def pod(*documents: str, scheduler: str = "kubernetes") -> Any:
    [body] = (item.body for item in workloads.render(a_platform(*documents, scheduler=scheduler)) if item.kind == "Job")
    return body["spec"]["template"]["spec"]


def among(*pools: str) -> Any:
    return {"matchExpressions": [{"key": "gpuplan.dev/pool", "operator": "In", "values": [*pools]}]}


def pools_of(spec: Any) -> list[str]:
    """The pools that a pod may run in."""
    if "affinity" not in spec:
        return [spec["nodeSelector"]["gpuplan.dev/pool"]]
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    [term] = required["nodeSelectorTerms"]
    return list(term["matchExpressions"][0]["values"])


def test_pods_wait_for_any_pool_of_the_chain_and_prefer_the_earlier() -> None:
    spec = pod(FIRST, SECOND, THIRD, LAB, job())
    assert "nodeSelector" not in spec
    assert spec["affinity"]["nodeAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [among("first", "second", "third")]},
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": among("first")},
            {"weight": 50, "preference": among("second")},
        ],
    }
    assert spec["tolerations"] == [
        {"key": "first", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "second", "operator": "Exists", "effect": "NoSchedule"},
    ]


def test_kueue_orders_flavors_so_that_pods_only_say_which() -> None:
    spec = pod(FIRST, SECOND, THIRD, LAB, job(), scheduler="kueue")
    required = {"nodeSelectorTerms": [among("first", "second", "third")]}
    assert spec["affinity"]["nodeAffinity"] == {"requiredDuringSchedulingIgnoredDuringExecution": required}


@pytest.mark.parametrize("scheduler", ["kai", "runai"])
def test_where_a_pod_names_one_pool_it_stays_there(scheduler: str) -> None:
    assert pools_of(pod(FIRST, SECOND, THIRD, LAB, job(), scheduler=scheduler)) == ["first"]


def test_a_pool_that_the_work_cannot_use_is_passed_over() -> None:
    no_quota = tenant("lab", "pool: first, guaranteed: 1", "pool: third, guaranteed: 1")
    other_unit = SECOND.replace("exclusive: {}", "timeSlicing: {replicas: 2}")
    assert pools_of(pod(FIRST, SECOND, THIRD, no_quota, job())) == ["first", "third"]
    assert pools_of(pod(FIRST, other_unit, THIRD, LAB, job())) == ["first", "third"]


def test_a_namespace_without_a_part_of_the_quota_does_not_fall_back() -> None:
    split = "pool: second, guaranteed: 1, split: {lab: 0, papers: 1}"
    both = tenant("lab", "pool: first, guaranteed: 2, split: {lab: 1, papers: 1}", split, namespaces="lab, papers")
    assert pools_of(pod(FIRST, SECOND, THIRD, both, job(namespace="lab"))) == ["first"]
    assert pools_of(pod(FIRST, SECOND, THIRD, both, job(namespace="papers"))) == ["first", "second"]


def test_pods_that_ask_for_more_than_a_container_may_have_there_stay() -> None:
    first = FIRST.replace("exclusive: {}", "timeSlicing: {replicas: 2}")
    second = SECOND.replace("exclusive: {}", "mps: {replicas: 2}")
    assert pools_of(pod(first, second, THIRD, LAB, job())) == ["first", "second"]
    assert pools_of(pod(first, second, THIRD, LAB, job("count: 2"))) == ["first"]


@pytest.mark.parametrize(
    ("first", "second", "training", "pools"),
    [
        ("[a, b]", "[a, b]", "{pods: 2, gang: 2}", ["first", "second"]),
        ("[a, b]", "[a]", "{pods: 2}", ["first", "second"]),
        ("[a, b]", "[a]", "{pods: 2, gang: 2}", ["first"]),
        ("[a]", "[]", "{pods: 2}", ["first"]),
        ("[]", "[a]", "{pods: 2}", ["first"]),
    ],
)
def test_kueue_sends_nothing_from_one_topology_to_another(
    first: str, second: str, training: str, pools: list[str]
) -> None:
    one = FIRST.replace("fallback", f"topology: {first}, fallback")
    other = SECOND.replace("fallback: third", f"topology: {second}")
    assert pools_of(pod(one, other, LAB, THIRD, job(training=training), scheduler="kueue")) == pools


def test_pools_come_before_those_that_they_fall_back_to() -> None:
    pools = a_platform(FIRST, SECOND, THIRD).pools
    assert in_order(pools, ["third", "other", "second", "first"]) == ["first", "second", "third", "other"]
    assert in_order(pools, ["third", "first"]) == ["first", "third"]
    assert in_order(pools, ["other", "first", "third"]) == ["other", "first", "third"]
