"""Objects of others: those that act against the policies are found, and nothing is said of the rest."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import getitem
from typing import Any

import pytest

from gpuplan.compiler.base.diagnostics import Diagnostic
from gpuplan.compiler.manifests import identity_of
from gpuplan.features.live.drifting.foreign import opponents
from tests.features.live.dumps import Body, an_object, compared, dump_of, example, nodes, synced


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

AGAINST = {
    "a second quota of GPUs": (
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


@pytest.mark.parametrize("name", BESIDE)
def test_what_does_not_is_theirs(name: str) -> None:
    assert opposing(BESIDE[name]) == []


ADDED = [
    ("ResourceQuota", ("spec", "scopes"), ["BestEffort"]),
    ("ResourceQuota", ("spec", "scopeSelector"), {"matchExpressions": [{"scopeName": "BestEffort"}]}),
    ("ValidatingAdmissionPolicy", ("spec", "matchConditions"), [{"name": "never", "expression": "false"}]),
    ("PriorityClass", ("globalDefault",), True),
    ("Namespace", ("metadata", "labels", "pod-security.kubernetes.io/enforce-version"), "v1.20"),
    ("ClusterQueue", ("spec", "stopPolicy"), "HoldAndDrain"),
    ("LocalQueue", ("spec", "stopPolicy"), "Hold"),
]


@pytest.mark.parametrize(("kind", "route", "value"), ADDED)
def test_a_field_that_takes_one_of_our_objects_out_of_force_is_found(
    kind: str, route: tuple[str, ...], value: object
) -> None:
    *above, field = route
    bodies = [body for body in synced(example("prod")) if body["kind"] == kind]
    body = next(body for body in bodies if field not in reduce(getitem, above, body))
    live = copy.deepcopy(body)
    part = live
    for step in above:
        part = part[step]
    part[field] = value

    [found] = compared([live]).opponents

    assert found.code == "GPU816"
    assert found.finding.at.path[-len(route) :] == route
    assert compared([body]).opponents == ()


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
