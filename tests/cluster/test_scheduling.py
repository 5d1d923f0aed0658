"""What kube-scheduler and quotas make of the plan: as many pods run as are planned, where they are planned, no more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple

import pytest

from tests.cluster import nodes
from tests.cluster.api import Api, Object, Refused
from tests.cluster.delivery import MANAGER
from tests.cluster.example import ExampleCluster
from tests.cluster.pods import (
    ANYWHERE,
    GATES,
    POOL_LABEL,
    Outcome,
    a_pod,
    editor,
    namespaces,
    pod,
    remove_pods,
    schedule,
    selector,
    tolerations,
)
from tests.cluster.processes import NotReadyError, until

Record = Callable[[str, object, object], None]
Plan = Mapping[str, Any]

NOBODY = "nobody"


class Place(NamedTuple):
    """A unit of a pool."""

    pool: str
    unit: str
    resource: str

    def __str__(self) -> str:
        return f"{self.unit} of {self.pool}"


class Party(NamedTuple):
    """The pods of a tenant with one priority class."""

    tenant: str
    priority_class: str | None

    def __str__(self) -> str:
        return f"{self.priority_class or 'no class'} of {self.tenant}"


class Duel(NamedTuple):
    """A pod that finds its place taken by another."""

    place: Place
    evictor: Party
    victim: Party

    def __str__(self) -> str:
        return f"{self.evictor} evicts {self.victim}"


@pytest.fixture
def idle(example: ExampleCluster) -> Iterator[ExampleCluster]:
    """The cluster without the pods of its workloads, which are made anew afterwards."""
    with set_aside(example):
        yield example


# --- Workloads -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", ["dev", "openshift"], indirect=True)
def test_workloads_get_the_pods_that_are_planned(example: ExampleCluster, record: Record) -> None:
    """The controllers of Kubernetes make them, under the tenants' quotas and admission policies."""
    for workload in example.plan["workloads"]:
        autoscaling = workload.get("autoscaling")
        least = autoscaling["min_replicas"] if autoscaling else workload["most_pods"]
        record(f"{example.name}: pods of workload {workload['name']}", least, count_pods(example, workload, least))
        if autoscaling:
            most = workload["most_pods"]
            scale(example.api, workload, most)
            record(f"{example.name}: pods of {workload['name']} under load", most, count_pods(example, workload, most))
            scale(example.api, workload, least)


def count_pods(example: ExampleCluster, workload: Mapping[str, Any], planned: int) -> int:
    """How many pods of a workload have a node, once it is as many as planned, or no more come."""
    path = f"/api/v1/namespaces/{workload['namespace']}/pods?labelSelector=gpuplan.dev/workload%3D{workload['name']}"

    def bound() -> int:
        return sum("nodeName" in found["spec"] for found in example.api.list(path))

    try:
        until(lambda: bound() == planned, "the workload has its pods")
    except NotReadyError:
        return bound()
    return planned


def scale(api: Api, workload: Mapping[str, Any], replicas: int) -> None:
    path = f"/apis/apps/v1/namespaces/{workload['namespace']}/deployments/{workload['name']}/scale"
    api.patch(path, {"spec": {"replicas": replicas}})


# --- Units -----------------------------------------------------------------------------------------------------------


def test_as_many_units_of_each_pool_run_as_are_planned(idle: ExampleCluster, record: Record) -> None:
    with namespaces(idle.api, "capacity") as [home]:
        cases = {
            place: [pod(home, pool, place.resource) for _ in range(unit["capacity"] + 1)]
            for pool, unit, place in units(idle.plan)
        }
        outcomes = schedule(idle.api, cases)
        pools = pools_of_nodes(idle.api)
    for _, unit, place in units(idle.plan):
        where = " and ".join(sorted({pools[node] for node in outcomes[place].nodes}))
        planned = f"{unit['capacity']} in {place.pool}, one more waits for {place.resource}"
        observed = f"{outcomes[place].bound} in {where}, one more {fate(outcomes[place])}"
        record(f"{idle.name}: pods with {place}", planned, observed)


