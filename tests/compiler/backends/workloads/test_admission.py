"""The admission policies of a plan let its own workloads in, whichever scheduler it has."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from gpuplan.compiler.backends import kai, kueue, namespaces, scheduling
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.plan import Plan
from tests.compiler.backends.scheduling.cel import refusals
from tests.compiler.backends.workloads.rendered import SERVICE, TRAINING, manifests, planned, template_of

SCHEDULERS = ("kubernetes", "kueue", "kai", "runai")
MODEL = "model: {size: 1Gi, download: {image: 'registry.example.com/fetch:1'}}"
CONFIG = "config: {a.txt: b}\nenv: {A: b}\ncpu: '1'\nmemory: 1Gi"
SPECS = (
    f"{SERVICE}\n{CONFIG}\n{MODEL}",
    f"{TRAINING}\n{CONFIG}\n{MODEL}",
    "training: {pods: 4, gang: 4}",
    "training: {pods: 4, gang: 4, peers: {}}",
    "training: {pods: 4, trials: 9, backoffLimitPerIndex: 1, fatalExitCodes: [2]}",
    f"training: {{kind: JobSet, pods: 4, gang: 4, peers: {{}}}}\n{CONFIG}",
    f"training: {{kind: TrainJob, pods: 4, peers: {{}}, deadline: 2h}}\n{CONFIG}",
    "inference: {autoscaling: {maxReplicas: 4, requestsPerSecond: 10}}",
    "workspace: {idle: 2h, runTime: 12h, storage: {size: 1Gi, group: 100}}",
    "inference: {replicas: 2, podsPerReplica: 2, worker: {args: [--join]}}",
)
SHARINGS = (
    "exclusive: {}",
    "timeSlicing: {replicas: 3}",
    "mps: {replicas: 3}",
    "mig: {instances: {3g.40gb: 2}}",
    "mig: {instances: {3g.40gb: 2}, strategy: single}",
)


def policies(plan: Plan, resource: str) -> Iterator[Any]:
    """The plan's policies on new objects of a resource, such as pods."""
    for manifest in (*scheduling.render(plan), *kai.render(plan), *kueue.render(plan)):
        if isinstance(manifest, Manifest) and manifest.kind == "ValidatingAdmissionPolicy":
            (rule, *_) = manifest.body["spec"]["matchConstraints"]["resourceRules"]
            if rule["resources"] == [resource] and "CREATE" in rule["operations"]:
                yield manifest.body


def parameters(plan: Plan) -> Any:
    """Those of the namespace `lab`."""
    (found,) = (item.body["data"] for item in namespaces.render(plan) if item.kind == "ConfigMap")
    return found


JOB = "batch/v1 Job"
OWNERS = {
    "Deployment": "apps/v1 ReplicaSet",
    "Job": JOB,
    "JobSet": JOB,
    "LeaderWorkerSet": "apps/v1 StatefulSet",
    "TrainingRuntime": JOB,
}
OF_JOBS = "system:serviceaccount:kube-system:job-controller"
CONTROLLERS = {
    "Deployment": "system:serviceaccount:kube-system:replicaset-controller",
    "Job": OF_JOBS,
    "JobSet": OF_JOBS,
    "LeaderWorkerSet": "system:serviceaccount:kube-system:statefulset-controller",
    "TrainingRuntime": OF_JOBS,
}


def templates(body: Any) -> Iterator[Any]:
    """Those of the pods that an object makes, as its own controller completes them."""
    if body["kind"] != "LeaderWorkerSet":
        yield template_of(body)
        return
    for index, role in enumerate(("leader", "worker")):
        template = deepcopy(body["spec"]["leaderWorkerTemplate"][f"{role}Template"])
        prefix = "leaderworkerset.sigs.k8s.io"
        own = {f"{prefix}/name": body["metadata"]["name"], f"{prefix}/worker-index": str(index)}
        template["metadata"]["labels"] |= {**own, f"{prefix}/group-index": "0", f"{prefix}/group-key": "5f1c"}
        template["metadata"]["annotations"] = {**template["metadata"].get("annotations", {}), f"{prefix}/size": "2"}
        template["spec"]["containers"][0].setdefault("env", []).append({"name": "LWS_GROUP_SIZE", "value": "2"})
        yield template


