"""What each scheduler grants by its own arithmetic is the policy, or what is lost is named.

The numbers are read from what is rendered, not from the plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.backends import kai, kueue, namespaces, runai
from gpuplan.compiler.checks import run
from gpuplan.compiler.checks.losses import losses
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.schedulers import SCHEDULERS, SchedulerTraits
from tests.compiler.backends.kueue.arithmetic import Key, Node, a_tree
from tests.laws.properties.policies import KINDS, Grant, Policy, Team, policies

pytestmark = pytest.mark.no_cover
EXAMPLES = 40
CAPS = ("limit", "guaranteed")


def total(amounts: Iterable[float | None]) -> float | None:
    """The sum; None where one of them is unbounded."""
    found = list(amounts)
    return None if None in found else sum(amount or 0 for amount in found)


def is_named(policy: Policy, concept: str, kind: SchedulerTraits, team: Team, grant: Grant) -> bool:
    """Whether a loss of the concept points at the quota."""
    tenant = next(found for found in policy.plan.tenants if found.name == team.name)
    at = tenant.quotas[team.grants.index(grant)].at
    return any(
        use.at.source == at.source and use.at.path[: len(at.path)] == at.path
        for use in losses(policy.plan, concept, kind)
    )


@settings(max_examples=EXAMPLES)
@given(st.data(), st.sampled_from(list(SCHEDULERS)), st.sampled_from(CAPS))
def test_the_policies_are_valid(data: st.DataObject, kind: str, of: str) -> None:
    policy = data.draw(policies(kind, cap=of))
    assert [(found.code, found.finding.message) for found in run(policy.plan) if found.is_error] == []


# --- Kubernetes ------------------------------------------------------------------------------------------------------


class Caps:
    """What ResourceQuotas allow, and the admission policy of grants in which pools."""

    def __init__(self, policy: Policy) -> None:
        rendered = list(namespaces.render(policy.plan))
        self.hard: dict[str, dict[str, int]] = {
            item.body["metadata"]["namespace"]: {
                key.removeprefix("requests."): int(amount) for key, amount in item.body["spec"].get("hard", {}).items()
            }
            for item in rendered
            if item.kind == "ResourceQuota"
        }
        self.open: dict[str, set[tuple[str, str]]] = {
            item.name.removeprefix("grants-"): {
                (line.split(" ")[0], line.split(" ")[1]) for line in item.body["data"]["grants"].splitlines()
            }
            for item in rendered
            if item.kind == "ConfigMap"
        }

    def most(self, team: Team, resource: str) -> float | None:
        """What a tenant's namespaces may have of a resource together."""
        return total(self.hard[namespace].get(resource) for namespace in team.namespaces)

    def reach(self, team: Team, pool: str, unit: str) -> int:
        """What a tenant may use of a unit while nobody else uses anything."""
        resource, capacity, _ = KINDS[pool].units[unit]
        found = [
            self.hard[namespace].get(resource, capacity)
            for namespace in team.namespaces
            if (pool, resource) in self.open[namespace]
        ]
        return min(sum(found), capacity)


def cap(grant: Grant, of: str) -> int | None:
    return grant.limit if of == "limit" else grant.guaranteed


@settings(max_examples=EXAMPLES)
@given(st.data(), st.sampled_from(CAPS))
def test_plain_caps_are_those_of_the_policy(data: st.DataObject, of: str) -> None:
    policy = data.draw(policies("kubernetes", cap=of))
    caps = Caps(policy)
    for team in policy.teams:
        if team.namespaces:
            resources = {grant.resource for grant in team.grants}
            for resource in resources:
                wanted = total(cap(grant, of) for grant in team.grants if grant.resource == resource)
                assert caps.most(team, resource) == wanted
            for namespace in team.namespaces:
                others = {key: amount for key, amount in caps.hard[namespace].items() if key not in resources}
                assert set(others.values()) <= {0}


@settings(max_examples=EXAMPLES)
@given(st.data(), st.sampled_from(CAPS))
def test_a_plain_cap_is_for_its_pool_or_that_is_named(data: st.DataObject, of: str) -> None:
    policy = data.draw(policies("kubernetes", cap=of))
    caps = Caps(policy)
    for team in policy.teams:
        for grant in team.grants if team.namespaces else ():
            bound = cap(grant, of)
            if bound is not None and caps.reach(team, grant.pool, grant.unit) > bound:
                assert any(
                    is_named(policy, "pool", SCHEDULERS["kubernetes"], team, other)
                    for other in team.grants
                    if other.resource == grant.resource
                )


