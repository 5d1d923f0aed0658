"""The admission policy `gpuplan-queues`: work goes through its tenant's own queue, with its priority classes.

Which queue it is needs no policy: a LocalQueue names a ClusterQueue, and that takes work of its tenant's namespaces
alone; what is in the way of work Kueue writes into the status of its Workload. Which class it is nothing else says:
Kueue reads it from a label of the job, or from its pods, and orders all tenants' work by it where their shares are
equal.

So the label is judged where a tenant writes it: a refusal is the answer to whoever does. And Kueue makes a Workload of
each job (`ExtractPriority` in `pkg/controller/jobframework/reconciler.go` there), which is what it goes by in the end:
Workloads are judged, too, whoever makes them and wherever the class is from. That refusal shows in the log of Kueue's
controller alone; the job stays suspended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.manifests import AdmissionRule, admission_policy
from gpuplan.planning.grants import QUEUES_POLICY
from gpuplan.planning.plan import Plan
from gpuplan.planning.schedulers.kueue import PRIORITY_LABEL

_OPERATIONS = ("CREATE", "UPDATE")

_MATCH = {
    ("kueue.x-k8s.io", "v1beta2"): {"workloads": _OPERATIONS},
    ("", "v1"): {"pods": _OPERATIONS},
    ("apps", "v1"): {"deployments": _OPERATIONS, "statefulsets": _OPERATIONS},
    ("batch", "v1"): {"jobs": _OPERATIONS},
    ("jobset.x-k8s.io", "v1alpha2"): {"jobsets": _OPERATIONS},
}
"""Workloads, and the kinds whose label Kueue reads or hands on to pods. A kind that a cluster lacks harms nothing."""

# Fields of Workloads are asked for in variables alone: the API server warns of rules with fields that a kind lacks.
_VARIABLES = {
    "tenant": "params.data.tenant",
    "priorityClasses": r"params.data.priorityClasses.split('\n').filter(line, line != '')",
    "isWorkload": "request.kind.kind == 'Workload'",
    "isUpdate": "request.operation == 'UPDATE'",
    "priorityClass": f"""
        variables.isWorkload
        ? (has(object.spec) && has(object.spec.priorityClassRef) ? object.spec.priorityClassRef.name : '')
        : (has(object.metadata.labels) && '{PRIORITY_LABEL}' in object.metadata.labels
            ? object.metadata.labels['{PRIORITY_LABEL}'] : '')
        """,
    "priority": "has(object.spec) && has(object.spec.priority) ? object.spec.priority : 0",
    "isOldPriority": """
        variables.isUpdate && has(oldObject.spec) && has(oldObject.spec.priority) &&
        oldObject.spec.priority == variables.priority
        """,
    "isOldLabel": f"""
        variables.isUpdate && has(oldObject.metadata.labels) && '{PRIORITY_LABEL}' in oldObject.metadata.labels &&
        oldObject.metadata.labels['{PRIORITY_LABEL}'] == variables.priorityClass
        """,
}


def queues_policy(plan: Plan) -> dict[str, Any]:
    """The policy; the folder of each namespace has a binding for it."""
    return admission_policy(QUEUES_POLICY, _MATCH, _VARIABLES, (_priority_class_granted(plan),), has_parameters=True)


def _priority_class_granted(plan: Plan) -> AdmissionRule:
    """Work without a class has the priority of the default one, and up to that a class gives no power over others.

    A label says no number: what is harmless in one are the policy's own classes up to there. What was let in may be
    updated, so that its controllers can finish it when a class is withdrawn.
    """
    default = max((priority.spec.value for priority in plan.priority_classes if priority.spec.default), default=0)
    return AdmissionRule(
        f"""
        variables.priorityClass in variables.priorityClasses || (variables.isWorkload
          ? variables.priority <= {default} || variables.isOldPriority
          : variables.priorityClass in {sorted(_harmless_labels(plan, default))} || variables.isOldLabel)
        """,
        f"the work has a priority class that is not its tenant's; set the label {PRIORITY_LABEL}",
        f"""
        (variables.priorityClass == '' ? 'a priority without a class'
          : 'priority class ' + variables.priorityClass) + ' is not open to tenant ' + variables.tenant +
        '; set the label {PRIORITY_LABEL} to ' + (size(variables.priorityClasses) == 0
          ? 'nothing' : variables.priorityClasses.join(' or '))
        """,
    )


def _harmless_labels(plan: Plan, most: int) -> Iterator[str]:
    """None, which Kueue takes for no class, and names of classes with no more than a priority.

    Where a class `default` exists Kueue's webhook gives it to all that names none (`ApplyDefaultWorkloadPriorityClass`
    in `pkg/controller/jobframework/defaults.go`): it is judged by its number if it is not the policy's own.
    """
    values = {"": most, "default": most} | {priority.name: priority.spec.value for priority in plan.priority_classes}
    return (name for name, value in values.items() if value <= most)
