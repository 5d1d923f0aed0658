"""For random policies and values on the border, gpuplan's verdict is that of the API server.

What both are asked is always the same; another `GPUPLAN_TEST_SEED` draws something else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from random import Random
from typing import Final

import pytest
import yaml

from gpuplan import build
from gpuplan.compiler.backends.namespaces import render as render_namespaces
from gpuplan.compiler.checks import run
from gpuplan.compiler.planning.plan import POOL_LABEL, TENANT_LABEL, Plan, Tenant
from tests.cluster.api import Api, Refused
from tests.cluster.conftest import NEWEST
from tests.cluster.control_plane import ControlPlane
from tests.cluster.definitions import define
from tests.cluster.delivery import MANAGER
from tests.cluster.example import settle
from tests.cluster.pods import GATES, namespaces
from tests.cluster.policies import a_policy
from tests.cluster.processes import until
from tests.cluster.programs import need_go
from tests.cluster.values import Body, Family, document, families, text_of
from tests.compiler.backends.scheduling.cel import refusals
from tests.compiler.backends.workloads.rendered import manifests
from tests.plans import a_cluster, resolve_text

Record = Callable[[str, object, object], None]

SEED: Final = os.environ.get("GPUPLAN_TEST_SEED", "")
CLUSTERS: Final = {
    "kubernetes": f"{a_cluster('kind: kubernetes')}  nodeLabels: node\n",
    "kubernetes, capped at guarantees": a_cluster("kind: kubernetes, cap: guaranteed"),
    "kueue": a_cluster("kind: kueue"),
    "kai": a_cluster("kind: kai"),
    "runai": a_cluster("kind: runai"),
}
POLICIES: Final = 8
"""That share a cluster, which is quicker than one each: it takes a second until new policies of admission act."""
PODS: Final = 40


@pytest.fixture(scope="module")
def server() -> Iterator[ControlPlane]:
    """A control plane of these tests alone: what they apply stays, one policy beside or on top of the other."""
    need_go()
    with ControlPlane.start(NEWEST) as started:
        yield started


# --- Values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", tuple(families(SEED)), ids=lambda family: family.name)
def test_values_are_refused_by_both_or_by_neither(family: Family, server: ControlPlane, record: Record) -> None:
    """Where gpuplan is stricter on purpose, the API server takes at least what gpuplan takes."""
    api = server.api
    verdicts = [(value, is_valid(family.policy(value)), takes(api, family.body(value))) for value in family.values]
    differing = [
        f"{value!r} is {'taken' if ours else 'refused'} by gpuplan alone"
        for value, ours, theirs in verdicts
        if ours != theirs and (ours or not family.stricter)
    ]
    text = f"{sum(ours for _, ours, _ in verdicts)} of {len(verdicts)}{' or more' if family.stricter else ''}"
    record(f"{family.name} that are taken", text, "; ".join(differing) or text)


def is_valid(text: str) -> bool:
    """Whether `gpuplan validate` finds no error."""
    plan, diagnostics = resolve_text(text)
    if plan is None or any(found.is_error for found in diagnostics):
        return False
    return not any(found.is_error for found in run(plan))


def takes(api: Api, body: Body) -> bool:
    return refusal_of(partial(api.create, body, dry_run=True)) is None


def refusal_of(request: Callable[[], object]) -> str | None:
    try:
        request()
    except Refused as refused:
        return refused.message
    return None


SERVICES: Final = (
    "inference: {port: none}",
    "inference: {port: none, probe: {command: [cat, /ready], timeout: 5s}, startup: 5m}",
    "inference: {probe: grpc, startup: 15m}",
    "inference: {ports: {rpc: 81, metrics: 82}, probe: {grpc: model.Chat, port: rpc}}",
    "inference: {ports: {admin: 81}, probe: {http: '/v2/health/ready?full=1', port: admin}, startup: 1s}",
    "inference: {service: {type: NodePort, port: 80, nodePort: 30080}}",
    "inference: {service: {type: LoadBalancer, port: 443}}",
    "inference: {autoscaling: {maxReplicas: 4, waitingRequests: 5}}",
    "inference: {autoscaling: {maxReplicas: 4, gpuPercent: 80}}",
    "inference: {autoscaling: {maxReplicas: 4, cpuPercent: 70}}\ncpu: '4'",
    "inference: {}\nenv: {A: {secretKeyRef: {name: a, key: b}}}\nimagePullSecrets: [registry]",
    "inference: {}\nenv: {A: {configMapKeyRef: {name: a, key: b}}}",
)


@pytest.mark.parametrize("spec", SERVICES)
def test_services_are_taken_as_they_are_written(spec: str, server: ControlPlane) -> None:
    with suppress(Refused):
        server.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}})
    refused = {
        manifest.kind: refusal_of(partial(server.api.create, manifest.body, dry_run=True))
        for manifest in manifests(spec)
    }
    assert {kind: message for kind, message in refused.items() if message} == {}


@pytest.mark.parametrize("key", ["requests.nvidia.com/gpu", "limits.nvidia.com/gpu", "nvidia.com/gpu"])
def test_quotas_count_gpus_under_one_key_alone(key: str, server: ControlPlane, record: Record) -> None:
    """GPU620 says so of hand-written ones."""
    with namespaces(server.api, "counted") as [home]:
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus", "namespace": home}}
        path = server.api.path_of(server.api.create({**quota, "spec": {"hard": {key: "0"}}}))
        until(lambda: server.api.get(path)["status"].get("hard") == {key: "0"}, "the quota is counted")
        is_inert = takes(server.api, plain_pod(home, {"nvidia.com/gpu": "1"}))
    record(f"a quota of no GPUs under the key {key} lets pods have one", key != "requests.nvidia.com/gpu", is_inert)


def test_limit_ranges_give_gpus_to_pods_that_ask_for_none(server: ControlPlane, record: Record) -> None:
    """GPU621 says so of a maximum."""
    with namespaces(server.api, "limited") as [home]:
        limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "gpus", "namespace": home}}
        server.api.create({**limits, "spec": {"limits": [{"type": "Container", "max": {"nvidia.com/gpu": "2"}}]}})
        body = plain_pod(home, {})

        def given() -> str:
            resources = server.api.create(body, dry_run=True)["spec"]["containers"][0]["resources"]
            return str(resources.get("limits", {}).get("nvidia.com/gpu", ""))

        until(given, "the API server has seen the LimitRange")
        record("GPUs of a container that asks for none, with at most two in a LimitRange", "2", given())


LAB: Final = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: whole}
spec:
  gpu: A100-80GB
  nodes: {count: 1, gpusPerNode: 8, names: [n1]}
  sharing: {exclusive: {}}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: lab-batch}
spec: {value: 10}
---
apiVersion: gpuplan.dev/v1
kind: PriorityClass
metadata: {name: lab-online}
spec: {value: 100}
---
apiVersion: gpuplan.dev/v1
kind: Tenant
metadata: {name: lab}
spec:
  namespaces: [lab]
  priorityClasses: [lab-batch, lab-online]
  quotas: [{pool: whole, guaranteed: 6, classLimits: {lab-batch: 4}}]
  containers: {cpu: {request: 500m, limit: 2, maxRatio: 4}}
"""


