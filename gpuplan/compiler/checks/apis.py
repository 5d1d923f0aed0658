"""Checks on the kinds of objects that work needs beyond Kubernetes' own (GPU526-527)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin
from gpuplan.compiler.catalog.frameworks import frameworks as known_to_kueue
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.apis import needed_api
from gpuplan.compiler.planning.kueue import frameworks, release_of
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.policy.models import Api


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
                label=_why(workload, api),
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
    known = {found.kind for found in frameworks(plan.cluster)}
    for workload in plan.workloads:
        api = needed_api(workload)
        if api is not None and api is not Api.INFERENCE_SERVICE and api.value not in known:
            yield Finding(
                _asked_at(workload),
                f"Kueue takes the pods of a replica of `{workload.name}` one by one"
                if workload.is_grouped
                else f"Kueue and JobSet contradict each other about `{workload.name}` until there is quota",
                label="some may start while others wait"
                if workload.is_grouped
                else "suspended by one, resumed by the other",
                related=(Label(plan.cluster.scheduler.at / "kind", f"Kueue is not told of {api}"),),
                notes=tuple(_filled(plan, api)),
                help=f"add `{api}` to `kueue.frameworks` in the cluster's `scheduler`",
            )


def _filled(plan: Plan, api: Api) -> Iterator[str]:
    framework, release = known_to_kueue()[api.value], release_of(plan.cluster)
    if filled := framework.filled_by(release):
        yield (
            f"Kueue {release} then fills in `{filled.field}` of {_a(api)}, which {framework.project} "
            f"{filled.releases} has"
        )


def _asked_at(workload: Workload) -> Origin:
    return workload.gang_at if needed_api(workload) is Api.LEADER_WORKER_SET else workload.work_at / "kind"


def _a(api: Api) -> str:
    return f"an {api}" if api is Api.INFERENCE_SERVICE else f"a {api}"


def _why(workload: Workload, api: Api) -> str:
    if api is Api.INFERENCE_SERVICE:
        return "pods that KServe makes"
    grouped = f"{workload.pods_per_replica} pods that come and go together"
    return grouped if workload.is_grouped else "pods that start again together"
