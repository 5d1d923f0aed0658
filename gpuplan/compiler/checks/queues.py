"""Checks on what Kueue, KAI-Scheduler and Run:ai refuse or take in another sense (GPU540-564)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.checks.caps import cap_of, each_quota
from gpuplan.compiler.checks.losses import calm_evictors
from gpuplan.compiler.checks.node_labels import key_fault
from gpuplan.compiler.checks.registry import Check, check
from gpuplan.compiler.checks.wording import name_of, number, severity_of_loss, units
from gpuplan.compiler.planning.discovered import HOST_LABEL
from gpuplan.compiler.planning.dra import device_class_name
from gpuplan.compiler.planning.kueue import ANY_TOPOLOGY, counted_resource, root_cohort
from gpuplan.compiler.planning.plan import Plan, Pool, Unit
from gpuplan.compiler.planning.schedulers import SchedulerTraits
from gpuplan.compiler.planning.schedulers.kai import KAI, SCHEDULER_NAME
from gpuplan.compiler.planning.schedulers.kueue import KUEUE
from gpuplan.compiler.planning.schedulers.runai import DEFAULT_DEPARTMENT, RUNAI
from gpuplan.compiler.policy.models import Allocation

# `kueue.x-k8s.io/v1beta2` and the Configuration of that version came with 0.15. By `pkg/features/kube_features.go` of
# Kueue, a tenant within its guarantee evicts borrowers under fair sharing, whatever the shares are, since 0.17
# (`FairSharingPreemptWithinNominal`), and claims are counted since 0.18 (`KueueDRAIntegration`).
OLDEST_RELEASES: Final = {KUEUE.kind: (0, 15), KAI.kind: (0, 13)}
_OLDEST_THAT_RECLAIMS = (0, 17)
_OLDEST_THAT_COUNTS_CLAIMS = (0, 18)


# The definition of ClusterQueue, and `validateFlavorResourceCombinations` in `pkg/webhooks/clusterqueue_webhook.go`.
_MOST_FLAVORS = 64


_MOST_RESOURCES = 64


_MOST_CELLS = 512


_MOST_TOLERATIONS = 8


_MOST_LEVELS = 16


_MOST_DEVICE_CLASSES = 16  # `validateDeviceClassMappings` in `pkg/config/validation.go`


# `plugins` of a SchedulingShard and trees of queues of any depth (https://github.com/kai-scheduler/KAI-Scheduler/blob/
# main/CHANGELOG.md).


# The Deployment and the Service of a shard are called `<scheduler>-<shard>`; a Service's name is a label of DNS
# (`serviceForShard` in `pkg/operator/operands/scheduler/resources_for_shard.go` there).
_LONGEST_SERVICE = 63


_LONGEST_SHARD = _LONGEST_SERVICE - len(f"{SCHEDULER_NAME}-")


_SHARD_OF_CHART = "default"


_Declare = Callable[[Callable[[Plan], Iterable[Finding]]], Check[Plan]]


def _with(scheduler: SchedulerTraits) -> Callable[[str, str, Severity], _Declare]:
    """Return how to declare a check that has nothing to say of clusters with another scheduler."""

    def declare(code: str, name: str, severity: Severity) -> _Declare:
        return lambda find: Check(
            check(code, name, severity)(find).rule, find, lambda plan: plan.scheduler is scheduler
        )

    return declare


_kueue, _kai, _runai = map(_with, (KUEUE, KAI, RUNAI))


# --- Kueue -------------------------------------------------------------------------------------------------------


@_kueue("GPU540", "kueue-too-old", Severity.ERROR)
def kueue_too_old(plan: Plan) -> Iterator[Finding]:
    """The cluster's release of Kueue is too old for the objects that are written for it.

    ## Why
    They are of `kueue.x-k8s.io/v1beta2`, which Kueue serves since 0.15. Claims of pools with `allocation: dra` are
    counted since 0.18. With fair sharing, releases before 0.17 weigh shares even when a tenant wants back what is its
    own, so that a guarantee may wait; that is a warning.

    ## Instead
    Upgrade Kueue, and say so in `scheduler.version`.
    """
    version = (parse_version(plan.cluster.scheduler.version) or ())[:2]
    claims = next((pool for pool in plan.pools if pool.spec.allocation is Allocation.DRA), None)
    if not version:
        return
    if version < OLDEST_RELEASES[KUEUE.kind]:
        yield _too_old(plan, "does not know the objects that are written for it", "`v1beta2` came with v0.15.0")
    elif claims and version < _OLDEST_THAT_COUNTS_CLAIMS:
        label = Label(claims.at / "allocation", "by claims")
        yield _too_old(plan, f"does not count claims on pool `{claims.name}`", "since v0.18.0", "0.18.0", (label,))
    elif version < _OLDEST_THAT_RECLAIMS:
        severity = severity_of_loss(plan, Severity.WARNING)
        what = "may let a tenant wait for what is guaranteed to it"
        yield _too_old(plan, what, "unconditional since v0.17.0", severity=severity)


def _too_old(
    plan: Plan,
    fault: str,
    since: str,
    needed: str = "0.17.0",
    related: tuple[Label, ...] = (),
    severity: Severity | None = None,
) -> Finding:
    scheduler, title = plan.cluster.scheduler, plan.scheduler.title
    return Finding(
        scheduler.at / "version",
        f"{title} {scheduler.version} {fault}",
        label=since,
        related=related,
        help=f"upgrade {title} to v{needed} or later",
        severity=severity,
    )


@_kueue("GPU541", "queue-too-large", Severity.ERROR)
def queue_too_large(plan: Plan) -> Iterator[Finding]:
    """A queue of Kueue would list more pools or resources than it may.

    ## Why
    A ClusterQueue and a Cohort list at most 64 flavors, which are pools, and 64 resources; every flavor of a queue
    lists every resource, and all of these together are at most 512. The API server refuses a queue that is larger, and
    its tenant has none at all.

    ## Instead
    Split the tenant, so that each part has its own pools. Where it is the units that nobody has a guarantee on,
    guarantee some of them.
    """
    for tenant in plan.tenants:
        listed = [(quota.pool, quota.unit) for quota in tenant.quotas]
        if excess := _excess(listed, _MOST_CELLS if tenant.has_work else None):
            yield Finding(
                (tenant.at / "quotas").key,
                f"the quotas of tenant `{tenant.name}` are too many for one queue",
                label=excess,
                help="make two tenants of it, each with some of the pools",
            )
    free = [(total.pool, total.unit) for total in plan.totals if total.free > 0]
    if excess := _excess(free, None):
        yield Finding(
            plan.cluster.scheduler.at / "kind",
            "units that nobody has a guarantee on are too many for one cohort",
            label=excess,
            help="guarantee all units of some of these pools to a tenant",
        )


def _excess(listed: list[tuple[Pool, Unit]], most_cells: int | None) -> str:
    """Return by what a group of units is too large, or an empty text."""
    counted = [(pool.name, found) for pool, unit in listed if (found := counted_resource(pool, unit))]
    pools, resources = len({pool for pool, _ in counted}), len({resource for _, resource in counted})
    if pools > _MOST_FLAVORS:
        return f"{pools} pools, {_MOST_FLAVORS} at most"
    if resources > _MOST_RESOURCES:
        return f"{resources} resources, {_MOST_RESOURCES} at most"
    if most_cells is not None and pools * resources > most_cells:
        return f"{pools} pools with {resources} resources each: {pools * resources}, {most_cells} at most"
    return ""


@_kueue("GPU542", "too-many-taints", Severity.ERROR)
def too_many_taints(plan: Plan) -> Iterator[Finding]:
    """A pool has more taints than a flavor of Kueue may tolerate.

    ## Why
    Kueue adds tolerations of a pool's taints to the pods that it sends there. A ResourceFlavor holds eight, and the API
    server refuses one with more.

    ## Instead
    Keep pods away by fewer taints; one is enough.
    """
    for pool in plan.pools:
        if len(pool.taints) > _MOST_TOLERATIONS:
            yield Finding(
                pool.at / "taints" / _MOST_TOLERATIONS,
                f"pool `{pool.name}` has {len(pool.taints)} taints",
                label=f"Kueue tolerates {_MOST_TOLERATIONS} at most",
                help="remove taints: one keeps pods away as well as nine",
            )


@check("GPU543", "topology-refused")
def topology_refused(plan: Plan) -> Iterator[Finding]:
    """A pool's `topology` is not one that Kueue and KAI-Scheduler take.

    ## Why
    A Topology has at most 16 levels, each the key of a node label and each another one, from the widest to the
    narrowest. A node is the narrowest there is, so that `kubernetes.io/hostname` can only be the last. The API server
    refuses anything else.

    ## Instead
    Name the labels from the widest to the narrowest, as in `[example.com/block, example.com/rack]`.
    """
    for pool in plan.pools if plan.scheduler.has_topologies else ():
        for at, why, help_ in _topology_faults(pool):
            yield Finding(at, f"topology of pool `{pool.name}` is refused", label=why, help=help_)


def _topology_faults(pool: Pool) -> Iterator[tuple[Origin, str, str]]:
    at, levels = pool.at / "topology", pool.spec.topology
    if len(levels) > _MOST_LEVELS:
        yield at, f"{len(levels)} levels, {_MOST_LEVELS} at most", "leave levels out"
    for index, level in enumerate(levels):
        if fault := key_fault(level):
            yield at / index, f"not a label key: {fault}", "write a key such as `example.com/rack`"
        elif level in levels[:index]:
            yield at / index, "a second time", "remove one of them"
        elif level == HOST_LABEL and index < len(levels) - 1:
            yield at / index, "nothing is narrower than a node", f"move `{HOST_LABEL}` to the end"


@_kueue("GPU544", "weight-too-small", Severity.ERROR)
def weight_too_small(plan: Plan) -> Iterator[Finding]:
    """A weight in the surplus is too small for Kueue to tell from nothing.

    ## Why
    Kueue counts weights in billionths. Its webhook refuses a weight of a billionth and less, unless it is 0, which
    means that all others come first.

    ## Instead
    Only the ratios count: multiply all weights until the smallest is large enough.
    """
    for tenant in plan.tenants:
        if 0 < tenant.surplus_weight * 10**9 <= 1:
            yield Finding(
                tenant.at / "surplus" / "weight",
                f"the weight of tenant `{tenant.name}` is too small for Kueue",
                label="a billionth at most",
                help="write 0, or larger weights everywhere",
            )


@check("GPU545", "cap-stops-borrowing", Severity.WARNING)
def cap_stops_borrowing(plan: Plan) -> Iterator[Finding]:
    """On a cluster whose scheduler lends, caps at the guarantees keep tenants from borrowing.

    ## Why
    Kueue and KAI-Scheduler lend up to `limit`, and beside their queues each namespace has a ResourceQuota. With
    `cap: guaranteed` that refuses the pods that would run on borrowed units. Work that Kueue has admitted then holds
    what it borrowed, and never starts. Fractions of a GPU are no resource, and have no ResourceQuota.

    ## Instead
    Leave `cap` out. These schedulers keep guarantees by themselves and take back what was borrowed. With
    `onLoss: refuse` this is an error.
    """
    stopped: list[Label] = []
    for tenant, quota in each_quota(plan) if plan.scheduler.has_queues else ():
        cap, most = cap_of(plan, quota), "any number of" if quota.limit is None else number(quota.limit)
        is_counted = tenant.has_work and quota.unit.asked_as and cap is not None
        if is_counted and (quota.limit is None or quota.limit > (cap or 0)):
            stopped.append(Label(quota.at / "limit", f"`{tenant.name}` may have {most} `{quota.unit.name}`"))
    if stopped:
        yield Finding(
            plan.cluster.scheduler.at / "cap",
            "pods that run on borrowed units are refused",
            label="caps at `guaranteed`",
            related=tuple(stopped[:3]),
            notes=(
                f"{plan.scheduler.title} lends up to `limit`; the ResourceQuota beside it stops pods at `guaranteed`",
            ),
            help="remove `cap`",
            severity=severity_of_loss(plan, Severity.WARNING),
        )


@_kueue("GPU546", "cohort-name-taken", Severity.ERROR)
def cohort_name_taken(plan: Plan) -> Iterator[Finding]:
    """On a cluster with Kueue, a parent has the name of the cohort that all tenants are in.

    ## Why
    Each parent has a Cohort of its name, and all of them are within one Cohort, `gpuplan` unless
    `scheduler.kueue.cohort` says otherwise. Of two objects of one name
    the later replaces the earlier one, and a cohort within itself switches off all of its queues.

    ## Instead
    Rename the tenant, or the Cohort.
    """
    root = root_cohort(plan.cluster)
    for tenant in plan.tenants:
        if tenant.name == root and plan.tree.is_divided(tenant):
            yield Finding(
                name_of(tenant.at),
                f"parent `{tenant.name}` has the name of the cohort that all tenants are in",
                label="taken by the root of the tree",
                related=tuple(
                    Label(child.at / "parent", f"`{child.name}` is part of it")
                    for child in plan.tree.children(tenant)[:3]
                ),
                help=f"rename it, for example to `{root}-tenants`",
            )


@_kueue("GPU547", "queue-evicts-for-all", Severity.NOTE)
def queue_evicts_for_all(plan: Plan) -> Iterator[Finding]:
    """On a cluster with Kueue, a class that is not to preempt does, because another class of its tenant does.

    ## Why
    Within a queue Kueue evicts for any workload of a higher priority, or for none: `withinClusterQueue` is a field of
    the queue. Where one of a tenant's classes may evict another, all of its classes evict those below them.

    ## Instead
    Accept it, or give the work that is not to evict a tenant of its own. With `onLoss: refuse` this is an error.
    """
    for tenant, found, below in calm_evictors(plan):
        yield Finding(
            found.at / "preempts",
            f"work of class `{found.name}` in tenant `{tenant.name}` evicts that of {listing(below)}",
            label="Kueue evicts for all classes of a queue",
            related=(Label(tenant.at / "priorityClasses", f"a queue of {len(tenant.priority_classes)} classes"),),
            help=f"give the work of class `{found.name}` a tenant of its own",
            severity=severity_of_loss(plan, Severity.NOTE),
        )


@_kueue("GPU548", "too-many-device-classes", Severity.ERROR)
def too_many_device_classes(plan: Plan) -> Iterator[Finding]:
    """Pools with claims have more kinds of units than Kueue can count.

    ## Why
    What claims of a DeviceClass count as stands in Kueue's Configuration, in a list of at most 16. There is a class for
    each GPU model and unit. With a longer list Kueue does not start.

    ## Instead
    Hand out fewer kinds of units, or give some of the pools to another cluster: one cluster allocates in one way.
    """
    classes: dict[str, Pool] = {}
    for pool in plan.pools:
        for unit in pool.units if pool.spec.allocation is Allocation.DRA else ():
            classes.setdefault(device_class_name(pool, unit), pool)
    if len(classes) > _MOST_DEVICE_CLASSES:
        crossing = list(classes.values())[_MOST_DEVICE_CLASSES]
        yield Finding(
            crossing.at / "allocation",
            f"pools with claims have {len(classes)} kinds of units",
            label=f"Kueue counts {_MOST_DEVICE_CLASSES} at most",
            notes=("a kind is a unit of a GPU model, and has a DeviceClass",),
            help="hand out fewer kinds of units, or leave `allocation: dra` out of all pools",
        )


@_kueue("GPU549", "topology-in-part-of-queue", Severity.WARNING)
def topology_in_part_of_queue(plan: Plan) -> Iterator[Finding]:
    """On a cluster with Kueue, a tenant has pools with a `topology` and without, so that its pods must ask for either.

    ## Why
    Where all flavors of a queue have a Topology, Kueue places every workload by it. In a queue that has both kinds,
    work that says nothing of topology gets nothing of the pools that have one: it waits for ever, or takes other units.
    Workloads that gpuplan writes say what they need; what teams write by themselves may not.

    ## Instead
    Give all pools of the tenant a `topology`: `[kubernetes.io/hostname]` is one. Or tell the team to annotate the pods
    that are meant for such a pool, `kueue.x-k8s.io/podset-unconstrained-topology: "true"`.
    """
    for tenant in plan.tenants:
        counted = [quota for quota in tenant.quotas if counted_resource(quota.pool, quota.unit)]
        known = next((quota for quota in counted if quota.pool.spec.topology), None)
        without = next((quota for quota in counted if not quota.pool.spec.topology), None)
        if tenant.has_work and known and without:
            yield Finding(
                known.at / "pool",
                f"pods of tenant `{tenant.name}` get nothing of pool `{known.pool.name}` unless they ask for topology",
                label="has a `topology`",
                related=(Label(without.at / "pool", f"`{without.pool.name}` has none"),),
                notes=(f'they ask by an annotation: `{ANY_TOPOLOGY}: "true"`',),
                help=f"add `topology: [{HOST_LABEL}]` to pool `{without.pool.name}`",
            )


# --- KAI-Scheduler -----------------------------------------------------------------------------------------------


@_kai("GPU550", "pool-cannot-be-shard", Severity.ERROR)
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


@_kai("GPU551", "kai-too-old", Severity.ERROR)
def kai_too_old(plan: Plan) -> Iterator[Finding]:
    """The cluster's release of KAI-Scheduler is too old for the objects that are written for it.

    ## Why
    Queues within queues within queues, and the setting of a shard that makes a tenant's own `protect.reclaim` hold,
    came with 0.13. An older release drops the setting and serves no queues below the second level.

    ## Instead
    Upgrade KAI-Scheduler, and say so in `scheduler.version`.
    """
    version = parse_version(plan.cluster.scheduler.version)
    if version is not None and version[:2] < OLDEST_RELEASES[KAI.kind]:
        since = "`plugins` of a SchedulingShard came with v0.13.0"
        yield _too_old(plan, "does not know all that is written for it", since, "0.13.0")


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
        if tenant.has_work and classes and is_known and not any(found.spec.preemptible for found in classes):
            for quota in tenant.quotas:
                if quota.may_borrow:
                    limit = "no bound" if quota.limit is None else number(quota.limit)
                    names = listing([each.name for each in classes])
                    yield Finding(
                        quota.at / "limit",
                        f"tenant `{tenant.name}` cannot use more than {number(quota.guaranteed)} {units(quota)}",
                        label=f"{limit}, but only for preemptible work",
                        related=tuple(
                            Label(each.at / "preemptible", f"`{each.name}` is not preemptible") for each in classes[:3]
                        ),
                        notes=(f"its classes: {names}; what they run stays within `guaranteed`",),
                        help="add a preemptible class to the tenant's `priorityClasses`, or remove `limit`",
                    )


# --- Run:ai ------------------------------------------------------------------------------------------------------


@_runai("GPU560", "requests-to-be-sent", Severity.NOTE)
def requests_to_be_sent(plan: Plan) -> Iterator[Finding]:
    """The quotas of a cluster with Run:ai take effect when somebody sends them to Run:ai.

    ## Why
    Run:ai's control plane keeps node pools, departments and projects, and writes them into the cluster itself; what
    others write there it undoes. So `gpuplan build` writes the bodies of requests to its API, which no sync applies.
    Until they are sent, guarantees, lending and surplus are whatever Run:ai was told last.

    ## Instead
    Send what `scheduling/runai/README.md` lists, after each change of it. Admission policies and ResourceQuotas hold
    without that.
    """
    if plan.tenants:
        folder = f"{plan.cluster.name}/scheduling/runai"
        yield Finding(
            plan.cluster.scheduler.at / "kind",
            "nothing sends quotas to Run:ai: that is for whoever has access to its API",
            label=f"requests are written below {folder}",
            help=f"follow {folder}/README.md after each change",
        )


@_runai("GPU561", "default-department", Severity.ERROR)
def default_department(plan: Plan) -> Iterator[Finding]:
    """On a cluster with Run:ai, a tenant that is part of none is called `default`.

    ## Why
    Such a tenant becomes a department, and every cluster of Run:ai has one of that name already. The request to make it
    is refused, and its projects would fall into the one that is there.

    ## Instead
    Give the tenant another name.
    """
    for tenant in plan.tenants:
        if tenant.name == DEFAULT_DEPARTMENT and tenant.parent is None:
            yield Finding(
                name_of(tenant.at),
                f"tenant `{DEFAULT_DEPARTMENT}` has the name of Run:ai's own department",
                label="every cluster has it already",
                help="give the tenant another name, such as that of the team",
            )
