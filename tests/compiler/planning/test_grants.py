"""What a namespace may ask for follows from its tenant's quotas and the pools' sharing."""

from __future__ import annotations

import pytest

from gpuplan.compiler.planning.grants import Grant, gpu_resources, grants, has_admission_policies, is_warned, parameters
from gpuplan.compiler.planning.plan import Plan
from tests.plans import CLUSTER, a_plan
from tests.platforms import a_platform, document, pool


def platform(pools: dict[str, str], spec: str) -> Plan:
    return a_platform(*(pool(name, sharing) for name, sharing in pools.items()), document("Tenant", "lab", spec))


def granted(plan: Plan, namespace: str = "lab") -> tuple[Grant, ...]:
    (tenant,) = plan.tenants
    return grants(tenant, namespace)


@pytest.mark.parametrize(
    ("sharing", "most"),
    [
        ("exclusive: {}", None),
        ("timeSlicing: {replicas: 4}", 1),
        ("timeSlicing: {replicas: 4, failRequestsGreaterThanOne: false}", None),
        ("mps: {replicas: 4}", 1),
        ("mig: {instances: {1g.10gb: 7}}", None),
        ("mig: {instances: {1g.10gb: 7}, timeSlicing: {replicas: 2}}", 1),
        ("mig: {instances: {1g.10gb: 7}, timeSlicing: {replicas: 2, failRequestsGreaterThanOne: false}}", None),
    ],
)
def test_how_many_one_container_may_ask_for(sharing: str, most: int | None) -> None:
    plan = platform({"pool": sharing}, "namespaces: [lab], quotas: [{pool: pool, guaranteed: 4}]")
    assert [grant.most_per_container for grant in granted(plan)] == [most]


def test_the_tenants_own_bound_holds_where_the_pool_has_none() -> None:
    plan = platform(
        {"shared": "timeSlicing: {replicas: 4}", "whole": "exclusive: {}"},
        "namespaces: [lab], allow: {unitsPerContainer: 2}, "
        "quotas: [{pool: shared, guaranteed: 4}, {pool: whole, guaranteed: 4}]",
    )
    assert granted(plan) == (Grant("shared", "nvidia.com/gpu.shared", 1), Grant("whole", "nvidia.com/gpu", 2))


def test_devices_of_profiles_that_are_not_sliced_are_no_shares() -> None:
    plan = platform(
        {"half": "mig: {instances: {1g.10gb: 2, 2g.20gb: 1}, timeSlicing: {replicas: {1g.10gb: 2}}}"},
        "namespaces: [lab], "
        "quotas: [{pool: half, unit: 2g.20gb, guaranteed: 4}, {pool: half, unit: 1g.10gb, guaranteed: 4}]",
    )
    assert granted(plan) == (
        Grant("half", "nvidia.com/mig-1g.10gb.shared", 1),
        Grant("half", "nvidia.com/mig-2g.20gb", None),
    )


def test_gpus_that_stay_whole_beside_sliced_partitions_are_no_shares() -> None:
    partitioned = "{gpus: [0, 1, 2, 3], instances: {1g.10gb: 7}}, {gpus: [4, 5, 6, 7], enabled: false}"
    plan = platform(
        {"half": f"mig: {{devices: [{partitioned}], timeSlicing: {{replicas: 2}}}}"},
        "namespaces: [lab], "
        "quotas: [{pool: half, unit: gpu, guaranteed: 4}, {pool: half, unit: 1g.10gb, guaranteed: 4}]",
    )
    assert granted(plan) == (Grant("half", "nvidia.com/gpu", None), Grant("half", "nvidia.com/mig-1g.10gb.shared", 1))


def test_a_cap_of_zero_grants_nothing() -> None:
    plan = platform(
        {"whole": "exclusive: {}"}, "namespaces: [lab, web], quotas: [{pool: whole, guaranteed: 4, split: {lab: 4}}]"
    )
    assert [grant.resource for grant in granted(plan, "lab")] == ["nvidia.com/gpu"]
    assert granted(plan, "web") == ()


def test_a_guarantee_of_zero_without_bound_grants() -> None:
    plan = platform(
        {"whole": "exclusive: {}"}, "namespaces: [lab], quotas: [{pool: whole, guaranteed: 0, limit: none}]"
    )
    assert [grant.resource for grant in granted(plan)] == ["nvidia.com/gpu"]


def test_parameters_are_lists_of_one_item_a_line() -> None:
    plan = platform(
        {"split": "mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}", "shared": "timeSlicing: {replicas: 4}"},
        "namespaces: [lab], quotas: [{pool: split, unit: 3g.40gb, guaranteed: 4}, "
        "{pool: split, unit: 2g.20gb, guaranteed: 4}, {pool: shared, guaranteed: 4}]",
    )
    assert parameters(plan.tenants[0], "lab") == {
        "tenant": "lab",
        "pools": "shared\nsplit\n",
        "grants": "shared nvidia.com/gpu.shared 1\n"
        "split nvidia.com/mig-2g.20gb any\n"
        "split nvidia.com/mig-3g.40gb any\n",
        "priorityClasses": "",
    }


def test_gpu_resources_hold_what_pools_hand_out_now_and_may_hand_out_later() -> None:
    plan = a_platform(
        pool("split", "mig: {instances: {2g.20gb: 3}, timeSlicing: {replicas: 2}}"),
        document("MigLayout", "planned", "gpu: A100-80GB", "instances: {1g.10gb+me: 1}"),
    )
    assert gpu_resources(plan) == (
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.10gb.me",
        "nvidia.com/mig-2g.20gb",
        "nvidia.com/mig-2g.20gb.shared",
    )


@pytest.mark.parametrize(("minor", "known"), [("1.29", False), ("1.30", True), ("1.34", True), ("1.100", True)])
def test_admission_policies_came_with_kubernetes_1_30(minor: str, known: bool) -> None:
    plan = a_plan(CLUSTER.replace("1.34", minor))
    assert has_admission_policies(plan.cluster) is known


@pytest.mark.parametrize(
    ("of_cluster", "of_tenant", "is_warned_in"),
    [
        ("warn", "", {"lab": True, "open": True}),
        ("warn", "enforcement: deny", {"lab": False, "open": False}),
        ("deny", "enforcement: warn", {"lab": True, "open": True}),
        ("warn", "enforcement: deny, namespaces: {open: warn}", {"lab": False, "open": True}),
        ("warn", "namespaces: {open: deny}", {"lab": True, "open": False}),
    ],
)
def test_the_nearest_enforcement_holds(of_cluster: str, of_tenant: str, is_warned_in: dict[str, bool]) -> None:
    """That of a namespace, of its tenant, and of the cluster, in this order."""
    cluster = CLUSTER.replace("spec:\n", f"spec:\n  admission: {{enforcement: {of_cluster}}}\n", 1)
    spec = f"namespaces: [lab, open], admission: {{{of_tenant}}}"
    plan = a_plan(f"{cluster}{pool('pool', 'exclusive: {}')}{document('Tenant', 'lab', spec)}")
    [tenant] = plan.tenants

    assert {name: is_warned(plan.cluster, tenant, name) for name in is_warned_in} == is_warned_in
