"""What each scheduler reads on a workload and on its pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from gpuplan.planning.kai import queue_name
from gpuplan.planning.kueue import ANY_TOPOLOGY, DEFAULT_QUEUE, PREFERRED_TOPOLOGY
from gpuplan.planning.plan import Plan, Workload
from gpuplan.planning.schedulers import kai, kueue, runai
from gpuplan.policy.models import Inference, SchedulerKind, Training
from gpuplan.values import NamedTuple

_GANG: Final = "kai.scheduler/batch-min-member"
_TOPOLOGY: Final = "kai.scheduler/topology"
_PREFERRED_TOPOLOGY: Final = "kai.scheduler/topology-preferred-placement"
_FRACTION: Final = "gpu-fraction"
_FRACTION_LIMIT: Final = "gpu-fraction-limit"

_NOTHING: Final[Mapping[str, str]] = {}


class Terms(NamedTuple):
    """Labels and annotations of the Deployment or Job and of its pods; no scheduler is the default one."""

    scheduler: str = ""
    labels: Mapping[str, str] = _NOTHING
    annotations: Mapping[str, str] = _NOTHING
    pod_labels: Mapping[str, str] = _NOTHING
    pod_annotations: Mapping[str, str] = _NOTHING


def terms(plan: Plan, workload: Workload) -> Terms:
    match plan.scheduler.kind:
        case SchedulerKind.KUBERNETES:
            return Terms()
        case SchedulerKind.KUEUE:
            return _kueue(workload)
        case SchedulerKind.KAI:
            return _kai(workload)
        case SchedulerKind.RUNAI:
            return _runai(workload)
        case unknown:
            assert_never(unknown)


def _kueue(workload: Workload) -> Terms:
    """The queue by name, though Kueue would find it by itself.

    A Job is queued as a whole, and its pods must not name the queue: they would be queued once more. Of a Deployment
    the pods are queued, one by one; Kueue's webhook hands them the queue's name and nothing else in older releases
    (`pkg/controller/jobs/deployment/deployment_webhook.go` there).

    `suspend` is not stated, nor is a Job's least number of pods: both are Kueue's to write, and whoever restores what
    is in Git would stop every Job that Kueue has started.
    """
    labels = {kueue.QUEUE_LABEL: DEFAULT_QUEUE}
    if workload.priority_class:
        labels[kueue.PRIORITY_LABEL] = workload.priority_class.name
    annotations = _kueue_topology(workload)
    if isinstance(workload.work, Inference):
        return Terms(labels=labels, pod_labels=labels, pod_annotations=annotations)
    return Terms(labels=labels, pod_annotations=annotations)


def _kueue_topology(workload: Workload) -> dict[str, str]:
    """Where in the pool's Topology the pods should be; an annotation is needed even where it does not matter."""
    if not workload.pool.spec.topology:
        return {}
    level = _level(workload, workload.work) if isinstance(workload.work, Training) else ""
    return {PREFERRED_TOPOLOGY: level} if level else {ANY_TOPOLOGY: "true"}


def _kai(workload: Workload) -> Terms:
    """The queue, the shard and whether the pods may be evicted, on the pods themselves.

    What holds for all pods of a Job together is read from the Job (`plugins/job` and `plugins/defaultgrouper` below
    `pkg/podgrouper/podgrouper` of KAI-Scheduler): without a number there any of its pods may start alone.
    """
    labels = {
        kai.QUEUE_LABEL: queue_name(workload.tenant.name, workload.pool.name),
        kai.NODE_POOL_LABEL: workload.pool.name,
    }
    if workload.priority_class:
        is_preemptible = workload.priority_class.spec.preemptible
        labels[kai.PREEMPTIBILITY_LABEL] = "preemptible" if is_preemptible else "non-preemptible"
    annotations = _gang(workload)
    if isinstance(workload.work, Training) and (level := _level(workload, workload.work)):
        annotations |= {_TOPOLOGY: workload.pool.name, _PREFERRED_TOPOLOGY: level}
    return Terms(kai.SCHEDULER_NAME, {}, annotations, labels, _fraction(workload))


def _runai(workload: Workload) -> Terms:
    """The node pool; the project is that of the namespace. Gangs are as in KAI-Scheduler, which is its open part.

    Topology is the node pool's there, and its objects have other names than the policy's.
    """
    annotations = _fraction(workload)
    if workload.fraction and workload.fraction.most > workload.fraction.least:
        annotations[_FRACTION_LIMIT] = f"{workload.fraction.most:f}"
    return Terms(runai.SCHEDULER_NAME, {}, _gang(workload), {runai.NODE_POOL_LABEL: workload.pool.name}, annotations)


def _fraction(workload: Workload) -> dict[str, str]:
    """In place of a resource: KAI-Scheduler refuses pods that ask for both."""
    return {_FRACTION: f"{workload.fraction.least:f}"} if workload.fraction else {}


def _gang(workload: Workload) -> dict[str, str]:
    work = workload.work
    return {_GANG: str(work.gang)} if isinstance(work, Training) and work.gang else {}


def _level(workload: Workload, training: Training) -> str:
    """Where a gang's pods should be together: as near as can be, and where that is full, one level up and so on."""
    return workload.pool.spec.topology[-1] if training.gang and workload.pool.spec.topology else ""
