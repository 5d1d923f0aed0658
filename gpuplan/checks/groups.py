"""Checks on services of which each replica is several pods (GPU526-528)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.checks.registry import check
from gpuplan.checks.wording import name_of
from gpuplan.diagnostics import Finding, Label, Severity
from gpuplan.planning.apis import needed_api
from gpuplan.planning.kueue import frameworks
from gpuplan.planning.plan import Plan, Workload
from gpuplan.policy.models import Inference


@check("GPU526", "kind-not-in-cluster")
def kind_not_in_cluster(plan: Plan) -> Iterator[Finding]:
    """A workload needs a kind of object whose controller the cluster does not say that it has.

    ## Why
    Kubernetes itself has nothing that makes replicas of several pods which come and go together; a LeaderWorkerSet does
    (kubernetes-sigs/lws). Where its definition is missing, Argo CD and Flux fail to sync the namespace's folder; where
    its controller is, nothing makes pods.

    ## Instead
    Install the controller, and name the kind in the cluster's `apis`.
    """
    for workload in plan.workloads:
        api = needed_api(workload)
        if api is not None and api not in plan.cluster.spec.apis:
            yield Finding(
                workload.gang_at,
                f"`{workload.name}` needs a {api}, and cluster `{plan.cluster.name}` does not say that it has them",
                label=f"{workload.pods_per_replica} pods that come and go together",
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
        if api is not None and api.value not in known:
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
