"""The back end of the stage `scheduling`: priority classes, and the admission policies that keep tenants apart.

Both policies look at the pods of tenants' namespaces alone. Namespaces that belong to no tenant are left as they are:
the GPU Operator's own pods live in such a one and need what the policies refuse, and there are no grants to hold the
others to. Whoever may create pods there can use every GPU, so that right belongs to the platform team.

Pods are judged, not the Deployments or Jobs that make them: a refusal shows in the events of the ReplicaSet or the Job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    trace_policy,
)
from gpuplan.compiler.backends.base import text_of
from gpuplan.compiler.manifests import Manifest, admission_binding
from gpuplan.compiler.manifests.bodies import given, new_object
from gpuplan.compiler.manifests.provenance import Routes, chosen, copied, ordered
from gpuplan.compiler.planning import sources
from gpuplan.compiler.planning.grants import (
    GRANTS_POLICY,
    NAME_LABEL,
    QUEUES_POLICY,
    RDMA_LABEL,
    SYSTEM_NAMESPACE,
    enforcements,
    has_admission_policies,
    place_of_enforcement,
    whose_enforcement,
)
from gpuplan.compiler.planning.plan import TENANT_LABEL, Plan, PriorityClass, Stage
from gpuplan.compiler.planning.schedulers import SchedulerTraits
from gpuplan.compiler.planning.sources import admission_of, claims_of, frameworks_of, named, scheduler_of
from gpuplan.compiler.planning.subjects import RESOURCES, about, every
from gpuplan.compiler.policy.models import Enforcement

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
        yield Manifest(_FOLDER, namespace, about=cluster, trace=trace, why=text_of("why-gpuplan-system"))
        for found in policies(plan):
            subjects, trace = _ABOUT.get(found.name, ()), partial(trace_policy, plan, found.name)
            yield Manifest(_FOLDER, found.body, about=(*cluster, *subjects), trace=trace, why=found.why)
            if found.name not in _NAMESPACES:
                continue
            modes = () if found.name in _SAME_EVERYWHERE else tuple(enforcements(plan))
            parameters = {"name": "grants", "namespace": SYSTEM_NAMESPACE} if found.has_parameters else None
            why = text_of("why-nowhere") if found.has_parameters else found.why
            subjects = (*cluster, *(whose_enforcement(plan) if modes else ()))
            for mode in modes or (None,):
                warns = mode is Enforcement.WARN
                name = f"{found.name}-{mode}" if warns and len(modes) > 1 else found.name
                selector = {"matchExpressions": [*_NAMESPACES[found.name], *(_with(plan, mode) if mode else ())]}
                binding = admission_binding(name, found.name, selector, parameters, warns=warns)
                trace = partial(_trace_binding, plan, found.name, mode)
                yield Manifest(_FOLDER, binding, about=subjects, trace=trace, why=why)


def _with(plan: Plan, mode: Enforcement) -> Iterator[Mapping[str, Any]]:
    """Yield what selects namespaces with an enforcement from those with a tenant's label, if there are others.

    Each namespace of a tenant is in the binding of one enforcement, by labels that nobody in it can change.
    Requirements of a selector hold together. First come tenants with such namespaces, and then the names of their other
    namespaces. A label of a tenant that no policy has is held to the cluster's enforcement.
    """
    by_mode = enforcements(plan)
    if len(by_mode) == 1:
        return
    (others,) = (named for other, named in by_mode.items() if other is not mode)
    own = by_mode[mode]
    is_usual = mode is plan.cluster.spec.admission.enforcement
    if tenants := sorted(others.keys() - own.keys() if is_usual else own):
        yield {"key": TENANT_LABEL, "operator": "NotIn" if is_usual else "In", "values": tenants}
    if names := sorted(name for tenant in own for name in others.get(tenant, ()) if name):
        yield {"key": NAME_LABEL, "operator": "NotIn", "values": names}


_TENANTS: Final = ({"key": TENANT_LABEL, "operator": "Exists"},)

_NOWHERE: Final = ({"key": NAME_LABEL, "operator": "DoesNotExist"},)
"""The namespaces, namely none, of a binding that is there while no tenant has a namespace.

A policy with parameters has it. An API server that finds no binding with parameters of a kind stops to read that kind,
for good: parameters that come later do not exist for it, and those that it has seen stay in force until it is started
again (https://github.com/kubernetes/kubernetes/issues/130887). The kind is ConfigMap for all policies of gpuplan. A
policy without parameters has one binding for all namespaces of tenants at once.
"""

_ABOUT: Final = {
    **dict.fromkeys((GRANTS_POLICY, DEVICES_POLICY), (*RESOURCES, *every(PriorityClass))),
    QUEUES_POLICY: every(PriorityClass),
}
"""The documents that decide about a policy beside the cluster."""

_NAMESPACES: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    GRANTS_POLICY: _NOWHERE,
    **dict.fromkeys(
        (CLAIMS_POLICY, DEVICES_POLICY, FRAMEWORKS_POLICY, GRACE_POLICY, JOBS_POLICY, PROJECTS_POLICY, RUNNING_POLICY),
        _TENANTS,
    ),
    NODE_FEATURES_POLICY: _TENANTS,
    POD_SECURITY_POLICY: (*_TENANTS, {"key": RDMA_LABEL, "operator": "Exists"}),
}
"""The namespaces that each policy holds in, refusing or warning. Others have a binding for each namespace."""

_SAME_EVERYWHERE: Final = (GRANTS_POLICY, NODE_FEATURES_POLICY)
"""The policies with one binding here whatever is enforced, since one of them selects nothing.

The other keeps tenants from labels of nodes, by which other tenants get their GPUs, and no work needs what it refuses.
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


def _trace_binding(plan: Plan, policy: str, mode: Enforcement | None) -> Routes:
    """Yield what decides that the policy is there, and where it holds if some namespaces have another ``mode``.

    Of several places that give namespaces an enforcement, none alone decides that a binding has it.
    """
    yield from _trace_guarded(plan)
    if policy == GRACE_POLICY:
        yield (), chosen(plan.cluster.at / "admission" / "gracePeriod")
    elif policy == CLAIMS_POLICY:
        yield (), claims_of(plan)
    elif policy not in (*_ABOUT, POD_SECURITY_POLICY, NODE_FEATURES_POLICY):
        yield (), (*scheduler_of(plan), *(frameworks_of(plan) if policy == FRAMEWORKS_POLICY else ()))
    if mode is None:
        return
    by_mode, cluster = enforcements(plan), plan.cluster
    is_divided, is_second = len(by_mode) > 1, mode is Enforcement.WARN
    everything = {cluster.at / "admission" / "enforcement": None}
    for other, spaces in by_mode.items():
        owned = ((tenant, name) for tenant in plan.tenants for name in spaces.get(tenant.name, ()))
        places = dict.fromkeys(place_of_enforcement(cluster, *each) for each in owned)
        everything |= places
        if len(places) == 1 and (is_second or other is mode):
            yield () if is_divided and is_second else ("spec", "validationActions"), chosen(*places)
    tenants = {tenant.name: tenant for tenant in plan.tenants}
    for index, expression in enumerate(_with(plan, mode), start=len(_NAMESPACES[policy])):
        route = ("spec", "matchResources", "namespaceSelector", "matchExpressions", index)
        yield route, chosen(*everything)
        origins = [
            sources.name_of(tenants[value])
            if expression["key"] == TENANT_LABEL
            else sources.namespace_of(plan.owners[value], value)
            for value in expression["values"]
        ]
        for position, place in enumerate(origins):
            yield (*route, "values", position), (*copied(place), *ordered(*origins))