def of_lab(kind: str, home: str) -> list[Body]:
    """What is written of a kind for the tenant's namespace, moved to another one."""
    plan, findings = resolve_text(f"{a_cluster('kind: kubernetes')}---\n{LAB}")
    assert plan is not None
    assert not findings
    bodies = [item.body for item in render_namespaces(plan) if item.kind == kind]
    return [{**body, "metadata": {**body["metadata"], "namespace": home}} for body in bodies]


def test_a_limit_of_a_class_bounds_its_pods_and_no_others(server: ControlPlane, record: Record) -> None:
    api = server.api
    with namespaces(api, "classes") as [home]:
        for name, value in (("lab-batch", 10), ("lab-online", 100)):
            api.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                }
            )
        paths = [api.path_of(api.create(body)) for body in of_lab("ResourceQuota", home)]
        until(lambda: all(api.get(path).get("status", {}).get("hard") for path in paths), "the quotas are counted")

        def pod(priority_class: str, gpus: int) -> Body:
            body = plain_pod(home, {"nvidia.com/gpu": str(gpus)})
            return {**body, "spec": {**body["spec"], "priorityClassName": priority_class}}

        verdicts = [
            takes(api, pod(*asked))
            for asked in (("lab-batch", 4), ("lab-batch", 5), ("lab-online", 6), ("lab-online", 7))
        ]
    record(
        "4 and 5 GPUs of a class that has 4, 6 and 7 of another one where the tenant has 6",
        [True, False, True, False],
        verdicts,
    )


