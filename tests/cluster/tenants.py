"""Plays the requests of tenants on a real API server, and says what has come of each."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.cli.runs import run
from tests.cluster.api import Api, Object, Refused
from tests.cluster.control_plane import ControlPlane
from tests.cluster.definitions import define
from tests.cluster.example import ExampleCluster, settle
from tests.cluster.pods import POOL_LABEL, why_pending
from tests.cluster.processes import NotReadyError, until
from tests.laws.tenancy.boundaries import NETWORK, cluster, policies
from tests.laws.tenancy.judging import (
    ADMINISTRATOR,
    CONTROLLERS,
    KUEUE,
    MEMBERS,
    QUEUE_GROUP,
    eviction,
    refusals,
    user_of,
)
from tests.laws.tenancy.requests import ADMITTED, HOME, Case, Step, base, merged

_NUMBERS: Final = count(1)
_RBAC: Final = "rbac.authorization.k8s.io/v1"
_MANAGER: Final = "tests"
_POLICY: Final = re.compile(r"^.*?ValidatingAdmissionPolicy '[^']+' with binding '[^']+' denied request: ", re.DOTALL)
CUSTOM: Final = (
    "workload",
    "pod-group",
    "job-set",
    "mpi-job",
    "pytorch-job",
    "ray-cluster",
    "ray-job",
    "ray-service",
    "leader-worker-set",
    "node-feature",
    "node-feature-of-openshift",
    "node-feature-rule-of-openshift",
)
"""What requests make of kinds that Kubernetes does not have by itself."""
_MAKERS: Final = ("Job", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController")


@contextmanager
def playground(platform: str, folder: Path) -> Iterator[ExampleCluster]:
    """A cluster with all of out/, nodes that are no pool's, and the accounts of controllers."""
    overlay = folder / "overlays" / platform
    overlay.mkdir(parents=True)
    (overlay / "policy.yaml").write_text(cluster(platform) + policies(platform), encoding="utf-8")
    built = run("build", cwd=folder)
    assert built.code == 0, built.out + built.err
    with ExampleCluster.start(platform, folder) as started:
        define(started.api, [base(name, platform) for name in CUSTOM])
        for body in (*_accounts(), *_runtimes()):
            started.api.apply(body, manager=_MANAGER)
        _add_node(started.api, "cpu")
        cards = {NETWORK: "8"}  # what the network's device plugin publishes, for whoever is granted it
        started.api.patch("/api/v1/nodes/gpu-split/status", {"status": {"capacity": cards, "allocatable": cards}})
        settle(started.api)
        yield started


def _accounts() -> Iterator[dict[str, Any]]:
    """CI's account has the role `edit`; that of Ray's autoscaler what KubeRay gives it.

    (`BuildRole` in `ray-operator/controllers/ray/common/rbac.go` of ray-project/kuberay v1.7.0, and `update`, by which
    the tests ask.)
    """
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ci", "namespace": HOME}}
    yield _bound("RoleBinding", {"name": "ci", "namespace": HOME}, "edit", [f"{HOME}:ci"])
    verbs = ["get", "patch", "update"]
    rules = [
        {"apiGroups": [""], "resources": ["pods", "pods/resize"], "verbs": verbs},
        {"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": verbs},
    ]
    metadata = {"name": "ray", "namespace": HOME}
    yield {"apiVersion": _RBAC, "kind": "Role", "metadata": metadata, "rules": rules}
    yield {
        **_bound("RoleBinding", metadata, "ray", [f"{HOME}:ray"]),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "ray"},
    }
    yield from roles()