def test_as_many_pods_share_one_gpu_as_are_planned(idle: ExampleCluster, record: Record) -> None:
    pools = {pool["name"]: 1 for pool in idle.plan["pools"]}
    with namespaces(idle.api, "one-gpu") as [home], one_gpu_nodes(idle, pools) as added:
        cases = {
            place: [
                pod(home, pool, place.resource, nodeSelector=selector(pool, added[place.pool][0]))
                for _ in range(unit["per_gpu"][0] + 1)
            ]
            for pool, unit, place in units(idle.plan)
        }
        outcomes = schedule(idle.api, cases)
        remove_pods(idle.api, home)
    for pool, unit, place in units(idle.plan):
        planned = f"{unit['per_gpu'][0]}, one more waits for {place.resource}"
        observed = f"{outcomes[place].bound}, one more {fate(outcomes[place])}"
        record(f"{idle.name}: pods with {place} on one GPU ({pool['sharing']['kind']})", planned, observed)


def test_units_are_only_where_gpus_are_shared_in_their_way(idle: ExampleCluster, record: Record) -> None:
    """With the pools full that hand it out, a pod that would go anywhere waits, though all other pools are empty."""
    for resource in sorted({place.resource for _, _, place in units(idle.plan)}):
        owners = [(pool, unit) for pool, unit, place in units(idle.plan) if place.resource == resource]
        with namespaces(idle.api, "full") as [home]:
            full = [
                pod(home, pool, resource, unit["per_node"])
                for pool, unit in owners
                for _ in range(pool["nodes"]["count"])
            ]
            filled = schedule(idle.api, {"full": full})["full"]
            roaming = schedule(idle.api, {"more": [a_pod(home, {resource: 1}, tolerations=ANYWHERE)]})["more"]
            pools = pools_of_nodes(idle.api)
        scenario = f"{idle.name}: one more pod with {resource} for any node"
        full_pools = " and ".join(sorted({pools[node] for node in filled.nodes}))
        planned = f"waits for {resource}, {' and '.join(sorted(pool['name'] for pool, _ in owners))} full"
        record(scenario, planned, f"{fate(roaming)}, {full_pools} full")


def test_taints_keep_out_pods_that_do_not_tolerate_them(idle: ExampleCluster, record: Record) -> None:
    pools = idle.plan["pools"]
    with namespaces(idle.api, "taints") as [home]:
        cases: dict[tuple[str, int], list[Object]] = {("", 0): [a_pod(home)]}
        for pool in pools:
            others = [toleration for other in pools if other is not pool for toleration in tolerations(other)]
            for number, tolerated in enumerate((tolerations(pool), [], others)):
                body = pod(home, pool, pool["units"][0]["resource"], tolerations=tolerated)
                cases[pool["name"], number] = [body]
        outcomes = schedule(idle.api, cases)
    kept_out = "is kept out by a taint"
    for pool in pools:
        planned = ["runs", *[kept_out if pool["taints"] else "runs"] * 2]
        observed = [fate(outcomes[pool["name"], number]) for number in range(3)]
        scenario = f"{idle.name}: pods for {pool['name']} that tolerate its taints, none, those of others"
        record(scenario, ", ".join(planned), ", ".join(observed))
    planned_anywhere = kept_out if all(pool["taints"] for pool in pools) else "runs"
    record(f"{idle.name}: a pod without tolerations and GPUs", planned_anywhere, fate(outcomes["", 0]))


# --- Quotas ----------------------------------------------------------------------------------------------------------


_TRIES: Final = 3
"""The quota controller may count while its cache lacks pods that were let in a moment ago, and writes less than is used
(`syncResourceQuota` in `pkg/controller/resourcequota/resource_quota_controller.go` of kubernetes/kubernetes)."""


def test_quotas_refuse_the_next_pod_at_the_planned_cap(idle: ExampleCluster, record: Record) -> None:
    """As members of the tenant make them. A gate keeps them from being scheduled; a quota counts them all the same."""
    pools = {pool["name"]: pool for pool in idle.plan["pools"]}
    for tenant in idle.plan["tenants"]:
        member = idle.api.as_user("jane", [editor(tenant)])
        fields = {
            "priority_class": next(iter(tenant["priority_classes"]), None),
            **GATES[idle.plan["scheduler"]["kind"]],
        }
        for namespace, resource, pool, cap in caps(tenant):
            planned, observed = f"{cap}, one more 403 exceeded quota: gpuplan", ""
            for _ in range(_TRIES):
                answers = [create(member, pod(namespace, pools[pool], resource, **fields)) for _ in range(cap + 1)]
                remove_pods(idle.api, namespace)
                until(partial(is_free, idle.api, namespace, resource), f"nothing of {namespace}'s quota is used")
                observed = f"{answers.count('accepted')}, one more {answers[-1]}"
                if observed == planned:
                    break
            record(f"{idle.name}: pods in namespace {namespace} with {resource}", planned, observed)


