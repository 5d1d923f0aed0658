"""The admission policy `gpuplan-queues`: work goes through its tenant's own queue, with its priority classes.

Which queue it is needs no policy: a LocalQueue names a ClusterQueue, and that takes work of its tenant's namespaces
alone. Which class it is nothing else says: Kueue reads it from a label of the job, or from its pods, and orders all
tenants' work by it where their shares are equal. It makes a Workload of each job (`ExtractPriority` in
`pkg/controller/jobframework/reconciler.go` of Kueue), so Workloads are judged, whoever makes them. A refusal shows in
the log of Kueue's controller alone; the job stays suspended.
"""

from __future__ import annotations

from typing import Any

from gpuplan.manifests import AdmissionRule, admission_policy
from gpuplan.planning.grants import QUEUES_POLICY
from gpuplan.planning.plan import Plan

_VARIABLES = {
    "tenant": "params.data.tenant",
    "priorityClasses": r"params.data.priorityClasses.split('\n').filter(line, line != '')",
    "priorityClass": """
        has(object.spec) && has(object.spec.priorityClassRef) ? object.spec.priorityClassRef.name : ''
        """,
    "priority": "has(object.spec) && has(object.spec.priority) ? object.spec.priority : 0",
    "isUpdate": "request.operation == 'UPDATE' && has(oldObject.spec)",
}


def queues_policy(plan: Plan) -> dict[str, Any]:
    """The policy; the folder of each namespace has a binding for it."""
    return admission_policy(
        QUEUES_POLICY,
        {"workloads": ["CREATE", "UPDATE"]},
        _VARIABLES,
        (_priority_class_granted(plan),),
        has_parameters=True,
        api=("kueue.x-k8s.io", "v1beta2"),
    )


def _priority_class_granted(plan: Plan) -> AdmissionRule:
    """Work without a class has the priority of the default one, and up to that a class gives no power over others.

    What was let in may be updated, so that its controllers can finish it when a class is withdrawn.
    """
    default = max((priority.value for priority in plan.priority_classes if priority.is_default), default=0)
    return AdmissionRule(
        f"""
        variables.priorityClass in variables.priorityClasses || variables.priority <= {default} ||
        (variables.isUpdate && has(oldObject.spec.priority) && oldObject.spec.priority == variables.priority)
        """,
        "the work has a priority class that is not its tenant's; set the label kueue.x-k8s.io/priority-class",
        """
        (variables.priorityClass == '' ? 'a priority without a class'
          : 'priority class ' + variables.priorityClass) + ' is not open to tenant ' + variables.tenant +
        '; set the label kueue.x-k8s.io/priority-class to ' + (size(variables.priorityClasses) == 0
          ? 'nothing' : variables.priorityClasses.join(' or '))
        """,
    )
