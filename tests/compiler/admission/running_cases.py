"""What tenants do to work that is queued or runs, as the API server asks about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpuplan.compiler.base.values import Value
from tests.compiler.backends.scheduling.pods import asking, container, pod

Body = dict[str, Any]


class Case(Value):
    """A request: what is asked for, what is there, and the options of a deletion."""

    policy: str
    new: Body | None
    old: Body | None = None
    options: Mapping[str, Any] | None = None
    subresource: str = ""


def changed(body: Body, **metadata: Any) -> Body:
    """The same with other metadata; labels and annotations are added, and None takes one away."""
    found = dict(body["metadata"])
    for key, value in metadata.items():
        if key in ("labels", "annotations"):
            merged = {**found.get(key, {}), **value}
            found[key] = {name: text for name, text in merged.items() if text is not None}
        else:
            found[key] = value
    return {**body, "metadata": found}


def a_job(**spec: Any) -> Body:
    made = pod(asking("nvidia.com/gpu"))
    template = {"metadata": {}, "spec": {**made["spec"], **spec.pop("pod", {})}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job", "namespace": "research", "labels": {QUEUE: "default"}},
        "spec": {"parallelism": 2, "suspend": False, "template": template, **spec},
    }


def owner(kind: str = "Job", version: str = "batch/v1") -> list[Body]:
    return [{"apiVersion": version, "kind": kind, "name": "other", "uid": "0-1", "controller": True}]


QUEUE: Final = "kueue.x-k8s.io/queue-name"
GROUP: Final = "kueue.x-k8s.io/pod-group-name"
HASH: Final = "kueue.x-k8s.io/role-hash"
GATES: Final = {"schedulingGates": [{"name": "kueue.x-k8s.io/elastic-job"}]}
JOB: Final = a_job()
QUEUED: Final = a_job(suspend=True)
IDLE: Final = a_job(suspend=True, pod={"containers": [container()]})
IN_POOL: Final = a_job(suspend=True, pod={"containers": [container()], "nodeSelector": {"gpuplan.dev/pool": "whole"}})
ELASTIC: Final = changed(a_job(pod=GATES), annotations={"kueue.x-k8s.io/elastic-job": "true"})
POD: Final = changed(
    pod(asking("nvidia.com/gpu"), pool="whole", terminationGracePeriodSeconds=30),
    labels={"kueue.x-k8s.io/managed": "true", "team": "a"},
    annotations={HASH: "0a1b2c3d"},
    finalizers=["kueue.x-k8s.io/managed"],
)
MEMBER: Final = changed(
    POD,
    ownerReferences=owner(),
    labels={"job-name": "other", "batch.kubernetes.io/job-name": "other"},
    finalizers=["batch.kubernetes.io/job-tracking"],
)
WAITING: Final = {**POD, "spec": {**POD["spec"], **GATES}}
JOBSET: Final[Body] = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "set", "namespace": "research"},
    "spec": {"replicatedJobs": []},
}
OF_KAI: Final = changed(
    pod(container(), pool="whole"),
    labels={"kai.scheduler/queue": "research-whole", "kai.scheduler/node-pool": "whole", "runai-gpu-group": "g1"},
    annotations={"gpu-fraction": "0.5", "pod-group-name": "pg"},
)
OF_RUNAI: Final = changed(
    pod(container(), pool="whole"),
    labels={"runai/queue": "research", "runai/node-pool": "whole", "runai-gpu-group": "g1"},
    annotations={"gpu-fraction": "0.5", "gpu-fraction-limit": "0.8", "pod-group-name": "pg"},
)
POD_GROUP: Final[Body] = {
    "apiVersion": "scheduling.run.ai/v2alpha2",
    "kind": "PodGroup",
    "metadata": {"name": "pg", "namespace": "research"},
    "spec": {"queue": "research-whole", "priorityClassName": "spot", "preemptibility": "preemptible"},
}


def sent(*annotations: str) -> Body:
    """The managed fields of a pod whose author has sent these annotations."""
    fields: Body = {
        "f:metadata": {"f:annotations": {".": {}, **{f"f:{name}": {} for name in annotations}}},
        "f:spec": {},
    }
    return {"managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": fields}]}


def a_group(**spec: Any) -> Body:
    return {**POD_GROUP, "spec": {**POD_GROUP["spec"], **spec}}


def deletion(body: Body, **options: Any) -> Case:
    return Case(policy="gpuplan-running", new=None, old=body, options=options)


def of_pod(seconds: int | None = None) -> Case:
    options = {} if seconds is None else {"gracePeriodSeconds": seconds}
    return Case(policy="gpuplan-grace", new=None, old=POD, options=options)


def eviction(seconds: int | None = None) -> Case:
    options = {} if seconds is None else {"deleteOptions": {"gracePeriodSeconds": seconds}}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "pod", "namespace": "research"}}
    return Case(policy="gpuplan-grace", new={**body, **options}, subresource="eviction")


def update(old: Body, new: Body, policy: str = "gpuplan-running") -> Case:
    return Case(policy=policy, new=new, old=old)


def creation(new: Body) -> Case:
    return Case(policy="gpuplan-running", new=new)


def with_spec(body: Body, **spec: Any) -> Body:
    return {**body, "spec": {**body["spec"], **spec}}


def of_kind(api: str, kind: str, **spec: Any) -> Body:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "work", "namespace": "research"}, "spec": spec}


def ray(*, suspend: bool = False, **group: Any) -> Body:
    """A RayCluster with a group of two workers."""
    whole = {"groupName": "small", "replicas": 2, "minReplicas": 0, "template": TEMPLATE, **group}
    return of_kind("ray.io/v1", "RayCluster", suspend=suspend, headGroupSpec=HEAD, workerGroupSpecs=[whole])


def ray_job(*, suspend: bool = False, **group: Any) -> Body:
    return of_kind("ray.io/v1", "RayJob", suspend=suspend, rayClusterSpec=ray(**group)["spec"])


def ray_service(*, suspend: bool = False, version: str = "2.50", **group: Any) -> Body:
    config = {**ray(**group)["spec"], "suspend": suspend, "rayVersion": version}
    return of_kind("ray.io/v1", "RayService", serveConfigV2="", rayClusterConfig=config)


def with_groups(*names: str) -> Body:
    """A RayService with groups in an order."""
    made = ray_service()
    [group] = made["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    groups = [{**group, "groupName": name} for name in names]
    return with_spec(made, rayClusterConfig={**made["spec"]["rayClusterConfig"], "workerGroupSpecs": groups})


def pytorch(*, suspend: bool = False, roles: Body | None = None, **worker: Any) -> Body:
    of_roles = {"Worker": {"replicas": 2, "template": TEMPLATE, **worker}, **(roles or {})}
    return of_kind("kubeflow.org/v1", "PyTorchJob", runPolicy={"suspend": suspend}, pytorchReplicaSpecs=of_roles)


def mpi(*, suspend: bool = False, **worker: Any) -> Body:
    of_roles = {"Launcher": {"template": TEMPLATE}, "Worker": {"replicas": 2, "template": TEMPLATE, **worker}}
    return of_kind("kubeflow.org/v2beta1", "MPIJob", runPolicy={"suspend": suspend}, mpiReplicaSpecs=of_roles)


def job_set(*, suspend: bool = False, replicas: int = 1, **job: Any) -> Body:
    of_jobs = [{"name": "workers", "replicas": replicas, "template": {"spec": {"parallelism": 2, **job}}}]
    return of_kind("jobset.x-k8s.io/v1alpha2", "JobSet", suspend=suspend, replicatedJobs=of_jobs)


def train_job(*, suspend: bool = False, nodes: int = 2) -> Body:
    return of_kind("trainer.kubeflow.org/v1alpha1", "TrainJob", suspend=suspend, trainer={"numNodes": nodes})


def group_set(size: int | None = 2, replicas: int = 1) -> Body:
    """A LeaderWorkerSet."""
    of_group = {} if size is None else {"size": size}
    return of_kind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", replicas=replicas, leaderWorkerTemplate=of_group)


def elastic(body: Body, **metadata: Any) -> Body:
    return changed(body, annotations={"kueue.x-k8s.io/elastic-job": "true"}, **metadata)


def frameworks(old: Body, new: Body) -> Case:
    return update(old, new, "gpuplan-frameworks")


def scaled(old: int | None, new: int) -> Case:
    """A request for the subresource of a PyTorchJob: the API server leaves out a count of none."""
    before, after = (of_kind("autoscaling/v1", "Scale", **({"replicas": n} if n else {})) for n in (old, new))
    return Case(policy="gpuplan-frameworks", new=after, old=before, subresource="scale")


def sized(**requests: str) -> Body:
    made = pod(container(requests=requests), pool="whole")
    return {**made, "kind": "Pod", "apiVersion": "v1"}


def resize(old: Body, new: Body) -> Case:
    return Case(policy="gpuplan-devices", new=new, old=old, subresource="resize")


TEMPLATE: Final[Body] = {"spec": {"nodeSelector": {"gpuplan.dev/pool": "whole"}, "containers": [{"name": "main"}]}}
ELSEWHERE: Final[Body] = {"spec": {**TEMPLATE["spec"], "nodeSelector": {"gpuplan.dev/pool": "other"}}}
HEAD: Final[Body] = {"template": TEMPLATE}
AUTOSCALED: Final = with_spec(ray(), enableInTreeAutoscaling=True)
GROWN: Final = with_spec(ray(replicas=8), enableInTreeAutoscaling=True)
SERVED_BY_TWO: Final = with_groups("small", "large")
SUBMITTED: Final = with_spec(ray_job(), submitterPodTemplate=TEMPLATE)
PART: Final = owner("RayJob", "ray.io/v1")
UNGATED: Final = {**ELASTIC["spec"]["template"], "spec": a_job()["spec"]["template"]["spec"]}

CASES: Final[Mapping[str, tuple[Case, ...]]] = {
    "delete-job": (deletion(JOB, propagationPolicy="Background"), deletion(JOB, propagationPolicy="Foreground")),
    "delete-pod": (of_pod(), of_pod(30), of_pod(0)),
    "evict-pod": (eviction(), eviction(30)),
    "delete-pod-slowly": (of_pod(31), of_pod(31_536_000)),
    "evict-pod-slowly": (eviction(31),),
    "orphan-job": (deletion(JOB, propagationPolicy="Orphan"), deletion(QUEUED, propagationPolicy="Orphan")),
    "orphan-job-in-old-words": (deletion(JOB, orphanDependents=True), deletion(changed(JOB, finalizers=["orphan"]))),
    "orphan-jobset": (deletion(JOBSET, propagationPolicy="Orphan"),),
    "job-with-orphan-finalizer": (creation(changed(QUEUED, finalizers=["orphan"])),),
    "finalizer-on-job": (update(JOB, changed(JOB, finalizers=["example.com/keep"])),),
    "finalizer-before-it-is-counted": (
        update(changed(IDLE, finalizers=["example.com/stay"]), changed(QUEUED, finalizers=["example.com/stay"])),
        update(changed(IDLE, finalizers=["example.com/stay"]), changed(IN_POOL, finalizers=["example.com/stay"])),
    ),
    "finalizer-on-pod": (update(POD, changed(POD, finalizers=[*POD["metadata"]["finalizers"], "example.com/keep"])),),
    "take-finalizer-of-kueue": (
        update(POD, changed(POD, finalizers=[])),
        update(MEMBER, changed(MEMBER, finalizers=[])),
    ),
    "adopt-job": (
        update(QUEUED, changed(QUEUED, ownerReferences=owner())),
        update(JOB, changed(JOB, ownerReferences=owner())),
        update(JOBSET, changed(JOBSET, ownerReferences=owner())),
    ),
    "release-pod-by-owner": (update(MEMBER, changed(MEMBER, ownerReferences=[])),),
    "release-pod-by-label": (
        update(MEMBER, changed(MEMBER, labels={"job-name": None})),
        update(MEMBER, changed(MEMBER, labels={"team": "b"})),
    ),
    "label-pod": (
        update(MEMBER, changed(MEMBER, labels={"mine": "1"}, annotations={"mine": "1"})),
        update(POD, changed(POD, labels={"team": "b"})),
        update(JOB, changed(JOB, labels={"mine": "1"}, annotations={"mine": "1"})),
    ),
    "make-part": (
        creation(changed(QUEUED, ownerReferences=owner())),
        creation(changed(JOBSET, ownerReferences=owner())),
        creation(changed(POD, ownerReferences=owner("StatefulSet", "apps/v1"), **sent())),
    ),
    "make-part-before-it-is-counted": (
        update(changed(IDLE, ownerReferences=owner()), changed(QUEUED, ownerReferences=owner())),
        update(changed(IDLE, ownerReferences=owner()), changed(IN_POOL, ownerReferences=owner())),
    ),
    "take-managed-label": (update(POD, changed(POD, labels={"kueue.x-k8s.io/managed": None})),),
    "rename-group": (
        update(POD, changed(POD, labels={GROUP: "other"})),
        update(POD, changed(POD, annotations={HASH: "00000000"})),
    ),
    "mark-job": (
        update(JOB, changed(JOB, annotations={"kueue.x-k8s.io/stopping": "true"})),
        update(JOB, changed(JOB, labels={"kueue.x-k8s.io/prebuilt-workload-name": "w"})),
        update(ELASTIC, changed(ELASTIC, annotations={"kueue.x-k8s.io/elastic-job": None})),
    ),
    "forge-role-hash": (
        creation(changed(POD, labels={GROUP: "g"}, **sent(HASH))),
        creation(changed(pod(container()), labels={GROUP: "g"}, annotations={HASH: "x"}, **sent("a", HASH))),
        creation(changed(POD, labels={GROUP: "g"})),
    ),
    "group-pod": (creation(changed(POD, labels={GROUP: "g"}, **sent("kueue.x-k8s.io/pod-group-total-count"))),),
    "take-gate": (update(WAITING, POD),),
    "take-gate-of-template": (update(ELASTIC, with_spec(ELASTIC, template=UNGATED)),),
    "move-queued-job": (
        update(QUEUED, changed(QUEUED, labels={QUEUE: "other", "kueue.x-k8s.io/priority-class": "research"})),
        update(QUEUED, with_spec(QUEUED, parallelism=8)),
    ),
    "shrink-running-job": (update(JOB, with_spec(JOB, parallelism=1)),),
    "grow-running-job": (update(JOB, with_spec(JOB, parallelism=8)),),
    "grow-elastic-job": (update(ELASTIC, with_spec(ELASTIC, parallelism=8)),),
    "suspend-running-job": (update(JOB, with_spec(JOB, suspend=True)),),
    "complete-more": (update(a_job(parallelism=8, completions=2), a_job(parallelism=8, completions=8)),),
    "grow-part": (
        update(
            changed(ELASTIC, ownerReferences=owner("JobSet", "jobset.x-k8s.io/v1alpha2")),
            changed(with_spec(ELASTIC, parallelism=8), ownerReferences=owner("JobSet", "jobset.x-k8s.io/v1alpha2")),
        ),
    ),
    "grow-groups": (update(group_set(), group_set(8)), update(group_set(None), group_set(2))),
    "add-groups": (update(group_set(), group_set(replicas=8)), update(group_set(), group_set(1))),
    "change-waiting-framework": (
        frameworks(ray(suspend=True), ray(suspend=True, replicas=8, template=ELSEWHERE)),
        frameworks(ray_job(suspend=True), ray_job(suspend=True, replicas=8)),
        frameworks(ray_service(suspend=True), ray_service(suspend=True, replicas=8, version="2.51")),
        frameworks(pytorch(suspend=True), pytorch(suspend=True, replicas=8, roles={"Master": {}})),
        frameworks(mpi(suspend=True), mpi(suspend=True, replicas=8)),
        frameworks(job_set(suspend=True), job_set(suspend=True, replicas=8, parallelism=4)),
        frameworks(train_job(suspend=True), train_job(suspend=True, nodes=8)),
    ),
    "shrink-running-framework": (
        frameworks(ray(), ray(replicas=1)),
        frameworks(ray_service(), ray_service(replicas=1, maxReplicas=8)),
        frameworks(ray_service(), ray_service(scaleStrategy={"workersToDelete": ["a"]})),
        frameworks(ray(numOfHosts=2), ray()),
        frameworks(ray(), ray(maxReplicas=8, scaleStrategy={"workersToDelete": ["a"]})),
        frameworks(pytorch(), pytorch(replicas=1)),
        frameworks(mpi(), mpi(replicas=1)),
        frameworks(job_set(replicas=2), job_set()),
        scaled(8, 2),
        scaled(8, 0),
    ),
    "change-running-framework": (
        frameworks(ray(), with_spec(ray(), rayVersion="2.51", upgradeStrategy={"type": "None"})),
        frameworks(ray_job(), with_spec(ray_job(), backoffLimit=1)),
        frameworks(SUBMITTED, with_spec(SUBMITTED, entrypoint="python other.py")),
        frameworks(ray_service(), with_spec(ray_service(), serveConfigV2="applications: []")),
        frameworks(pytorch(), with_spec(pytorch(), elasticPolicy={})),
        frameworks(ray(), changed(ray(), labels={"mine": "1"})),
    ),
    "grow-running-framework": (
        frameworks(ray(), ray(replicas=3)),
        frameworks(ray(), ray(numOfHosts=2)),
        frameworks(ray_job(), ray_job(replicas=3)),
        frameworks(ray_service(), ray_service(replicas=3)),
        frameworks(pytorch(), pytorch(replicas=3)),
        frameworks(mpi(), mpi(replicas=3)),
        frameworks(job_set(), job_set(replicas=2)),
        frameworks(job_set(), job_set(parallelism=3)),
        frameworks(job_set(completions=2), job_set(completions=4)),
        frameworks(elastic(pytorch()), elastic(pytorch(replicas=3))),
        frameworks(elastic(ray(), ownerReferences=PART), elastic(ray(replicas=3), ownerReferences=PART)),
        scaled(2, 3),
        scaled(None, 8),
    ),
    "grow-elastic-framework": (
        frameworks(elastic(ray()), elastic(ray(replicas=8))),
        frameworks(elastic(ray_service()), elastic(ray_service(replicas=8))),
        frameworks(elastic(AUTOSCALED, ownerReferences=PART), elastic(GROWN, ownerReferences=PART)),
    ),
    "suspend-running-framework": (
        frameworks(ray(), ray(suspend=True)),
        frameworks(ray_job(), ray_job(suspend=True)),
        frameworks(ray_service(), ray_service(suspend=True)),
        frameworks(pytorch(), pytorch(suspend=True)),
        frameworks(mpi(), mpi(suspend=True)),
        frameworks(job_set(), job_set(suspend=True)),
        frameworks(train_job(), train_job(suspend=True)),
    ),
    "rebuild-running-framework": (
        frameworks(ray(), ray(template=ELSEWHERE)),
        frameworks(ray(), ray(groupName="other")),
        frameworks(ray(), with_spec(ray(), headGroupSpec={"template": ELSEWHERE})),
        frameworks(ray(), with_spec(ray(), autoscalerOptions={"image": "other"})),
        frameworks(AUTOSCALED, ray()),
        frameworks(ray(rayStartParams={}), ray()),
        frameworks(ray_service(), ray_service(version="2.51")),
        frameworks(ray_service(numOfHosts=2), ray_service(numOfHosts=1)),
        frameworks(ray_service(rayStartParams={}), ray_service()),
        frameworks(SERVED_BY_TWO, with_groups("small")),
        frameworks(SERVED_BY_TWO, with_groups("large", "small")),
        frameworks(SUBMITTED, with_spec(ray_job(), submitterPodTemplate=ELSEWHERE)),
        frameworks(SUBMITTED, ray_job()),
        frameworks(ray_job(), SUBMITTED),
        frameworks(with_spec(SUBMITTED, submissionMode="HTTPMode"), with_spec(SUBMITTED, submissionMode="K8sJobMode")),
        frameworks(elastic(ray()), elastic(ray(template=ELSEWHERE))),
        frameworks(pytorch(), pytorch(template=ELSEWHERE)),
        frameworks(pytorch(), pytorch(roles={"Master": {"template": TEMPLATE}})),
        frameworks(mpi(), mpi(template=ELSEWHERE)),
        frameworks(train_job(), train_job(nodes=8)),
    ),
    "least-workers": (
        Case(policy="gpuplan-frameworks", new=ray(suspend=True, minReplicas=3)),
        Case(policy="gpuplan-frameworks", new=ray_job(suspend=True, minReplicas=3)),
        Case(policy="gpuplan-frameworks", new=ray_service(suspend=True, minReplicas=3)),
        frameworks(ray(), ray(minReplicas=8)),
        frameworks(ray(suspend=True), ray(suspend=True, minReplicas=8)),
        frameworks(ray(minReplicas=2), ray(minReplicas=2, replicas=1)),
    ),
    "resize-pod": (
        resize(sized(cpu="8"), sized(cpu="9")),
        resize(sized(cpu="8", memory="8Gi"), sized(cpu="8", memory="9Gi")),
        resize(sized(cpu="8"), sized(cpu="8", memory="9Gi")),
    ),
    "shrink-pod": (resize(sized(cpu="8"), sized(cpu="7")), resize(sized(cpu="8"), sized(cpu="8"))),
    "relabel-pod-of-kai": (
        update(OF_KAI, changed(OF_KAI, labels={"runai-gpu-group": "g2"})),
        update(OF_KAI, changed(OF_KAI, labels={"runai-gpu-group/g2": "g2"})),
        update(OF_KAI, changed(OF_KAI, labels={"kai.scheduler/queue": None})),
        update(OF_KAI, changed(OF_KAI, labels={"kai.scheduler/node-pool": "other"})),
    ),
    "name-gpu-group": (
        Case(policy="gpuplan-running", new=changed(OF_KAI, labels={"runai-gpu-group": "g2"})),
        Case(policy="gpuplan-running", new=changed(OF_KAI, labels={"runai-gpu-group/g2": "g2"})),
    ),
    "skip-pod-grouper": (update(OF_KAI, changed(OF_KAI, annotations={"kai.scheduler/skip-podgrouper": "true"})),),
    "make-begun-work-last": (
        update(POD_GROUP, a_group(preemptibility="non-preemptible"), "gpuplan-queues"),
        update(
            a_group(preemptibility=""), a_group(preemptibility="", priorityClassName="production"), "gpuplan-queues"
        ),
        update(
            a_group(priorityClassName="production"),
            a_group(priorityClassName="production", preemptibility=""),
            "gpuplan-queues",
        ),
    ),
    "make-begun-work-preemptible": (
        update(a_group(preemptibility=""), POD_GROUP, "gpuplan-queues"),
        update(
            a_group(priorityClassName="production", preemptibility=""), a_group(preemptibility=""), "gpuplan-queues"
        ),
    ),
    "change-fraction": (
        update(OF_KAI, changed(OF_KAI, annotations={"gpu-fraction": "0.1"}), "gpuplan-devices"),
        update(OF_KAI, changed(OF_KAI, annotations={"pod-group-name": None}), "gpuplan-devices"),
        update(OF_KAI, changed(OF_KAI, annotations={"received-resource-type": "Regular"}), "gpuplan-devices"),
    ),
    "change-fraction-of-runai": (
        update(OF_RUNAI, changed(OF_RUNAI, annotations={"gpu-fraction": "0.1"}), "gpuplan-devices"),
        update(OF_RUNAI, changed(OF_RUNAI, annotations={"gpu-fraction-limit": "1"}), "gpuplan-devices"),
        update(OF_RUNAI, changed(OF_RUNAI, annotations={"gpu-fraction": None}), "gpuplan-devices"),
    ),
    "choose-group-of-runai": (
        update(OF_RUNAI, changed(OF_RUNAI, annotations={"pod-group-name": "pg-other"}), "gpuplan-devices"),
        update(OF_RUNAI, changed(OF_RUNAI, labels={"runai-gpu-group": "g2"}), "gpuplan-devices"),
    ),
    "move-pod-of-runai": (
        update(OF_RUNAI, changed(OF_RUNAI, labels={"runai/queue": "other"}), "gpuplan-devices"),
        update(OF_RUNAI, changed(OF_RUNAI, labels={"runai/node-pool": "other"}), "gpuplan-devices"),
    ),
    "move-work-of-runai": (
        Case(policy="gpuplan-projects", new=changed(JOB, labels={"runai/queue": "other"})),
        update(JOB, changed(JOB, labels={"project": "other"}), "gpuplan-projects"),
    ),
}
"""The cases of each row, by its id."""