def caps(tenant: Mapping[str, Any]) -> Iterator[tuple[str, str, str, int]]:
    """Namespace, resource, one of the pools that have it, and what the namespace may use of it in all pools."""
    for namespace in tenant["namespaces"]:
        pools = {quota["resource"]: quota["pool"] for quota in tenant["quotas"]}
        for resource, pool in pools.items():
            found = [quota["caps"][namespace] for quota in tenant["quotas"] if quota["resource"] == resource]
            if None not in found:
                yield namespace, resource, pool, sum(found)


def create(api: Api, body: Object) -> str:
    try:
        api.create(body)
    except Refused as refused:
        found = re.search("exceeded quota: [^,]*", refused.message)
        return f"{refused.code} {found[0] if found else refused.message}"
    return "accepted"


def is_free(api: Api, namespace: str, resource: str) -> bool:
    quota = api.get(f"/api/v1/namespaces/{namespace}/resourcequotas/gpuplan")
    return bool(quota["status"]["used"][f"requests.{resource}"] == "0")


# --- Priorities ------------------------------------------------------------------------------------------------------


def test_pods_evict_those_of_whom_the_plan_says_so(idle: ExampleCluster, record: Record) -> None:
    """Every class of every tenant against every other, each pair for itself on a node with one GPU."""
    duels = [
        Duel(place, evictor, victim)
        for _, _, place in units(idle.plan)
        for evictor in parties(idle.plan, place)
        for victim in parties(idle.plan, place)
    ]
    won = fight(idle, duels)
    for _, _, place in units(idle.plan):
        here = [duel for duel in duels if duel.place == place]
        planned = [str(duel) for duel in here if is_planned(idle.plan, duel)]
        observed = [str(duel) for duel in here if duel in won]
        record(f"{idle.name}: {place} when it is full", ", ".join(planned) or NOBODY, ", ".join(observed) or NOBODY)


def test_classes_evict_pods_without_a_class_where_they_are_to_preempt(idle: ExampleCluster, record: Record) -> None:
    """Under Kueue no class of a pod evicts anybody: it is Kueue that decides."""
    is_plain = idle.plan["scheduler"]["kind"] == "kubernetes"
    _, _, place = next(units(idle.plan))
    victim = Party(NOBODY, None)
    duels = {
        found["name"]: Duel(place, Party(NOBODY, found["name"]), victim) for found in idle.plan["priority_classes"]
    }
    won = fight(idle, list(duels.values()))
    for found in idle.plan["priority_classes"]:
        planned = is_plain and found["preempts"] and found["value"] > 0
        scenario = f"{idle.name}: class {found['name']} evicts pods without a class"
        record(scenario, planned, duels[found["name"]] in won)


def parties(plan: Plan, place: Place) -> list[Party]:
    """Whose pods can meet in a place."""
    return [
        Party(tenant["name"], priority_class)
        for tenant in plan["tenants"]
        if any((quota["pool"], quota["unit"]) == place[:2] for quota in tenant["quotas"])
        for priority_class in tenant["priority_classes"] or [None]
    ]


def is_planned(plan: Plan, duel: Duel) -> bool:
    """Whether kube-scheduler is to decide the duel for the evictor."""
    where = "within_tenants" if duel.evictor.tenant == duel.victim.tenant else "across_tenants"
    return any(
        (eviction["pool"], eviction["unit"], eviction["mechanism"]) == (*duel.place[:2], "priority")
        and eviction[where]
        and duel.evictor._asdict() in eviction["evictors"]
        and duel.victim._asdict() in eviction["victims"]
        for eviction in plan["evictions"]
    )


