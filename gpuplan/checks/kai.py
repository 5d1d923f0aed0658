"""Checks on what KAI-Scheduler refuses or takes in another sense (GPU550-559)."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.catalog.operators import parse_version
from gpuplan.checks.registry import check, only_if
from gpuplan.checks.wording import name_of, number
from gpuplan.diagnostics import Finding, Label, Severity
from gpuplan.planning.plan import Plan, PriorityClass, Quota
from gpuplan.planning.schedulers.kai import KAI, SCHEDULER_NAME
from gpuplan.wording import listing

# `plugins` of a SchedulingShard and trees of queues of any depth (https://github.com/kai-scheduler/KAI-Scheduler/blob/
# main/CHANGELOG.md).
_OLDEST = (0, 13)

# The Deployment and the Service of a shard are called `<scheduler>-<shard>`; a Service's name is a label of DNS
# (`serviceForShard` in `pkg/operator/operands/scheduler/resources_for_shard.go` there).
_LONGEST_SERVICE = 63
_LONGEST_SHARD = _LONGEST_SERVICE - len(f"{SCHEDULER_NAME}-")
_SHARD_OF_CHART = "default"


def _is_scheduled(plan: Plan) -> bool:
    return plan.scheduler is KAI


@only_if(_is_scheduled)
@check("GPU550", "pool-cannot-be-shard")
def pool_cannot_be_shard(plan: Plan) -> Iterator[Finding]:
    """On a cluster with KAI-Scheduler, a pool's name cannot be that of its shard.

    ## Why
    Each pool is a SchedulingShard of its name, and each shard a Service `kai-scheduler-<name>`, which has 63 characters
    at most: 49 are left for the pool. A shard whose Service is refused places nothing. `default` is the shard that the
    chart itself makes, for the nodes of no pool.

    ## Instead
    Shorten the name, or say what the pool is for.
    """
    for pool in plan.pools:
        if pool.name == _SHARD_OF_CHART:
            yield Finding(
                name_of(pool.at),
                f"pool name `{pool.name}` is that of the shard for nodes of no pool",
                label="KAI-Scheduler's chart creates it",
                notes=("two owners of one SchedulingShard would undo each other's work",),
                help="say what the pool is for, such as `training`",
            )
        elif len(pool.name) > _LONGEST_SHARD:
            yield Finding(
                name_of(pool.at),
                f"pool name `{pool.name}` is too long by {len(pool.name) - _LONGEST_SHARD} for a shard",
                label=f"{len(pool.name)} characters, {_LONGEST_SHARD} at most",
                notes=(
                    f"the shard's Service would be `{SCHEDULER_NAME}-{pool.name}`, at most {_LONGEST_SERVICE} long",
                ),
                help=f"shorten it, for example to `{pool.name[:_LONGEST_SHARD].rstrip('-')}`",
            )


@only_if(_is_scheduled)
@check("GPU551", "kai-too-old")
def kai_too_old(plan: Plan) -> Iterator[Finding]:
    """The cluster's release of KAI-Scheduler is too old for the objects that are written for it.

    ## Why
    Queues within queues within queues, and the setting of a shard that makes a tenant's own `protect.reclaim` hold,
    came with 0.13. An older release drops the setting and serves no queues below the second level.

    ## Instead
    Upgrade KAI-Scheduler, and say so in `scheduler.version`.
    """
    scheduler = plan.cluster.scheduler
    version = parse_version(scheduler.version)
    if version is not None and version[:2] < _OLDEST:
        yield Finding(
            scheduler.at / "version",
            f"KAI-Scheduler {scheduler.version} does not know all that is written for it",
            label="`plugins` of a SchedulingShard came with v0.13.0",
            help="upgrade KAI-Scheduler to v0.13.0 or later",
        )


@check("GPU552", "surplus-out-of-reach", Severity.WARNING)
def surplus_out_of_reach(plan: Plan) -> Iterator[Finding]:
    """On a cluster with KAI-Scheduler or Run:ai, a tenant may use more than its guarantee, but none of its classes can.

    ## Why
    Both lend only to work that they can evict again: what is not preemptible stays within the guarantee. A
    tenant whose priority classes are all `preemptible: false` never gets beyond it, whatever `limit` says, and
    without a guarantee it runs nothing.

    ## Instead
    Give the tenant a preemptible class as well, or leave `limit` out.
    """
    for tenant in plan.tenants if plan.scheduler.evicts_preemptible_alone else ():
        classes = tenant.priority_classes
        is_known = tenant.name not in plan.broken.incomplete_tenants
        if tenant.spec.namespaces and classes and is_known and not any(found.spec.preemptible for found in classes):
            for quota in tenant.quotas:
                if quota.may_borrow:
                    yield _out_of_reach(tenant.name, quota, classes)


def _out_of_reach(tenant: str, quota: Quota, classes: tuple[PriorityClass, ...]) -> Finding:
    limit = "no bound" if quota.limit is None else number(quota.limit)
    return Finding(
        quota.at / "limit",
        f"tenant `{tenant}` cannot use more than {number(quota.guaranteed)} `{quota.unit.name}` of pool "
        f"`{quota.pool.name}`",
        label=f"{limit}, but only for preemptible work",
        related=tuple(Label(found.at / "preemptible", f"`{found.name}` is not preemptible") for found in classes[:3]),
        notes=(f"its classes: {listing([found.name for found in classes])}; what they run stays within `guaranteed`",),
        help="add a preemptible class to the tenant's `priorityClasses`, or remove `limit`",
    )
