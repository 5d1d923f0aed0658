"""No pod of a tenant comes to the nodes of another's pool, however it asks, and none later than it was made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import pytest

from tests.cluster.api import Api, Object, Refused
from tests.cluster.example import ExampleCluster
from tests.cluster.nodes import names
from tests.cluster.pods import ANYWHERE, GATES, a_pod, editor, pod, selector, tolerations
from tests.cluster.processes import until
from tests.cluster.test_admission import record_all

Record = Callable[[str, object, object], None]

OPENED: Final = "the pod tolerates "
CORDON: Final = "pods that ask for GPUs must not tolerate node.kubernetes.io/unschedulable"
ACCEPTED: Final = "accepted"
HELD: Final[dict[str, Any]] = {"schedulingGates": [{"name": "example.com/mine"}]}

PLAIN_AND_QUEUED: Final = pytest.mark.parametrize("example", ["dev", "prod"], indirect=True)


@PLAIN_AND_QUEUED
def test_no_pod_comes_to_another_pool(example: ExampleCluster, record: Record) -> None:
    """Nor to the control plane. Pods without GPUs, each in a way of its own."""
    verdicts = Verdicts(example, record)
    for tenant, own, foreign in each(example):
        ask = partial(answer, as_member(example, tenant))
        for how, spec in ways_in(foreign).items():
            verdicts.add(tenant, f"a pod without GPUs by {how}", OPENED, ask(a_pod(home(tenant), **spec)))
        roaming = a_pod(home(tenant), nodeSelector=selector(own), tolerations=ANYWHERE)
        verdicts.add(tenant, "a pod without GPUs that tolerates all in its own pool", ACCEPTED, ask(roaming))
    verdicts.record_all()


def ways_in(pool: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    node = names(pool)[0]
    hostname = {"kubernetes.io/hostname": node}
    return {
        "hostname": {"nodeSelector": hostname, "tolerations": ANYWHERE},
        "hostname and the very taint": {"nodeSelector": hostname, "tolerations": tolerations(pool)},
        "hostname and the taint's key": {
            "nodeSelector": hostname,
            "tolerations": [{"key": taint["key"], "operator": "Exists"} for taint in pool["taints"]],
        },
        "a field of the node": {
            "affinity": affinity("matchFields", "metadata.name", node),
            "tolerations": tolerations(pool),
        },
        "affinity to the pool": {
            "affinity": affinity("matchExpressions", "gpuplan.dev/pool", pool["name"]),
            "tolerations": tolerations(pool),
        },
        "the selector of the control plane": {
            "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
            "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
        },
        "chance": {"tolerations": ANYWHERE},
    }


def affinity(kind: str, key: str, value: str) -> Object:
    term = {kind: [{"key": key, "operator": "In", "values": [value]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


@pytest.mark.parametrize("example", ["dev"], indirect=True)
def test_without_a_toleration_a_pod_stays_outside(example: ExampleCluster, record: Record) -> None:
    """The scheduler keeps it off: what admission lets in is harmless."""
    verdicts = Verdicts(example, record)
    for tenant, _, foreign in each(example):
        body = a_pod(home(tenant), nodeSelector={"kubernetes.io/hostname": names(foreign)[0]})
        path = example.api.path_of(as_member(example, tenant).create(body))
        observed = until(partial(outcome, example.api, path), "the scheduler has judged the pod")
        example.api.delete(path)
        verdicts.add(tenant, "a pod without GPUs that names a node of another pool", "waits", observed)
    verdicts.record_all()


def outcome(api: Api, path: str) -> str:
    found = api.get(path)
    if "nodeName" in found["spec"]:
        return "runs"
    reasons = [condition.get("reason") for condition in found["status"].get("conditions", ())]
    return "waits" if "Unschedulable" in reasons else ""


@PLAIN_AND_QUEUED
def test_no_pod_gets_there_later(example: ExampleCluster, record: Record) -> None:
    """One that waits may get a selector, and any a toleration."""
    verdicts = Verdicts(example, record)
    for tenant, own, foreign in each(example):
        member = as_member(example, tenant)
        path = example.api.path_of(member.create(a_pod(home(tenant), **HELD)))
        kept = example.api.get(path)["spec"]["tolerations"]
        granted = {"nodeSelector": selector(own), "tolerations": [*kept, *tolerations(own)]}
        for how, planned, fields in (
            ("another pool's selector", "tenant ", {"nodeSelector": selector(foreign)}),
            ("tolerations of all", OPENED, {"tolerations": [*kept, *ANYWHERE]}),
            ("a harmless toleration", ACCEPTED, {"tolerations": [*kept, {"key": "spot", "operator": "Exists"}]}),
            ("its own pool", ACCEPTED, granted),
        ):
            observed = said(partial(member.patch, f"{path}?dryRun=All", {"spec": fields}))
            verdicts.add(tenant, f"a pod that waits and gets {how}", planned, observed)
        label = partial(member.patch, path, {"metadata": {"labels": {"changed": "yes"}}})
        verdicts.add(tenant, "a pod that waits and gets a label", ACCEPTED, said(label))
        example.api.delete(path)
    verdicts.record_all()


@PLAIN_AND_QUEUED
def test_cordoned_nodes_stay_empty(example: ExampleCluster, record: Record) -> None:
    verdicts = Verdicts(example, record)
    for tenant, own, _ in each(example):
        resource = next(quota["resource"] for quota in tenant["quotas"] if quota["pool"] == own["name"])
        gates = GATES[example.plan["scheduler"]["kind"]]
        made = partial(pod, home(tenant), own, resource, priority_class=tenant["priority_classes"][0], **gates)
        for how, planned, given in (
            ("its pool's taints", ACCEPTED, tolerations(own)),
            ("all taints", CORDON, ANYWHERE),
            ("cordons", CORDON, [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]),
        ):
            observed = answer(as_member(example, tenant), made(tolerations=given))
            verdicts.add(tenant, f"a pod with a GPU that tolerates {how}", planned, observed)
    verdicts.record_all()


@PLAIN_AND_QUEUED
def test_pods_of_daemon_sets_come(example: ExampleCluster, record: Record) -> None:
    """Their controller lets them tolerate nodes in trouble and cordoned ones."""
    tenant, own, _ = next(each(example))
    spec = a_pod(home(tenant))["spec"] | {"nodeSelector": selector(own), "tolerations": tolerations(own)}
    del spec["terminationGracePeriodSeconds"]
    labels = {"app": "boundary"}
    body = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "boundary", "namespace": home(tenant)},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }
    path = example.api.path_of(as_member(example, tenant).create(body))
    planned = own["nodes"]["count"]
    count = partial(pods_of, example.api, home(tenant))
    until(lambda: count() >= planned, "the DaemonSet has a pod on each node")
    record(f"{example.name}: pods of a DaemonSet in {own['name']}", planned, count())
    example.api.delete(path)
    until(lambda: not count(), "its pods are gone")


def pods_of(api: Api, namespace: str) -> int:
    return len(api.list(f"/api/v1/namespaces/{namespace}/pods?labelSelector=app%3Dboundary"))


# --- Who asks --------------------------------------------------------------------------------------------------------


class Verdicts:
    """What is planned and observed for each tenant, a row for each way."""

    def __init__(self, example: ExampleCluster, record: Record) -> None:
        self.example, self.record = example, record
        self.found: dict[str, dict[str, tuple[str, str]]] = {}

    def add(self, tenant: Object, scenario: str, planned: str, observed: str) -> None:
        self.found.setdefault(scenario, {})[tenant["name"]] = planned, observed

    def record_all(self) -> None:
        assert self.found
        for scenario, verdicts in self.found.items():
            record_all(self.record, f"{self.example.name}: {scenario}", verdicts)


def each(example: ExampleCluster) -> Iterator[tuple[Object, Object, Object]]:
    """Tenants with quotas and classes, each with a pool of its own and one with taints that is not."""
    for tenant in example.plan["tenants"]:
        granted = [quota["pool"] for quota in tenant["quotas"]]
        foreign = [pool for pool in example.plan["pools"] if pool["name"] not in granted and pool["taints"]]
        if granted and foreign and tenant["priority_classes"]:
            yield tenant, next(pool for pool in example.plan["pools"] if pool["name"] == granted[0]), foreign[0]


def home(tenant: Object) -> str:
    return str(tenant["namespaces"][0])


def as_member(example: ExampleCluster, tenant: Object) -> Api:
    return example.api.as_user("jane", [editor(tenant)])


def answer(api: Api, body: Object) -> str:
    return said(partial(api.create, body, dry_run=True))


def said(request: Callable[[], object]) -> str:
    """What the policy says; `accepted` where it says nothing."""
    try:
        request()
    except Refused as refused:
        _, _, reason = str(refused).rpartition("denied request: ")
        return reason
    return ACCEPTED
