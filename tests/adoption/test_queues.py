"""Queues of Kueue and KAI-Scheduler become quotas and the tree of tenants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import given, settings

from gpuplan.adoption.dump import Dump, read_dump
from gpuplan.adoption.queues import Queue, read
from gpuplan.backends import kai, kueue, namespaces
from gpuplan.manifests import Manifest, to_yaml
from gpuplan.pipeline.writing import document
from gpuplan.planning.plan import Plan
from tests.plans import a_plan
from tests.properties.policies import Policy, policies

BACKENDS = {"kueue": kueue.render, "kai": kai.objects}


def dump_of(bodies: Iterable[Mapping[str, Any]]) -> Dump:
    dump, found = read_dump({"dump.yaml": "---\n".join(map(to_yaml, bodies)).encode()})
    assert not found
    return dump


def granted(plan: Plan) -> list[Mapping[str, Any]]:
    """What tells admission which units a tenant's pods may ask for."""
    found = [item.body for item in namespaces.render(plan)]
    return [body for body in found if body["kind"] == "ConfigMap"]


def queues_of(plan: Plan, scheduler: str) -> list[Mapping[str, Any]]:
    """The objects that count, in their order; what gpuplan adds to them for Argo CD and Flux is not in them."""
    found = [item.body for item in BACKENDS[scheduler](plan) if isinstance(item, Manifest)]
    return [body for body in found if not body["kind"].startswith("ValidatingAdmission")]


def planned(policy: Policy, queues: Iterable[Queue]) -> Plan:
    """The plan of the same cluster and pools, with the tenants that were read; KAI's queues know no namespaces."""
    documents = [part for part in policy.text.split("---\n") if "kind: Tenant" not in part]
    own = {team.name: team.namespaces for team in policy.teams}
    for queue in queues:
        spec = {
            **({"parent": queue.parent} if queue.parent else {}),
            "namespaces": list(queue.namespaces or own[queue.tenant]),
            "quotas": [dict(quota) for quota in queue.quotas],
            **queue.spec,
        }
        documents.append(to_yaml(document("Tenant", queue.tenant, spec)))
    return a_plan("---\n".join(documents))


def assert_same(policy: Policy, scheduler: str) -> None:
    before = queues_of(policy.plan, scheduler)
    queues, found = read(dump_of([*before, *granted(policy.plan)]), policy.plan)
    assert [item.finding.message for item in found] == []
    again = planned(policy, queues)
    after = queues_of(again, scheduler)
    assert {(body["kind"], body["metadata"]["name"]): body for body in after} == {
        (body["kind"], body["metadata"]["name"]): body for body in before
    }


def counts_below(policy: Policy) -> bool:
    """Whether each parent has a tenant with quotas in it: no queue tells whose part one without quotas is."""
    parents = [team for team in policy.teams if policy.children(team.name)]
    return all(any(part.grants for part in policy.below(team) if part is not team) for team in parents)


@settings(max_examples=12, deadline=None)
@given(policies("kueue").filter(counts_below))
def test_kueues_queues_are_read_as_they_were_meant(policy: Policy) -> None:
    assert_same(policy, "kueue")


def is_clear(policy: Policy) -> bool:
    """Whether each team in a tree has one unit of a pool: of several a queue says what all of them come to in GPUs."""
    apart = [team for team in policy.teams if not team.parent and not policy.children(team.name)]
    held = [(team.name, grant.pool) for team in policy.teams if team not in apart for grant in team.grants]
    return len(held) == len(set(held))


@settings(max_examples=12, deadline=None)
@given(policies("kai").filter(counts_below).filter(is_clear))
def test_kais_queues_are_read_as_they_were_meant(policy: Policy) -> None:
    assert_same(policy, "kai")
