"""What a tenant with `edit` may try so as to keep what it has borrowed, or to hold more than is counted."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL, QUEUE_LABEL
from tests.cluster.api import Object
from tests.cluster.lending import ELSEWHERE, GPUS, OWN, Attack, Party, Stage, comes, own_place

YEAR: Final = 365 * 24 * 3600
GROUP: Final = "kueue.x-k8s.io/pod-group-name"
COUNT: Final = "kueue.x-k8s.io/pod-group-total-count"
FAST: Final = "kueue.x-k8s.io/pod-group-fast-admission"
ROLE: Final = "kueue.x-k8s.io/role-hash"
MANAGED: Final = "kueue.x-k8s.io/managed"
ELASTIC: Final = "kueue.x-k8s.io/elastic-job"

RELEASED: Final = {
    "metadata": {
        "labels": dict.fromkeys(
            ("job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid")
        )
    }
}
"""A patch by which a Job no longer knows its pod."""


def nothing(stage: Stage) -> None:
    """The control: a Job that borrows all there is."""


def forged_role_hash(stage: Stage) -> None:
    """Pods of one and of seven GPUs that are said to be alike: a PodSet has the shape of the first."""
    _forge(stage, 1, 7)


def forged_role_hash_without_gpus(stage: Stage) -> None:
    """The first pod of the group asks for none; the second says itself where it runs."""
    _forge(stage, 0, GPUS)


def managed_label_removed(stage: Stage) -> None:
    """Kueue passes over what it does not manage when it evicts."""
    mallory = stage.mallory
    for _ in range(GPUS):
        stage.attempt(lambda: mallory.api.create(mallory.pod()))
    stage.runs(mallory, GPUS)
    for pod in mallory.pods():
        change: Object = {"metadata": {"labels": {MANAGED: None}}}
        stage.attempt(partial(mallory.api.patch, mallory.path(pod), change))


def adopted_job(stage: Stage) -> None:
    """A Job that belongs to an admitted Job is not looked at."""
    mallory = stage.mallory
    owner, other = (_admitted(mallory, mallory.job(1, completions=False)) for _ in range(2))
    owner_reference = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    adopted = {"metadata": {"ownerReferences": [owner_reference]}}
    if stage.attempt(lambda: mallory.api.patch(mallory.job_path(other), adopted)):
        stage.attempt(lambda: mallory.api.patch(mallory.job_path(other), {"spec": {"parallelism": GPUS - 1}}))
        stage.runs(mallory, GPUS)


def grace_of_a_year(stage: Stage) -> None:
    """An evicted pod may go on for as long as its grace period."""
    stage.attempt(lambda: stage.mallory.api.create(stage.mallory.job(GPUS, grace=YEAR)))
    stage.runs(stage.mallory, GPUS)


def deleted_with_a_grace_of_a_year(stage: Stage) -> None:
    """The options of a DELETE say how long a pod has, whatever the pod says."""
    job = _admitted(stage.mallory, stage.mallory.job(GPUS))
    for pod in stage.mallory.pods(job):
        stage.attempt(partial(stage.mallory.api.delete, stage.mallory.path(pod), grace_seconds=YEAR))


def terminating_pods_replaced(stage: Stage) -> None:
    """A Job makes new pods at once for those that are ending."""
    job = _admitted(stage.mallory, stage.mallory.job(2))
    for pod in stage.mallory.pods(job):
        stage.attempt(partial(stage.mallory.api.delete, stage.mallory.path(pod), grace_seconds=YEAR))
    stage.runs(stage.mallory, 4)


def orphaned_job(stage: Stage) -> None:
    """`kubectl delete job --cascade=orphan`: the Workload goes, and the pods run on."""
    _orphan(stage, _admitted(stage.mallory, stage.mallory.job(GPUS)))


def jobs_orphaned_in_steps(stage: Stage) -> None:
    """Never more at once than what is guaranteed."""
    for _ in range(GPUS // 2):
        _orphan(stage, _admitted(stage.mallory, stage.mallory.job(2)))


def pods_released_by_label(stage: Stage) -> None:
    """The Job makes others for those that are no longer its own."""
    job = _admitted(stage.mallory, stage.mallory.job(2))
    for released in range(2, GPUS, 2):
        for pod in stage.mallory.pods(job):
            stage.attempt(partial(stage.mallory.api.patch, stage.mallory.path(pod), RELEASED))
        stage.runs(stage.mallory, released + 2, seconds=8)


def pods_released_by_owner(stage: Stage) -> None:
    """Without the owner, and with another label, lest the Job adopts them again."""
    job = _admitted(stage.mallory, stage.mallory.job(2))
    change = {"metadata": {**RELEASED["metadata"], "ownerReferences": None}}
    for released in range(2, GPUS, 2):
        for pod in stage.mallory.pods(job):
            stage.attempt(partial(stage.mallory.api.patch, stage.mallory.path(pod), change))
        stage.runs(stage.mallory, released + 2, seconds=8)


def elastic_job(stage: Stage) -> None:
    """The pods that a Job has grown by wait at a gate, until somebody takes it away.

    They run as soon as a Job of alice's ends, and before Kueue counts them another one of hers is admitted.
    """
    mallory, alice = stage.mallory, stage.alice
    body = mallory.job(1, completions=False, metadata={"annotations": {ELASTIC: "true"}})
    job = stage.attempt(lambda: mallory.api.create(body))
    own = _admitted(alice, alice.job(OWN))
    if job:
        stage.attempt(lambda: mallory.api.patch(mallory.job_path(job), {"spec": {"parallelism": GPUS}}))
        comes(lambda: len(mallory.pods()) == GPUS, 15)
        for pod in mallory.pods():
            stage.attempt(partial(mallory.api.patch, mallory.path(pod), {"spec": {"schedulingGates": None}}))

    def end() -> None:
        alice.api.delete(alice.job_path(own))
        comes(lambda: not alice.pods(own), 30)

    stage.afterwards.append(end)


def gate_removed(stage: Stage) -> None:
    """A pod that waits in the queue."""
    mallory = stage.mallory
    pod = stage.attempt(lambda: mallory.api.create(mallory.pod(GPUS, labels={"kueue.x-k8s.io/queue-name": "none"})))
    if pod:
        stage.attempt(lambda: mallory.api.patch(mallory.path(pod), {"spec": {"schedulingGates": None}}))


def disruption_budget(stage: Stage) -> None:
    """Nobody may evict any pod of the namespace."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "none", "namespace": stage.mallory.name},
        "spec": {"maxUnavailable": 0, "selector": {}},
    }
    stage.attempt(lambda: stage.mallory.api.create(budget))
    _admitted(stage.mallory, stage.mallory.job(GPUS))


