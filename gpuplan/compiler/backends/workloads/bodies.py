"""Names and labels of the objects of workloads, and the terms by which each scheduler knows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, assert_never

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests.bodies import digest, new_object
from gpuplan.compiler.manifests.provenance import Trace
from gpuplan.compiler.planning.kai import queue_of
from gpuplan.compiler.planning.kueue import ANY_TOPOLOGY, PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY, TOGETHER, local_queue
from gpuplan.compiler.planning.plan import MAIN_CONTAINER, TENANT_LABEL, WORKLOAD_LABEL, Plan, Workload
from gpuplan.compiler.planning.preemption import preemptibility
from gpuplan.compiler.planning.schedulers import kai, kueue, runai
from gpuplan.compiler.planning.workspaces import files_of
from gpuplan.compiler.policy.models import Inference, SchedulerKind, TrainingKind

NOTHING: Final[Mapping[str, str]] = {}

MAIN: Final = MAIN_CONTAINER

TEMPLATE: Final = ("spec", "template")
"""The place where most kinds have their pods."""

BEFORE, AFTER = 0, 1
"""The order of what pods need, and of what runs them. Whoever waits until what comes first is healthy waits for
downloads and for no service or training. A volume without a download may wait for its first pod, so it comes with the
pods."""

Written = tuple[int, dict[str, Any], Trace]
"""A number for one of the two, an object, and where it comes from."""

_LONGEST: Final = 63


def workload_object(
    api_version: str,
    kind: str,
    name: str,
    workload: Workload,
    labels: Mapping[str, str] = NOTHING,
    annotations: Mapping[str, str] = NOTHING,
    **body: object,
) -> dict[str, Any]:
    """Return an object of a workload, with what its scheduler reads there."""
    all_labels = {**labels_of(workload), **labels}
    return new_object(
        api_version, kind, name, workload.namespace, labels=all_labels, annotations=dict(annotations), **body
    )


def labels_of(workload: Workload) -> dict[str, str]:
    return {TENANT_LABEL: workload.tenant.name, WORKLOAD_LABEL: workload.name}


def selector_of(workload: Workload) -> dict[str, str]:
    """Return the label that never changes, as a selector can never be changed.

    No other pods of the namespace have it.
    """
    return {WORKLOAD_LABEL: workload.name}


def config_name(workload: Workload) -> str:
    return f"{workload.name}-{digest(files_of(workload))}"


def job_name(name: str, content: Mapping[str, Any], pods: int = 1, around: str = "") -> str:
    """Return the name, cut if need be, and a digest of what the Job is.

    A Job's pods cannot be changed, and pods do not look at a ConfigMap again after they have started. Both have names
    that change with their content, so that a change is a new object: Argo CD's other way, `Replace=true,Force=true`,
    deletes and creates again, and makes no difference to what runs (`docs/user-guide/sync-options.md` there).

    A pod's host name is that of its Job and its index, in at most 63 characters: the API server refuses a Job whose
    last pod would have a longer one (`ValidateJob` in `pkg/apis/batch/validation/validation.go` of
    kubernetes/kubernetes). ``around`` is the rest of the longest name that somebody makes of this one.
    """
    room = _LONGEST - len("-12345678") - len(f"-{max(pods - 1, 0)}{around}")
    return f"{name[:room].rstrip('-')}-{digest(content)}"


# --- Terms of schedulers -----------------------------------------------------------------------------------------


GANG: Final = "kai.scheduler/batch-min-member"
TOPOLOGY: Final = "kai.scheduler/topology"
KAI_PREFERRED: Final = "kai.scheduler/topology-preferred-placement"
KAI_REQUIRED: Final = "kai.scheduler/topology-required-placement"
FRACTION: Final = "gpu-fraction"
GPU_MEMORY: Final = "gpu-memory"
"""A number of MiB, without a suffix (`docs/gpu-sharing/README.md` of KAI-Scheduler).

Run:ai has it so, too ("Setting Dynamic GPU Fractions via YAML" in the documentation of 2.25), and schedules by
KAI-Scheduler from 3.0 on. Its 2.22 was seen to let a pod have as many millions of bytes, a twentieth less.
"""

PORTION_LIMIT: Final = f"kai.scheduler/container.{MAIN}.gpu-memory.portion.limit"
"""The most of a GPU's memory that a container may use, from Run:ai 3.0 on: `gpu-fraction` is what it always has.

