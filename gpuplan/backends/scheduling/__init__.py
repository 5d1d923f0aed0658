"""The back end of the stage `scheduling`: priority classes, and the admission policies that keep tenants apart.

Both policies look at the pods of tenants' namespaces alone. Namespaces that belong to no tenant are left as they are:
the GPU Operator's own pods live in such a one and need what the policies refuse, and there are no grants to hold the
others to. Whoever may create pods there can use every GPU, so that right belongs to the platform team.

Pods are judged, not the Deployments or Jobs that make them: a refusal shows in the events of the ReplicaSet or the Job.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.backends.scheduling.policies import fixed_objects, pod_policies
from gpuplan.manifests import Manifest
from gpuplan.planning.grants import SYSTEM_NAMESPACE, has_admission_policies
from gpuplan.planning.plan import Plan, PriorityClass, Stage
from gpuplan.planning.schedulers import SchedulerTraits
from gpuplan.planning.subjects import RESOURCES, about, every

_FOLDER = Stage.SCHEDULING.value


def render(plan: Plan) -> Iterator[Manifest]:
    """The objects of the stage; a cluster too old for admission policies gets its priority classes alone."""
    for priority in plan.priority_classes:
        yield Manifest(_FOLDER, _priority_class(priority, plan.scheduler), about=about(priority))
    if has_admission_policies(plan.cluster):
        cluster = about(plan.cluster)
        yield Manifest(_FOLDER, _system_namespace(), about=cluster)
        for body in pod_policies(plan):
            yield Manifest(_FOLDER, body, about=(*cluster, *RESOURCES, *every(PriorityClass)))
        for body in fixed_objects(plan):
            yield Manifest(_FOLDER, body, about=cluster)


def _priority_class(priority: PriorityClass, scheduler: SchedulerTraits) -> dict[str, Any]:
    """Whether its pods may be evicted has no field here: kube-scheduler evicts by value alone.

    With Kueue no class preempts by itself. Kueue evicts workloads by quota, and a pod that it has admitted has its
    place; kube-scheduler, which knows no quotas, would evict other tenants' pods for it, and Kueue would admit those
    again.
    """
    preempts = priority.spec.preempts and not scheduler.leaves_preemption_to_queues
    body: dict[str, Any] = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": priority.name},
        "value": priority.spec.value,
        "preemptionPolicy": "PreemptLowerPriority" if preempts else "Never",
    }
    if priority.spec.default:
        body["globalDefault"] = True
    if priority.spec.description:
        body["description"] = priority.spec.description
    return body


def _system_namespace() -> dict[str, Any]:
    """A namespace without pods, for the policies' parameters."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": SYSTEM_NAMESPACE,
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        },
    }