def test_containers_that_say_nothing_have_what_is_planned(server: ControlPlane, record: Record) -> None:
    """GPU457 and GPU458 say so of ratios."""
    api = server.api
    with namespaces(api, "containers") as [home]:
        (limits,) = of_lab("LimitRange", home)
        api.create(limits)

        def given() -> Body:
            resources: Body = api.create(plain_pod(home, {}), dry_run=True)["spec"]["containers"][0]["resources"]
            return resources

        until(lambda: bool(given()), "the API server has seen the LimitRange")
        record("what a container has that says nothing", {"limits": {"cpu": "2"}, "requests": {"cpu": "500m"}}, given())
        beyond = plain_pod(home, {"cpu": "8"})
        beyond["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1"}
        record(
            "a container with a limit of 8 times its request is taken, where 4 times is the most",
            False,
            takes(api, beyond),
        )


def test_a_second_default_class_is_refused(server: ControlPlane, record: Record) -> None:
    """GPU503."""
    first, second = (document("PriorityClass", name, value=value, default=True) for name, value in (("a", 1), ("b", 2)))
    path = server.api.path_of(server.api.create(default_class("a", 1)))
    until(lambda: not takes(server.api, default_class("b", 2)), "the API server has seen the first class")
    server.api.delete(path)
    until(lambda: takes(server.api, default_class("b", 2)), "the API server has seen that it is gone")
    assert is_valid(text_of(first))
    record("two default classes are taken", is_valid(text_of(first, second)), False)


def default_class(name: str, value: int) -> Body:
    metadata = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata,
        "value": value,
        "globalDefault": True,
    }


def plain_pod(namespace: str, limits: Body) -> Body:
    container = {"name": "main", "image": "registry.example.com/app:1.0.0", "resources": {"limits": limits}}
    metadata = {"name": "pod", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


# --- Policies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLUSTERS)
def test_valid_policies_apply_and_judge_pods_as_gpuplan_does(
    name: str, server: ControlPlane, record: Record, tmp_path: Path
) -> None:
    api = server.api
    number = list(CLUSTERS).index(name)
    chance = Random(f"{SEED} {name}")
    scheduler = name.partition(",")[0]
    documents = [body for policy in range(POLICIES) for body in a_policy(chance, f"r{number}{policy}", scheduler)]
    platform = compiled(tmp_path, CLUSTERS[name], documents)
    record(f"{name}: objects of {POLICIES} random policies that are refused", [], apply_all(api, platform.bodies))
    settle(api)
    rewritten = [body["spec"]["hard"] for body in platform.bodies if not is_kept(api, body)]
    record(f"{name}: quotas that read otherwise than they were written", [], rewritten)
    verdicts = [judged(api, platform, *a_pod(chance, platform)) for _ in range(PODS)]
    differing = [verdict.difference for verdict in verdicts if verdict.difference]
    taken = sum(verdict.is_taken for verdict in verdicts)
    text = f"{taken} of {PODS}"
    record(f"{name}: random pods that are let in", text, "; ".join(differing) or text)


def test_a_namespace_is_a_tenants_by_its_label_alone(server: ControlPlane, record: Record, tmp_path: Path) -> None:
    """Nothing is written for it; its pods are judged by what its tenant has, and kept off the host."""
    api, pool = server.api, {"nodeSelector": {POOL_LABEL: "hubs"}}
    nodes = {"count": 1, "gpusPerNode": 8, "names": ["hubs-1"]}
    hubs = document("Pool", "hubs", gpu="A100-80GB", nodes=nodes, sharing={"exclusive": {}})
    hub = document("Tenant", "hub", labelledNamespaces=True, quotas=[{"pool": "hubs", "guaranteed": 8}])
    apply_all(api, compiled(tmp_path, CLUSTERS["kubernetes"], [hubs, hub]).bodies)
    for name, labels in (("hub-ada", {TENANT_LABEL: "hub"}), ("hub-bob", {})):
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    settle(api)

    def verdicts(namespace: str) -> list[bool]:
        granted, elsewhere, other, privileged = (plain_pod(namespace, {"nvidia.com/gpu": "1"}) for _ in range(4))
        granted["spec"].update(pool)
        elsewhere["spec"].update({"nodeSelector": {POOL_LABEL: "not-its-own"}})
        other["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu.of-nobody": "1"}}
        privileged["spec"].update(pool)
        privileged["spec"]["containers"][0]["securityContext"] = {"privileged": True}
        return [takes(api, body) for body in (granted, elsewhere, other, privileged)]

    what = "pods in its pool, in another, of another resource, and privileged"
    record(f"{what}, in a namespace with a tenant's label", [True, False, False, False], verdicts("hub-ada"))
    record(f"{what}, in one without it", [True, True, True, True], verdicts("hub-bob"))


