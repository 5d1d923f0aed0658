"""Queues of Kueue and KAI-Scheduler become quotas and the tree of tenants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import given, settings

from gpuplan.adoption.dump import Dump, read_dump
from gpuplan.adoption.queues import Queue, read
from gpuplan.backends import kai, kueue
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


def queues_of(plan: Plan, scheduler: str) -> list[Mapping[str, Any]]:
    """The objects that count, in their order; what gpuplan adds to them for Argo CD and Flux is not in them."""
    found = [item.body for item in BACKENDS[scheduler](plan) if isinstance(item, Manifest)]
    return [body for body in found if not body["kind"].startswith("ValidatingAdmission")]


def planned(plan: Plan, text: str, queues: Iterable[Queue]) -> Plan:
    """The plan of the same cluster and pools, with the tenants that were read."""
    documents = [part for part in text.split("---\n") if "kind: Tenant" not in part]
    for queue in queues:
        spec = {
            **({"parent": queue.parent} if queue.parent else {}),
            "namespaces": list(queue.namespaces),
            "quotas": [dict(quota) for quota in queue.quotas],
            **queue.spec,
        }
        documents.append(to_yaml(document("Tenant", queue.tenant, spec)))
    return a_plan("---\n".join(documents))


def assert_same(policy: Policy, scheduler: str) -> None:
    before = queues_of(policy.plan, scheduler)
    queues, found = read(dump_of(before), policy.plan)
    assert [item.finding.message for item in found] == []
    again = planned(policy.plan, policy.text, queues)
    after = queues_of(again, scheduler)
    assert {(body["kind"], body["metadata"]["name"]): body for body in after} == {
        (body["kind"], body["metadata"]["name"]): body for body in before
    }


def counts_below(policy: Policy) -> bool:
    """Whether each parent has a tenant with quotas in it: no queue tells whose part one without quotas is."""
    parents = [team for team in policy.teams if policy.children(team.name)]
    return all(any(part.grants for part in policy.below(team) if part is not team) for team in parents)


@settings(max_examples=15, deadline=None)
@given(policies("kueue").filter(counts_below))
def test_kueues_queues_are_read_as_they_were_meant(policy: Policy) -> None:
    assert_same(policy, "kueue")
