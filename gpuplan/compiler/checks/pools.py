"""Checks on pools (GPU155-160, GPU164): their nodes, fallbacks and workload types."""

from __future__ import annotations

from collections.abc import Container, Iterator

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.wording import lengthened, listing, misspelling
from gpuplan.compiler.catalog.schedulers import Support
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import mistyped
from gpuplan.compiler.planning.fallbacks import resources_of
from gpuplan.compiler.planning.grants import FRACTION
from gpuplan.compiler.planning.plan import Isolation, Plan, Pool, Quota, Tenant, Unit
from gpuplan.compiler.planning.tree import circles

_WEAKNESS = {isolation: rank for rank, isolation in enumerate(Isolation)}
"""`Isolation` lists the strongest first."""


# --- Fallback ----------------------------------------------------------------------------------------------------


@check("GPU155", "fallback-cycle")
def fallback_cycle(plan: Plan) -> Iterator[Finding]:
    """Pools fall back to one another in a circle, or a pool to itself.

    ## Why
    A fallback says where a workload may go when its pool is full. In a circle each pool waits for the other, and a
    scheduler that follows the fallbacks never comes to an end of them.

    ## Instead
    Let the fallbacks end at a pool that has none.
    """
    for circle in circles({pool.name: pool.spec.fallback for pool in plan.pools if pool.spec.fallback}):
        pools = [pool for name in circle if (pool := plan.find_pool(name))]
        route = " -> ".join(f"`{name}`" for name in (*circle, circle[0]))
        yield Finding(
            pools[0].at / "fallback",
            f"pool `{circle[0]}` falls back to itself" if len(circle) == 1 else f"fallbacks go round: {route}",
            label="comes back here",
            related=tuple(Label(pool.at / "fallback", f"`{pool.name}` goes on") for pool in pools[1:]),
            help="remove one `fallback` of the circle",
        )


@check("GPU156", "fallback-weakens-isolation")
def fallback_weakens_isolation(plan: Plan) -> Iterator[Finding]:
    """A pool's fallback isolates workloads less than the pool does.

    ## Why
    Whole GPUs and MIG partitions have memory and faults of their own. Under MPS a fault ends all clients of the GPU,
    and under time-slicing any pod can take all of the memory. A workload that was placed for its isolation would lose
    it at the moment when the cluster is full, and nobody would see.

    ## Instead
    Fall back to a pool that isolates as strongly, or leave `fallback` out and let workloads wait. From whole GPUs to
    MIG partitions this is a warning: a partition is a smaller GPU, but one of its own.
    """
    for pool, fallback in _fallbacks(plan):
        if weaker := _find_weaker(pool, fallback):
            unit, there = weaker
            strong = [other.name for other in plan.pools if other is not pool and not _find_weaker(pool, other)]
            yield Finding(
                pool.at / "fallback",
                f"fallback `{fallback.name}` isolates less than pool `{pool.name}`",
                label="a weaker pool",
                related=(
                    Label((pool.at / "sharing").key, f"isolation here: {unit.isolation}"),
                    Label((fallback.at / "sharing").key, f"isolation there: {there.isolation}"),
                ),
                notes=(f"from strongest to weakest: {', '.join(Isolation)}",),
                help=f"fall back to {listing(strong)}, or leave `fallback` out"
                if strong
                else "leave `fallback` out: no other pool isolates as strongly",
                severity=Severity.WARNING if there.isolation is Isolation.HARDWARE else None,
            )


@check("GPU157", "fallback-needs-another-resource", Severity.NOTE)
def fallback_needs_another_resource(plan: Plan) -> Iterator[Finding]:
    """A pool's fallback hands out other resources, so that no workload can go there unchanged.

    ## Why
    A pod asks for a resource by name, such as `nvidia.com/mig-3g.40gb`, or claims by a class. A pool that has others
    never takes it. Somebody must write a second version of the workload, or a mutating policy must rewrite the request.

    ## Instead
    Fall back to a pool with the same units, or be ready to submit the workload again with the other request.
    """
    for pool, fallback in _fallbacks(plan):
        offered = [unit.asked_as for unit in fallback.units if unit.asked_as]
        missing = [unit.asked_as for unit in pool.units if unit.asked_as and unit.asked_as not in offered]
        if missing and _find_weaker(pool, fallback) is None:
            yield Finding(
                pool.at / "fallback",
                f"fallback `{fallback.name}` does not hand out {listing(missing)}",
                label=f"hands out {listing(offered)}" if offered else "hands out no resource",
                related=(Label((pool.at / "sharing").key, f"hands out {listing(missing)}"),),
                notes=("a pod asks for a resource by name and does not fit a pool that has another",),
                help="submit the workload again with the other request, or choose a pool with the same units",
            )