def test_tenants_are_judged_that_come_when_all_others_have_gone(
    server: ControlPlane, record: Record, tmp_path: Path
) -> None:
    """An API server without bindings for a second reads no parameters any more, until it is started anew.

    (https://github.com/kubernetes/kubernetes/issues/130887)
    """
    api = server.api
    bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    for name in ("first-to-come", "last-to-come"):
        for binding in api.list(bindings):
            if binding["metadata"]["name"].startswith(("gpuplan-grants-", "gpuplan-grants.", "gpuplan-queues-")):
                api.delete(f"{bindings}/{binding['metadata']['name']}")
        apply_all(api, compiled(tmp_path / name, CLUSTERS["kubernetes"], lone_tenant(name)).bodies)
        pod = plain_pod(name, {"nvidia.com/gpu.of-nobody": "1"})
        answer = until(partial(refusal_of, partial(api.create, pod, dry_run=True)), f"pods of {name} are judged")
        planned = f"tenant {name} has no quota on nvidia.com/gpu.of-nobody; it may ask for nvidia.com/gpu in pool whole"
        record(f"what is said to tenant {name}", planned, str(answer).rpartition("denied request: ")[2])
        until(partial(is_settled_down, api, bindings, name, pod), "the policy is not in force any more")


def is_settled_down(api: Api, bindings: str, name: str, pod: Body) -> bool:
    """Whether the tenant is judged no longer, once its binding is away."""
    path = f"{bindings}/gpuplan-grants-{name}"
    if api.find(path):
        api.delete(path)
    return takes(api, pod)


def lone_tenant(name: str) -> list[Body]:
    nodes = {"count": 1, "gpusPerNode": 8, "names": [f"{name}-1"]}
    return [
        document("Pool", "whole", gpu="A100-80GB", nodes=nodes, sharing={"exclusive": {}}),
        document("Tenant", name, namespaces=[name], quotas=[{"pool": "whole", "guaranteed": 8}]),
    ]


@dataclass(frozen=True, slots=True)
class Platform:
    """What a policy means: the plan, and the objects that are made of it."""

    plan: Plan
    bodies: tuple[Body, ...]

    def get(self, kind: str, name: str, namespace: str | None = None) -> Body:
        return next(
            body
            for body in self.bodies
            if (body["kind"], body["metadata"]["name"], body["metadata"].get("namespace")) == (kind, name, namespace)
        )


def compiled(root: Path, cluster: str, documents: Sequence[Body]) -> Platform:
    """What `gpuplan build` makes of the documents."""
    (root / "overlays" / "test").mkdir(parents=True)
    (root / "overlays" / "test" / "all.yaml").write_text(text_of(*documents, cluster=cluster), encoding="utf-8")
    (root / "policies").mkdir()
    made = build(root)
    assert [found.finding.message for found in made.report.diagnostics if found.is_error] == []
    bodies = [yaml.load(made.tree[path], Loader=yaml.CSafeLoader) for path in made.objects]
    [plan] = made.report.plans
    return Platform(plan, tuple(sorted(bodies, key=lambda body: body["kind"] != "Namespace")))


def apply_all(api: Api, bodies: Sequence[Body]) -> list[str]:
    """Apply all objects, but for the workloads, which are only judged; what is refused, with the reason."""
    define(api, bodies)
    homes = {body["metadata"]["namespace"] for body in bodies if "namespace" in body["metadata"]}
    own = {body["metadata"]["name"] for body in bodies if body["kind"] == "Namespace"}
    others = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(homes - own)]
    refused = []
    for body in (*others, *bodies):
        is_workload = "gpuplan.dev/workload" in body["metadata"].get("labels", {})
        reason = refusal_of(partial(api.apply, body, manager=MANAGER, dry_run=is_workload))
        if reason is not None:
            refused.append(f"{body['kind']} {body['metadata']['name']}: {reason}")
    return refused


def is_kept(api: Api, body: Body) -> bool:
    """Whether a quota has its numbers in the form in which the API server gives them back."""
    return body["kind"] != "ResourceQuota" or bool(api.get(api.path_of(body))["spec"]["hard"] == body["spec"]["hard"])


# --- Pods ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """What gpuplan says of a pod, and how the API server differs, if it does."""

    is_taken: bool
    difference: str