def own_finalizers(stage: Stage) -> None:
    """The pods of a Job stay after they have ended."""
    job = _admitted(stage.mallory, stage.mallory.job(GPUS))
    for pod in stage.mallory.pods(job):
        finalizers = [*pod["metadata"].get("finalizers", ()), "example.com/keep"]
        change = {"metadata": {"finalizers": finalizers}}
        stage.attempt(partial(stage.mallory.api.patch, stage.mallory.path(pod), change))


def default_scheduler(stage: Stage) -> None:
    """Pods that no queue counts."""
    mallory = stage.mallory
    where = {**own_place(mallory.pool), "schedulerName": "default-scheduler"}
    for _ in range(GPUS):
        stage.attempt(lambda: mallory.api.create(mallory.pod(**where)))
    stage.runs(mallory, GPUS, seconds=5)


def queue_label_changed(stage: Stage) -> None:
    """To a queue that there is, and to none."""
    _relabel(stage, {QUEUE_LABEL: stage.alice.labels[QUEUE_LABEL]})


def queue_label_removed(stage: Stage) -> None:
    _relabel(stage, {QUEUE_LABEL: None})


def node_pool_changed(stage: Stage) -> None:
    """The scheduler of another pool is to look after the pods."""
    _relabel(stage, {NODE_POOL_LABEL: ELSEWHERE})


def pod_group_annotation_removed(stage: Stage) -> None:
    """What brings a pod into its group."""
    _relabel(stage, {}, {"pod-group-name": None})


def pod_groups_deleted(stage: Stage) -> None:
    """KAI-Scheduler knows pods by their group alone."""
    mallory = stage.mallory
    _admitted(mallory, mallory.job(GPUS))
    groups = f"/apis/scheduling.run.ai/v2alpha2/namespaces/{mallory.name}/podgroups"
    for group in mallory.admin.list(groups):
        stage.attempt(partial(mallory.api.delete, f"{groups}/{group['metadata']['name']}"))


