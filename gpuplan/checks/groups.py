"""Checks on services whose pods no Deployment of the policy makes (GPU526-529)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.checks.registry import check
from gpuplan.checks.wording import name_of
from gpuplan.diagnostics import Finding, Label, Severity
from gpuplan.planning.apis import needed_api, needed_at
from gpuplan.planning.kueue import frameworks
from gpuplan.planning.plan import Plan, Workload
from gpuplan.planning.projects import seconds
from gpuplan.planning.serving import probe_of
from gpuplan.policy.models import Api, Inference


@check("GPU526", "kind-not-in-cluster")
def kind_not_in_cluster(plan: Plan) -> Iterator[Finding]:
    """A workload needs a kind of object whose controller the cluster does not say that it has.

    ## Why
    Kubernetes itself has nothing that makes replicas of several pods which come and go together; a LeaderWorkerSet does
    (kubernetes-sigs/lws). An InferenceService is KServe's. Where a definition is missing, Argo CD and Flux fail to sync
    the namespace's folder; where its controller is, nothing makes pods.

    ## Instead
    Install the controller, and name the kind in the cluster's `apis`.
    """
    for workload in plan.workloads:
        api = needed_api(workload)
        if api is not None and api not in plan.cluster.spec.apis:
            yield Finding(
                needed_at(workload),
                f"`{workload.name}` needs the kind {api}, which cluster `{plan.cluster.name}` does not say that it has",
                label="not one of Kubernetes' own",
                related=(Label((plan.cluster.at / "apis").key, "not among these"),) if plan.cluster.spec.apis else (),
                help=f"install its controller, and add `{api}` to `apis` of the cluster",
            )


@check("GPU527", "kind-not-admitted-as-a-whole")
def kind_not_admitted_as_a_whole(plan: Plan) -> Iterator[Finding]:
    """Kueue is not told of a kind that makes pods which need one another.

    ## Why
    Kueue then takes the pods one by one: some of a replica hold GPUs while the others wait for quota, and none serves.

    ## Instead
    Name the kind in `scheduler.kueue.frameworks`, and merge the Configuration that gpuplan writes into Kueue's own.
    """
    if not plan.scheduler.suspends_jobs:
        return
    known = {found.kind for found in frameworks(plan.cluster)}
    for workload in plan.workloads:
        api = needed_api(workload)
        if api is not None and workload.is_grouped and api.value not in known:
            yield Finding(
                workload.gang_at,
                f"Kueue takes the pods of a replica of `{workload.name}` one by one",
                label="some may start while others wait",
                related=(Label(plan.cluster.scheduler.at / "kind", f"Kueue is not told of {api}"),),
                help=f"add `{api}` to `kueue.frameworks` in the cluster's `scheduler`",
            )


@check("GPU528", "replica-contradicts-itself")
def replica_contradicts_itself(plan: Plan) -> Iterator[Finding]:
    """What a service says of the pods of a replica does not go together.

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
        if isinstance(workload.work, Inference):
            yield from _without_workers(workload, workload.work)
    yield from _in_the_way(plan)


def _without_workers(workload: Workload, work: Inference) -> Iterator[Finding]:
    if workload.is_grouped:
        return
    needing = (
        (work.worker, "worker", "says what workers run, and its replicas have none"),
        (work.topology, "topology", "says how close the pods of a replica are, and each is one"),
    )
    for found, field, what in needing:
        if found is not None:
            yield Finding(
                (workload.work_at / field).key,
                f"`{workload.name}` {what}",
                label="has no effect",
                help=f"write how many pods a replica has, such as `podsPerReplica: 2`, or leave `{field}` out",
                severity=Severity.WARNING,
            )


def _in_the_way(plan: Plan) -> Iterator[Finding]:
    """Kueue's sets have a digest in their name, which no workload has by chance."""
    if plan.scheduler.suspends_jobs:
        return
    groups = {(found.namespace, found.name): found for found in plan.workloads if found.is_grouped}
    for workload in plan.workloads:
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

    ## Instead
    Write what the help names, or leave `kind` out: gpuplan's own Deployment keeps all of it.
    """
    for workload in plan.workloads:
        if needed_api(workload) is Api.INFERENCE_SERVICE and isinstance(workload.work, Inference):
            yield from _beyond_kserve(workload, workload.work)


_LONGEST: Final = 63 - len("isvc.-predictor")
_PATIENCE: Final = 600
_STORAGE: Final = "STORAGE_URI"


def _beyond_kserve(workload: Workload, work: Inference) -> Iterator[Finding]:
    at, name, spec = workload.work_at, workload.name, workload.spec
    other = "or leave `kind` out"
    refused = (
        (work.pods_per_replica > 1, at / "podsPerReplica", "has several pods to a replica", "leave one of the two out"),
        (
            probe_of(work) == "none",
            at / ("port" if work.probe is None else "probe"),
            "is asked nothing, and KServe would ask it at a port",
            f"add a probe, such as `probe: {{command: [cat, /tmp/ready]}}`, {other}",
        ),
        (
            len(name) > _LONGEST,
            name_of(workload.at),
            f"has a name of {len(name)} characters",
            f"write one of at most {_LONGEST}, {other}",
        ),
        (
            _STORAGE in spec.env,
            (workload.at / "env" / _STORAGE).key,
            "would have KServe download a model",
            "write `model`",
        ),
        (
            bool(workload.pod_patch),
            (workload.at / "podPatch").key,
            "patches pods that KServe makes",
            "leave one of the two out",
        ),
    )
    for is_so, place, what, instead in refused:
        if is_so:
            yield Finding(place, f"`{name}` {what}", label="not kept by KServe", help=instead)
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
