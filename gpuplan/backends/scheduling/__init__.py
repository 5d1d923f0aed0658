"""The back end of the stage `scheduling`: priority classes, and the admission policies that keep tenants apart.

Both policies look at the pods of tenants' namespaces alone. Namespaces that belong to no tenant are left as they are:
the GPU Operator's own pods live in such a one and need what the policies refuse, and there are no grants to hold the
others to. Whoever may create pods there can use every GPU, so that right belongs to the platform team.

Pods are judged, not the Deployments or Jobs that make them: a refusal shows in the events of the ReplicaSet or the Job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from gpuplan.manifests import Manifest, admission_binding, admission_policy
from gpuplan.manifests.bodies import given, new_object
from gpuplan.manifests.provenance import Routes, chosen, copied, unlike
from gpuplan.manifests.templates import read_rows
from gpuplan.planning.dra import uses_claims
from gpuplan.planning.grants import (
    DEVICE_VARIABLES,
    FRACTION,
    GRANTS_POLICY,
    SYSTEM_NAMESPACE,
    has_admission_policies,
)
from gpuplan.planning.kueue import ADMISSION_GATE
from gpuplan.planning.plan import POOL_LABEL, TENANT_LABEL, Plan, PriorityClass, Stage
from gpuplan.planning.schedulers import SCHEDULERS, SchedulerTraits
from gpuplan.planning.schedulers.kai import NODE_POOL_LABEL, QUEUE_LABEL, SCHEDULER_NAME
from gpuplan.planning.sources import admission_of, claims_of, default_priority_of, named, scheduler_of
from gpuplan.planning.subjects import RESOURCES, about, every

_FOLDER: Final = Stage.SCHEDULING.value
_FILE: Final = Path(__file__).with_name("policies.yaml")
_DEVICES_POLICY: Final = "gpuplan-devices"
_JOBS_POLICY: Final = "gpuplan-jobs"
_ROWS: Final = {GRANTS_POLICY: "grants", _DEVICES_POLICY: "devices", _JOBS_POLICY: "jobs"}


def render(plan: Plan) -> Iterator[Manifest]:
    """The objects of the stage; a cluster too old for admission policies gets its priority classes alone.

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
        for name in (GRANTS_POLICY, _DEVICES_POLICY):
            yield Manifest(_FOLDER, _policy(plan, name), about=subjects, trace=partial(_trace_policy, plan, name))
        for body in _bindings():
            yield Manifest(_FOLDER, body, about=cluster, trace=trace)
        if plan.scheduler.suspends_jobs:
            trace = partial(_trace_policy, plan, _JOBS_POLICY)
            yield Manifest(_FOLDER, _policy(plan, _JOBS_POLICY), about=cluster, trace=trace)
            binding = admission_binding(_JOBS_POLICY, _JOBS_POLICY, _TENANTS)
            yield Manifest(_FOLDER, binding, about=cluster, trace=partial(_trace_guarded, plan, by_scheduler=True))


_TENANTS: Final = {"matchExpressions": [{"key": TENANT_LABEL, "operator": "Exists"}]}


def _bindings() -> Iterator[dict[str, Any]]:
    """Those of the policies on pods.

    A policy with parameters has a binding in no namespace, so that there is one while no tenant has a namespace. An API
    server that finds no binding with parameters of a kind stops to read that kind, for good: parameters that come later
    do not exist for it, and those that it has seen stay in force until it is started again
    (https://github.com/kubernetes/kubernetes/issues/130887). The kind is ConfigMap for all policies of gpuplan. Those
    without parameters have one for all namespaces of tenants at once.
    """
    nowhere = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "DoesNotExist"}]}
    parameters = {"name": "grants", "namespace": SYSTEM_NAMESPACE}
    yield admission_binding(GRANTS_POLICY, GRANTS_POLICY, nowhere, parameters)
    yield admission_binding(_DEVICES_POLICY, _DEVICES_POLICY, _TENANTS)


def _priority_class(priority: PriorityClass, scheduler: SchedulerTraits) -> dict[str, Any]:
    """Whether its pods may be evicted has no field here: kube-scheduler evicts by value alone.

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


def _policy(plan: Plan, name: str) -> dict[str, Any]:
    """What `policies.yaml` says of pods or Jobs, and why."""
    return _policy_where(plan, name, _default_priority(plan), has_claims=uses_claims(plan))


def _policy_where(plan: Plan, name: str, default_priority: int, *, has_claims: bool) -> dict[str, Any]:
    facts = {
        "claims": has_claims,
        "finds-pools": plan.scheduler.finds_pools,
        "fractions": plan.scheduler.has_fractions,
        plan.scheduler.kind.value: True,
    }
    holding = {fact for fact, is_so in facts.items() if is_so}
    values = _values(plan.scheduler, holding, default_priority)
    return admission_policy(name, read_rows(_FILE)[_ROWS[name]], holding, values)


def _default_priority(plan: Plan) -> int:
    return max((priority.spec.value for priority in plan.priority_classes if priority.spec.default), default=0)


def _values(scheduler: SchedulerTraits, facts: set[str], default_priority: int) -> Mapping[str, str]:
    """What stands in the places of the file's texts."""
    uses = {"claims": "size(variables.claims) > 0 || ", "fractions": "variables.asksFraction || "}
    schedulers = scheduler.pod_schedulers
    return {
        "default_priority": str(default_priority),
        "device_variables": str(list(DEVICE_VARIABLES)),
        "fraction": FRACTION,
        "gate": ADMISSION_GATE,
        "kai_scheduler": SCHEDULER_NAME,
        "node_pool_label": NODE_POOL_LABEL,
        "pool_label": POOL_LABEL,
        "queue_label": QUEUE_LABEL,
        "schedulers": str(list(schedulers)),
        "schedulers_listed": " or ".join(schedulers),
        "uses_otherwise": "".join(text for fact, text in uses.items() if fact in facts),
    }


# --- Where it comes from -----------------------------------------------------------------------------------------


def _trace_class(plan: Plan, priority: PriorityClass) -> Routes:
    """A class that says itself that it does not preempt does so with any scheduler."""
    yield ("metadata", "name"), named(priority)
    yield ("value",), copied(priority.at / "value")
    yield ("globalDefault",), copied(priority.at / "default")
    yield ("description",), copied(priority.at / "description")
    if priority.spec.preempts:
        yield ("preemptionPolicy",), scheduler_of(plan)
    if not plan.scheduler.leaves_preemption_to_queues:
        yield ("preemptionPolicy",), chosen(priority.at / "preempts")


def _trace_guarded(plan: Plan, *, by_scheduler: bool = False) -> Routes:
    yield (), (*admission_of(plan), *(scheduler_of(plan) if by_scheduler else ()))


def _trace_policy(plan: Plan, name: str) -> Routes:
    """Of its texts and their places, what would be otherwise with another scheduler, or the other way of allocation."""
    yield from _trace_guarded(plan, by_scheduler=name == _JOBS_POLICY)
    body, has_claims, default = _policy(plan, name), uses_claims(plan), _default_priority(plan)
    for traits in SCHEDULERS.values():
        for route in unlike(body, _policy(plan.under(traits), name)):
            yield route, scheduler_of(plan)
    for route in unlike(body, _policy_where(plan, name, default, has_claims=not has_claims)):
        yield route, claims_of(plan)
    for route in unlike(body, _policy_where(plan, name, default + 1, has_claims=has_claims)):
        yield route, default_priority_of(plan)
