"""Amounts of quotas: caps by unit, and parts of a parent's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import SHOWN, joined
from gpuplan.compiler.checks.wording import add, number
from gpuplan.compiler.planning.plan import Amount, Plan, Quota, Tenant, UnitKey
from gpuplan.compiler.policy.models import Cap


class Grant(NamedTuple):
    """A tenant's quota. ``cap`` is what plain ResourceQuotas let it use; None where unbounded."""

    tenant: Tenant
    quota: Quota
    cap: Amount | None


class Envelope(NamedTuple):
    """A quota that those of children lie within."""

    tenant: Tenant
    quota: Quota
    children: list[tuple[Tenant, Quota]]

    @property
    def promised(self) -> Amount:
        """The sum of the children's guarantees."""
        return add([quota.guaranteed for _, quota in self.children])


def each_quota(plan: Plan) -> Iterator[tuple[Tenant, Quota]]:
    """Yield every quota with the tenant that has it."""
    return ((tenant, quota) for tenant in plan.tenants for quota in tenant.quotas)


def cap_field(plan: Plan) -> str:
    """Return the field of a quota that says on this cluster what a tenant may use."""
    return "guaranteed" if plan.cluster.cap is Cap.GUARANTEED else "limit"


def cap_of(plan: Plan, quota: Quota) -> Amount | None:
    """Return what the tenant is meant to use at most, before it is divided among namespaces."""
    return quota.guaranteed if plan.cluster.cap is Cap.GUARANTEED else quota.limit


def lower_limits(plan: Plan, quotas: Iterable[tuple[Tenant, Quota]]) -> str:
    """Return the help on limits of these quotas: a cap at guarantees takes everything from tenants without any."""
    if any(tenant.has_work and not quota.guaranteed for tenant, quota in each_quota(plan)):
        return "lower the limits"
    held = [(tenant.name, quota) for tenant, quota in quotas if quota.may_borrow]
    most = [f"{number(quota.guaranteed)} `{quota.unit.name}` for `{name}`" for name, quota in held]
    more = [f"{len(most) - SHOWN} more"] if len(most) > SHOWN else []
    then = joined([*most[:SHOWN], *more])
    return f"lower the limits, or write `scheduler: {{cap: guaranteed}}` in the Cluster (the most is then {then})"


def grants_by_unit(plan: Plan) -> dict[UnitKey, list[Grant]]:
    """Return the quotas that pods can use, by pool and unit. A tenant without namespaces has no pods."""
    found: dict[UnitKey, list[Grant]] = {}
    for tenant, quota in each_quota(plan):
        if tenant.has_work:
            cap = add([part or 0 for part in quota.caps.values()]) if quota.split else cap_of(plan, quota)
            found.setdefault(quota.key, []).append(Grant(tenant, quota, cap))
    return found


class Shortfall(NamedTuple):
    """A guarantee that plain ResourceQuotas do not keep. If all others use their caps, ``remaining`` units are left."""

    grant: Grant
    remaining: Amount


def shortfalls(grants: Sequence[Grant], capacity: int) -> Iterator[Shortfall]:
    """Yield the guarantees on one unit that whoever comes first may take away."""
    unbounded = sum(grant.cap is None for grant in grants)
    total = add([grant.cap or 0 for grant in grants])
    for grant in grants:
        others = unbounded - (grant.cap is None)
        remaining = 0 if others else max(capacity - (total - (grant.cap or 0)), 0)
        if remaining < grant.quota.guaranteed:
            yield Shortfall(grant, remaining)


def shared_caps(plan: Plan) -> Iterator[tuple[Tenant, str, tuple[Quota, ...]]]:
    """Yield each tenant with pools that a cap cannot tell apart, though it keeps the tenant from a part of one."""
    for tenant in plan.tenants:
        for resource, quotas in _granted_together(tenant):
            caps = [(cap_of(plan, quota), quota.unit.capacity) for quota in quotas]
            if any(cap is not None and cap < capacity for cap, capacity in caps):
                yield tenant, resource, quotas


def _granted_together(tenant: Tenant) -> Iterator[tuple[str, tuple[Quota, ...]]]:
    """Yield each set of quotas on one resource or DeviceClass in several pools that some namespace may use."""
    if len({quota.unit.asked_as for quota in tenant.quotas}) == len(tenant.quotas):
        return
    seen: set[tuple[int, ...]] = set()
    for namespace in tenant.spec.namespaces:
        by_resource: dict[str, dict[str, Quota]] = {}
        for quota in tenant.quotas:
            if quota.unit.asked_as and quota.caps[namespace] != 0:
                by_resource.setdefault(quota.unit.asked_as, {}).setdefault(quota.pool.name, quota)
        for resource, quotas in by_resource.items():
            together = tuple(quotas.values())
            identity = tuple(id(quota) for quota in together)
            if len(together) > 1 and identity not in seen:
                seen.add(identity)
                yield resource, together


def envelopes(plan: Plan) -> tuple[Envelope, ...]:
    """Return the quotas that others lie within, in the order of their first child."""
    found: dict[tuple[str, UnitKey], Envelope] = {}
    for part in plan.tree.nested_quotas:
        key = part.holder.name, part.quota.key
        envelope = found.setdefault(key, Envelope(part.holder, part.whole, []))
        envelope.children.append((part.tenant, part.quota))
    return tuple(found.values())