@settings(max_examples=EXAMPLES)
@given(st.data(), st.sampled_from(CAPS))
def test_a_plain_guarantee_holds_against_all_others_or_is_named(data: st.DataObject, of: str) -> None:
    policy = data.draw(policies("kubernetes", is_flat=True, cap=of))
    caps = Caps(policy)
    kind = SCHEDULERS["kubernetes"]
    for team in policy.teams:
        for grant in team.grants:
            capacity = KINDS[grant.pool].units[grant.unit][1]
            others = [other for other in policy.teams if other != team]
            left = capacity - sum(caps.reach(other, grant.pool, grant.unit) for other in others)
            if max(left, 0) < grant.guaranteed:
                assert is_named(policy, "guaranteed", kind, team, grant) or any(
                    is_named(policy, "pool", kind, other, held) for other in others for held in other.grants
                )


@settings(max_examples=EXAMPLES)
@given(st.data(), st.sampled_from(CAPS))
def test_plain_children_stay_within_their_parent_or_that_is_named(data: st.DataObject, of: str) -> None:
    policy = data.draw(policies("kubernetes", cap=of))
    kind = SCHEDULERS["kubernetes"]
    for team in policy.teams:
        for grant in team.grants:
            held = [
                (member, other)
                for member in policy.below(team)
                for other in member.grants
                if (other.pool, other.unit) == (grant.pool, grant.unit)
            ]
            used = total(cap(other, of) for member, other in held if member.namespaces)
            bound = cap(grant, of)
            if bound is not None and (used is None or used > bound):
                assert any(is_named(policy, "parent", kind, member, other) for member, other in held)


# --- Kueue -----------------------------------------------------------------------------------------------------------


def nominal(node: Node, key: Key) -> int:
    """What a cohort or a queue, and all that is part of it, has of its own."""
    own = node.cells[key].nominal if key in node.cells else 0
    return own + sum(nominal(child, key) for child in node.children)


def keys() -> dict[Key, int]:
    return {
        (pool, resource): capacity
        for pool, kind in KINDS.items()
        for resource, capacity, _ in kind.units.values()
        if resource
    }


@settings(max_examples=EXAMPLES)
@given(policies("kueue"))
def test_kueue_shares_out_all_that_there_is_and_no_more(policy: Policy) -> None:
    tree = a_tree(item for item in kueue.render(policy.plan) if isinstance(item, Manifest))
    pools = {pool.name for pool in policy.plan.pools}
    for key, capacity in keys().items():
        if key[0] in pools:
            assert nominal(tree.cohorts["gpuplan"], key) == capacity


@settings(max_examples=EXAMPLES)
@given(policies("kueue"))
def test_kueue_guarantees_what_the_policy_does(policy: Policy) -> None:
    tree = a_tree(item for item in kueue.render(policy.plan) if isinstance(item, Manifest))
    for team in policy.teams:
        node = tree.cohorts.get(team.name) or tree.queues.get(team.name)
        for grant in team.grants if node else ():
            assert node is not None
            assert nominal(node, (grant.pool, grant.resource)) == grant.guaranteed


@settings(max_examples=EXAMPLES)
@given(policies("kueue"))
def test_kueue_bounds_what_the_policy_bounds(policy: Policy) -> None:
    """A parent's own queue is bound by its cohort."""
    tree = a_tree(item for item in kueue.render(policy.plan) if isinstance(item, Manifest))
    for team in policy.teams:
        node = tree.cohorts.get(team.name) or tree.queues.get(team.name)
        for grant in team.grants if node else ():
            assert node is not None
            cell = node.cells[grant.pool, grant.resource]
            assert cell.borrowing == (None if grant.limit is None else grant.limit - grant.guaranteed)
            assert (grant.guaranteed if cell.lending is None else cell.lending) == grant.lendable


# --- KAI-Scheduler ---------------------------------------------------------------------------------------------------


def price(grants: Iterable[Grant]) -> int:
    """What is guaranteed, in GPUs or compute slices."""
    return sum(grant.price * grant.guaranteed for grant in grants)


def limit_price(grants: Iterable[Grant]) -> float | None:
    return total(None if grant.limit is None else grant.price * grant.limit for grant in grants)


def in_pool(team: Team, pool: str) -> list[Grant]:
    return [grant for grant in team.grants if grant.pool == pool]