def roles() -> Iterator[dict[str, Any]]:
    """What accounts of controllers may do, of what their own ClusterRoles have, and tenants with kinds of frameworks.

    (`ray-operator/config/rbac/role.yaml` of ray-project/kuberay, `manifests/base/cluster-role.yaml` of
    kubeflow/mpi-operator, `config/components/rbac/role.yaml` of kubernetes-sigs/kueue.)
    """
    rules = [
        {"apiGroups": [group], "resources": resources, "verbs": ["*"]}
        for group, resources in (
            ("", ["pods"]),
            ("apps", ["deployments", "statefulsets"]),
            ("batch", ["jobs"]),
            ("scheduling.run.ai", ["podgroups"]),
            *FRAMEWORKS.items(),
        )
    ]
    yield _role("controllers", rules)
    yield _bound("ClusterRoleBinding", {"name": "controllers"}, "controllers", [*CONTROLLERS.values()])
    queues = [{"apiGroups": [QUEUE_GROUP], "resources": ["workloads"], "verbs": ["*"]}]
    yield _role("queues", queues)
    yield _bound("ClusterRoleBinding", {"name": "queues"}, "queues", [CONTROLLERS[KUEUE]])
    of_tenants = [
        {"apiGroups": [group], "resources": resources, "verbs": ["create", "update", "patch", "delete", "get"]}
        for group, resources in FRAMEWORKS.items()
    ]
    yield _role("frameworks", of_tenants, _TO_EDIT)
    # As OLM makes them where it installs Node Feature Discovery (`ensureProvidedAPIClusterRole` and `VerbsForSuffix` in
    # `pkg/controller/operators/olm/operatorgroup.go` of operator-framework/operator-lifecycle-manager).
    for group in ("nfd.k8s-sigs.io", "nfd.openshift.io"):
        verbs = ["create", "update", "patch", "delete"]
        rule = {"apiGroups": [group], "resources": ["nodefeatures", "nodefeaturerules"], "verbs": verbs}
        yield _role(f"nodefeatures.{group}-v1alpha1-edit", [rule], _TO_EDIT)


_TO_EDIT: Final = {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}


FRAMEWORKS: Final = {
    "jobset.x-k8s.io": ["jobsets"],
    "kubeflow.org": ["mpijobs", "pytorchjobs"],
    "leaderworkerset.x-k8s.io": ["leaderworkersets"],
    "ray.io": ["rayclusters", "rayjobs", "rayservices"],
}
"""The kinds of frameworks that requests make, by their group; their charts give them to the role `edit`."""


def _role(name: str, rules: Sequence[Object], labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": _RBAC, "kind": "ClusterRole", "metadata": metadata, "rules": rules}


def _bound(kind: str, metadata: Object, role: str, accounts: list[str]) -> dict[str, Any]:
    pairs = [account.split(":") for account in accounts]
    return {
        "apiVersion": _RBAC,
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "namespace": where, "name": name} for where, name in pairs],
    }


def _runtimes() -> Iterator[dict[str, Any]]:
    for name in ("nvidia", "nvidia-cdi", "nvidia-legacy", "gvisor"):
        yield {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name}


def _add_node(api: Api, name: str) -> None:
    """One for all pods, without a taint."""
    room = {"cpu": "192", "memory": "2Ti", "pods": "250"}
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "played by the tests"}]
    api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
    api.patch(
        f"/api/v1/nodes/{name}/status", {"status": {"capacity": room, "allocatable": room, "conditions": conditions}}
    )


# --- One case --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seen:
    """What has come of a case: of its last request, and of what that has made."""

    outcome: str
    ends: str = ""
    told: str = ""
    """What whoever asked was told."""


def play(case: Case, where: ExampleCluster, *, runs: bool = False) -> Seen:
    """Play a case and remove what it has made. Its last request is a dry run where nothing is to come of it.

    Owners are not there: the controllers stand still, lest they collect what says that it has one.
    """
    if not _names_an_owner(case):
        return _play(case, where.api, runs=runs)
    with standing_still(where.control_plane):
        seen = _play(case, where.api, runs=runs)
    until(lambda: _counts_nothing(where.api), "the quota counts nothing", seconds=120)
    return seen


def _counts_nothing(api: Api) -> bool:
    """Pods that Jobs of earlier cases have left are removed: bound ones would wait for a kubelet."""
    for pod in api.list(f"/api/v1/namespaces/{HOME}/pods"):
        _remove(api, f"/api/v1/namespaces/{HOME}/pods/{pod['metadata']['name']}")
    [quota] = api.list(f"/api/v1/namespaces/{HOME}/resourcequotas")
    return all(used == "0" for key, used in quota["status"].get("used", {}).items() if "nvidia.com/" in key)


