"""Checks on pools whose devices are claimed (GPU565-569)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.checks.registry import check
from gpuplan.diagnostics import Finding, Label, Severity
from gpuplan.planning.plan import Fraction, Mig, Mps, Plan, Pool, Sharing, TimeSlicing
from gpuplan.policy.models import Allocation
from gpuplan.wording import listing

_CLAIMS_SINCE = (1, 34)
"""`resource.k8s.io/v1` is served, and Dynamic Resource Allocation on by default, since Kubernetes 1.34."""


@check("GPU565", "kubernetes-too-old-for-claims")
def kubernetes_too_old_for_claims(plan: Plan) -> Iterator[Finding]:
    """A pool is allocated by DRA on a cluster whose Kubernetes does not serve `resource.k8s.io/v1`.

    ## Why
    Dynamic Resource Allocation is stable since Kubernetes 1.34. An older API server knows only beta versions of
    DeviceClasses and claims, which are off unless somebody switches them on.

    ## Instead
    Upgrade the cluster and say so in `kubernetes`, or leave `allocation: dra` out.
    """
    cluster = plan.cluster
    major, _, minor = cluster.spec.kubernetes.partition(".")
    if (int(major), int(minor)) < _CLAIMS_SINCE:
        for pool in _claimed(plan):
            yield Finding(
                pool.at / "allocation",
                f"pool `{pool.name}` needs Kubernetes 1.34 to be claimed",
                label="needs `resource.k8s.io/v1`",
                related=(Label(cluster.at / "kubernetes", "is older"),),
                help="leave `allocation: dra` out, or upgrade the cluster",
            )


@check("GPU566", "two-ways-of-allocation")
def two_ways_of_allocation(plan: Plan) -> Iterator[Finding]:
    """Some pools of a cluster are allocated by DRA, others by the device plugin.

    ## Why
    Where both run on a node, each hands out the same GPUs. And the GPU Operator takes the device plugin to be on all
    nodes or on none: where a node's label keeps it away, the operator's validator waits for its resources all the same
    ([gpu-operator#2550](https://github.com/NVIDIA/gpu-operator/issues/2550)). So gpuplan switches the device plugin off
    for the whole cluster as soon as pools say `allocation: dra`.

    ## Instead
    Say the same of all pools of the cluster. An overlay can say it for one cluster alone.
    """
    claimed = _claimed(plan)
    others = [pool for pool in plan.pools if pool.spec.allocation is Allocation.DEVICE_PLUGIN]
    if claimed:
        for pool in others:
            yield Finding(
                pool.at.key,
                f"pool `{pool.name}` needs the device plugin, which pool `{claimed[0].name}` switches off",
                label="its resources would be missing",
                related=(Label(claimed[0].at / "allocation", "allocated by DRA"),),
                help="write `allocation: dra` here as well, or leave it out of all pools",
            )


@check("GPU567", "shares-cannot-be-claimed")
def shares_cannot_be_claimed(plan: Plan) -> Iterator[Finding]:
    """A pool is allocated by DRA and divides its devices in a way that claims do not know.

    ## Why
    NVIDIA's driver publishes whole GPUs and MIG devices. Replicas belong to the device plugin: with claims, pods share
    a device by naming one claim, which a quota counts once, and the driver's settings for it are alpha. Fractions are a
    scheduler's own: it cuts them from GPUs that are published as resources.

    ## Instead
    Use `exclusive` or `mig` without `timeSlicing`, or leave `allocation: dra` out of the cluster's pools.
    """
    for pool in plan.parts:
        if pool.spec.allocation is not Allocation.DRA:
            continue
        found = _divided(pool.sharing)
        if found is not None:
            yield Finding(
                found.at.key,
                f"pool `{pool.name}` is allocated by DRA, which has no {_WORDS[type(found)]}",
                label="no unit of it can be claimed",
                related=(Label(pool.at / "allocation", "allocated by DRA"),),
                help="use `exclusive` or `mig`, or leave `allocation: dra` out",
            )


_WORDS = {TimeSlicing: "time slices", Mps: "shares under MPS", Fraction: "fractions"}


def _divided(sharing: Sharing) -> TimeSlicing | Mps | Fraction | None:
    """What divides devices in a way of its own."""
    if isinstance(sharing, Mig):
        return sharing.time_slicing
    return sharing if isinstance(sharing, TimeSlicing | Mps | Fraction) else None


@check("GPU568", "claims-evict-nobody", Severity.NOTE)
def claims_evict_nobody(plan: Plan) -> Iterator[Finding]:
    """On plain Kubernetes, classes of different priority meet in a pool with claims, where they evict nobody.

    ## Why
    kube-scheduler evicts a pod when another fits in its place. It does not count the devices that a pod would give
    back, so that no pod is evicted for a claim. The higher class is only the next to be placed.

    ## Instead
    Keep the caps within the pool, or use Kueue, which evicts by quota before pods are made.
    """
    if not plan.scheduler.evicts_by_priority_alone:
        return
    for pool in _claimed(plan):
        classes = {
            priority.name: priority
            for tenant in plan.tenants
            if any(quota.pool is pool for quota in tenant.quotas)
            for priority in tenant.priority_classes
        }
        lowest = min((priority.spec.value for priority in classes.values()), default=0)
        evicting = [
            priority for priority in classes.values() if priority.spec.preempts and priority.spec.value > lowest
        ]
        if evicting:
            yield Finding(
                pool.at / "allocation",
                f"priority classes evict nobody from pool `{pool.name}`",
                label="kube-scheduler does not evict for claims",
                related=(Label(evicting[0].at / "value", f"`{evicting[0].name}` is above others of the pool"),),
                notes=(f"pods of {listing([priority.name for priority in evicting])} wait until devices are free",),
                help="keep the caps within the pool, or use a scheduler that evicts by quota",
            )


def _claimed(plan: Plan) -> list[Pool]:
    return [pool for pool in plan.pools if pool.spec.allocation is Allocation.DRA]