def judged(api: Api, platform: Platform, tenant: Tenant, pod: Body) -> Verdict:
    """In a namespace of nobody the API server shows what admission sees of the pod, or that it is no pod at all."""
    member = api.as_user("jane", [tenant.spec.members[0].group or ""])
    answer = refusal_of(partial(member.create, pod, dry_run=True))
    elsewhere = {**pod, "metadata": {**pod["metadata"], "namespace": "default"}}
    try:
        seen = api.create(elsewhere, dry_run=True)
    except Refused as refused:
        return Verdict(False, "" if answer else f"taken, though elsewhere: {refused.message}")
    namespace = pod["metadata"]["namespace"]
    reasons = [*refused_by_policies(platform, namespace, seen), *refused_by_quota(platform, namespace, seen)]
    is_alike = answer is None if not reasons else answer is not None and any(reason in answer for reason in reasons)
    return Verdict(
        not reasons, "" if is_alike else f"{reasons or 'taken'} by gpuplan, {answer or 'taken'}: {pod['spec']}"
    )


def refused_by_policies(platform: Platform, namespace: str, pod: Body) -> list[str]:
    parameters = platform.get("ConfigMap", f"grants-{namespace}", "gpuplan-system")["data"]
    given = {"gpuplan-grants": parameters, "gpuplan-devices": None, "gpuplan-running": None}
    return [
        reason
        for body in platform.bodies
        if body["kind"] == "ValidatingAdmissionPolicy" and body["metadata"]["name"] in given
        for reason in refusals(body, pod, given[body["metadata"]["name"]])
    ]


def refused_by_quota(platform: Platform, namespace: str, pod: Body) -> list[str]:
    """By the caps of the plan; containers that start the pod run before the others."""
    resources = {unit.resource for pool in platform.plan.pools for unit in pool.units if unit.resource}
    return [
        "exceeded quota: gpuplan"
        for resource in sorted(resources)
        if used(pod, resource) > cap_of(platform.plan, namespace, resource)
    ]


def used(pod: Body, resource: str) -> int:
    def asked(kind: str) -> list[int]:
        return [
            int(container.get("resources", {}).get("limits", {}).get(resource, 0))
            for container in pod["spec"].get(kind, ())
        ]

    return max([sum(asked("containers")), *asked("initContainers")])


def cap_of(plan: Plan, namespace: str, resource: str) -> float:
    """What a namespace may have of a resource in all pools."""
    [tenant] = [found for found in plan.tenants if namespace in found.spec.namespaces]
    caps = [quota.caps.get(namespace, 0) for quota in tenant.quotas if quota.unit.resource == resource]
    return sum(inf if cap is None else float(cap) for cap in caps)


# --- Random pods -----------------------------------------------------------------------------------------------------


def a_pod(chance: Random, platform: Platform) -> tuple[Tenant, Body]:
    """A pod that its tenant may have, if it may have any, with up to two changes."""
    tenant = chance.choice([found for found in platform.plan.tenants if found.spec.namespaces])
    pod = own_pod(chance, platform.plan, tenant)
    for change in chance.sample(CHANGES, k=chance.choice((0, 1, 1, 2))):
        change(chance, platform.plan, pod)
    return tenant, pod