@check("GPU158", "fallback-too-small", Severity.WARNING)
def fallback_too_small(plan: Plan) -> Iterator[Finding]:
    """A pool's fallback hands out units with less memory than the pool says its workloads need.

    ## Why
    `memoryPerUnitMiB` is the least memory that a unit must offer to be of use. A workload that falls back to a smaller
    unit starts, and dies when its model does not fit.

    ## Instead
    Fall back to a pool with enough memory per unit, or lower `memoryPerUnitMiB` if less is enough.
    """
    for pool, fallback in _fallbacks(plan):
        need = pool.spec.memory_per_unit or 0
        landings = [there for unit in pool.units if (there := _lands_on(unit, fallback))]
        small = next((there for there in landings if there.memory_mib is not None and there.memory_mib < need), None)
        if small:
            yield Finding(
                pool.at / "fallback",
                f"units of fallback `{fallback.name}` have less memory than pool `{pool.name}` asks for",
                label=f"`{small.name}` has {small.memory_mib} MiB",
                related=(Label(pool.at / "memoryPerUnitMiB", "needed"),),
                help=f"fall back to a pool whose units have {need} MiB, or lower `memoryPerUnitMiB`",
            )


@check("GPU164", "fallback-not-granted", Severity.NOTE)
def fallback_not_granted(plan: Plan) -> Iterator[Finding]:
    """A tenant has a quota in a pool and none in the pool's fallback, so that its work does not go there.

    ## Why
    A tenant's quotas say what it has in each pool, and a fallback adds nothing to that: else a limit would be no limit.
    Where a tenant has no quota, admission refuses its pods, and its Workloads name the pool that is left.

    ## Instead
    Nothing, where the fallback is meant for others. Otherwise give the tenant a quota on the same unit there:
    `guaranteed: 0` with a `limit` is what it may borrow when its own pool is full.
    """
    if plan.broken.pools or plan.scheduler.capability("fallback").support is Support.IMPOSSIBLE:
        return
    for pool, fallback in _fallbacks(plan):
        shared = resources_of(pool) & resources_of(fallback)
        left = [found for tenant in plan.tenants if (found := _shut_out(tenant, pool, fallback, shared))]
        if left:
            tenant, quota = left[0]
            names, unit = listing([found.name for found, _ in left]), quota.unit.name
            yield Finding(
                pool.at / "fallback",
                f"work of {names} does not go from pool `{pool.name}` to its fallback `{fallback.name}`",
                label="no quota there",
                related=tuple(Label(held.at / "pool", f"quota of `{found.name}` here") for found, held in left[:3]),
                notes=("a tenant may use only its quotas in a pool; a fallback adds nothing",),
                help=f"add `{{pool: {fallback.name}, unit: {unit}, guaranteed: 0, limit: 1}}` to the quotas of "
                f"`{tenant.name}`, or nothing where the fallback is not meant for it",
            )


def _shut_out(tenant: Tenant, pool: Pool, fallback: Pool, shared: Container[str]) -> tuple[Tenant, Quota] | None:
    """Return a tenant with namespaces and its quota on what both pools hand out, if it has none in the fallback."""
    here = [quota for quota in tenant.quotas if quota.pool is pool and (quota.unit.asked_as or FRACTION) in shared]
    asked = {quota.unit.asked_as for quota in tenant.quotas if quota.pool is fallback}
    missing = [quota for quota in here if quota.unit.asked_as not in asked]
    return (tenant, missing[0]) if tenant.has_work and missing else None


def _fallbacks(plan: Plan) -> Iterator[tuple[Pool, Pool]]:
    known = {pool.name: pool for pool in plan.pools}
    found = ((pool, known.get(pool.spec.fallback or "")) for pool in plan.pools)
    return ((pool, fallback) for pool, fallback in found if fallback is not None and fallback is not pool)