def top_price(policy: Policy, pool: str) -> int:
    """What all tenants are guaranteed of a pool: a child's guarantee is within that of an ancestor, if it has one."""
    return sum(
        price * outermost(policy, team, pool, unit)
        for team in policy.children("")
        for unit, (_, _, price) in KINDS[pool].units.items()
    )


def outermost(policy: Policy, team: Team, pool: str, unit: str) -> int:
    own = [grant.guaranteed for grant in team.grants if (grant.pool, grant.unit) == (pool, unit)]
    return sum(own) if own else sum(outermost(policy, child, pool, unit) for child in policy.children(team.name))


def kai_queues(policy: Policy) -> dict[str, Any]:
    return {item.name: item.body for item in kai.objects(policy.plan) if item.kind == "Queue"}


@settings(max_examples=EXAMPLES)
@given(policies("kai"))
def test_kai_guarantees_what_units_cost_together(policy: Policy) -> None:
    queues = kai_queues(policy)
    for team in policy.teams:
        if not policy.children(team.name):
            for pool in {grant.pool for grant in team.grants}:
                gpu = queues[f"{team.name}-{pool}"]["spec"]["resources"]["gpu"]
                assert gpu["quota"] == price(in_pool(team, pool))
                bound = limit_price(in_pool(team, pool))
                assert gpu["limit"] == (-1 if bound is None else bound)


@settings(max_examples=EXAMPLES)
@given(policies("kai"))
def test_kai_guarantees_no_more_than_the_policy(policy: Policy) -> None:
    queues = kai_queues(policy)
    for pool in policy.plan.pools:
        tops = [
            queue["spec"]["resources"]["gpu"]["quota"]
            for queue in queues.values()
            if "parentQueue" not in queue["spec"]
            and queue["metadata"]["labels"]["kai.scheduler/node-pool"] == pool.name
        ]
        assert sum(tops) == top_price(policy, pool.name)


def can_be_exchanged(policy: Policy, team: Team, pool: str) -> bool:
    """Whether more of one unit can be had in place of another: where a ResourceQuota allows more than is guaranteed."""
    caps = Caps(policy)
    grants = in_pool(team, pool)
    if len(grants) < 2:
        return False
    return any((caps.most(team, grant.resource) or 10**6) > grant.guaranteed > 0 for grant in grants)


@settings(max_examples=EXAMPLES)
@given(policies("kai"))
def test_what_kai_does_not_tell_apart_is_named(policy: Policy) -> None:
    for team in policy.teams:
        for pool in {grant.pool for grant in team.grants} if team.namespaces else ():
            if can_be_exchanged(policy, team, pool):
                grants = in_pool(team, pool)
                assert any(is_named(policy, "unit", SCHEDULERS["kai"], team, grant) for grant in grants)


# --- Run:ai ----------------------------------------------------------------------------------------------------------


def runai_bodies(policy: Policy, folder: str) -> dict[str, dict[str, dict[str, Any]]]:
    """What Run:ai is told of GPUs, by name of a project or department and by pool."""
    found = {}
    for item in runai.render(policy.plan):
        kind, _, name = item.path.removeprefix("scheduling/runai/").partition("/")
        if kind == folder:
            resources = json.loads(item.data)["resources"]
            found[name.removesuffix(".json")] = {part["nodePool"]["name"]: part["gpu"] for part in resources}
    return found


@settings(max_examples=EXAMPLES)
@given(policies("runai"))
def test_runai_projects_deserve_what_their_tenant_is_guaranteed(policy: Policy) -> None:
    projects = runai_bodies(policy, "projects")
    for team in policy.teams:
        if team.namespaces and not policy.children(team.name):
            for pool in {grant.pool for grant in team.grants}:
                parts = [projects[namespace][pool] for namespace in team.namespaces]
                bound = limit_price(in_pool(team, pool))
                assert sum(part["deserved"] for part in parts) == price(in_pool(team, pool))
                assert total(part["limit"] for part in parts) == bound


@settings(max_examples=EXAMPLES)
@given(policies("runai"))
def test_runai_departments_deserve_what_the_policy_guarantees(policy: Policy) -> None:
    departments = runai_bodies(policy, "departments")
    for pool in policy.plan.pools:
        deserved = sum(department[pool.name]["deserved"] for department in departments.values())
        assert deserved == top_price(policy, pool.name)