It is above that and below 1, with up to five digits (`validateGpuMemoryPortionLimitAnnotation` in
`pkg/common/resources/gpu_sharing_validation.go` on the branch `main` of KAI-Scheduler, whose binder makes a limit in
bytes of it). KAI-Scheduler v0.17.0 has no such file. Which release has it, and which one Run:ai 3.0 comes with, is not
known.
"""

MEMORY_LIMIT: Final = "RUNAI_GPU_MEMORY_LIMIT"
"""The same as a variable of the container, which Run:ai reads up to 2.26 ("Setting Dynamic GPU Fractions via YAML")."""

_WHOLE: Final = "0.99999"
"""The most that a limit in an annotation may be."""


class Terms(NamedTuple):
    """The labels, annotations and variables of the Deployment or Job and of its pods; no scheduler is the default one.

    ``part_annotations`` are those of a Job that is part of a set.
    """

    scheduler: str = ""
    labels: Mapping[str, str] = NOTHING
    annotations: Mapping[str, str] = NOTHING
    pod_labels: Mapping[str, str] = NOTHING
    pod_annotations: Mapping[str, str] = NOTHING
    env: Mapping[str, str] = NOTHING
    part_annotations: Mapping[str, str] = NOTHING


def terms_of(plan: Plan, workload: Workload) -> Terms:
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
    """Return the queue by name, though Kueue would find it by itself.

    A Job is queued as a whole, and its pods must not name the queue: they would be queued once more. Of a Deployment
    the pods are queued, one by one; Kueue's webhook hands them the queue's name and nothing else in older releases
    (`pkg/controller/jobs/deployment/deployment_webhook.go` there).

    `suspend` is not stated, nor is a Job's least number of pods: both are Kueue's to write, and whoever restores what
    is in Git would stop every Job that Kueue has started.
    """
    labels = {kueue.QUEUE_LABEL: local_queue(workload.tenant)}
    if workload.priority_class:
        labels[kueue.PRIORITY_LABEL] = workload.priority_class.name
    annotations: dict[str, str] = {}
    if workload.pool.spec.topology:
        # An annotation is needed even if it does not matter where in the pool's Topology the pods are. Leaders and
        # workers are two sets of pods to Kueue, which it would place each for itself.
        annotations = {ANY_TOPOLOGY: "true"}
        if near := workload.closeness:
            level = {REQUIRED_TOPOLOGY if near.is_required else PREFERRED_TOPOLOGY: near.level}
            annotations = level | ({TOGETHER: workload.name} if workload.is_grouped else {})
    if isinstance(workload.work, Inference):
        return Terms(labels=labels, pod_labels=labels, pod_annotations=annotations)
    return Terms(labels=labels, pod_annotations=annotations)


def _kai(workload: Workload) -> Terms:
    """Return the queue, the shard and whether the pods may be evicted, on the pods themselves.

    What holds for all pods of a Job together is read from the Job (`plugins/job` and `plugins/defaultgrouper` below
    `pkg/podgrouper/podgrouper` of KAI-Scheduler): without a number there any of its pods may start alone.
    """
    labels = {kai.QUEUE_LABEL: queue_of(workload.tenant, workload.pool.name), kai.NODE_POOL_LABEL: workload.pool.name}
    if workload.priority_class:
        labels[kai.PREEMPTIBILITY_LABEL] = preemptibility(workload.priority_class)
    annotations = _gang(workload)
    if found := workload.closeness:
        placement = KAI_REQUIRED if found.is_required else KAI_PREFERRED
        annotations |= {TOPOLOGY: workload.pool.name, placement: found.level}
    parts = _part(workload)
    return Terms(kai.SCHEDULER_NAME, {}, annotations, labels, _fraction(workload), part_annotations=parts)


def _runai(workload: Workload) -> Terms:
    """Return the node pool; the project is that of the namespace.

    Gangs are as in KAI-Scheduler, which is its open part. Topology is the node pool's there, and its objects have other
    names than the policy's.
    """
    annotations, env, asked = _fraction(workload), {}, workload.fraction
    if asked and asked.most > asked.least:
        annotations[PORTION_LIMIT] = f"{asked.most:f}" if asked.most < 1 else _WHOLE
        env[MEMORY_LIMIT] = f"{asked.most:f}"
    labels = {runai.NODE_POOL_LABEL: workload.pool.name}
    return Terms(runai.SCHEDULER_NAME, {}, _gang(workload), labels, annotations, env, _part(workload))


def _fraction(workload: Workload) -> dict[str, str]:
    """Return the annotation in place of a resource: KAI-Scheduler refuses pods that ask for both."""
    if workload.fraction is None:
        return {}
    if workload.fraction.memory_mib is not None:
        return {GPU_MEMORY: str(workload.fraction.memory_mib)}
    return {FRACTION: f"{workload.fraction.least:f}"}


def _gang(workload: Workload) -> dict[str, str]:
    """Return the size of a Job's gang. Pods of a replica of a service are one by the size of its LeaderWorkerSet."""
    return {GANG: str(workload.gang)} if workload.gang and workload.ends else {}


def _part(workload: Workload) -> dict[str, str]:
    """Return how many pods of a JobSet's Job start together: all of them, if nothing is said.

    (`singleReplicaSubGroupMinMember` in `pkg/podgrouper/podgrouper/plugins/jobset/jobset_grouper.go` of KAI-Scheduler
    v0.17.0, to which a TrainJob is its JobSet. What was grouped by an earlier release has the number of the JobSet:
    `legacyMinAvailable` beside it.)
    """
    return {} if workload.training_kind is TrainingKind.JOB else {GANG: str(workload.gang or 1)}