def own_pod_group(stage: Stage) -> None:
    """Pods that name the group of others, which is as large as its first pod."""
    mallory = stage.mallory
    _admitted(mallory, mallory.job(1, completions=False))
    groups = f"/apis/scheduling.run.ai/v2alpha2/namespaces/{mallory.name}/podgroups"
    for group in mallory.admin.list(groups):
        for _ in range(GPUS - 1):
            body = mallory.pod(
                annotations={"pod-group-name": group["metadata"]["name"]},
                labels={"kai.scheduler/skip-podgrouper": "true"},
            )
            stage.attempt(partial(mallory.api.create, body))
    stage.runs(mallory, GPUS)


def halves_replaced_while_they_end(stage: Stage) -> None:
    """Halves that are ending are counted by no quota, and by KAI-Scheduler neither."""
    mallory = stage.mallory
    for _ in range(4):
        pods = [mallory.pod(grace=YEAR) for _ in range(4)]
        for pod in pods:
            stage.attempt(partial(mallory.api.create, pod))
        stage.runs(mallory, 2, seconds=10)
        for pod in pods:
            stage.attempt(partial(mallory.api.delete, mallory.path(pod), grace_seconds=YEAR))


def job_kept_by_a_finalizer(stage: Stage) -> None:
    """Kueue gives back what it counted as soon as a Job is being deleted; its pods go with it, and it stays."""
    job = _admitted(stage.mallory, stage.mallory.job(GPUS))
    path = stage.mallory.job_path(job)
    stage.attempt(lambda: stage.mallory.api.patch(path, {"metadata": {"finalizers": ["example.com/keep"]}}))
    if stage.refusals:
        return
    stage.attempt(lambda: stage.mallory.api.delete(path))


def orphaned_by_a_finalizer(stage: Stage) -> None:
    """A Job that says itself that its pods are to stay."""
    body = stage.mallory.job(GPUS, metadata={"finalizers": ["orphan"]})
    job = stage.attempt(lambda: stage.mallory.api.create(body))
    if job:
        stage.runs(stage.mallory, GPUS)
        stage.attempt(lambda: stage.mallory.api.request("DELETE", stage.mallory.job_path(job), _OPTIONS))


_OPTIONS: Final = {"kind": "DeleteOptions", "apiVersion": "v1"}


def evicted_with_a_grace_of_a_year(stage: Stage) -> None:
    """The role `edit` may make evictions, which have options of a DELETE."""
    mallory = stage.mallory
    job = _admitted(mallory, mallory.job(GPUS))
    for pod in mallory.pods(job):
        name = pod["metadata"]["name"]
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": mallory.name},
            "deleteOptions": {**_OPTIONS, "gracePeriodSeconds": YEAR},
        }
        stage.attempt(partial(mallory.api.request, "POST", f"{mallory.path(pod)}/eviction", body))


def large_pods_behind_a_hash_that_is_true(stage: Stage) -> None:
    """The hash is that of the large pods, and the pod without GPUs says that it has it."""
    mallory = stage.mallory
    where, group = own_place(mallory.pool), {COUNT: "2", FAST: "true"}
    large = mallory.pod(GPUS, annotations=group, labels={GROUP: "true-hash"}, **where)
    role = mallory.api.create(large, dry_run=True)["metadata"]["annotations"][ROLE]
    small = mallory.pod(0, annotations={**group, ROLE: role}, labels={GROUP: "true-hash"}, **where)
    for pod in (small, large):
        stage.attempt(partial(mallory.api.create, pod))
    stage.runs(mallory, GPUS)


