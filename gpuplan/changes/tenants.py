"""What changes of tenants do: what they may have, what they may do, and who goes first among them."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.changes.capacity import grants, pods_of, quotas
from gpuplan.changes.model import NOTHING_RUNS, REVERT, Change, ChangeClass, GrantChange, of
from gpuplan.changes.step import Step, told
from gpuplan.changes.wording import amount, from_to, listed, names
from gpuplan.planning.grants import grants as granted
from gpuplan.planning.plan import Plan, Quota, Tenant
from gpuplan.planning.preemption import evicts_within
from gpuplan.planning.schedulers import Protects


def tenant_changes(step: Step) -> Iterator[Change]:
    return told(step, step.tenants, _added, _removed, _changed)


def _added(step: Step, tenant: Tenant) -> Iterator[Change]:
    where = f" with the namespaces {names(tenant.spec.namespaces)}" if tenant.spec.namespaces else ""
    yield Change(
        *of(step.after, tenant),
        ChangeClass.QUOTA,
        f"tenant is added{where}",
        f"its namespaces and quotas are made; {NOTHING_RUNS}",
        "reverting takes namespaces away again, which is destructive",
        grants=grants(None, tenant, {}),
    )


def _removed(step: Step, tenant: Tenant) -> Iterator[Change]:
    spaces = tenant.spec.namespaces
    where = f"the namespaces {names(spaces)} and all in them" if spaces else "its quotas"
    held = "; its queues stay until their work is gone" if step.before.scheduler.has_queues else ""
    yield Change(
        *of(step.before, tenant),
        ChangeClass.DESTRUCTIVE,
        "tenant is removed",
        f"{where} leave the policy, and go when a person confirms it{held}",
        "reverting brings namespaces and quotas back, not what was in them",
        grants=grants(tenant, None, {}),
        pods=pods_of(tenant),
    )


def _changed(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    if old.name != new.name:
        yield _renamed(step, old, new)
    yield from _namespaces(step, old, new)
    yield from _quotas(step, old, new)
    yield from _admission(step, old, new)
    yield from _order(step, old, new)


def _renamed(step: Step, old: Tenant, new: Tenant) -> Change:
    """A LocalQueue cannot name another ClusterQueue, and the old one stays while work holds quota of it."""
    is_held = step.before.scheduler.has_queues or step.after.scheduler.has_queues
    return Change(
        *of(step.after, new),
        ChangeClass.TWO_STEP if is_held else ChangeClass.ADMISSION,
        f"tenant `{old.name}` is called `{new.name}`",
        "its queues are others: work in the old ones keeps them from going, and what queues it is in cannot change"
        if is_held
        else "its namespaces get another label; what runs goes on",
        "reverting is the same the other way round" if is_held else REVERT,
        pods=pods_of(old) if is_held else 0,
    )


def _namespaces(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    gone = [name for name in old.spec.namespaces if name not in new.spec.namespaces]
    come = [name for name in new.spec.namespaces if name not in old.spec.namespaces]
    kept = {name for tenant in step.after.tenants for name in tenant.spec.namespaces}
    place = of(step.after, new, new.at / "namespaces")
    if lost := [name for name in gone if name not in kept]:
        yield Change(
            *place,
            ChangeClass.DESTRUCTIVE,
            f"loses the namespaces {names(lost)}",
            "they leave the policy with all in them, and go when a person confirms it",
            "reverting brings the namespaces back, not what was in them",
            pods=pods_of(old),
        )
    if given := [name for name in gone if name in kept]:
        is_held = step.after.scheduler.has_queues
        yield Change(
            *place,
            ChangeClass.TWO_STEP if is_held else ChangeClass.ADMISSION,
            f"the namespaces {names(given)} go to another tenant",
            "what runs there counts for a tenant that did not start it"
            + ("; the queue that work there is in cannot change" if is_held else ""),
            "reverting is the same the other way round",
            pods=pods_of(old) if is_held else 0,
        )
    if come:
        yield Change(*place, ChangeClass.QUOTA, f"gets the namespaces {names(come)}")


# --- Quotas ------------------------------------------------------------------------------------------------------


def _quotas(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    differing = grants(old, new, step.renamed_pools)
    held, holds = quotas(old, step.renamed_pools), quotas(new, {})
    both = [key for key in holds if key in held]
    divided = [key for key in both if _division(step.before, held[key]) != _division(step.after, holds[key])]
    texts = [*map(_grant, differing), *(f"{pool} {unit} is divided or lent otherwise" for pool, unit in divided)]
    if texts:
        less = any(_is_less(item) for item in differing)
        is_closed = any((item.pool, item.unit) in held.keys() - holds.keys() for item in differing)
        yield Change(
            *of(step.after, new, new.at / "quotas"),
            ChangeClass.ADMISSION if is_closed else ChangeClass.QUOTA,
            "; ".join(texts),
            "pods that run go on, even beyond a quota; new ones wait or are refused" if less else NOTHING_RUNS,
            grants=differing,
        )


def _grant(item: GrantChange) -> str:
    """``a100-mixed 3g.40gb: guarantee from 8 to 16``."""
    parts = (
        ("guarantee", item.guaranteed_before, item.guaranteed_after),
        ("limit", item.limit_before, item.limit_after),
    )
    found = [f"{what} {from_to(amount(old), amount(new))}" for what, old, new in parts if old != new]
    return f"{item.pool} {item.unit}: {', '.join(found)}"


def _is_less(item: GrantChange) -> bool:
    before, after = item.limit_before, item.limit_after
    is_tighter = after is not None and (before is None or after < before)
    return is_tighter or item.guaranteed_after < item.guaranteed_before


def _division(plan: Plan, quota: Quota) -> object:
    """How a quota is split among namespaces, and lent where the scheduler lends."""
    split = {name: number for name, number in quota.split.items() if name in quota.caps}
    lends = plan.scheduler.bounds_lending and quota.lendable < quota.guaranteed
    return split, quota.lendable if lends else None


# --- What a tenant may do ----------------------------------------------------------------------------------------


def _admission(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    one, other = ([item.name for item in tenant.priority_classes] for tenant in (old, new))
    most, allow = new.spec.allow.units_per_container, "a container may ask for"
    gone, come = [name for name in one if name not in other], [name for name in other if name not in one]
    texts = [f"may not name the priority class {names(gone)} any more"] if gone else []
    texts += listed(("may name the priority class", come))
    if old.spec.allow.pod_security is not new.spec.allow.pod_security:
        texts.append(f"pod security is {new.spec.allow.pod_security}")
    if old.spec.allow.units_per_container != most and _limits_containers(old, new):
        texts.append(f"{allow} any number of units" if most is None else f"{allow} {most} units at most")
    effect = "new pods are judged by it; those that run go on"
    if _roles(old) != _roles(new):
        effect = effect if texts else "others may do something in its namespaces; what runs goes on"
        texts.append("its members change")
    if texts:
        yield Change(*of(step.after, new), ChangeClass.ADMISSION, "; ".join(texts), effect)
    elif one != other:
        yield Change(*of(step.after, new), ChangeClass.METADATA, "priority classes are listed in another order")


def _limits_containers(old: Tenant, new: Tenant) -> bool:
    """Whether a number of units for each container means anything: of shares a container may have one anyway."""
    as_before = new._replace(spec=new.spec.model_copy(update={"allow": old.spec.allow}))
    return any(granted(new, name) != granted(as_before, name) for name in new.spec.namespaces)


def _roles(tenant: Tenant) -> set[tuple[str, str]]:
    return {(member.group, member.role.value) for member in tenant.spec.members}


# --- Who goes first ----------------------------------------------------------------------------------------------


def _order(step: Step, old: Tenant, new: Tenant) -> Iterator[Change]:
    scheduler, rank = step.after.scheduler, new.spec.surplus.rank
    texts = []
    if old.parent != new.parent and scheduler.counts_tenants:
        texts.append(f"is part of `{new.parent}`" if new.parent else f"is part of `{old.parent}` no more")
    if old.surplus_weight != new.surplus_weight and scheduler.counts_tenants:
        texts.append(f"weight of the surplus {from_to(amount(old.surplus_weight), amount(new.surplus_weight))}")
    if old.spec.surplus.rank != rank and scheduler.ranks_surplus:
        texts.append(f"rank of the surplus {from_to(old.spec.surplus.rank, rank)}")
    if old.spec.protect != new.spec.protect and scheduler.protects is not Protects.NOBODY:
        texts.append("its pods are protected for another time")
    if scheduler.leaves_preemption_to_queues and evicts_within(old) != evicts_within(new):
        texts.append(f"its own work {'evicts' if evicts_within(new) else 'no longer evicts'} that of lower classes")
    if texts:
        effect = "who gets what is idle, and who gives it back, differs: pods beyond a guarantee may be evicted"
        what = "; ".join(texts)
        yield Change(*of(step.after, new), ChangeClass.PREEMPTION_ORDER, what, effect, pods=pods_of(old))