def fight(idle: ExampleCluster, duels: Sequence[Duel]) -> set[Duel]:
    """The duels that end with the evictor in the place of the victim; each tenant has a namespace of its own."""
    places = {place: (pool, unit) for pool, unit, place in units(idle.plan)}
    tenants = sorted({party.tenant for duel in duels for party in (duel.evictor, duel.victim)})
    counts = {pool["name"]: [duel.place.pool for duel in duels].count(pool["name"]) for pool in idle.plan["pools"]}
    with namespaces(idle.api, *tenants) as made, one_gpu_nodes(idle, counts) as added:
        homes = dict(zip(tenants, made, strict=True))
        grounds = {duel: added[duel.place.pool].pop() for duel in duels}

        def fighter(duel: Duel, party: Party, amount: int) -> list[Object]:
            pool, _ = places[duel.place]
            on_ground = selector(pool, grounds[duel])
            return [
                pod(homes[party.tenant], pool, duel.place.resource, amount,
                    priority_class=party.priority_class, nodeSelector=on_ground)
            ]  # fmt: skip

        victims = {duel: fighter(duel, duel.victim, places[duel.place][1]["per_gpu"][0]) for duel in duels}
        assert all(outcome.bound for outcome in schedule(idle.api, victims).values())
        outcomes = schedule(idle.api, {duel: fighter(duel, duel.evictor, 1) for duel in duels})
        remove_pods(idle.api, *made)
    return {duel for duel, outcome in outcomes.items() if outcome.bound}


# --- Clusters --------------------------------------------------------------------------------------------------------


def units(plan: Plan) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any], Place]]:
    """Every unit that pods ask for as a resource, with its pool."""
    for pool in plan["pools"]:
        for unit in pool["units"]:
            if unit["resource"]:
                yield pool, unit, Place(pool["name"], unit["name"], unit["resource"])


def fate(outcome: Outcome) -> str:
    """What became of the pods for which there is no place."""
    return " and ".join(sorted({_why(reason) for reason in outcome.reasons})) or "runs"


def _why(reason: str) -> str:
    if missing := sorted(set(re.findall(r"Insufficient (\S+\w)", reason))):
        return f"waits for {' and '.join(missing)}"
    return "is kept out by a taint" if "untolerated taint" in reason else reason


def pools_of_nodes(api: Api) -> dict[str, str]:
    return {
        node["metadata"]["name"]: node["metadata"]["labels"].get(POOL_LABEL, "") for node in api.list("/api/v1/nodes")
    }


def delivered(example: ExampleCluster, kinds: set[str]) -> list[dict[str, Any]]:
    return [body for folder in example.folders for body in folder.objects if body["kind"] in kinds]


@contextmanager
def set_aside(example: ExampleCluster) -> Iterator[None]:
    """Without the workloads of the cluster, and without their pods."""
    api = example.api
    workloads = delivered(example, {"Deployment", "Job"})
    for body in workloads:
        api.delete(api.path_of(body))
    remove_pods(api, *sorted({body["metadata"]["namespace"] for body in workloads}))
    try:
        yield
    finally:
        for body in workloads:
            api.apply(body, manager=MANAGER)


@contextmanager
def one_gpu_nodes(example: ExampleCluster, counts: Mapping[str, int]) -> Iterator[dict[str, list[str]]]:
    """More nodes for pools, with one GPU each; their names by pool."""
    api = example.api
    pools = [one_gpu_pool(pool, counts[pool["name"]]) for pool in example.plan["pools"] if counts[pool["name"]]]
    names = {pool["name"]: list(nodes.names(pool)) for pool in pools}
    added = [name for found in names.values() for name in found]
    try:
        nodes.make_nodes(api, pools)
        nodes.publish(api, {**example.plan, "pools": pools}, example.out)
        await_scheduler(api, pools)
        yield names
    finally:
        for name in added:
            api.delete(f"/api/v1/nodes/{name}")


def one_gpu_pool(pool: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Nodes that the pool's rules take for its own; the names are not those of nodes that it has."""
    numbers = range(1001, 1001 + count)
    names = [pool["nodes"]["name_pattern"].replace("[0-9]+", str(number)) for number in numbers]
    return {**pool, "nodes": {**pool["nodes"], "count": count, "gpus_per_node": 1, "names": names}}


def await_scheduler(api: Api, pools: Sequence[Mapping[str, Any]]) -> None:
    """Wait until the scheduler has seen the GPUs of these nodes."""
    with namespaces(api, "newcomers") as [home]:
        for pool in pools:
            for name in nodes.names(pool):
                asked = {unit["resource"]: 1 for unit in pool["units"]}
                api.create(a_pod(home, asked, nodeSelector=selector(pool, name), tolerations=tolerations(pool)))
        path = f"/api/v1/namespaces/{home}/pods?fieldSelector=spec.nodeName%3D"
        until(lambda: not api.list(path), "the scheduler has seen the new nodes")