def replica_of_eight_gpus(stage: Stage) -> None:
    """A pod that names a StatefulSet of one GPU as its owner takes the place of a replica."""
    mallory = stage.mallory
    template = mallory.pod(1)
    labels = {**mallory.labels, "app": "replicas"}
    body = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "replicas", "namespace": mallory.name, "labels": mallory.labels},
        "spec": {
            "replicas": 1,
            "serviceName": "none",
            "selector": {"matchLabels": {"app": "replicas"}},
            "template": {
                "metadata": {"labels": labels, "annotations": template["metadata"]["annotations"]},
                "spec": {**template["spec"], "restartPolicy": "Always"},
            },
        },
    }
    made = stage.attempt(lambda: mallory.api.create(body))
    if not made or not stage.runs(mallory, 1):
        return
    [first] = mallory.pods()
    owner = first["metadata"]["ownerReferences"]
    kept = {key: first["metadata"][key] for key in ("labels", "annotations")}
    big = mallory.pod(GPUS)
    copy = {**big, "metadata": {**big["metadata"], **kept, "ownerReferences": owner, "name": "replicas-0"}}
    del copy["metadata"]["annotations"][ROLE]
    mallory.api.delete(mallory.path(first), grace_seconds=0)
    for _ in range(20):
        if stage.attempt(lambda: mallory.api.create(copy)):
            break
    stage.runs(mallory, GPUS)


def running_job_grows(stage: Stage) -> None:
    """Kueue stops a Job that has grown once its pods are there, and they end in their own time."""
    mallory = stage.mallory
    job = _admitted(mallory, mallory.job(1, completions=False, grace=None))
    stage.attempt(lambda: mallory.api.patch(mallory.job_path(job), {"spec": {"parallelism": GPUS}}))
    stage.runs(mallory, GPUS, seconds=5)


def running_job_suspended_again(stage: Stage) -> None:
    """Kueue starts it at once, beside its own pods."""
    mallory = stage.mallory
    job = _admitted(mallory, mallory.job(2, grace=None))
    for _ in range(3):
        stage.attempt(lambda: mallory.api.patch(mallory.job_path(job), {"spec": {"suspend": True}}))
        comes(lambda: False, 3)


COMMON: Final[tuple[Attack, ...]] = (
    nothing,
    grace_of_a_year,
    deleted_with_a_grace_of_a_year,
    terminating_pods_replaced,
    orphaned_job,
    jobs_orphaned_in_steps,
    pods_released_by_label,
    pods_released_by_owner,
    disruption_budget,
    own_finalizers,
    default_scheduler,
    job_kept_by_a_finalizer,
    orphaned_by_a_finalizer,
    evicted_with_a_grace_of_a_year,
)
KUEUE: Final[tuple[Attack, ...]] = (
    *COMMON,
    forged_role_hash,
    forged_role_hash_without_gpus,
    managed_label_removed,
    adopted_job,
    elastic_job,
    gate_removed,
    large_pods_behind_a_hash_that_is_true,
    replica_of_eight_gpus,
    running_job_grows,
    running_job_suspended_again,
)
KAI: Final[tuple[Attack, ...]] = (
    *COMMON,
    queue_label_changed,
    queue_label_removed,
    node_pool_changed,
    pod_group_annotation_removed,
    pod_groups_deleted,
    own_pod_group,
)
KAI_FRACTIONS: Final[tuple[Attack, ...]] = (nothing, halves_replaced_while_they_end, orphaned_job)


def _relabel(stage: Stage, labels: Object, annotations: Object | None = None) -> None:
    """Work that runs gets other labels: a Job, its pods, and the template for more."""
    mallory = stage.mallory
    job = _admitted(mallory, mallory.job(GPUS))
    change = {"metadata": {"labels": labels, "annotations": annotations or {}}}
    for path in (mallory.job_path(job), *(mallory.path(pod) for pod in mallory.pods(job))):
        stage.attempt(partial(mallory.api.patch, path, change))


def _admitted(party: Party, body: Object) -> dict[str, Any]:
    """A Job whose pods run."""
    job = party.api.create(body)
    size = body["spec"]["parallelism"]
    comes(lambda: sum(pod["status"].get("phase") == "Running" for pod in party.pods(job)) == size, 30)
    return job


def _orphan(stage: Stage, job: Object) -> None:
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"}
    stage.attempt(lambda: stage.mallory.api.request("DELETE", stage.mallory.job_path(job), options))


def _forge(stage: Stage, *sizes: int) -> None:
    mallory = stage.mallory
    annotations = {COUNT: str(len(sizes)), FAST: "true", ROLE: "same"}
    for size in sizes:
        where = {} if sizes[0] else own_place(mallory.pool)
        pod = mallory.pod(size, annotations=annotations, labels={GROUP: "forged"}, **where)
        stage.attempt(partial(mallory.api.create, pod))
    stage.runs(mallory, GPUS)
