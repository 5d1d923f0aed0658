"""The admission policy `gpuplan-queues`: work joins its own tenant's queues alone, with its priority classes.

KAI-Scheduler reads queue and class from a PodGroup. Its pod grouper makes one for each piece of work, from labels of
the top owner before those of the pod (`CalcPodGroupQueue` and `calcPodGroupPriorityClass` in `pkg/podgrouper/
podgrouper/plugins/defaultgrouper/default_grouper.go`), or a tenant makes it. So PodGroups are judged, whoever makes
them. A refusal shows in the events of the pod, which waits.

Whether work is preemptible is left open: what is not stays within the guarantee, and what is can only lose by it.
"""

from __future__ import annotations

from typing import Any

from gpuplan.manifests import AdmissionRule, admission_policy
from gpuplan.planning.grants import QUEUES_POLICY
from gpuplan.planning.schedulers.kai import OWN_CLASSES

_VARIABLES = {
    "tenant": "params.data.tenant",
    # Lines of a pool and the tenant's queue in it.
    "queues": r"params.data.queues.split('\n').filter(line, line != '').map(line, line.split(' ')[1])",
    "priorityClasses": r"params.data.priorityClasses.split('\n').filter(line, line != '')",
    "queue": "has(object.spec) && has(object.spec.queue) ? object.spec.queue : ''",
    "priorityClass": "has(object.spec) && has(object.spec.priorityClassName) ? object.spec.priorityClassName : ''",
    "isUpdate": "request.operation == 'UPDATE' && has(oldObject.spec)",
}

# What was let in may be updated, so that its controllers can finish it when a quota is withdrawn.
_QUEUE_GRANTED = AdmissionRule(
    """
    variables.queue in variables.queues ||
    (variables.isUpdate && has(oldObject.spec.queue) && oldObject.spec.queue == variables.queue)
    """,
    "the work names a queue that is not its tenant's; set the label kai.scheduler/queue",
    """
    'queue ' + (variables.queue == '' ? '(none)' : variables.queue) + ' is not open to tenant ' + variables.tenant +
    '; set the label kai.scheduler/queue to ' +
    (size(variables.queues) == 0 ? 'nothing: it has no queue here' : variables.queues.join(' or '))
    """,
)

# A tenant without classes gets those that the pod grouper gives to work that names none.
_PRIORITY_CLASS_GRANTED = AdmissionRule(
    f"""
    variables.priorityClass == '' || variables.priorityClass in variables.priorityClasses ||
    (size(variables.priorityClasses) == 0 && variables.priorityClass in {list(OWN_CLASSES)}) ||
    (variables.isUpdate && has(oldObject.spec.priorityClassName) &&
      oldObject.spec.priorityClassName == variables.priorityClass)
    """,
    "the work names a priority class that is not its tenant's; set priorityClassName",
    """
    'priority class ' + variables.priorityClass + ' is not open to tenant ' + variables.tenant +
    '; set priorityClassName to ' + (size(variables.priorityClasses) == 0
      ? 'nothing' : variables.priorityClasses.join(' or '))
    """,
)


def queues_policy() -> dict[str, Any]:
    """The policy; the folder of each namespace has a binding for it."""
    return admission_policy(
        QUEUES_POLICY,
        {("scheduling.run.ai", "v2alpha2"): {"podgroups": ["CREATE", "UPDATE"]}},
        _VARIABLES,
        (_QUEUE_GRANTED, _PRIORITY_CLASS_GRANTED),
        has_parameters=True,
    )
