"""What pods must say on clusters with KAI-Scheduler: their queue, their shard, their scheduler, and no more later.

Pods of another scheduler are counted in no queue. A pod's own labels are judged here, so that its author reads what to
write; what the scheduler goes by in the end is the PodGroup, which `gpuplan-queues` judges.
"""

from __future__ import annotations

from gpuplan.manifests import AdmissionRule
from gpuplan.planning.schedulers.kai import NODE_POOL_LABEL, QUEUE_LABEL, SCHEDULER_NAME

KAI_VARIABLES = {
    "labels": "has(object.metadata.labels) ? object.metadata.labels : {}",
    "annotations": "has(object.metadata.annotations) ? object.metadata.annotations : {}",
    # Each queue of the tenant as [pool, queue].
    "queues": r"params.data.queues.split('\n').filter(line, line != '').map(line, line.split(' '))",
}

_SCHEDULED_BY_KAI = AdmissionRule(
    f"!variables.usesGpus || (has(object.spec.schedulerName) && object.spec.schedulerName == '{SCHEDULER_NAME}')",
    f"pods that ask for GPUs must set schedulerName to {SCHEDULER_NAME}",
)

_QUEUE_NAMED = AdmissionRule(
    f"""
    !variables.usesGpus || ('{QUEUE_LABEL}' in variables.labels &&
      variables.queues.exists(q, q[0] == variables.pool && q[1] == variables.labels['{QUEUE_LABEL}']))
    """,
    f"pods that ask for GPUs must name their tenant's queue in the label {QUEUE_LABEL}",
    f"""
    'pods that ask for GPUs in pool ' + variables.pool + ' must name the queue of tenant ' + variables.tenant +
    ' there: set the label {QUEUE_LABEL} to ' +
    variables.queues.filter(q, q[0] == variables.pool).map(q, q[1]).join(' or ')
    """,
)

_SHARD_NAMED = AdmissionRule(
    f"""
    !variables.usesGpus || ('{NODE_POOL_LABEL}' in variables.labels &&
      variables.labels['{NODE_POOL_LABEL}'] == variables.pool)
    """,
    f"pods that ask for GPUs must name their pool in the label {NODE_POOL_LABEL}",
    f"""
    'pods that ask for GPUs in pool ' + variables.pool + ' must say so to its scheduler: set the label ' +
    '{NODE_POOL_LABEL} to ' + variables.pool
    """,
)

# The scheduler finds the pods of a PodGroup by this annotation, in any namespace (`podByPodGroupIndexer` in
# `pkg/scheduler/cache/cluster_info/indexers.go` of KAI-Scheduler): a pod that brings it would run on somebody else's
# quota. The pod grouper adds it later.
_NO_GROUP_OF_ITS_OWN = AdmissionRule(
    "!('pod-group-name' in variables.annotations) && !('kai.scheduler/skip-podgrouper' in variables.annotations)",
    "annotations pod-group-name and kai.scheduler/skip-podgrouper must not be set; KAI-Scheduler groups pods itself",
)

KAI_RULES = (_SCHEDULED_BY_KAI, _QUEUE_NAMED, _SHARD_NAMED, _NO_GROUP_OF_ITS_OWN)
"""Of `gpuplan-grants`, for new pods."""

# What the scheduler reads at each of its turns: with a smaller fraction a pod that runs would take less of its quota
# than of its GPU, and with another group somebody else's.
_READ_LATER = """
(a in ['pod-group-name', 'gpu-fraction', 'gpu-memory', 'gpu-fraction-num-devices'] ||
      a.startsWith('nvidia.com/container.'))
""".strip()

KAI_ANNOTATIONS_STAY = AdmissionRule(
    f"""
    variables.isNew ||
    (variables.annotations.all(a, !{_READ_LATER} ||
      (a in variables.oldAnnotations && variables.oldAnnotations[a] == variables.annotations[a])) &&
    variables.oldAnnotations.all(a, !{_READ_LATER} || a in variables.annotations)) ||
    variables.isController
    """,
    "annotations that KAI-Scheduler counts by are not to be changed; make a new pod",
)
"""Of `gpuplan-devices`, for pods that exist. The pod grouper and the binder are controllers."""
