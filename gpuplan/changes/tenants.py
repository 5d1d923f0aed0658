"""What changes of tenants do: what they may have, what they may do, and who goes first among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.changes.capacity import grants, pods_of, quotas
from gpuplan.changes.meaning import means_same
from gpuplan.changes.model import Change, ChangeClass, GrantChange, change_of
from gpuplan.changes.pairing import successors
from gpuplan.changes.pools import renamed
from gpuplan.changes.wording import NOTHING_RUNS, REVERT, amount, from_to, names
from gpuplan.planning.evictions import evicts_within
from gpuplan.planning.grants import grants as granted
from gpuplan.planning.plan import Plan, Quota, Tenant
from gpuplan.planning.schedulers import Protects
from gpuplan.planning.subjects import about


def tenant_changes(before: Plan, after: Plan) -> Iterator[Change]:
    pools = renamed(before, after)
    for old, new in pairs(before, after):
        if old is None:
            if new is not None:
                yield _added(after, new)
        elif new is None:
            yield _removed(before, old)
        else:
            also = () if old.name == new.name else about(old)
            yield from (change._replace(also=also) for change in _changed(before, after, old, new, pools))


def pairs(before: Plan, after: Plan) -> Iterator[tuple[Tenant | None, Tenant | None]]:
    """Each tenant and what became of it; one with another's namespaces was renamed."""
    return successors(before.tenants, after.tenants, _has_same_namespaces)


def _has_same_namespaces(one: Tenant, other: Tenant) -> bool:
    return bool(one.spec.namespaces) and set(one.spec.namespaces) == set(other.spec.namespaces)


# --- Tenants that come and go ------------------------------------------------------------------------------------


def _added(after: Plan, tenant: Tenant) -> Change:
    where = f" with the namespaces {names(tenant.spec.namespaces)}" if tenant.spec.namespaces else ""
    return change_of(
        after,
        tenant,
        ChangeClass.QUOTA,
        f"tenant is added{where}",
        f"its namespaces and quotas are made; {NOTHING_RUNS}",
        "reverting takes namespaces away again, which is destructive",
    )._replace(grants=grants(None, tenant, {}))


def _removed(before: Plan, tenant: Tenant) -> Change:
    held = "; its queues stay until their work is gone" if before.scheduler.has_queues else ""
    where = (
        f"the namespaces {names(tenant.spec.namespaces)} and all in them" if tenant.spec.namespaces else "its quotas"
    )
    return change_of(
        before,
        tenant,
        ChangeClass.DESTRUCTIVE,
        "tenant is removed",
        f"{where} leave the policy, and go when a person confirms it{held}",
        "reverting brings namespaces and quotas back, not what was in them",
    )._replace(grants=grants(tenant, None, {}), pods=pods_of(tenant))


# --- Tenants that stay -------------------------------------------------------------------------------------------


def _changed(before: Plan, after: Plan, old: Tenant, new: Tenant, pools: Mapping[str, str]) -> Iterator[Change]:
    if old.name != new.name:
        yield _renamed(before, after, old, new)
    for field, changes in (
        ("namespaces", _namespaces(after, old, new)),
        ("quotas", _quotas(before, after, old, new, pools)),
    ):
        yield from (change._replace(at=change.at / field) for change in changes)
    yield from _admission(after, old, new)
    yield from _order(after, old, new)


def _renamed(before: Plan, after: Plan, old: Tenant, new: Tenant) -> Change:
    """A LocalQueue cannot name another ClusterQueue, and the old one stays while work holds quota of it."""
    is_held = any(plan.scheduler.has_queues for plan in (before, after))
    return change_of(
        after,
        new,
        ChangeClass.TWO_STEP if is_held else ChangeClass.ADMISSION,
        f"tenant `{old.name}` is called `{new.name}`",
        "its queues are others: work in the old ones keeps them from going, and what queues it is in cannot change"
        if is_held
        else "its namespaces get another label; what runs goes on",
        "reverting is the same the other way round" if is_held else REVERT,
    )._replace(pods=pods_of(old) if is_held else 0)


def _namespaces(after: Plan, old: Tenant, new: Tenant) -> Iterator[Change]:
    gone = [name for name in old.spec.namespaces if name not in new.spec.namespaces]
    come = [name for name in new.spec.namespaces if name not in old.spec.namespaces]
    kept = {name for tenant in after.tenants for name in tenant.spec.namespaces}
    if lost := [name for name in gone if name not in kept]:
        yield change_of(
            after,
            new,
            ChangeClass.DESTRUCTIVE,
            f"loses the namespaces {names(lost)}",
            "they leave the policy with all in them, and go when a person confirms it",
            "reverting brings the namespaces back, not what was in them",
        )._replace(pods=pods_of(old))
    if given := [name for name in gone if name in kept]:
        is_held = after.scheduler.has_queues
        yield change_of(
            after,
            new,
            ChangeClass.TWO_STEP if is_held else ChangeClass.ADMISSION,
            f"the namespaces {names(given)} go to another tenant",
            "what runs there counts for a tenant that did not start it"
            + ("; the queue that work there is in cannot change" if is_held else ""),
            "reverting is the same the other way round",
        )._replace(pods=pods_of(old) if is_held else 0)
    if come:
        yield change_of(after, new, ChangeClass.QUOTA, f"gets the namespaces {names(come)}", NOTHING_RUNS, REVERT)


# --- Quotas ------------------------------------------------------------------------------------------------------


