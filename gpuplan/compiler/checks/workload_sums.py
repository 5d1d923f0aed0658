"""Checks on whether workloads fit into what their tenants may use and into their pools (GPU570-576)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from math import ceil
from operator import attrgetter
from typing import assert_never

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, joined, listing
from gpuplan.compiler.checks.caps import each_quota
from gpuplan.compiler.checks.compute import words_for
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import add, crossing, number, severity_of_loss, total_text, units
from gpuplan.compiler.planning.amounts import per_node
from gpuplan.compiler.planning.fallbacks import landings
from gpuplan.compiler.planning.grants import is_kept
from gpuplan.compiler.planning.plan import Amount, Counted, Plan, Quota, Tenant, UnitKey, Workload
from gpuplan.compiler.planning.pods import Room, Short, asked_by_pod, room_on_node
from gpuplan.compiler.planning.preemption import may_evict, standing_together
from gpuplan.compiler.planning.schedulers import caps_in_queue
from gpuplan.compiler.policy.models import Cap


class _Load(NamedTuple):
    """A tenant's quota and the workloads that count within it, those of its children included.

    ``beyond`` are its quotas in the pools that some of them fall back to: what these hold counts together.
    """

    holder: Tenant
    quota: Quota
    workloads: Sequence[Workload]
    beyond: tuple[Quota, ...] = ()

    @property
    def quotas(self) -> tuple[Quota, ...]:
        return (self.quota, *self.beyond)

    @property
    def of_holder(self) -> list[Workload]:
        """The workloads of the tenant itself, without those of its children."""
        return [workload for workload in self.workloads if workload.tenant is self.holder]

    @property
    def total(self) -> Amount:
        return _total(self.workloads)

    @property
    def reach(self) -> Amount:
        """The most of the unit that the tenant can have."""
        return add([_reach(quota) for quota in self.quotas])

    @property
    def guaranteed(self) -> Amount:
        return add([quota.guaranteed for quota in self.quotas])


def _reach(quota: Quota) -> Amount:
    capacity = quota.unit.capacity
    return capacity if quota.limit is None else min(quota.limit, capacity)


# --- Quotas ------------------------------------------------------------------------------------------------------


@check("GPU570", "workload-without-quota")
def workload_without_quota(plan: Plan) -> Iterator[Finding]:
    """A workload asks for a unit that its tenant, or its namespace, may not use.

    ## Why
    Pods get what their tenant has a quota on and nothing else: quotas and admission rules refuse the rest. Where a
    quota is divided among namespaces by `split`, a namespace that is not named gets nothing.

    ## Instead
    Run the workload on a pool and unit that the tenant has a quota on, or grant the tenant the unit.
    """
    for workload in plan.workloads:
        tenant = workload.tenant
        quota = plan.tree.find_quota(tenant, workload.key)
        if quota is None and tenant.name not in plan.broken.incomplete_tenants:
            offers = joined([units(granted) for granted in tenant.quotas[:8]])
            grant = (
                f"{{pool: {workload.pool.name}, unit: {workload.unit.name}, guaranteed: {number(_amount(workload))}}}"
            )
            yield Finding(
                workload.at / ("unit" if len(workload.pool.units) > 1 else "pool"),
                f"tenant `{tenant.name}` has no quota on {units(workload)}",
                label=f"`{workload.name}` never starts",
                notes=(f"it has a quota on {offers}" if offers else "it has no quota at all",),
                help=f"run it elsewhere, or grant `{grant}`",
            )
        elif quota and quota.caps.get(workload.namespace) == 0:
            field = "split" if quota.split else _written_cap(plan, quota)
            yield Finding(
                workload.at / "pool",
                f"namespace `{workload.namespace}` may use no {units(workload)}",
                label=f"`{workload.name}` never starts",
                related=(Label(quota.at / field, f"the quota of tenant `{tenant.name}`"),),
                help="give the namespace a part of the quota, or run the workload in another one",
            )


@check("GPU571", "workloads-over-quota")
def workloads_over_quota(plan: Plan) -> Iterator[Finding]:
    """Workloads ask together for more than their tenant may use.

    ## Why
    Pods beyond the quota are refused or wait for ever, and an autoscaler goes on adding them. What counts is the most
    pods that there can be: `maxReplicas` of what is autoscaled, all `pods` of a training job. A parent's limit counts
    its children's workloads together, a `split` those of a namespace, and no limit makes a pool larger.

    All services must fit at once, with the largest of the jobs. Jobs end: where each of them fits beside the services
    and all of them do not, they take turns, which is a note.

    On a pool of fractions, and with `scheduler.cap: queue`, gpuplan counts preemptible work separately if a higher
    class of the same tenant may evict it: the scheduler frees its place. Other units are counted by a ResourceQuota,
    which refuses a pod before any scheduler can make room for it.

    ## Instead
    Ask for less, or raise the quota; where the pool itself is too small, add nodes.
    """
    overloads: list[_Overload] = []
    for load in _loads(plan):
        for group, bound in _groups(plan, load):
            together = _at_once(group)
            overload = _Overload(
                frozenset(found.name for found in together), _remaining(together, overloads) - bound.amount
            )
            if overload.excess > 0 and all(overload.names != other.names for other in overloads):
                overloads.append(overload)
                yield _asks_too_much(load, together, bound)
    seen = {name for overload in overloads for name in overload.names}
    for load in _loads(plan):
        for group, bound in _groups(plan, load):
            if _total(group) > bound.amount and seen.isdisjoint(found.name for found in group):
                seen.update(found.name for found in group)
                yield _take_turns(load, group, bound)


class _Overload(NamedTuple):
    """Workloads that ask for more than they may have, and by how much."""

    names: frozenset[str]
    excess: Amount


def _remaining(group: Sequence[Workload], overloads: Iterable[_Overload]) -> Amount:
    """Return what a group asks for once the overloads that it shares workloads with are mended."""
    names = {found.name for found in group}
    return _total(group) - add([overload.excess for overload in overloads if not names.isdisjoint(overload.names)])


class _Bound(NamedTuple):
    """A bound of what workloads may use. ``text`` ends the message, and ``help`` says how to raise the bound."""

    amount: Amount
    text: str
    at: Origin
    help: str


def _groups(plan: Plan, load: _Load) -> Iterator[tuple[Sequence[Workload], _Bound]]:
    """Yield workloads that have to fit at once, with the bound for them."""
    for workloads, bound in _bounded(plan, load):
        for group in _counted_together(plan, load.quota, workloads):
            yield group, bound


def _bounded(plan: Plan, load: _Load) -> Iterator[tuple[Sequence[Workload], _Bound]]:
    """Yield all workloads with the tenant's limit, those of a namespace with its cap, and all with the pool's size.

    Those that fall back have one bound: what the tenant may use of all these pools.
    """
    holder, quota, pool = load.holder, load.quota, load.quota.pool
    if load.beyond:
        pools = listing([found.pool.name for found in load.quotas])
        told = f"tenant `{holder.name}` may use {number(load.reach)} in {pools}, one falling back to the other"
        field = _written_cap(plan, quota)
        yield load.workloads, _Bound(load.reach, told, quota.at / field, f"raise `{field}`")
        return
    more_nodes = f"raise `nodes.count` of pool `{pool.name}` to {ceil(load.total / max(quota.unit.per_node, 1))}"
    if quota.limit is not None:
        also = f" and {more_nodes}" if load.total > quota.unit.capacity > 0 else ""
        field = "guaranteed" if quota.limit is quota.guaranteed else "limit"
        raised = f"raise `{field}` to {number(load.total)}{also}"
        told = f"tenant `{holder.name}` may use {number(quota.limit)}"
        yield load.workloads, _Bound(quota.limit, told, quota.at / field, raised)
    if quota.unit.asked_as or quota.split:
        field = _written_cap(plan, quota)
        for namespace, cap in quota.caps.items():
            inside = [workload for workload in load.workloads if workload.namespace == namespace]
            at, name = (quota.at / "split" / namespace, namespace) if quota.split else (quota.at / field, field)
            if cap:
                told, raised = f"namespace `{namespace}` may use {number(cap)}", number(_total(inside))
                yield inside, _Bound(cap, told, at, f"raise `{name}` to {raised}")
    for name, limit in quota.class_limits.items() if is_kept(quota, plan.cluster.cap) else ():
        of_class = [
            workload for workload in load.of_holder if workload.priority_class and workload.priority_class.name == name
        ]
        told, raised = f"pods of `{name}` may use {number(limit)}", number(_total(of_class))
        at = quota.at / "classLimits" / name
        yield of_class, _Bound(limit, told, at, f"raise `{name}` to {raised}")
    if quota.unit.capacity:
        told, at = f"the pool has {quota.unit.capacity}", pool.nodes.at / "count"
        yield load.workloads, _Bound(quota.unit.capacity, told, at, more_nodes)


def _asks_too_much(load: _Load, group: Sequence[Workload], bound: _Bound) -> Finding:
    workload = group[_crossing(group, bound.amount)]
    wanted = _total(group)
    room = bound.amount - (wanted - _amount(workload))
    fitting = max(int(room // workload.amount_per_pod) // workload.pods_per_replica, 0)
    fewer = f"write `{_pods_field(workload)}: {fitting}`" if fitting else f"remove `{workload.name}`"
    return Finding(
        workload.pods_at,
        f"{_asks(load, group)}, and {bound.text}",
        label=f"{number(wanted - bound.amount)} too much",
        related=(Label(bound.at, number(bound.amount)),),
        notes=(*_each(group), *((_sum_text(group, bound),) if len(group) > 1 else ())),
        help=f"{fewer}, or {bound.help}",
    )


def _take_turns(load: _Load, group: Sequence[Workload], bound: _Bound) -> Finding:
    jobs = [workload for workload in group if workload.ends]
    return Finding(
        jobs[-1].pods_at,
        f"{_asks(load, group)}, and {bound.text}: jobs take turns",
        label="waits while others run",
        related=(Label(bound.at, number(bound.amount)),),
        notes=(_sum_text(group, bound),),
        help=f"{bound.help} for all of them to run at once",
        severity=Severity.NOTE,
    )


def _asks(load: _Load, group: Sequence[Workload]) -> str:
    who = f"`{group[0].name}` asks" if len(group) == 1 else f"{len(group)} workloads ask"
    return f"{who} for up to {number(_total(group))} {units(load.quota)}"


def _sum_text(group: Sequence[Workload], bound: _Bound) -> str:
    return f"{total_text([(workload.name, _amount(workload)) for workload in group])} of {number(bound.amount)}"


@check("GPU572", "lasting-work-over-guarantee")
def lasting_work_over_guarantee(plan: Plan) -> Iterator[Finding]:
    """Workloads that may not be evicted ask for more than their tenant is guaranteed.

    ## Why
    What lies beyond the guarantee is borrowed, and its owner may want it back. KAI-Scheduler and Run:ai start work that
    is not preemptible within the guarantee alone, so that the pods beyond it wait for ever. Kueue starts them and takes
    their units back all the same, which is a warning. Plain Kubernetes takes nothing back.

    ## Instead
    Raise the guarantee, ask for less, or use a preemptible class for what may run on borrowed units.
    """
    # Parents: guarantees of children lie within theirs, so what fits into those fits there.
    for load in _loads(plan) if plan.scheduler.reclaims else ():
        lasting = _at_once(_lasting(load.of_holder))
        if _total(lasting) > load.guaranteed:
            yield _over_guarantee(plan, load, lasting)


def _over_guarantee(plan: Plan, load: _Load, lasting: Sequence[Workload]) -> Finding:
    quota, workload = load.quota, lasting[_crossing(lasting, load.guaranteed)]
    wanted, held = _total(lasting), number(load.guaranteed)
    starts = not plan.scheduler.evicts_preemptible_alone
    classes = {found.priority_class.name: found.priority_class for found in lasting if found.priority_class}
    return Finding(
        workload.pods_at,
        f"work of tenant `{workload.tenant.name}` that may not be evicted asks for up to {number(wanted)} "
        f"{units(quota)}, and {held} are guaranteed",
        label=f"{number(wanted - load.guaranteed)} beyond the guarantee "
        f"{'is borrowed and taken back' if starts else 'never starts'}",
        related=(
            *(Label(found.at / "guaranteed", f"{number(found.guaranteed)} guaranteed") for found in load.quotas),
            *(Label(found.at / "preemptible", f"`{found.name}` is not preemptible") for found in classes.values()),
        ),
        notes=_each(lasting),
        help=f"raise `guaranteed` to {number(wanted - load.guaranteed + quota.guaranteed)}, or run what may be evicted "
        "under a preemptible class",
        severity=severity_of_loss(plan, Severity.WARNING) if starts else None,
    )


@check("GPU573", "workloads-on-borrowed-units", Severity.NOTE)
def workloads_on_borrowed_units(plan: Plan) -> Iterator[Finding]:
    """Workloads ask for units that others are guaranteed, and that are taken back from them.

    ## Why
    A tenant may use what others leave idle, up to its limit. When they want it, the scheduler evicts as many pods of
    the borrower as it takes. Plain Kubernetes takes nothing back.

    ## Instead
    Nothing, where the workload can stand it: a training job that writes checkpoints, an inference service that may
    have fewer replicas. Otherwise raise the tenant's guarantee.
    """
    promised = {total.key: total.guaranteed for total in plan.totals}
    for load in _loads(plan) if plan.scheduler.reclaims else ():
        own = load.of_holder
        used = min(_total(own), load.reach)
        left = [(quota, quota.unit.capacity - (promised[quota.key] - quota.guaranteed)) for quota in load.quotas]
        safe = add([min(max(beside, quota.guaranteed), _reach(quota)) for quota, beside in left])
        is_reported = _total(_at_once(own)) > used or _total(_at_once(_lasting(own))) > load.guaranteed
        if used > safe and not is_reported:
            quota = load.quota
            owners = [
                Label(other.at / "guaranteed", f"`{tenant.name}` may want them back")
                for tenant, other in each_quota(plan)
                if tenant is not load.holder and other.guaranteed and other.key == quota.key
            ]
            size = number(add([held.unit.capacity for held in load.quotas]))
            has = f"it and what it falls back to have {size}" if load.beyond else f"the pool has {size}"
            yield Finding(
                own[_crossing(own, safe)].pods_at,
                f"{number(used - safe)} of {number(used)} {units(quota)} that workloads of tenant `{load.holder.name}` "
                "ask for are borrowed",
                label="evicted when their owners want them",
                related=(Label(quota.at / "guaranteed", f"{number(quota.guaranteed)} guaranteed"), *owners[:2]),
                notes=(*_each(own), f"{has}; {number(safe)} of them can be counted on"),
            )


# --- Nodes -------------------------------------------------------------------------------------------------------


@check("GPU574", "pod-larger-than-node")
def pod_larger_than_node(plan: Plan) -> Iterator[Finding]:
    """A workload's pod asks for more units than a node of its pool has.

    ## Why
    A pod runs on one node. What asks for more than any node has waits for ever, whatever the quota allows.

    ## Instead
    Ask for as many units as a node has, and for more pods.
    """
    for workload in plan.workloads:
        per_node = workload.unit.per_node
        fits = any(unit.per_node >= workload.spec.count for _, unit in landings(plan, workload)[1:])
        if workload.fraction is None and workload.spec.count > per_node > 0 and not fits:
            yield Finding(
                workload.at / "count",
                f"a pod of `{workload.name}` asks for {workload.spec.count} `{workload.unit.name}`, and a node of "
                f"pool `{workload.pool.name}` has {per_node}",
                label="fits no node",
                related=(Label(workload.pool.nodes.at / "gpusPerNode", f"{per_node} `{workload.unit.name}` a node"),),
                help=f"write `count: {per_node}` or less",
            )


@check("GPU575", "pods-do-not-fit-pool")
def pods_do_not_fit_pool(plan: Plan) -> Iterator[Finding]:
    """A pool has enough units for a workload's pods, but not in pieces of the right size.

    ## Why
    A pod has its units, its CPU and its memory on one node, and a fraction on one GPU. Two nodes with four GPUs each
    have room for two pods of three, not for the two and two thirds that a sum would allow; two nodes with 64 CPUs have
    room for two pods that ask for 40. Pods that a `podPatch` gives a port of their node, or an affinity that keeps them
    off each other, have a node each. A gang that does not fit never starts.

    ## Instead
    Ask for fewer pods, for a part of what a node has, or add nodes.
    """
    for workload in plan.workloads:
        rooms = [(part.nodes.count, room_on_node(workload, part)) for part in workload.pool.parts]
        room = max((on_node for _, on_node in rooms), key=attrgetter("pods"))
        most = sum(nodes * on_node.pods for nodes, on_node in rooms)
        falls_back = len(landings(plan, workload)) > 1
        if room.pods and workload.most_pods > most and _amount(workload) <= workload.unit.capacity and not falls_back:
            pool, pods, gang = workload.pool, workload.most_pods, workload.gang
            replicas = most // workload.pods_per_replica
            fewer = f"write `{_pods_field(workload)}: {replicas}`, or " if replicas else ""
            yield Finding(
                workload.pods_at,
                f"{pods} pods of `{workload.name}` do not fit onto the nodes of pool `{pool.name}`",
                label=f"{most} at most" + ("" if gang is None or gang <= most else f": a gang of {gang} never starts"),
                related=(Label(pool.nodes.at / "count", count(pool.nodes.count, "node")),),
                notes=(_room_text(workload, room, most),),
                help=f"{fewer}raise `nodes.count` of pool `{pool.name}` to {ceil(pods / room.pods)}",
            )


def _room_text(workload: Workload, room: Room, most: int) -> str:
    """Return what a node has, and for how many pods it has room."""
    pool, fitting = workload.pool, count(room.pods, "pod")
    nodes = f"{count(pool.nodes.count, 'node')} for {most}"
    match room.short:
        case Short.UNITS if workload.fraction is not None:
            on_gpu = count(workload.fraction.per_gpu, "pod")
            each, gpus = number(workload.amount_per_pod), count(pool.gpu_count, "GPU")
            return f"a GPU has room for {on_gpu} of {each}, {gpus} for {most}"
        case Short.UNITS:
            has, each = f"{workload.unit.per_node} `{workload.unit.name}`", number(workload.amount_per_pod)
        case Short.CPU | Short.MEMORY as short:
            counted = Counted(short.value)
            has = words_for(counted, per_node(pool.nodes, counted) or 0)
            each = words_for(counted, asked_by_pod(workload, counted) or 0)
        case Short.PLACES:
            return f"its `podPatch` keeps them off each other: room for {fitting} on a node, {nodes}"
        case unknown:
            assert_never(unknown)
    return f"a node has {has}: room for {fitting} of {each}, {nodes}"


# --- Eviction ----------------------------------------------------------------------------------------------------


@check("GPU576", "workload-makes-room", Severity.NOTE)
def workload_makes_room(plan: Plan) -> Iterator[Finding]:
    """A workload that asks for a fraction evicts pods of a lower class of its own tenant.

    ## Why
    The tenant's workloads do not all fit at once, and the scheduler lets the higher class go first. A fraction is of
    one GPU, so that as many pods must leave a full GPU as make room for the new one there. Three pods of 0.33 leave
    0.01 of a GPU: a pod of 0.5 needs two of them to go.

    ## Instead
    Nothing, where that is meant. To have fewer pods evicted, ask for no more than what one of them leaves behind.
    """
    for load in _loads(plan):
        for workload in load.workloads if load.total > load.reach else ():
            found = list(_evicted_by(plan, workload, load.workloads))
            if workload.fraction is not None and found:
                yield Finding(
                    workload.fraction.at,
                    f"a pod of `{workload.name}` evicts {' or '.join(item.words for item in found)} from a full GPU",
                    label=f"needs {number(workload.fraction.portion)} of one GPU",
                    related=tuple(item.label for item in found[:3]),
                    notes=tuple(item.fact for item in found),
                )


class _Evicted(NamedTuple):
    """The words for a workload whose pods leave a GPU that is full of them, to make room for a pod of another."""

    words: str
    label: Label
    fact: str


def _evicted_by(plan: Plan, workload: Workload, others: Iterable[Workload]) -> Iterator[_Evicted]:
    wanted = workload.fraction.portion if workload.fraction else Decimal(0)
    for other in others:
        mine, its = workload.priority_class, other.priority_class
        is_shared = not other.unit.asked_as and workload.tenant is other.tenant
        if other.fraction is None or not (is_shared and mine and its):
            continue
        if not may_evict(plan.scheduler, workload.tenant, mine.spec, its.spec):
            continue
        each, name, pods = other.fraction.portion, other.name, other.fraction.per_gpu
        left = max(1 - pods * each, Decimal(0))
        leaving = ceil((wanted - left) / each)
        also = "; the rest of its gang goes with them" if other.gang else ""
        if leaving > 0:
            yield _Evicted(
                f"{count(leaving, 'pod')} of `{name}`",
                Label(other.at / "fraction", f"each pod of `{name}` leaves {number(each)}"),
                f"a GPU has {count(pods, 'pod')} of `{name}`, which leave {number(left)}; without {leaving} of them it "
                f"has {number(left + leaving * each)}{also}",
            )


def _counted_together(plan: Plan, quota: Quota, workloads: Sequence[Workload]) -> Iterator[Sequence[Workload]]:
    """Yield workloads that have to fit at once. A ResourceQuota counts all, and refuses before anybody is evicted."""
    waits = caps_in_queue(plan.cluster.cap, plan.scheduler, quota.unit.device_class) and not quota.split
    if quota.unit.asked_as and not waits:
        yield workloads
        return
    yield from standing_together(plan.scheduler, workloads)


# --- Sums --------------------------------------------------------------------------------------------------------


def _loads(plan: Plan) -> Iterator[_Load]:
    """Yield every quota that workloads count within, children before their parents.

    Workloads that fall back are in no pool's load, but in one of all pools that they reach, with what stays in these.
    """
    if not plan.workloads:
        return
    tree = plan.tree
    found: dict[tuple[str, tuple[UnitKey, ...]], list[Workload]] = {}
    for workload in plan.workloads:
        keys = tuple((pool.name, unit.name) for pool, unit in landings(plan, workload))
        if tree.find_quota(workload.tenant, workload.key):
            for holder in tree.path(workload.tenant):
                found.setdefault((holder.name, keys), []).append(workload)
    holders = {tenant.name: tenant for tenant in plan.tenants}
    for name, keys in sorted(found, key=lambda held: -len(tree.path(holders[held[0]]))):
        quotas = [quota for key in keys if (quota := tree.find_quota(holders[name], key))]
        if len(quotas) == len(keys):
            within = [found[other] for other in found if other[0] == name and set(other[1]) <= set(keys)]
            yield _Load(holders[name], quotas[0], [item for held in within for item in held], tuple(quotas[1:]))


def _written_cap(plan: Plan, quota: Quota) -> str:
    """Return the field that a namespace's cap comes from. A limit that is left out is the guarantee itself."""
    is_limit = plan.cluster.cap is not Cap.GUARANTEED and quota.limit is not quota.guaranteed
    return "limit" if is_limit else "guaranteed"