def _names_an_owner(case: Case) -> bool:
    first = case.steps[0]
    return len(case.steps) > 1 and first.verb == "make" and "ownerReferences" in first.what["metadata"]


@contextmanager
def standing_still(control_plane: ControlPlane) -> Iterator[None]:
    """The controllers of Kubernetes do nothing for a while."""
    _, _, controllers, _ = control_plane.processes
    os.kill(controllers.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(controllers.pid, signal.SIGCONT)


def _play(case: Case, api: Api, *, runs: bool) -> Seen:
    is_dry = not (case.ends or runs)
    paths: list[str] = []
    try:
        for step in case.steps[:-1]:
            _ask(step, api, paths)
        _ask(case.steps[-1], api, paths, is_dry=is_dry)
    except Refused as refused:
        return Seen(_who_refused(refused, refusals(case)), told=refused.message)
    else:
        return Seen(ADMITTED) if is_dry else Seen(ADMITTED, _end(case, api, paths[-1]))
    finally:
        for path in paths:
            _remove(api, path)


def can_run(case: Case) -> bool:
    """Whether pods come of it that a scheduler is to bind."""
    [first, *others] = case.steps
    return not others and first.verb == "make" and first.what["kind"] in ("Pod", *_MAKERS) and first.who in MEMBERS


def _as(who: str, api: Api) -> Api:
    if who == ADMINISTRATOR:
        return api
    if who in MEMBERS:
        name, groups = MEMBERS[who]
        return api.as_user(name, groups)
    return api.as_user(user_of(who), ["system:serviceaccounts"])


def _ask(step: Step, api: Api, paths: list[str], *, is_dry: bool = False) -> None:
    """Ask again where the API server has not counted a pod for the quota, since something else was counted then."""
    for tries in range(10):
        try:
            _ask_once(step, api, paths, is_dry=is_dry)
        except Refused as refused:
            if tries == 9 or refused.code != HTTPStatus.CONFLICT or "resourcequotas" not in refused.message:
                raise
        else:
            return


def _ask_once(step: Step, api: Api, paths: list[str], *, is_dry: bool) -> None:
    asker, query = _as(step.who, api), "?dryRun=All" if is_dry else ""
    match step.verb:
        case "make":
            made = asker.create(_numbered(step.what), dry_run=is_dry)
            if not is_dry:
                paths.append(api.path_of(made))
        case "change":
            _change(asker, api, paths[-1], step, query)
        case "delete":
            _bind(api, paths[-1])
            options = {"kind": "DeleteOptions", "apiVersion": "v1", **step.what}
            asker.request("DELETE", f"{paths[-1]}{query}", options)
        case "evict":
            asker.request("POST", f"{paths[-1]}/eviction{query}", eviction(api.get(paths[-1]), step.what))
        case _:
            _send(asker, step.what)


def _numbered(body: Object) -> dict[str, Any]:
    """Under a name that nothing had before."""
    metadata = {**body["metadata"]}
    if "name" in metadata:
        metadata["name"] = f"{metadata['name']}-{next(_NUMBERS)}"
    return {**body, "metadata": metadata}


def _change(asker: Api, api: Api, path: str, step: Step, query: str) -> None:
    """Tolerations may be added alone: those that are there stay."""
    subresource = f"/{step.subresource}" if step.subresource else ""
    for _ in range(5):
        found = api.get(path)
        new = merged(found, step.what)
        if "tolerations" in step.what.get("spec", {}):
            new["spec"]["tolerations"] += found["spec"].get("tolerations", [])
        try:
            asker.replace(f"{path}{subresource}{query}", new)
        except Refused as refused:
            if refused.reason != "Conflict":
                raise
        else:
            return
    raise AssertionError(f"{path} is changed by others all the time")


def _bind(api: Api, path: str) -> None:
    """Bring a pod to its pool if no scheduler has: one without a node is deleted at once, whatever the options say.

    (`CheckGracefulDelete` in `pkg/registry/core/pod/strategy.go` of kubernetes/kubernetes.)
    """
    found = api.get(path)
    pool = found["spec"].get("nodeSelector", {}).get(POOL_LABEL)
    if found["kind"] != "Pod" or pool is None or found["spec"].get("schedulingGates"):
        return
    target = {"apiVersion": "v1", "kind": "Node", "name": f"gpu-{pool}"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": found["metadata"]["name"]}, "target": target}
    with suppress(Refused):  # a scheduler was faster
        api.request("POST", f"{path}/binding", body)


def _send(asker: Api, what: Object) -> None:
    kind = "application/merge-patch+json" if what["method"] == "PATCH" else "application/json"
    asker.request(what["method"], what["path"], what.get("body"), content_type=kind)


def _who_refused(refused: Refused, said: Mapping[str, str]) -> str:
    """The rule, if it is a rule that says this of the request, or what else refuses."""
    if _POLICY.match(refused.message):
        told = _POLICY.sub("", refused.message)
        return next((rule for rule, message in said.items() if _words(message) == _words(told)), f"a policy: {told}")
    for sign, who in (
        ("violates PodSecurity", "PodSecurity"),
        ("exceeded quota", "quota"),
        ("admission webhook", "webhook"),
        (" cannot ", "RBAC"),
        ("attempting to grant RBAC permissions", "RBAC"),
    ):
        if sign in refused.message:
            return who
    return "API" if refused.code in (400, 403, 405, 422) else f"{refused.code} {refused.message}"


def _words(message: str) -> list[str]:
    """Resources of one container come in any order."""
    return sorted(re.findall(r"[^\s,;]+", message))


def _remove(api: Api, path: str) -> None:
    """At once, whatever it has that would keep it."""
    with suppress(Refused):
        api.patch(path, {"metadata": {"finalizers": None}})
    with suppress(Refused):
        api.delete(path, grace_seconds=0)


# --- What then becomes of it -----------------------------------------------------------------------------------------


def _end(case: Case, api: Api, path: str) -> str:
    """Whether its pods run or wait, or the rule by which it has none."""
    body = api.get(path)
    try:
        return until(partial(_state, case, api, body), f"something comes of {case.label}", seconds=20)
    except NotReadyError:
        return "nothing"
    finally:
        if body["kind"] != "Pod":
            _remove(api, path)
            _remove_pods(api, body)


def _state(case: Case, api: Api, body: Object) -> str:
    pods = _pods_of(api, body)
    if pods and all(pod["status"].get("phase") == "Running" for pod in pods):
        return "runs"
    if any(why_pending(pod) for pod in pods):
        return "waits"
    return _why_none(case, api, body)


def _pods_of(api: Api, body: Object) -> list[dict[str, Any]]:
    name = body["metadata"]["name"]
    is_it = name.__eq__ if body["kind"] == "Pod" else (lambda found: found.startswith(f"{name}-"))
    pods = api.list(f"/api/v1/namespaces/{body['metadata']['namespace']}/pods")
    return [pod for pod in pods if is_it(pod["metadata"]["name"])]


def _why_none(case: Case, api: Api, body: Object) -> str:
    for event in api.list(f"/api/v1/namespaces/{body['metadata']['namespace']}/events"):
        if event["reason"] == "FailedCreate" and event["involvedObject"]["name"].startswith(body["metadata"]["name"]):
            [step] = case.steps
            template = step.what["spec"]["template"]
            pod = {"apiVersion": "v1", "kind": "Pod", **template}
            said = refusals(replace(case, steps=(Step("make", step.who, pod),)))
            return f"no pods: {_who_refused(Refused(403, '', event['message']), said)}"
    return ""


def _remove_pods(api: Api, body: Object) -> None:
    def are_gone() -> bool:
        found = _pods_of(api, body)
        for pod in found:
            _remove(api, api.path_of(pod | {"apiVersion": "v1", "kind": "Pod"}))
        return not found

    until(are_gone, "pods are gone")