def pods(plan: Plan, spec: str, **more: str) -> list[tuple[dict[str, Any], str]]:
    """The pods and who makes them, as the API server shows them to policies.

    Their priority is resolved, and Kueue's webhook has been there.
    """
    values = {priority.name: priority.spec.value for priority in plan.priority_classes}
    found = []
    for manifest in manifests(spec, **more):
        if manifest.kind in OWNERS:
            api, _, kind = OWNERS[manifest.kind].partition(" ")
            owner = {"apiVersion": api, "kind": kind, "name": "owner", "uid": "1", "controller": True}
            for template in templates(manifest.body):
                metadata = {**template["metadata"], "name": "pod", "namespace": "lab", "ownerReferences": [owner]}
                pod_spec = {**template["spec"], "priority": values.get(template["spec"].get("priorityClassName"), 0)}
                if "kueue.x-k8s.io/queue-name" in metadata["labels"]:
                    pod_spec["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
                found.append(({"metadata": metadata, "spec": pod_spec}, CONTROLLERS[manifest.kind]))
    return found


def judged(spec: str, **more: str) -> list[str]:
    """Every refusal of every pod."""
    plan = planned(spec, **more)
    given = parameters(plan)
    on_pods = list(policies(plan, "pods"))
    queued = ["gpuplan-running"] if plan.scheduler.counts_tenants else []
    names = ["gpuplan-grants", "gpuplan-devices", "gpuplan-pod-security", *queued]
    assert [policy["metadata"]["name"] for policy in on_pods] == names
    return [
        text
        for pod, user in pods(plan, spec, **more)
        for policy in on_pods
        for text in refusals(policy, pod, given, user=user)
    ]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("spec", SPECS)
def test_every_pod_is_let_in(spec: str, sharing: str, scheduler: str) -> None:
    assert judged(spec, sharing=sharing, scheduler=scheduler) == []


@pytest.mark.parametrize("scheduler", ["kai", "runai"])
@pytest.mark.parametrize("amount", ["0.33", "{min: 0.25, max: 0.75}", "{memory: 10Gi}"])
@pytest.mark.parametrize("spec", [SERVICE, TRAINING])
def test_every_pod_with_a_fraction_is_let_in(spec: str, amount: str, scheduler: str) -> None:
    assert judged(f"{spec}\nfraction: {amount}", sharing="fraction: {}", scheduler=scheduler) == []


def test_pods_that_ask_for_something_else_are_refused() -> None:
    """So the tests above see something."""
    plan = planned()
    ((pod, _),) = pods(plan, SERVICE)
    pod["spec"]["nodeSelector"] = {"gpuplan.dev/pool": "elsewhere"}
    assert [text for policy in policies(plan, "pods") for text in refusals(policy, pod, parameters(plan))]


@pytest.mark.parametrize("spec", SPECS)
def test_what_kai_makes_of_pods_with_gpus_is_let_in(spec: str) -> None:
    """The pod grouper's PodGroup: queue and class are those of the pod."""
    plan = planned(spec, scheduler="kai")
    (policy,) = policies(plan, "podgroups")
    for pod, _ in pods(plan, spec, scheduler="kai"):
        queue = pod["metadata"]["labels"].get("kai.scheduler/queue")
        if queue:
            group = {"spec": {"queue": queue, "priorityClassName": pod["spec"]["priorityClassName"]}}
            assert refusals(policy, group, parameters(plan)) == []


@pytest.mark.parametrize("spec", SPECS)
def test_what_kueue_makes_of_work_is_let_in(spec: str) -> None:
    """Its Workload and the work itself: the class is that of the label, and without one it has the default priority."""
    plan = planned(spec, scheduler="kueue")
    (policy,) = policies(plan, "workloads")
    values = {priority.name: priority.spec.value for priority in plan.priority_classes}
    for manifest in manifests(spec, scheduler="kueue"):
        if manifest.kind in {*OWNERS, "TrainJob"} - {"TrainingRuntime"}:
            name = manifest.body["metadata"]["labels"].get("kueue.x-k8s.io/priority-class")
            work = {"priority": values.get(name, 0), **({"priorityClassRef": {"name": name}} if name else {})}
            assert refusals(policy, {"kind": "Workload", "spec": work}, parameters(plan)) == []
            assert refusals(policy, manifest.body, parameters(plan)) == []
