"""The back end of the stage `scheduling`: priority classes, and the admission policies that keep tenants apart.

Both policies look at the pods of tenants' namespaces alone. Namespaces that belong to no tenant are left as they are:
the GPU Operator's own pods live in such a one and need what the policies refuse, and there are no grants to hold the
others to. Whoever may create pods there can use every GPU, so that right belongs to the platform team.

Pods are judged, not the Deployments or Jobs that make them: a refusal shows in the events of the ReplicaSet or the Job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpuplan.compiler.admission.policies import (
    CLAIMS_POLICY,
    DEVICES_POLICY,
    FRAMEWORKS_POLICY,
    GRACE_POLICY,
    JOBS_POLICY,
    NODE_FEATURES_POLICY,
    POD_SECURITY_POLICY,
    PROJECTS_POLICY,
    RUNNING_POLICY,
    policies,
    policy,
    trace_policy,
)
from gpuplan.compiler.manifests import Manifest, admission_binding
from gpuplan.compiler.manifests.bodies import given, new_object
from gpuplan.compiler.manifests.provenance import Routes, chosen, copied
from gpuplan.compiler.planning.grants import GRANTS_POLICY, RDMA_LABEL, SYSTEM_NAMESPACE, has_admission_policies
from gpuplan.compiler.planning.plan import TENANT_LABEL, Plan, PriorityClass, Stage
from gpuplan.compiler.planning.schedulers import SchedulerTraits
from gpuplan.compiler.planning.sources import admission_of, claims_of, frameworks_of, named, scheduler_of
from gpuplan.compiler.planning.subjects import RESOURCES, about, every

_FOLDER: Final = Stage.SCHEDULING.value


def render(plan: Plan) -> Iterator[Manifest]:
    """Yield the objects of the stage; a cluster too old for admission policies gets its priority classes alone.

    The namespace of the policies' parameters has no pods. It comes before them for those who apply `build --stdout`.
    """
    for priority in plan.priority_classes:
        body = _priority_class(priority, plan.scheduler)
        yield Manifest(_FOLDER, body, about=about(priority), trace=partial(_trace_class, plan, priority))
    if has_admission_policies(plan.cluster):
        cluster, trace = about(plan.cluster), partial(_trace_guarded, plan)
        enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
        namespace = new_object("v1", "Namespace", SYSTEM_NAMESPACE, labels=enforced)
        yield Manifest(_FOLDER, namespace, about=cluster, trace=trace)
        subjects = (*cluster, *RESOURCES, *every(PriorityClass))
        for name in (GRANTS_POLICY, DEVICES_POLICY):
            yield Manifest(_FOLDER, policy(plan, name).body, about=subjects, trace=partial(trace_policy, plan, name))
        for binding in (
            admission_binding(
                GRANTS_POLICY, GRANTS_POLICY, _NOWHERE, {"name": "grants", "namespace": SYSTEM_NAMESPACE}
            ),
            admission_binding(DEVICES_POLICY, DEVICES_POLICY, _TENANTS),
        ):
            yield Manifest(_FOLDER, binding, about=cluster, trace=trace)
        for found in policies(plan):
            if found.name in _WITHOUT_PARAMETERS:
                trace = partial(trace_policy, plan, found.name)
                yield Manifest(_FOLDER, found.body, about=cluster, trace=trace)
                binding = admission_binding(found.name, found.name, _WITHOUT_PARAMETERS[found.name])
                yield Manifest(_FOLDER, binding, about=cluster, trace=partial(_trace_binding, plan, found.name))


_TENANTS: Final = {"matchExpressions": [{"key": TENANT_LABEL, "operator": "Exists"}]}

_WITHOUT_PARAMETERS: Final[Mapping[str, Mapping[str, Any]]] = {
    **dict.fromkeys(
        (CLAIMS_POLICY, JOBS_POLICY, FRAMEWORKS_POLICY, PROJECTS_POLICY, GRACE_POLICY, RUNNING_POLICY), _TENANTS
    ),
    NODE_FEATURES_POLICY: _TENANTS,
    POD_SECURITY_POLICY: {
        "matchExpressions": [*_TENANTS["matchExpressions"], {"key": RDMA_LABEL, "operator": "Exists"}]
    },
}
"""The policies beside that on devices that need no parameters, with the namespaces that they hold in."""


_NOWHERE: Final = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "DoesNotExist"}]}
"""The namespaces, namely none, of a binding that is there while no tenant has a namespace.

A policy with parameters has it. An API server that finds no binding with parameters of a kind stops to read that kind,
for good: parameters that come later do not exist for it, and those that it has seen stay in force until it is started
again (https://github.com/kubernetes/kubernetes/issues/130887). The kind is ConfigMap for all policies of gpuplan. A
policy without parameters has one binding for all namespaces of tenants at once.
"""


def _priority_class(priority: PriorityClass, scheduler: SchedulerTraits) -> dict[str, Any]:
    """Return a class. It has no field for whether its pods may be evicted: kube-scheduler evicts by value alone.

    With Kueue no class preempts by itself. Kueue evicts workloads by quota, and a pod that it has admitted has its
    place; kube-scheduler, which knows no quotas, would evict other tenants' pods for it, and Kueue would admit those
    again.
    """
    preempts = priority.spec.preempts and not scheduler.leaves_preemption_to_queues
    return new_object(
        "scheduling.k8s.io/v1",
        "PriorityClass",
        priority.name,
        value=priority.spec.value,
        preemptionPolicy="PreemptLowerPriority" if preempts else "Never",
        **given(globalDefault=priority.spec.default or None, description=priority.spec.description),
    )


# --- Where it comes from -----------------------------------------------------------------------------------------


def _trace_class(plan: Plan, priority: PriorityClass) -> Routes:
    """Yield the routes of a class. One that says itself that it does not preempt does so with any scheduler."""
    yield ("metadata", "name"), named(priority)
    yield ("value",), copied(priority.at / "value")
    yield ("globalDefault",), copied(priority.at / "default")
    yield ("description",), copied(priority.at / "description")
    if priority.spec.preempts:
        yield ("preemptionPolicy",), scheduler_of(plan)
    if not plan.scheduler.leaves_preemption_to_queues:
        yield ("preemptionPolicy",), chosen(priority.at / "preempts")


def _trace_guarded(plan: Plan) -> Routes:
    yield (), admission_of(plan)


def _trace_binding(plan: Plan, name: str) -> Routes:
    """Yield what decides that the policy is there."""
    yield from _trace_guarded(plan)
    if name == GRACE_POLICY:
        yield (), chosen(plan.cluster.at / "admission" / "gracePeriod")
    elif name == CLAIMS_POLICY:
        yield (), claims_of(plan)
    elif name not in (POD_SECURITY_POLICY, NODE_FEATURES_POLICY):
        yield (), (*scheduler_of(plan), *(frameworks_of(plan) if name == FRAMEWORKS_POLICY else ()))
