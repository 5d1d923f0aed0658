"""The tree of tenants: who is part of whom, and whose guarantee lies within whose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import NamedTuple, Value

if TYPE_CHECKING:
    from gpuplan.compiler.planning.plan import Amount, Quota, Tenant, UnitKey

_Place = tuple[str, "UnitKey"]
"""A tenant's name, and a unit that it has a quota on."""


def way_up(name: str, above: Mapping[str, str]) -> Iterator[str]:
    """Yield the names above a name, the nearest first. The way ends before a name that it has met."""
    seen = {name}
    while (name := above.get(name, "")) and name not in seen:
        seen.add(name)
        yield name


def circles(above: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield each circle of names once, from its first name on."""
    for name in sorted(above):
        circle = (name, *way_up(name, above))
        if above.get(circle[-1]) == name == min(circle):
            yield circle


class NestedQuota(NamedTuple):
    """A quota that lies within the one of the nearest ancestor that has one on the same unit."""

    tenant: Tenant
    quota: Quota
    holder: Tenant
    whole: Quota


class Tree(Value, eq=False):
    """Tenants by their parents. A parent that is none of them counts as none.

    Parents that form a circle have no top: whoever walks up ends before the tenant that it began with, or before the
    first one that it meets again, and whoever walks down from `roots` meets none of them.
    """

    tenants: Sequence[Tenant]

    # --- Who is part of whom

    def find(self, name: str | None) -> Tenant | None:
        return self._by_name.get(name) if name is not None else None

    @cached_property
    def _by_name(self) -> Mapping[str, Tenant]:
        return {tenant.name: tenant for tenant in self.tenants}

    @cached_property
    def _children(self) -> Mapping[str | None, Sequence[Tenant]]:
        known = self._by_name
        return grouped((tenant.parent if tenant.parent in known else None, tenant) for tenant in self.tenants)

    @property
    def roots(self) -> Sequence[Tenant]:
        return self._children.get(None, ())

    def children(self, tenant: Tenant) -> Sequence[Tenant]:
        return self._children.get(tenant.name, ())

    def is_divided(self, tenant: Tenant) -> bool:
        """Whether other tenants are part of it."""
        return tenant.name in self._children

    def above(self, tenant: Tenant) -> Sequence[Tenant]:
        """Return the parent, its parent and so on."""
        route = self._routes.get(tenant.name)
        if route is not None:
            return route
        parents = {**self._parents, tenant.name: tenant.parent or ""}
        return tuple(self._by_name[name] for name in way_up(tenant.name, parents) if name in self._by_name)

    @cached_property
    def _parents(self) -> Mapping[str, str]:
        return {tenant.name: tenant.parent for tenant in self.tenants if tenant.parent}

    @cached_property
    def _routes(self) -> Mapping[str, Sequence[Tenant]]:
        """The tenants above each tenant that hangs from no circle."""
        found: dict[str, Sequence[Tenant]] = {}
        for tenant in self.downward:
            parent = self.find(tenant.parent)
            found[tenant.name] = (parent, *found[parent.name]) if parent else ()
        return found

    def path(self, tenant: Tenant) -> tuple[Tenant, ...]:
        """Return the tenant and all that it is part of, the top one last."""
        return (tenant, *self.above(tenant))

    @cached_property
    def downward(self) -> Sequence[Tenant]:
        """The tenants, each after its parent and directly before its children."""
        found: list[Tenant] = []
        waiting = list(reversed(self.roots))
        while waiting:
            tenant = waiting.pop()
            found.append(tenant)
            waiting.extend(reversed(self.children(tenant)))
        return found

    # --- Whose guarantee lies within whose

    @cached_property
    def _holders(self) -> Mapping[UnitKey, Mapping[str, tuple[Tenant, Quota]]]:
        """The tenants with a quota on each unit.

        Only the first quota of a tenant counts, and a check reports a second.
        """
        found: dict[UnitKey, dict[str, tuple[Tenant, Quota]]] = {}
        for tenant in self.tenants:
            for quota in tenant.quotas:
                found.setdefault(quota.key, {}).setdefault(tenant.name, (tenant, quota))
        return found

    def holders(self, unit: UnitKey) -> Iterable[tuple[Tenant, Quota]]:
        """Return the tenants that have a quota on a unit, with the quota, in their order."""
        return self._holders.get(unit, {}).values()

    def find_quota(self, tenant: Tenant, unit: UnitKey) -> Quota | None:
        _, quota = self._holders.get(unit, {}).get(tenant.name, (tenant, None))
        return quota

    @cached_property
    def nested_quotas(self) -> Sequence[NestedQuota]:
        """Every quota that lies within another, in the order of tenants and of their quotas."""
        return tuple(
            NestedQuota(tenant, quota, *holder)
            for tenant in self.tenants
            if tenant.parent is not None
            for quota in tenant.quotas
            if (holder := self._holder_above(tenant, quota.key))
        )

    def _holder_above(self, tenant: Tenant, unit: UnitKey) -> tuple[Tenant, Quota] | None:
        holders = self._holders[unit]
        if len(holders) == 1:
            return None
        return next((holders[above.name] for above in self.above(tenant) if above.name in holders), None)

    @cached_property
    def outermost(self) -> Sequence[tuple[Tenant, Quota]]:
        """The quotas that lie within no other: what all of them promise is counted once."""
        within = {id(part.quota) for part in self.nested_quotas}
        return tuple((tenant, quota) for tenant in self.tenants for quota in tenant.quotas if id(quota) not in within)

    @cached_property
    def outermost_by_unit(self) -> Mapping[UnitKey, Sequence[tuple[Tenant, Quota]]]:
        """The `outermost` quotas by their pool and unit."""
        return grouped((quota.key, (tenant, quota)) for tenant, quota in self.outermost)

    @cached_property
    def granted_by_pool(self) -> Mapping[str, Sequence[Tenant]]:
        """The tenants that are granted some of a pool, by its name."""
        found: dict[str, dict[str, Tenant]] = {}
        for tenant in self.tenants:
            for quota in tenant.quotas:
                if quota.is_granted:
                    found.setdefault(quota.pool.name, {})[tenant.name] = tenant
        return {pool: tuple(tenants.values()) for pool, tenants in found.items()}

    @cached_property
    def together(self) -> Mapping[str, Sequence[Quota]]:
        """The quotas of each tenant with all below it: its own, and the outermost ones below on other units."""
        found: dict[str, Sequence[Quota]] = {}
        for tenant in reversed(self.downward):
            own = {quota.key for quota in tenant.quotas}
            below = [quota for child in self.children(tenant) for quota in found[child.name] if quota.key not in own]
            found[tenant.name] = (*tenant.quotas, *below)
        return {tenant.name: found[tenant.name] for tenant in self.downward}

    def left_over(self, tenant: Tenant, unit: UnitKey) -> Amount:
        """Return what remains of a guarantee after those within it are subtracted, at least 0.

        So what remains to all tenants adds up to what all tenants are guaranteed.
        """
        return max(self._remainders.get((tenant.name, unit), 0), 0)

    @cached_property
    def _remainders(self) -> Mapping[_Place, Amount]:
        left: dict[_Place, Amount] = {}
        for tenant in self.tenants:
            for quota in tenant.quotas:
                left[tenant.name, quota.key] = left.get((tenant.name, quota.key), 0) + quota.guaranteed
        for part in self.nested_quotas:
            left[part.holder.name, part.quota.key] -= part.quota.guaranteed
        return left
