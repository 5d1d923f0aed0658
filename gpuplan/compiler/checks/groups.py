"""Checks on services of which each replica is several pods (GPU528)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import name_of
from gpuplan.compiler.planning.plan import Plan, Workload
from gpuplan.compiler.policy.models import Inference


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
