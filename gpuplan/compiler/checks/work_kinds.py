"""Checks on the kinds of objects that work is made of (GPU460-462, GPU526-529, GPU559, GPU563)."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.catalog.frameworks import frameworks
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import name_of
from gpuplan.compiler.planning.apis import needed_api
from gpuplan.compiler.planning.hand_files import read
from gpuplan.compiler.planning.kueue import frameworks as known_to_kueue, release_of
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.planning.projects import seconds
from gpuplan.compiler.planning.serving import probe_of
from gpuplan.compiler.policy.models import Api, Inference, Training, TrainingKind


@check("GPU460", "kind-unknown-to-kueue", Severity.WARNING)
def kind_unknown_to_kueue(plan: Plan) -> Iterator[Finding]:
    """A hand-written object is of a kind that Kueue could admit as a whole, and it is not told so.

    ## Why
    Kueue takes the pods of a kind that it does not know one by one, or the Jobs that are made of it: some wait while
    others hold GPUs, and admission refuses those that come without waiting.

    ## Instead
    Add the kind to `scheduler.kueue.frameworks`, and merge the Configuration that gpuplan writes into Kueue's own.
    """
    known = {found.kind for found in known_to_kueue(plan.cluster)}
    unknown = [found for found in frameworks().values() if found.kind not in known]
    for found in read(plan).of_kind(*map(attrgetter("kind"), unknown)) if plan.scheduler.suspends_jobs else ():
        framework = frameworks()[found.kind]
        if found.group == framework.group and not found.is_patch:
            yield Finding(
                found.place("kind"),
                f"{found.title} is queued in parts",
                label="Kueue is not told of this kind",
                notes=(f"Kueue calls it `{framework.integration}`",),
                help=f"write `kueue: {{frameworks: [{found.kind}]}}` in the cluster's `scheduler`",
            )


@check("GPU461", "kinds-without-kueue", Severity.WARNING)
def kinds_without_kueue(plan: Plan) -> Iterator[Finding]:
    """The policy says what Kueue knows, and the cluster has another scheduler.

    ## Why
    `scheduler.kueue` goes into Kueue's Configuration and into the admission policies beside it. Nothing else reads it:
    KAI-Scheduler and Run:ai know such kinds by themselves.

    ## Instead
    Remove `kueue`, or write `kind: kueue`.
    """
    settings = plan.cluster.scheduler.spec.kueue
    if settings is not None and not plan.scheduler.suspends_jobs:
        yield Finding(
            (plan.cluster.scheduler.at / "kueue").key,
            f"{plan.scheduler.title} does not read what Kueue knows",
            label="has no effect",
            help="remove `kueue`, or write `kind: kueue`",
        )


@check("GPU462", "kind-too-new-for-kueue")
def kind_too_new_for_kueue(plan: Plan) -> Iterator[Finding]:
    """Kueue is told of a kind that its release does not know.

    ## Why
    Kueue reads its Configuration when it starts, and does not start with the name of an integration that it does not
    have.

    ## Instead
    Raise `scheduler.version`, or leave the kind out.
    """
    scheduler = plan.cluster.scheduler
    release = parse_version(scheduler.spec.version or "")
    if not plan.scheduler.suspends_jobs or scheduler.spec.kueue is None or release is None:
        return
    for index, kind in enumerate(scheduler.spec.kueue.frameworks):
        framework = frameworks()[kind.value]
        if release < (parse_version(framework.since) or ()):
            yield Finding(
                scheduler.at / "kueue" / "frameworks" / index,
                f"Kueue {scheduler.spec.version} does not know the kind {framework.kind}",
                label=f"came with {framework.since}",
                help=f"write `version: {framework.since}` or later, or leave `{framework.kind}` out",
            )


@check("GPU526", "kind-not-in-cluster")
def kind_not_in_cluster(plan: Plan) -> Iterator[Finding]:
    """A workload needs a kind of object whose controller the cluster does not say that it has.

    ## Why
    Kubernetes itself has nothing that makes replicas of several pods which come and go together; a LeaderWorkerSet does
    (kubernetes-sigs/lws). Pods of a Job are tried again one by one; those of a JobSet start again together. An
    InferenceService is KServe's. Where its definition is missing, Argo CD and Flux fail to sync the namespace's folder;
    where its controller is, nothing makes pods.

    ## Instead
    Install the controller, and name the kind in the cluster's `apis`. Kubeflow Trainer, which makes JobSets of
    TrainJobs, comes with JobSet.
    """
    for workload in plan.workloads:
        api = needed_api(workload)
        if api is not None and api not in plan.cluster.spec.apis:
            yield Finding(
                _asked_at(workload),
                f"`{workload.name}` needs {_a(api)}, and cluster `{plan.cluster.name}` does not say that it has them",
                label="pods that KServe makes"
                if api is Api.INFERENCE_SERVICE
                else f"{workload.pods_per_replica} pods that come and go together"
                if workload.is_grouped
                else "pods that start again together",
                related=(Label((plan.cluster.at / "apis").key, "not among these"),) if plan.cluster.spec.apis else (),
                help=f"install its controller, and add `{api}` to `apis` of the cluster",
            )


@check("GPU527", "kind-not-admitted-as-a-whole")
def kind_not_admitted_as_a_whole(plan: Plan) -> Iterator[Finding]:
    """Kueue is not told of a kind that makes pods which need one another.

    ## Why
    The label that names the queue is on the whole, which Kueue does not look at. Pods of a LeaderWorkerSet it takes
    one by one: some hold GPUs while the others wait for quota, and none gets on. Of a set, a JobSet or what a TrainJob
    makes, it finds the Jobs, gives each the queue `default`, and suspends it until there is quota. JobSet resumes a
    Job that is suspended while its set is not (`resumeJobsIfNecessary` in `pkg/controllers/jobset_controller.go`,
    v0.12.0), and Kueue stops it again: its pods come and go until there is quota for all of it.

    ## Instead
    Name the kind in `scheduler.kueue.frameworks`, and merge the Configuration that gpuplan writes into Kueue's own. For
    TrainJobs the releases of Kueue and of Kubeflow Trainer have to fit each other: Kueue fills in a field when it
    admits one, and where Trainer's definition does not have that field, the TrainJob never starts. A note says which
    releases do, and so does the page on schedulers.
    """
    if not plan.scheduler.suspends_jobs:
        return
    known = {framework.kind for framework in known_to_kueue(plan.cluster)}
    for workload in plan.workloads:
        api = needed_api(workload)
        if api is not None and api is not Api.INFERENCE_SERVICE and api.value not in known:
            framework, release = frameworks()[api.value], release_of(plan.cluster)
            filled = framework.filled_by(release)
            fills = f"Kueue {release} then fills in `{filled.field}` of {_a(api)}, which " if filled else ""
            fills += f"{framework.project} {filled.releases} has" if filled else ""
            yield Finding(
                _asked_at(workload),
                f"Kueue takes the pods of a replica of `{workload.name}` one by one"
                if workload.is_grouped
                else f"Kueue and JobSet contradict each other about `{workload.name}` until there is quota",
                label="some may start while others wait"
                if workload.is_grouped
                else "suspended by one, resumed by the other",
                related=(Label(plan.cluster.scheduler.at / "kind", f"Kueue is not told of {api}"),),
                notes=(fills,) if filled else (),
                help=f"add `{api}` to `kueue.frameworks` in the cluster's `scheduler`",
            )


def _asked_at(workload: Workload) -> Origin:
    return workload.gang_at if needed_api(workload) is Api.LEADER_WORKER_SET else workload.work_at / "kind"


def _a(api: Api) -> str:
    return f"an {api}" if api is Api.INFERENCE_SERVICE else f"a {api}"


@check("GPU528", "replica-contradicts-itself")
def replica_contradicts_itself(plan: Plan) -> Iterator[Finding]:
    """The fields of a service for the pods of a replica contradict each other.

    ## Why
    A replica of one pod has no workers, and nothing to be close to. The replicas of a LeaderWorkerSet are called by its
    name and their number, and so are the StatefulSet and the headless Service of each
    (`constructWorkerStatefulSetApplyConfiguration` in `pkg/controllers/pod_controller.go` of kubernetes-sigs/lws): a
    workload that is called so has its Service or its pods in their way, and the workers of that replica are never
    found.

    ## Instead
    Write `podsPerReplica`, or leave out what needs it. Give one of the workloads another name.
    """
    for workload in plan.workloads:
        if not isinstance(workload.work, Inference) or workload.is_grouped:
            continue
        needing = (
            (workload.work.worker, "worker", "says what workers run, and its replicas have none"),
            (workload.work.topology, "topology", "says how close the pods of a replica are, and each is one"),
        )
        for value, field, fact in needing:
            if value is not None:
                yield Finding(
                    (workload.work_at / field).key,
                    f"`{workload.name}` {fact}",
                    label="has no effect",
                    help=f"write how many pods a replica has, such as `podsPerReplica: 2`, or leave `{field}` out",
                    severity=Severity.WARNING,
                )
    # Kueue's sets have a digest in their name, which no workload has by chance.
    groups = {(each.namespace, each.name): each for each in plan.workloads if each.is_grouped}
    for workload in plan.workloads if not plan.scheduler.suspends_jobs else ():
        name, _, number = workload.name.rpartition("-")
        group = groups.get((workload.namespace, name))
        if group is not None and number.isdecimal() and int(number) < group.most_pods // group.pods_per_replica:
            yield Finding(
                name_of(workload.at),
                f"`{workload.name}` is what a replica of `{group.name}` is called",
                label="its Service and its pods are in the way",
                related=(Label(group.gang_at, f"its replicas are `{name}-0` and so on"),),
                help=f"rename it, for example to `{name}-{chr(97 + int(number) % 26)}`",
            )


@check("GPU559", "not-by-this-kind")
def not_by_this_kind(plan: Plan) -> Iterator[Finding]:
    """A training asks for something that only a plain Job does.

    ## Why
    All pods of a JobSet or a TrainJob start again when one has failed (`failurePolicy.maxRestarts`): none has tries of
    its own, trials that have ended would run once more, and nobody goes on without one that has left. Trainer has no
    elastic training either (`EnforceMLPolicy` in `pkg/runtime/framework/plugins/torch/torch.go` of v2.3.0).

    ## Instead
    Leave `kind` out, or what only a Job does.
    """
    for workload in plan.workloads:
        work = workload.work
        if not isinstance(work, Training) or workload.training_kind is TrainingKind.JOB:
            continue
        asked = {
            "trials": work.trials,
            "backoffLimitPerIndex": work.backoff_limit_per_index,
            "maxFailedIndexes": work.max_failed_indexes,
            "elastic": work.elastic,
        }
        for field in (name for name, value in asked.items() if value is not None):
            yield Finding(
                (workload.work_at / field).key,
                f"pods of `{workload.name}` start again together, and `{field}` is about each by itself",
                label=f"a {work.kind} does not know it",
                related=(Label(workload.work_at / "kind", f"a {work.kind}"),),
                help=f"leave `{field}` out, or `kind`",
            )


_SUCCESS_BY_ONE = (1, 31)
"""The release from which on `JobSuccessPolicy` is on by default."""


@check("GPU563", "elastic-contradicts-itself")
def elastic_contradicts_itself(plan: Plan) -> Iterator[Finding]:
    """A training is to go on with fewer pods, and something else that it says does not allow that.

    ## Why
    Pods that come and go agree on who is there (torchrun's `--nnodes=2:4`), so they have to find one another, and run
    all at once. Those that start together are `minPods` of them. The job has succeeded when its first pod has, for
    others may never have come: that is a Job's `successPolicy`, which Kubernetes before 1.31 drops without a word,
    unless a feature gate is on (`JobSuccessPolicy` in `pkg/features/kube_features.go` of kubernetes/kubernetes).

    ## Instead
    Write `peers: {}` beside `elastic`, and leave `gang` and `trials` out.
    """
    version = plan.cluster.spec.kubernetes
    is_old = (parse_version(version) or _SUCCESS_BY_ONE) < _SUCCESS_BY_ONE
    for workload in plan.workloads:
        work, at = workload.work, workload.work_at
        if not isinstance(work, Training) or work.elastic is None:
            continue
        name, fewest, here = workload.name, work.elastic.min_pods, (at / "elastic").key
        if fewest > work.pods:
            yield Finding(
                at / "elastic" / "minPods",
                f"`{name}` goes on with {fewest} pods, and has {work.pods}",
                label=f"{work.pods} at most",
                related=(Label(at / "pods", "the most"),),
                help=f"write `minPods: {work.pods}` or less",
            )
        if work.peers is None:
            yield Finding(
                here,
                f"pods of `{name}` come and go, and do not find one another",
                label="nobody knows who is there",
                help="write `peers: {}` beside it",
            )
        for field in (field for field, value in (("gang", work.gang), ("trials", work.trials)) if value is not None):
            yield Finding(
                at / field,
                f"pods of `{name}` come and go, and it has `{field}`",
                label="`minPods` start together" if field == "gang" else "one after the other",
                related=(Label(here, f"{fewest} to {work.pods} pods"),),
                help=f"leave `{field}` out, or `elastic`",
            )
        if is_old:
            yield Finding(
                here,
                f"Kubernetes {version} waits for pods of `{name}` that never come",
                label="`successPolicy` is dropped before 1.31",
                related=(Label(plan.cluster.at / "kubernetes", "the cluster's version"),),
                help="upgrade the cluster to 1.31 or later, or leave `elastic` out",
            )


@check("GPU529", "not-kept-by-kserve")
def not_kept_by_kserve(plan: Plan) -> Iterator[Finding]:
    """A service that is an InferenceService asks for something that KServe does not keep.

    ## Why
    KServe makes the Deployment, and adds to it what it takes for granted. A container without a probe is asked at its
    first port or at 8080 (`setDefaultPodSpec` in
    `pkg/controller/v1beta1/inferenceservice/reconcilers/deployment/deployment_reconciler.go`), and one without CPU or
    memory gets one CPU and 2 GiB, as the ConfigMap `inferenceservice-config` says that comes with it
    (`setResourceRequirementDefaults` in `pkg/apis/serving/v1beta1/inference_service_defaults.go`). The variable
    `STORAGE_URI` has it download a model by itself. A container of one's own is one pod to a replica. The Deployment's
    name is a label of its pods, `isvc.<name>-predictor`, of at most 63 characters. A Deployment counts as failed after
    ten minutes without progress, however long a container may take to start.

    KServe copies labels and annotations of an InferenceService to its pods, except for five annotations
    (`buildObjectMeta` in `pkg/controller/v1beta1/inferenceservice/components/predictor.go`, v0.20.0). A change of a
    label or annotation recreates all pods, as `gpuplan diff` reports. Argo CD and Flux mark what they sync in the same
    way: where one of them takes over an InferenceService that is there, its pods are recreated once.

    ## Instead
    Write what the help names, or leave `kind` out: gpuplan's own Deployment keeps all of it.
    """
    for workload in plan.workloads:
        work, at, name, spec = workload.work, workload.work_at, workload.name, workload.spec
        if needed_api(workload) is not Api.INFERENCE_SERVICE or not isinstance(work, Inference):
            continue
        for place, fault, instead in _beyond_kserve(workload, work):
            yield Finding(place, f"`{name}` {fault}", label="not kept by KServe", help=instead)
        for field, text in (("cpu", spec.cpu), ("memory", spec.memory)):
            if not text:
                yield Finding(
                    at / "kind",
                    f"`{name}` says nothing of its {field.upper() if field == 'cpu' else field}, and KServe does",
                    label="one CPU and 2 GiB, as KServe comes",
                    help=f"add `{field}: {'4' if field == 'cpu' else '32Gi'}`, or as much as a pod needs",
                    severity=Severity.WARNING,
                )
        if work.startup is not None and seconds(work.startup) > _PATIENCE:
            yield Finding(
                at / "startup",
                f"`{name}` may take {work.startup} to start, and counts as failed after 10m until it has",
                label="longer than a Deployment of KServe is waited for",
                help="leave it as it is, where nobody acts on that",
                severity=Severity.NOTE,
            )


_LONGEST: Final = 63 - len("isvc.-predictor")
_PATIENCE: Final = 600
_STORAGE: Final = "STORAGE_URI"


def _beyond_kserve(workload: Workload, work: Inference) -> Iterator[tuple[Origin, str, str]]:
    """Yield the place of each field that KServe does not keep, what is wrong with it and what to do."""
    at, size, other = workload.work_at, len(workload.name), "or leave `kind` out"
    one_of_two = "leave one of the two out"
    if work.pods_per_replica > 1:
        yield at / "podsPerReplica", "has several pods to a replica", one_of_two
    if probe_of(work) == "none":
        instead = f"add a probe, such as `probe: {{command: [cat, /tmp/ready]}}`, {other}"
        place = at / ("port" if work.probe is None else "probe")
        yield place, "is asked nothing, and KServe would ask it at a port", instead
    if size > _LONGEST:
        yield name_of(workload.at), f"has a name of {size} characters", f"write one of at most {_LONGEST}, {other}"
    if _STORAGE in workload.spec.env:
        yield (workload.at / "env" / _STORAGE).key, "would have KServe download a model", "write `model`"
    if work.canary is not None:
        yield (at / "canary").key, "has a canary beside the pods that KServe makes", one_of_two
    if workload.pod_patch:
        yield (workload.at / "podPatch").key, "patches pods that KServe makes", one_of_two