def _at_once(workloads: Sequence[Workload]) -> list[Workload]:
    """Return what has to fit together though jobs take turns: all services, and the largest of the jobs."""
    jobs = [workload for workload in workloads if workload.ends]
    if not jobs:
        return list(workloads)
    return [*(found for found in workloads if not found.ends), max(jobs, key=_amount)]


def _lasting(workloads: Iterable[Workload]) -> list[Workload]:
    return [found for found in workloads if found.priority_class and not found.priority_class.spec.preemptible]


def _amount(workload: Workload) -> Amount:
    """Return what all pods take at most."""
    return workload.most_pods * workload.amount_per_pod


def _total(workloads: Iterable[Workload]) -> Amount:
    return add([_amount(workload) for workload in workloads])


def _crossing(workloads: Sequence[Workload], bound: Amount) -> int:
    return crossing([_amount(workload) for workload in workloads], bound)


def _each(workloads: Sequence[Workload]) -> tuple[str, ...]:
    """Return the proof of each workload's amount, of the largest if there are many: ``4 pods of 0.33``."""
    shown = sorted(workloads, key=lambda workload: (-_amount(workload), workload.name))[:3]
    return tuple(
        f"`{workload.name}`: {count(workload.most_pods, 'pod')} of {number(workload.amount_per_pod)} "
        f"`{workload.unit.name}` = {number(_amount(workload))}"
        for workload in shown
    )


def _pods_field(workload: Workload) -> str:
    return str(workload.pods_at.path[-1])
