"""Where a part of a plan stands in what `plan_json` publishes: JSON pointers (RFC 6901)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TypeVar

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.planning import plan as parts
from gpuplan.compiler.planning.plan import Plan

T = TypeVar("T")


class PlanPaths(Value, eq=False):
    """Pointers to the parts of one plan; ``index`` is its place among the clusters.

    ``document`` stands before each, where a page has plans of several documents: ``earlier:``.
    """

    plan: Plan
    index: int = 0
    document: str = ""

    @property
    def cluster(self) -> str:
        return self.document + pointer("clusters", self.index)

    def pool(self, pool: parts.Pool) -> str:
        """Return the path of a part; for a part that a rollout makes of a pool, that of the whole pool."""
        return self.cluster + pointer("pools", self._pools[pool.name])

    def unit(self, pool: parts.Pool, unit: parts.Unit) -> str:
        whole = self.plan.pools[self._pools[pool.name]]
        return self.pool(pool) + pointer("units", [found.name for found in whole.units].index(unit.name))

    def layout(self, layout: parts.Layout) -> str:
        return self.cluster + pointer("layouts", self._layouts[layout.config_name])

    def tenant(self, tenant: parts.Tenant) -> str:
        return self.cluster + pointer("tenants", self.tenant_index(tenant))

    def tenant_index(self, tenant: parts.Tenant) -> int:
        return self._tenants[tenant.name]

    def quota(self, tenant: parts.Tenant, quota: parts.Quota) -> str:
        whole = self.plan.tenants[self.tenant_index(tenant)]
        return self.tenant(tenant) + pointer("quotas", [found.key for found in whole.quotas].index(quota.key))

    @cached_property
    def _pools(self) -> Mapping[str, int]:
        return _indices(pool.name for pool in self.plan.pools)

    @cached_property
    def _layouts(self) -> Mapping[str, int]:
        return _indices(layout.config_name for layout in self.plan.mig_layouts)

    @cached_property
    def _tenants(self) -> Mapping[str, int]:
        return _indices(tenant.name for tenant in self.plan.tenants)


def pointer(*route: str | int) -> str:
    """A JSON pointer to what a route of keys and indices leads to."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in route)


def _indices(names: Iterable[T]) -> Mapping[T, int]:
    return {name: index for index, name in enumerate(names)}
