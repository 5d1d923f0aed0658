"""Checks on pools whose partitions are made on demand (GPU444, GPU492-498)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.catalog.schedulers import Support
from gpuplan.compiler.checks.caps import each_quota, lower_limits
from gpuplan.compiler.checks.losses import losses
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import in_flow, severity_of_loss
from gpuplan.compiler.planning.dra import (
    Promise,
    broken_promises,
    cap_in,
    dynamic_pools,
    guarantee_of,
    static_instances,
)
from gpuplan.compiler.planning.plan import DynamicMig, Mig, Plan
from gpuplan.compiler.policy.models import Allocation

# --- What it needs -----------------------------------------------------------------------------------------------


@check("GPU492", "dynamic-mig-without-claims")
def dynamic_mig_without_claims(plan: Plan) -> Iterator[Finding]:
    """A pool makes partitions on demand, but is not allocated by DRA.

    ## Why
    It is NVIDIA's driver for Dynamic Resource Allocation that makes a partition when a pod claims one. The device
    plugin publishes what is there already: it would find no partition at all.

    ## Instead
    Write `allocation: dra` in all pools of the cluster, or divide the GPUs by a layout.
    """
    for pool in dynamic_pools(plan):
        if pool.spec.allocation is not Allocation.DRA:
            yield Finding(
                pool.sharing.at.key,
                f"pool `{pool.name}` makes partitions on demand, which only claims can ask for",
                label="the device plugin makes none",
                help="write `allocation: dra` in all pools of the cluster, or `mig` with `instances` here",
            )


_BY_DEFAULT = (1, 36)
"""`DRAPartitionableDevices` is on by default from Kubernetes 1.36 on (`pkg/features/kube_features.go` there)."""

_FIRST_WITH_GATE = (25, 12)
"""The first release with the gate `DynamicMIG` (`pkg/featuregates/featuregates.go` of the driver)."""

_NEWEST_BY_YEAR = 25
"""Releases were counted by years until v25.12; v0.4.0 came after it."""


@check("GPU493", "cluster-makes-no-partitions")
def cluster_makes_no_partitions(plan: Plan) -> Iterator[Finding]:
    """A pool makes partitions on demand, and the cluster's Kubernetes or its driver for DRA does not know them.

    ## Why
    Partitions of one GPU exclude each other, which the driver says by shared counters in its ResourceSlices. An API
    server whose feature gate `DRAPartitionableDevices` is off drops the counters
    (`dropDisabledDRAPartitionableDevicesFields` in `pkg/registry/resource/resourceslice/strategy.go`), so that pods are
    given partitions that cannot stand beside each other, and do not start. The gate is on by default from Kubernetes
    1.36 on. The driver has its own alpha gate `DynamicMIG` since v25.12.0.
    That release publishes nothing on nodes without MIG
    ([#1092](https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/1092)) and tries to switch MIG on an A100,
    which takes a reset; v0.4.0 does neither ([#1018](https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/pull/1018)).

    From Hopper on the driver switches MIG on when the first partition of a GPU is claimed. An Ampere GPU needs a reset,
    which the driver does not do: if MIG is off, it publishes whole GPUs and no partition (`isDynamicMIGCapable` in
    `cmd/gpu-kubelet-plugin/nvlib.go`). mig-manager could do the reset, but does not run on these nodes, because it
    would dissolve the driver's partitions. A note reminds of the reset.

    ## Instead
    Switch the gate on in the API server, the scheduler and the controllers, and say so with `dra:
    {partitionableDevices: true}`; upgrade the driver, and say so in `dra.driverVersion`. On Ampere switch MIG on before
    the driver starts, once for each node: `nvidia-smi -mig 1`, and a reboot where it stays pending; it survives
    reboots. Or divide the GPUs by layouts.
    """
    pools = dynamic_pools(plan)
    if not pools:
        return
    for pool in pools:
        if pool.gpu.architecture == "Ampere":
            yield Finding(
                pool.sharing.at.key,
                f"MIG must be on already on the nodes of pool `{pool.name}`",
                label=f"{pool.gpu.id} switches it only by a reset",
                related=(Label(pool.at / "gpu", "an Ampere GPU"),),
                help="run `nvidia-smi -mig 1` on each node and reboot it, before the driver for DRA starts there",
                severity=Severity.NOTE,
            )
    cluster, dra = plan.cluster, plan.cluster.spec.dra
    related = (Label(pools[0].sharing.at.key, f"pool `{pools[0].name}` makes partitions on demand"),)
    kubernetes = tuple(map(int, cluster.spec.kubernetes.split(".")))
    if kubernetes < _BY_DEFAULT and not (dra and dra.partitionable_devices):
        yield Finding(
            cluster.at / "kubernetes",
            f"Kubernetes {cluster.spec.kubernetes} does not keep partitions apart that are made on demand",
            label="`DRAPartitionableDevices` is off by default before 1.36",
            related=related,
            help="switch it on in the API server, the scheduler and the controllers, and write "
            "`dra: {partitionableDevices: true}` in the Cluster",
        )
    version = parse_version(dra.driver_version) if dra and dra.driver_version else None
    if version is None:
        return
    is_by_year = version[0] >= _NEWEST_BY_YEAR
    if is_by_year and version[:2] < _FIRST_WITH_GATE:
        label, severity = "the gate `DynamicMIG` came with v25.12.0", Severity.ERROR
        what = "makes no partitions on demand"
    elif is_by_year:
        label, severity = "does not look at what each GPU can do", Severity.WARNING
        what = "publishes nothing on nodes without MIG, and fails on GPUs that switch MIG only by a reset"
    else:
        return
    yield Finding(
        cluster.at / "dra" / "driverVersion",
        f"NVIDIA's driver for DRA {dra.driver_version if dra else ''} {what}",
        label=label,
        related=related,
        help="upgrade it to v0.4.0 or later",
        severity=severity,
    )


@check("GPU498", "dra-for-no-pool", Severity.WARNING)
def dra_for_no_pool(plan: Plan) -> Iterator[Finding]:
    """A cluster says what partitions on demand need of it, and no pool has any.

    ## Why
    What `dra` says of the cluster is asked where a pool has `sharing: {dynamicMig: ...}`, and nowhere else.

    ## Instead
    Remove it.
    """
    if plan.cluster.spec.dra is not None and not dynamic_pools(plan) and not plan.broken.pools:
        yield Finding(
            (plan.cluster.at / "dra").key,
            "`dra` says what partitions on demand need, and no pool has any",
            label="has no effect",
            help="remove it",
        )


@check("GPU494", "unknown-profile-on-demand")
def unknown_profile_on_demand(plan: Plan) -> Iterator[Finding]:
    """A pool lets pods claim a MIG profile that its GPU model does not have, or lists one twice.

    ## Why
    A claim of a profile that no device has waits for ever. A list of profiles is all that the policy says of such a
    pool: from it come its units, DeviceClasses and quotas. Where a model has no MIG, or gpuplan does not know for
    certain where its instances may stand, nothing can be said of what fits.

    ## Instead
    Name each profile once, as `gpuplan catalog` with the model's name lists them.
    """
    for pool in dynamic_pools(plan):
        if not isinstance(pool.sharing, DynamicMig):
            continue
        gpu, at, seen = pool.gpu, pool.sharing.at / "profiles", set[str]()
        if not gpu.supports_mig or not gpu.is_complete:
            yield Finding(
                pool.sharing.at.key,
                f"{gpu.id} cannot be partitioned on demand",
                label="no MIG" if not gpu.supports_mig else "its profiles are not known for certain",
                related=(Label(pool.at / "gpu", "the pool's GPU"),),
                notes=(gpu.incomplete_reason,) if gpu.incomplete_reason else (),
                help="use `exclusive` or a model with MIG",
            )
            continue
        known = [profile.name for profile in gpu.profiles]
        for index, name in enumerate(pool.sharing.spec.profiles):
            current = gpu.current_name(name)
            if current not in known:
                yield Finding(
                    at / index,
                    f"`{name}` is not a profile of {gpu.id}",
                    label="no such profile here",
                    notes=(f"profiles of {gpu.id}: {listing(known, len(known))}",),
                    help=f"`gpuplan catalog {gpu.id}` shows the profiles",
                )
            elif current in seen:
                yield Finding(
                    at / index, f"profile `{name}` is listed twice", label="already above", help="leave it out"
                )
            seen.add(current)


@check("GPU495", "driver-would-dissolve-partitions")
def driver_would_dissolve_partitions(plan: Plan) -> Iterator[Finding]:
    """A cluster has pools whose partitions are made on demand, and others that are divided by layouts.

    ## Why
    The gate `DynamicMIG` is one setting of the driver for DRA on all nodes of a cluster. With it the driver tries to
    remove, whenever it starts, every MIG instance that no claim holds (`DestroyUnknownMIGDevices` in
    `cmd/gpu-kubelet-plugin/device_state.go`): those of a layout that are idle at that moment. mig-manager would make
    them again at the next change of its label, and fail on those that the driver made. So the two do not stand beside
    each other, on one node or on two.

    ## Instead
    Divide all partitioned pools of a cluster in one way: an overlay can say it for one cluster alone. Whole GPUs stand
    beside either.
    """
    dynamic = dynamic_pools(plan)
    for pool in plan.parts if dynamic else ():
        if isinstance(pool.sharing, Mig):
            yield Finding(
                pool.sharing.layout_at.key,
                f"the partitions of pool `{pool.name}` would be dissolved",
                label="not made by the driver for DRA",
                related=(Label(dynamic[0].sharing.at.key, f"pool `{dynamic[0].name}` makes partitions on demand"),),
                notes=("the driver's gate `DynamicMIG` holds for all nodes of a cluster",),
                help="write `dynamicMig` here, too, or `mig` in all pools of the cluster",
            )


@check("GPU444", "scheduler-allocates-no-partitions")
def scheduler_allocates_no_partitions(plan: Plan) -> Iterator[Finding]:
    """A pool makes partitions on demand, which the cluster's scheduler allocates in part or not at all.

    ## Why
    What may be made of a GPU is published with shared counters, and whoever allocates has to keep them. kube-scheduler
    does. Kueue leaves it to kube-scheduler, and counts each profile by itself: it admits work for which there is no
    room beside the others, which then waits and holds its quota; that is a note. KAI-Scheduler allocates by itself,
    without partitionable devices, and takes no device that has such counters
    (`pkg/scheduler/plugins/dynamicresources/dynamicresources.go` of v0.17.0). Run:ai counts no claims; its own
    partitions on demand were deprecated in 2.19, and are no longer supported since 2.20.

    ## Instead
    Use plain Kubernetes or Kueue for this cluster, or divide the GPUs by a layout.
    """
    found, scheduler = losses(plan, "dynamic-mig", plan.scheduler), plan.cluster.scheduler
    kept = plan.scheduler.capability("dynamic-mig")
    is_impossible = kept.support is Support.IMPOSSIBLE
    if found:
        use, *_ = found
        verb = "allocates no" if is_impossible else "allocates only in part"
        yield Finding(
            scheduler.at / "kind",
            f"{plan.scheduler.title} {verb} MIG partitions that are made on demand",
            label="none of them is ever had" if is_impossible else "each profile is counted by itself",
            related=(Label(use.at, use.text),),
            notes=(kept.loss,),
            help="write `mig` with a layout in the pool, or use plain Kubernetes or Kueue"
            if is_impossible
            else "keep the limits of each profile to what `gpuplan show` says is certain",
            severity=None if is_impossible else severity_of_loss(plan, Severity.NOTE),
        )


# --- What it promises --------------------------------------------------------------------------------------------


@check("GPU496", "guarantees-hang-on-placement")
def guarantees_hang_on_placement(plan: Plan) -> Iterator[Finding]:
    """Guarantees on a pool whose partitions are made on demand hold only as long as others happen to be well placed.

    ## Why
    The scheduler puts an instance where it finds room, and nobody moves one. Two `1g.10gb` that are left over on a GPU
    of 80 GB, one in each half, keep a `3g.40gb` off it, although six of eight memory slices are free. A guarantee holds
    if its owner finds a place whatever the others have, within their own guarantees, wherever it stands. gpuplan
    searches for the worst that can be, exactly, and says what it is.

    ## Instead
    Guarantee as many as are certain, and let `limit` say how far the tenant may go when there is room. Or divide the
    GPUs by a layout: each unit of a layout is there whoever comes first.
    [Static or dynamic](../explanation/static-or-dynamic-mig.md) compares the two.
    """
    for promise in broken_promises(plan, guarantee_of):
        _, quota = promise.quotas[-1]
        if len(promise.quotas) == 1:
            fewer = f"guarantee {promise.certain} and set `limit: {promise.guaranteed}`"
        else:
            excess = promise.guaranteed - promise.certain
            fewer = f"lower these guarantees by {excess} in all, and set limits instead"
        yield Finding(
            quota.at / "guaranteed",
            f"guarantees on `{promise.unit.name}` of pool `{promise.pool.name}` hang on where others are placed",
            label=f"{promise.certain} of {promise.guaranteed} are certain",
            related=(Label(promise.pool.sharing.at.key, "made on demand, and never moved"),),
            notes=(_proof(promise),),
            help=fewer + _or_static(static_instances(plan, promise.pool)),
        )


@check("GPU497", "limits-hang-on-placement", Severity.WARNING)
def limits_hang_on_placement(plan: Plan) -> Iterator[Finding]:
    """With partitions on demand, units beyond the guarantees may leave no place for a guarantee.

    ## Why
    A quota counts the devices of one profile, and knows nothing of what they leave of a GPU. So a tenant that uses its
    limit of one profile may be in the way of another's guarantee on a profile that it has nothing of. No scheduler
    evicts for that: a queue takes back units of the profile that is short, and moving what is in the way is not among
    what any of them can do.

    ## Instead
    Lower the limits, or cap at the guarantees (`scheduler.cap: guaranteed` in the cluster), or divide the GPUs by a
    layout. With `onLoss: refuse` this is an error.
    """
    hopeless = {(found.pool.name, found.unit.name) for found in broken_promises(plan, guarantee_of)}
    for promise in broken_promises(plan, cap_in(plan)):
        if (promise.pool.name, promise.unit.name) in hopeless:
            continue
        _, quota = promise.quotas[-1]
        yield Finding(
            quota.at / "guaranteed",
            f"limits on pool `{promise.pool.name}` may leave no place for guaranteed `{promise.unit.name}`",
            label=f"{promise.certain} of {promise.guaranteed} are certain",
            related=(Label(promise.pool.sharing.at.key, "made on demand, and never moved"),),
            notes=(_proof(promise),),
            help=lower_limits(plan, [pair for pair in each_quota(plan) if pair[1].pool is promise.pool])
            + _or_static(static_instances(plan, promise.pool)),
            severity=severity_of_loss(plan, Severity.WARNING),
        )


def _proof(promise: Promise) -> str:
    where = []
    for blockade in promise.blockades:
        on_each = joined([f"{number}x `{name}`" for name, number in blockade.on_each.items()])
        where.append(f"{on_each} on {'each of ' if blockade.gpus > 1 else ''}{count(blockade.gpus, 'GPU')}")
    return f"{joined(where)} leave no place for another `{promise.unit.name}`"


def _or_static(instances: Mapping[str, int]) -> str:
    if not instances:
        return ", or use `mig` with a layout"
    return f", or write `mig: {{instances: {in_flow(instances)}}}`"
