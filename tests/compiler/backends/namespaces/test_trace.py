"""Where the leaves of what is in a namespace of a tenant come from."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.compiler.backends import namespaces
from gpuplan.compiler.planning.plan import Plan
from tests.laws.tracing.told import find, told, told_of_all
from tests.platforms import a_platform, document, pool, priority_class, tenant


def told_of(plan: Plan, kind: str) -> Mapping[str, list[str]]:
    return told(plan, find(namespaces.render(plan), kind))


def caps(plan: Plan) -> Mapping[str, list[str]]:
    found = told_of(plan, "ResourceQuota")
    return {route.removeprefix('spec.hard["requests.').removesuffix('"]'): links for route, links in found.items()}


# --- Quota -------------------------------------------------------------------------------------------------------

HALVES = pool("halves", "mig: {layout: two}") + document(
    "MigLayout", "two", "gpu: A100-80GB", "instances: {3g.40gb: 2}"
)


def test_what_a_single_quota_caps_is_copied() -> None:
    plan = a_platform(pool("a"), tenant("lab", "pool: a, guaranteed: 4"))

    assert "copied Tenant/lab spec.quotas[0].guaranteed" in caps(plan)["nvidia.com/gpu"]


def test_the_capped_number_is_the_limit_where_there_is_one() -> None:
    lab = tenant("lab", "pool: a, guaranteed: 4, limit: 6")
    plan = a_platform(pool("a"), lab, scheduler="kubernetes, cap: limit")

    assert caps(plan)["nvidia.com/gpu"] == [
        "chosen by Cluster/test spec.scheduler.cap",
        "copied Tenant/lab spec.quotas[0].limit",
    ]


def test_caps_on_one_resource_of_two_pools_add_up() -> None:
    plan = a_platform(pool("a"), pool("b"), tenant("lab", "pool: a, guaranteed: 4", "pool: b, guaranteed: 2"))

    assert [source for source in caps(plan)["nvidia.com/gpu"] if source.startswith("sum")] == [
        "sum of Tenant/lab spec.quotas[0].guaranteed",
        "sum of Tenant/lab spec.quotas[1].guaranteed",
    ]


def test_a_resource_that_nobody_may_have_is_there_because_a_layout_has_it() -> None:
    plan = a_platform(HALVES, tenant("lab"))

    assert caps(plan)["nvidia.com/mig-3g.40gb"] == ['chosen by MigLayout/two spec.instances["3g.40gb"]']
    assert caps(plan)["nvidia.com/gpu"] == []


def test_what_two_layouts_have_is_there_without_either() -> None:
    other = document("MigLayout", "other", "gpu: A100-80GB", "instances: {3g.40gb: 1}")

    assert caps(a_platform(HALVES, other, tenant("lab")))["nvidia.com/mig-3g.40gb"] == []


def test_another_pool_changes_the_capped_resource_only_if_it_hands_out_another() -> None:
    lab = tenant("lab", "pool: a, guaranteed: 4")

    assert caps(a_platform(pool("a"), pool("b"), lab))["nvidia.com/gpu"] == [
        "chosen by Cluster/test spec.scheduler.kind",
        "copied Tenant/lab spec.quotas[0].guaranteed",
    ]
    assert caps(a_platform(pool("a"), pool("b", "timeSlicing: {replicas: 2}"), lab))["nvidia.com/gpu"] == [
        "chosen by Cluster/test spec.scheduler.kind",
        "chosen by Tenant/lab spec.quotas[0].pool",
        "copied Tenant/lab spec.quotas[0].guaranteed",
    ]


# --- Containers --------------------------------------------------------------------------------------------------


def test_a_default_comes_from_what_is_written_of_it() -> None:
    found = told_of(a_platform(tenant("lab", more="containers: {cpu: {limit: 2, maxRatio: 4}}")), "LimitRange")

    assert found["spec.limits[0].defaultRequest.cpu"] == ["copied Tenant/lab spec.containers.cpu.limit"]
    assert found["spec.limits[0].maxLimitRequestRatio.cpu"] == ["copied Tenant/lab spec.containers.cpu.maxRatio"]


# --- Members -----------------------------------------------------------------------------------------------------


def test_a_member_that_is_a_group_alone_says_nothing_of_its_role() -> None:
    found = told_of(a_platform(tenant("lab", more="members: [people]")), "RoleBinding")

    assert found["roleRef.name"] == []
    assert found["subjects[0].name"] == ["copied Tenant/lab spec.members[0]"]


def test_a_role_that_is_written_is_copied() -> None:
    found = told_of(a_platform(tenant("lab", more="members: [{group: people, role: view}]")), "RoleBinding")

    assert found["roleRef.name"] == ["copied Tenant/lab spec.members[0].role"]


# --- Admission ---------------------------------------------------------------------------------------------------


def parameters(plan: Plan, text: str) -> list[str]:
    return told_of(plan, "ConfigMap")[text]


def test_a_line_of_grants_comes_from_the_quota_that_it_is_of() -> None:
    plan = a_platform(pool("a"), tenant("lab", "pool: a, guaranteed: 4", more="allow: {unitsPerContainer: 2}"))

    assert parameters(plan, "data.grants[0]") == [
        "chosen by Tenant/lab spec.quotas[0].guaranteed",
        "copied Pool/a metadata.name",
        "copied Tenant/lab spec.allow.unitsPerContainer",
        "copied Tenant/lab spec.quotas[0].pool",
    ]


def test_shares_that_are_refused_leave_nothing_to_the_tenant() -> None:
    shares = pool("a", "timeSlicing: {replicas: 2, failRequestsGreaterThanOne: true}")
    plan = a_platform(shares, tenant("lab", "pool: a, guaranteed: 4", more="allow: {unitsPerContainer: 2}"))
    found = parameters(plan, "data.grants[0]")

    assert "chosen by Pool/a spec.sharing.timeSlicing.failRequestsGreaterThanOne" in found
    assert "copied Tenant/lab spec.allow.unitsPerContainer" not in found


def test_priority_classes_are_in_the_order_of_the_tenant() -> None:
    classes = priority_class("low", 1) + priority_class("high", 9)
    plan = a_platform(classes, tenant("lab", more="priorityClasses: [low, high]"))

    assert parameters(plan, "data.priorityClasses[1]") == [
        "copied PriorityClass/high metadata.name",
        "copied Tenant/lab spec.priorityClasses[1]",
    ]


def test_the_binding_to_queues_is_there_because_of_the_scheduler() -> None:
    plan = a_platform(tenant("lab"), scheduler="kueue")
    of_grants, of_queues = (
        told_of_all(plan, item) for item in namespaces.render(plan) if item.kind.endswith("PolicyBinding")
    )

    assert set(of_queues) - set(of_grants) == {"chosen by Cluster/test spec.scheduler.kind"}
