"""The back end of the stage `scheduling`: priority classes, and the admission policies that keep tenants apart.

Both policies look at the pods of tenants' namespaces alone. Namespaces that belong to no tenant are left as they are:
the GPU Operator's own pods live in such a one and need what the policies refuse, and there are no grants to hold the
others to. Whoever may create pods there can use every GPU, so that right belongs to the platform team.

Pods are judged, not the Deployments or Jobs that make them: a refusal shows in the events of the ReplicaSet or the Job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from gpuplan.manifests import Manifest, admission_binding, admission_policy
from gpuplan.manifests.bodies import given, new_object
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
from gpuplan.planning.schedulers import SchedulerTraits
from gpuplan.planning.schedulers.kai import NODE_POOL_LABEL, QUEUE_LABEL, SCHEDULER_NAME
from gpuplan.planning.subjects import RESOURCES, about, every

_FOLDER: Final = Stage.SCHEDULING.value
_FILE: Final = Path(__file__).with_name("policies.yaml")
_DEVICES_POLICY: Final = "gpuplan-devices"
_JOBS_POLICY: Final = "gpuplan-jobs"


def render(plan: Plan) -> Iterator[Manifest]:
    """The objects of the stage; a cluster too old for admission policies gets its priority classes alone.

    The namespace of the policies' parameters has no pods. It comes before them for those who apply `build --stdout`.
    """
    for priority in plan.priority_classes:
        yield Manifest(_FOLDER, _priority_class(priority, plan.scheduler), about=about(priority))
    if has_admission_policies(plan.cluster):
        cluster = about(plan.cluster)
        enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
        yield Manifest(_FOLDER, new_object("v1", "Namespace", SYSTEM_NAMESPACE, labels=enforced), about=cluster)
        for name, rows in ((GRANTS_POLICY, "grants"), (_DEVICES_POLICY, "devices")):
            subjects = (*cluster, *RESOURCES, *every(PriorityClass))
            yield Manifest(_FOLDER, _policy(plan, name, rows), about=subjects)
        for body in _fixed_objects(plan):
            yield Manifest(_FOLDER, body, about=cluster)


def _fixed_objects(plan: Plan) -> Iterator[dict[str, Any]]:
    """The bindings, and what is refused of Jobs.

    A policy with parameters has a binding in no namespace, so that there is one while no tenant has a namespace. An API
    server that finds no binding with parameters of a kind stops to read that kind, for good: parameters that come later
    do not exist for it, and those that it has seen stay in force until it is started again
    (https://github.com/kubernetes/kubernetes/issues/130887). The kind is ConfigMap for all policies of gpuplan. Those
    without parameters have one for all namespaces of tenants at once.
    """
    nowhere = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "DoesNotExist"}]}
    tenants = {"matchExpressions": [{"key": TENANT_LABEL, "operator": "Exists"}]}
    parameters = {"name": "grants", "namespace": SYSTEM_NAMESPACE}
    yield admission_binding(GRANTS_POLICY, GRANTS_POLICY, nowhere, parameters)
    yield admission_binding(_DEVICES_POLICY, _DEVICES_POLICY, tenants)
    if plan.scheduler.suspends_jobs:
        yield _policy(plan, _JOBS_POLICY, "jobs")
        yield admission_binding(_JOBS_POLICY, _JOBS_POLICY, tenants)


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


def _policy(plan: Plan, name: str, rows: str) -> dict[str, Any]:
    """What `policies.yaml` says of pods or Jobs, and why."""
    facts = {
        "claims": uses_claims(plan),
        "finds-pools": plan.scheduler.finds_pools,
        "fractions": plan.scheduler.has_fractions,
        plan.scheduler.kind.value: True,
    }
    holding = {fact for fact, is_so in facts.items() if is_so}
    return admission_policy(name, read_rows(_FILE)[rows], holding, _values(plan, holding))


def _values(plan: Plan, facts: set[str]) -> Mapping[str, str]:
    """What stands in the places of the file's texts."""
    uses = {"claims": "size(variables.claims) > 0 || ", "fractions": "variables.asksFraction || "}
    schedulers = plan.scheduler.pod_schedulers
    default = max((priority.spec.value for priority in plan.priority_classes if priority.spec.default), default=0)
    return {
        "default_priority": str(default),
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