def _lands_on(unit: Unit, fallback: Pool) -> Unit | None:
    """Return the unit of the fallback that a workload would get: the same unit, else the one that isolates least."""
    same = fallback.find_unit(unit.name)
    return same or max(fallback.units, key=lambda other: _WEAKNESS[other.isolation], default=None)


def _find_weaker(pool: Pool, fallback: Pool) -> tuple[Unit, Unit] | None:
    """Return a unit of the pool, and the weaker one that a workload would get instead, or None."""
    for unit in pool.units:
        there = _lands_on(unit, fallback)
        if there and _WEAKNESS[there.isolation] > _WEAKNESS[unit.isolation]:
            return unit, there
    return None


# --- Workload types ----------------------------------------------------------------------------------------------


@check("GPU159", "workload-type-not-served")
def workload_type_not_served(plan: Plan) -> Iterator[Finding]:
    """A tenant runs a type of workload that no pool in its quotas serves.

    ## Why
    Pools say in `workloadTypes` what they are meant for. A tenant whose workloads belong nowhere ends on a pool that
    was shared or partitioned for something else, such as production inference on a time-sliced research pool. A pool
    that names no types serves all, and a tenant may use the pools of its parent's quotas.

    ## Instead
    Give the tenant a quota on a pool that serves the type, or add the type to a pool that it uses.
    """
    if plan.broken.pools:
        return
    serving = grouped((kind, pool) for pool in plan.pools for kind in pool.spec.workload_types)
    for tenant in plan.tenants:
        used = {quota.pool.name: quota.pool for above in plan.tree.path(tenant) for quota in above.quotas}
        if any(not pool.spec.workload_types for pool in (used.values() if used else plan.pools)):
            continue
        served = {kind for pool in (used.values() if used else plan.pools) for kind in pool.spec.workload_types}
        for index, kind in enumerate(tenant.spec.workload_types):
            if kind not in served:
                at = tenant.at / "workloadTypes" / index
                if pools := [pool.name for pool in serving.get(kind, ())]:
                    first = next(iter(used))
                    yield Finding(
                        at,
                        f"no pool in the quotas of tenant `{tenant.name}` serves `{kind}`",
                        label=f"served by {listing(pools)}",
                        related=(Label((tenant.at / "quotas").key, f"quotas on {listing(list(used))}"),),
                        help=f"add a quota on `{pools[0]}`, or add `{kind}` to the `workloadTypes` of `{first}`",
                    )
                else:
                    message = f"no pool serves workload type `{kind}`"
                    instead = f"add `{kind}` to the `workloadTypes` of a pool"
                    notes = (f"pools serve {listing(sorted(serving))}",) if serving else ()
                    meant = misspelling(kind, serving) or lengthened(kind, serving)
                    yield mistyped(at, message, meant, "named by no pool", instead, *notes)


# --- Size and disruption -----------------------------------------------------------------------------------------

_MOST_GPUS = 32
"""The number of GPUs that one node's driver can hold: `NV_MAX_DEVICES` (NVIDIA/open-gpu-kernel-modules)."""


@check("GPU160", "too-many-gpus-per-node")
def too_many_gpus_per_node(plan: Plan) -> Iterator[Finding]:
    """A pool's nodes have more GPUs than the driver can drive.

    ## Why
    NVIDIA's driver handles at most 32 GPUs on one node; servers have up to 16. Capacity is `count` times `gpusPerNode`:
    a number that counts the whole pool, or MIG instances, promises GPUs that do not exist.

    ## Instead
    Write how many physical GPUs `nvidia-smi -L` lists on one node.
    """
    for pool in plan.pools:
        if pool.nodes.gpus_per_node > _MOST_GPUS:
            yield Finding(
                pool.nodes.at / "gpusPerNode",
                f"a node of pool `{pool.name}` cannot have {pool.nodes.gpus_per_node} GPUs",
                label=f"at most {_MOST_GPUS}",
                notes=(f"the driver handles at most {_MOST_GPUS} GPUs on one node",),
                help="count the physical GPUs of one node, not those of the pool, nor shares or MIG instances",
            )