def _quotas(before: Plan, after: Plan, old: Tenant, new: Tenant, pools: Mapping[str, str]) -> Iterator[Change]:
    differing = grants(old, new, pools)
    held, holds = quotas(old, pools), quotas(new, {})
    divided = [
        key
        for key in holds
        if key in held and not means_same(_division(before, held[key]), _division(after, holds[key]))
    ]
    texts = [_grant(item) for item in differing]
    texts += [f"{pool} {unit} is divided or lent otherwise" for pool, unit in divided]
    if not texts:
        return
    less = any(_is_less(item) for item in differing)
    is_closed = any((item.pool, item.unit) in held.keys() - holds.keys() for item in differing)
    yield change_of(
        after,
        new,
        ChangeClass.ADMISSION if is_closed else ChangeClass.QUOTA,
        "; ".join(texts),
        "pods that run go on, even beyond a quota; new ones wait or are refused" if less else NOTHING_RUNS,
        REVERT,
    )._replace(grants=differing)


def _grant(item: GrantChange) -> str:
    """``a100-mixed 3g.40gb: 16 guaranteed, not 8``."""
    unit = f"{item.pool} {item.unit}"
    parts = []
    if item.guaranteed_before != item.guaranteed_after:
        parts.append(f"guarantee {from_to(amount(item.guaranteed_before), amount(item.guaranteed_after))}")
    if item.limit_before != item.limit_after:
        parts.append(f"limit {from_to(amount(item.limit_before), amount(item.limit_after))}")
    return f"{unit}: {', '.join(parts)}"


def _is_less(item: GrantChange) -> bool:
    limit = item.limit_before is None and item.limit_after is not None
    if item.limit_before is not None and item.limit_after is not None:
        limit = item.limit_after < item.limit_before
    return limit or item.guaranteed_after < item.guaranteed_before


def _division(plan: Plan, quota: Quota) -> object:
    """How a quota is split among namespaces, and lent where the scheduler lends."""
    split = {name: number for name, number in quota.split.items() if name in quota.caps}
    lends = plan.scheduler.bounds_lending and quota.lendable < quota.guaranteed
    return split, quota.lendable if lends else None


# --- What a tenant may do ----------------------------------------------------------------------------------------


def _admission(after: Plan, old: Tenant, new: Tenant) -> Iterator[Change]:
    texts = []
    one, other = ([item.name for item in tenant.priority_classes] for tenant in (old, new))
    if gone := [name for name in one if name not in other]:
        texts.append(f"may not name the priority class {names(gone)} any more")
    if come := [name for name in other if name not in one]:
        texts.append(f"may name the priority class {names(come)}")
    if old.spec.allow.pod_security is not new.spec.allow.pod_security:
        texts.append(f"pod security is {new.spec.allow.pod_security}")
    if old.spec.allow.units_per_container != new.spec.allow.units_per_container and _limits_containers(old, new):
        texts.append(
            "a container may ask for any number of units"
            if new.spec.allow.units_per_container is None
            else f"a container may ask for {new.spec.allow.units_per_container} units at most"
        )
    effect = "new pods are judged by it; those that run go on"
    if _roles(old) != _roles(new):
        effect = "others may do something in its namespaces; what runs goes on" if not texts else effect
        texts.append("its members change")
    if texts:
        yield change_of(after, new, ChangeClass.ADMISSION, "; ".join(texts), effect, REVERT)
    elif one != other:
        yield change_of(
            after, new, ChangeClass.METADATA, "priority classes are listed in another order", NOTHING_RUNS, REVERT
        )


def _limits_containers(old: Tenant, new: Tenant) -> bool:
    """Whether a number of units for each container means anything: of shares a container may have one anyway."""
    as_before = new._replace(spec=new.spec.model_copy(update={"allow": old.spec.allow}))
    return any(granted(new, name) != granted(as_before, name) for name in new.spec.namespaces)


def _roles(tenant: Tenant) -> set[tuple[str, str]]:
    return {(member.group, member.role.value) for member in tenant.spec.members}


# --- Who goes first ----------------------------------------------------------------------------------------------


def _order(after: Plan, old: Tenant, new: Tenant) -> Iterator[Change]:
    scheduler = after.scheduler
    texts = []
    if old.parent != new.parent and scheduler.counts_tenants:
        texts.append(f"is part of `{new.parent}`" if new.parent else f"is part of `{old.parent}` no more")
    if old.surplus_weight != new.surplus_weight and scheduler.counts_tenants:
        texts.append(f"weight of the surplus {from_to(amount(old.surplus_weight), amount(new.surplus_weight))}")
    if old.spec.surplus.rank != new.spec.surplus.rank and scheduler.ranks_surplus:
        texts.append(f"rank of the surplus {from_to(old.spec.surplus.rank, new.spec.surplus.rank)}")
    protections = [(tenant.spec.protect.preempt, tenant.spec.protect.reclaim) for tenant in (old, new)]
    if protections[0] != protections[1] and scheduler.protects is not Protects.NOBODY:
        texts.append("its pods are protected for another time")
    if scheduler.leaves_preemption_to_queues and evicts_within(old) != evicts_within(new):
        texts.append(f"its own work {'evicts' if evicts_within(new) else 'no longer evicts'} that of lower classes")
    if texts:
        yield change_of(
            after,
            new,
            ChangeClass.PREEMPTION_ORDER,
            "; ".join(texts),
            "who gets what is idle, and who gives it back, differs: pods beyond a guarantee may be evicted",
            REVERT,
        )._replace(pods=pods_of(old))