def own_pod(chance: Random, plan: Plan, tenant: Tenant) -> Body:
    scheduler = plan.cluster.scheduler.kind
    container: Body = {"name": "main", "image": "registry.example.com/app:1.0.0", "resources": {"limits": {}}}
    metadata: Body = {
        "name": "pod",
        "namespace": chance.choice(tenant.spec.namespaces),
        "labels": {},
        "annotations": {},
    }
    spec: Body = {"containers": [container], **GATES.get(scheduler, {})}
    if tenant.priority_classes:
        spec["priorityClassName"] = chance.choice(tenant.priority_classes).name
    if tenant.quotas:
        quota = chance.choice(tenant.quotas)
        spec["nodeSelector"] = {POOL_LABEL: quota.pool.name}
        if quota.unit.resource:
            container["resources"]["limits"][quota.unit.resource] = "1"
        else:
            metadata["annotations"]["gpu-fraction"] = "0.5"
        if scheduler == "kai":
            spec["schedulerName"] = "kai-scheduler"
            queue = f"{tenant.name}-{quota.pool.name}"
            metadata["labels"] = {"kai.scheduler/queue": queue, "kai.scheduler/node-pool": quota.pool.name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def any_resource(chance: Random, plan: Plan) -> str:
    known = [unit.resource for pool in plan.pools for unit in pool.units if unit.resource]
    return chance.choice([*known, "nvidia.com/gpu", "nvidia.com/hostdev", "cpu"])


def limits_of(pod: Body) -> Body:
    limits: Body = pod["spec"]["containers"][0]["resources"].setdefault("limits", {})
    return limits


def ask_for_more(chance: Random, plan: Plan, pod: Body) -> None:
    limits = limits_of(pod)
    limits.update({resource: str(chance.choice((0, 2, 3, 4, 10, 100))) for resource in limits})


def ask_for_another(chance: Random, plan: Plan, pod: Body) -> None:
    pod["spec"]["containers"][0]["resources"] = {"limits": {any_resource(chance, plan): "1"}}


def ask_for_both(chance: Random, plan: Plan, pod: Body) -> None:
    limits_of(pod)[any_resource(chance, plan)] = "1"


def ask_first(chance: Random, plan: Plan, pod: Body) -> None:
    first = {"name": "first", "image": "registry.example.com/app:1.0.0"}
    limits = {any_resource(chance, plan): str(chance.randint(0, 3))}
    pod["spec"]["initContainers"] = [{**first, "resources": {"limits": limits}}]


def ask_beside(chance: Random, plan: Plan, pod: Body) -> None:
    second = {"name": "second", "image": "registry.example.com/app:1.0.0"}
    pod["spec"]["containers"].append({**second, "resources": {"limits": dict(limits_of(pod))}})


def ask_without_limit(chance: Random, plan: Plan, pod: Body) -> None:
    pod["spec"]["containers"][0]["resources"] = {"requests": {any_resource(chance, plan): "1"}}


def go_elsewhere(chance: Random, plan: Plan, pod: Body) -> None:
    pod["spec"]["nodeSelector"] = {POOL_LABEL: chance.choice([*(pool.name for pool in plan.pools), "nowhere"])}


def go_anywhere(chance: Random, plan: Plan, pod: Body) -> None:
    pod["spec"].pop("nodeSelector", None)


def have_another_class(chance: Random, plan: Plan, pod: Body) -> None:
    classes = [found.name for found in plan.priority_classes]
    pod["spec"]["priorityClassName"] = chance.choice([*classes, "system-node-critical"])


def have_no_class(chance: Random, plan: Plan, pod: Body) -> None:
    pod["spec"].pop("priorityClassName", None)


def have_another_scheduler(chance: Random, plan: Plan, pod: Body) -> None:
    pod["spec"]["schedulerName"] = chance.choice(("default-scheduler", "kai-scheduler", "runai-scheduler", "volcano"))


def have_no_gates(chance: Random, plan: Plan, pod: Body) -> None:
    pod["spec"].pop("schedulingGates", None)


def have_a_node(chance: Random, plan: Plan, pod: Body) -> None:
    pod["spec"].pop("schedulingGates", None)
    pod["spec"]["nodeName"] = "gpu-1"


def have_a_claim(chance: Random, plan: Plan, pod: Body) -> None:
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]


def see_devices(chance: Random, plan: Plan, pod: Body) -> None:
    name = chance.choice(("NVIDIA_VISIBLE_DEVICES", "NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"))
    pod["spec"]["containers"][0]["env"] = [{"name": name, "value": chance.choice(("all", "void", "none", ""))}]


def be_annotated(chance: Random, plan: Plan, pod: Body) -> None:
    names = ("gpu-fraction", "gpu-memory", "cdi.k8s.io/a", "a.gpus.devices", "pod-group-name", "example.com/a")
    pod["metadata"]["annotations"][chance.choice(names)] = "0.5"


def be_labelled(chance: Random, plan: Plan, pod: Body) -> None:
    name = chance.choice(("kai.scheduler/queue", "kai.scheduler/node-pool", "runai/node-pool"))
    pod["metadata"]["labels"][name] = chance.choice([*(pool.name for pool in plan.pools), "default"])


def be_a_jobs(chance: Random, plan: Plan, pod: Body) -> None:
    pod["spec"].pop("schedulingGates", None)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "small", "uid": "small", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]


CHANGES: Final[tuple[Callable[[Random, Plan, Body], None], ...]] = (
    ask_for_more,
    ask_for_another,
    ask_for_both,
    ask_first,
    ask_beside,
    ask_without_limit,
    go_elsewhere,
    go_anywhere,
    have_another_class,
    have_no_class,
    have_another_scheduler,
    have_no_gates,
    have_a_node,
    have_a_claim,
    see_devices,
    be_annotated,
    be_labelled,
    be_a_jobs,
)
