"""Objects of others: those that act against the policies are found, and nothing is said of the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import pytest

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.manifests import identity_of
from gpuplan.features.live.drifting.foreign import opponents
from tests.features.live.dumps import (
    KINDS,
    Body,
    an_object,
    compared,
    dump_of,
    example,
    find,
    kueues_configuration,
    nodes,
    synced,
)


def a_quota(name: str, namespace: str, **hard: str) -> Body:
    return an_object("v1", "ResourceQuota", name, namespace, spec={"hard": hard})


def a_rule(labels: Mapping[str, str]) -> Body:
    return an_object("nfd.k8s-sigs.io/v1alpha1", "NodeFeatureRule", "theirs", spec={"rules": [{"labels": labels}]})


def a_queue(selector: Mapping[str, Any] | None) -> Body:
    return an_object("kueue.x-k8s.io/v1beta2", "ClusterQueue", "theirs", spec={"namespaceSelector": selector})


def a_local_queue(namespace: str, queue: str) -> Body:
    return an_object("kueue.x-k8s.io/v1beta2", "LocalQueue", "theirs", namespace, spec={"clusterQueue": queue})


RBAC = "rbac.authorization.k8s.io"


def a_binding(namespace: str, role: str, *subjects: Mapping[str, str], kind: str = "ClusterRole") -> Body:
    ref = {"apiGroup": RBAC, "kind": kind, "name": role}
    return an_object(f"{RBAC}/v1", "RoleBinding", "theirs", namespace, roleRef=ref, subjects=[*subjects])


def a_role(name: str, verb: str) -> Body:
    rule = {"apiGroups": [""], "resources": ["resourcequotas"], "verbs": [verb]}
    return an_object(f"{RBAC}/v1", "ClusterRole", name, rules=[rule])


ANNA = {"kind": "User", "name": "anna"}


def a_limit(kind: str, field: str, **amounts: str) -> Body:
    limits = [{"type": kind, field: amounts}]
    return an_object("v1", "LimitRange", "theirs", "research", spec={"limits": limits})


def a_class(**rest: Any) -> Body:
    return an_object("scheduling.k8s.io/v1", "PriorityClass", "theirs", value=5, **rest)


def a_queue_of(api_version: str = "kueue.x-k8s.io/v1beta2", kind: str = "ClusterQueue", **spec: Any) -> Body:
    return an_object(api_version, kind, "theirs", spec=spec)


def a_group(flavor: str) -> Mapping[str, Any]:
    resources = [{"name": "nvidia.com/gpu", "nominalQuota": "8"}]
    return {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": flavor, "resources": resources}]}


def a_node(name: str, **labels: str) -> Body:
    node = an_object("v1", "Node", name, status={"capacity": {"nvidia.com/gpu": "8"}})
    return {**node, "metadata": {"name": name, "labels": {"nvidia.com/gpu.present": "true", **labels}}}


GPU = "nvidia.com/gpu"
LACKING = (
    "ConfigMap `kueue-manager-config` in namespace `kueue-system` lacks `batch/job`, which Workloads of kind Job need"
)

AGAINST = {
    "a quota of GPUs that is tighter": (
        [a_quota("old", "research", **{"requests.nvidia.com/mig-1g.10gb": "1"})],
        "ResourceQuota `old` in namespace `research` caps `requests.nvidia.com/mig-1g.10gb` beside gpuplan's quota",
    ),
    "a rule with a label of pools": (
        [a_rule({"nvidia.com/mig.config": "all-disabled"})],
        "NodeFeatureRule `theirs` gives nodes the label `nvidia.com/mig.config`, which pools give them",
    ),
    "a second ClusterPolicy": (
        [an_object("nvidia.com/v1", "ClusterPolicy", "other", spec={})],
        "ClusterPolicy `other` is a second one beside `cluster-policy`",
    ),
    "a queue for everybody": ([a_queue({})], "ClusterQueue `theirs` takes work of tenants' namespaces"),
    "a queue for a tenant": (
        [a_queue({"matchExpressions": [{"key": "gpuplan.dev/tenant", "operator": "Exists"}]})],
        "ClusterQueue `theirs` takes work of tenants' namespaces",
    ),
    "a way around the queue": (
        [a_local_queue("research", "theirs")],
        "LocalQueue `theirs` in namespace `research` leads to a ClusterQueue that is not gpuplan's",
    ),
    "a limit that gives GPUs": (
        [a_limit("Container", "default", **{GPU: "1"})],
        "LimitRange `theirs` in namespace `research` gives GPUs to containers that ask for none",
    ),
    "a limit that refuses pods": (
        [a_limit("Pod", "max", **{GPU: "4"})],
        "LimitRange `theirs` in namespace `research` refuses pods that ask for none",
    ),
    "a class for everybody": (
        [a_class(globalDefault=True)],
        "PriorityClass `theirs` is the class of all pods that name none",
    ),
    "a queue in our cohort": (
        [a_queue_of(cohortName="gpuplan")],
        "ClusterQueue `theirs` is below Cohort `gpuplan`, which is gpuplan's",
    ),
    "a queue in our cohort, as it was called": (
        [a_queue_of("kueue.x-k8s.io/v1beta1", cohort="gpuplan")],
        "ClusterQueue `theirs` is below Cohort `gpuplan`, which is gpuplan's",
    ),
    "a cohort below ours": (
        [a_queue_of(kind="Cohort", parentName="gpuplan")],
        "Cohort `theirs` is below Cohort `gpuplan`, which is gpuplan's",
    ),
    "a queue with our flavor": (
        [a_queue_of(resourceGroups=[a_group("theirs"), a_group("a100-mixed")])],
        "ClusterQueue `theirs` hands out flavor `a100-mixed`, which is a pool's",
    ),
    "kinds that Kueue does not know": ([kueues_configuration(["pod", "deployment"])], LACKING),
    "kinds that nobody has yet": (
        [kueues_configuration(["batch/job", "deployment"])],
        "ConfigMap `kueue-manager-config` in namespace `kueue-system` lacks `pod`, which gpuplan's Configuration has",
    ),
    "Kueue suspends everything": (
        [kueues_configuration(KINDS, manageJobsWithoutQueueName=True)],
        "ConfigMap `kueue-manager-config` in namespace `kueue-system` has Kueue suspend work that names no queue",
    ),
    "a node in no pool": ([a_node("new-1")], "1 node with GPUs is in no pool"),
    "nodes in no pool": ([a_node("new-1"), a_node("new-2")], "2 nodes with GPUs are in no pool"),
    "the right to write quotas": (
        [a_role("quotas", "patch"), a_binding("research", "quotas", ANNA)],
        "RoleBinding `theirs` in namespace `research` lets others write quotas of tenant `research`",
    ),
    "all rights": (
        [a_binding("research", "cluster-admin", ANNA)],
        "RoleBinding `theirs` in namespace `research` lets others write quotas of tenant `research`",
    ),
}

BESIDE = {
    "a quota of something else": [a_quota("theirs", "research", **{"pods": "10", "requests.cpu": "4"})],
    "a quota that caps nothing": [
        a_quota("theirs", "research", **{"limits.nvidia.com/gpu": "1", "nvidia.com/gpu": "1"})
    ],
    "a quota of GPUs elsewhere": [a_quota("theirs", "kube-system", **{"requests.nvidia.com/gpu": "1"})],
    "a limit of CPU": [a_limit("Container", "default", cpu="1")],
    "a limit that gives no GPUs": [
        an_object(
            "v1",
            "LimitRange",
            "theirs",
            "research",
            spec={"limits": [{"type": "Container", "default": {GPU: "0"}, "max": {GPU: "1"}}]},
        )
    ],
    "a class for those that name it": [a_class()],
    "a queue in another cohort": [a_queue_of(cohortName="theirs", resourceGroups=[a_group("theirs")])],
    "a cohort of others": [a_queue_of(kind="Cohort", parentName="theirs")],
    "kinds that Kueue knows": [kueues_configuration(KINDS, manageJobsWithoutQueueName=False)],
    "a node without GPUs": [{**a_node("cpu-1"), "metadata": {"name": "cpu-1"}, "status": {}}],
    "a node for virtual machines": [a_node("vm-1", **{"nvidia.com/gpu.workload.config": "vm-passthrough"})],
    "a rule with other labels": [a_rule({"nvidia.com/rdma": "true"})],
    "a queue for others": [a_queue({"matchLabels": {"team": "web"}})],
    "a queue for nobody": [a_queue(None)],
    "another way to the queue": [a_local_queue("research", "research")],
    "the right to read quotas": [a_role("quotas", "get"), a_binding("research", "quotas", ANNA)],
    "a role that nobody shows": [a_binding("research", "unknown", ANNA)],
    "the rights of a program": [
        a_binding("research", "cluster-admin", {"kind": "ServiceAccount", "namespace": "kube-system", "name": "gc"})
    ],
    "the rights of Kubernetes": [a_binding("research", "cluster-admin", {"kind": "Group", "name": "system:masters"})],
    "rights elsewhere": [a_binding("kube-system", "cluster-admin", ANNA)],
}


@pytest.mark.parametrize("name", AGAINST)
def test_what_acts_against_the_policies_is_found(name: str) -> None:
    objects, message = AGAINST[name]

    assert [(item.code, item.finding.message) for item in opposing(objects)] == [("GPU816", message)]


WARNINGS = {
    "a class for everybody",
    "a node in no pool",
    "a queue for a tenant",
    "a queue for everybody",
    "a way around the queue",
    "kinds that nobody has yet",
    "all rights",
    "nodes in no pool",
    "the right to write quotas",
    "Kueue suspends everything",
}


def test_what_stops_work_or_takes_something_away_is_an_error() -> None:
    lenient = {name for name, (objects, _) in AGAINST.items() if not any(item.is_error for item in opposing(objects))}

    assert lenient == WARNINGS


def test_a_second_quota_that_is_no_tighter_is_a_warning() -> None:
    ours = find(synced(example("prod")), "ResourceQuota", "gpuplan", "research")
    key = next(key for key in ours["spec"]["hard"] if "nvidia.com" in key)
    for amount, is_error in ((str(int(ours["spec"]["hard"][key]) - 1), True), (ours["spec"]["hard"][key], False)):
        [found] = compared([a_quota("old", "research", **{key: amount}), ours]).opponents
        assert found.is_error == is_error


UNIT = "requests.nvidia.com/mig-1g.10gb"
GOES = "delete it: no cap of it is tighter than gpuplan's"
STAYS = "in it, which nothing else caps so tightly, until Tenant `research` does"


@pytest.mark.parametrize(
    ("hard", "is_synced", "help_"),
    [
        ({UNIT: "9", GPU: "1"}, True, GOES),
        ({UNIT: "9"}, False, f"sync `namespaces/research` first, then {GOES}"),
        (
            {UNIT: "9", "requests.storage": "1Ti", "cpu": "4"},
            True,
            f"take `{UNIT}` out of it, and leave `requests.storage` and `cpu` {STAYS}",
        ),
        (
            {"requests.amd.com/gpu": "9", "requests.nvidia.com/other": "1"},
            True,
            f"leave `requests.amd.com/gpu` and `requests.nvidia.com/other` {STAYS}",
        ),
    ],
    ids=["all-of-it", "before-the-sync", "a-part", "nothing"],
)
def test_what_of_a_second_quota_may_go_and_when_is_said(hard: Body, help_: str, *, is_synced: bool) -> None:
    ours = find(synced(example("prod")), "ResourceQuota", "gpuplan", "research")
    [found] = compared([a_quota("old", "research", **hard), *[ours] * is_synced]).opponents
    assert found.finding.help == help_


@pytest.mark.parametrize("name", BESIDE)
def test_what_does_not_is_theirs(name: str) -> None:
    assert opposing(BESIDE[name]) == []


def test_five_hundred_objects_of_others_give_no_line() -> None:
    spaces = [*(f"team-{number}" for number in range(20)), "research", "agents", "training", "kube-system"]
    kinds = ("ConfigMap", "Service", "ServiceAccount", "LimitRange", "PersistentVolumeClaim", "Pod")
    others = [
        an_object("v1", kinds[number % 6], f"theirs-{number}", spaces[number % len(spaces)]) for number in range(500)
    ]

    found = compared([*synced(example("prod")), *nodes(example("prod")), *others, *chain(*BESIDE.values())])

    assert (found.drifts, found.opponents, found.unjudged) == ((), (), ())


def opposing(objects: Sequence[Body]) -> list[Diagnostic]:
    ours = frozenset(identity_of(body) for body in synced(example("prod")))
    return list(opponents(example("prod"), dump_of(objects), ours))
