"""The quotas that Kueue counts for each tenant, and for everybody: cells, one for each flavor and resource of a
queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.amounts import capacity
from gpuplan.compiler.planning.fallbacks import in_order
from gpuplan.compiler.planning.kueue import counted_resource, counted_units
from gpuplan.compiler.planning.plan import Amount, Counted, Plan, Quota, Tenant, Total
from gpuplan.compiler.planning.tree import Tree


class Cell(NamedTuple):
    """A number of units with its bounds; ``borrowing`` and ``lending`` are None where there is none.

    Kueue counts in cells, one for each flavor and resource of a queue. What the numbers mean is in
    `pkg/cache/scheduler/resource_node.go` of Kueue:

    - A queue may use its nominal quota and what it borrows. What it may lend is all of the nominal quota or, with a
      lending limit, as much as that; the rest is for itself alone.
    - A cohort has what its members lend it and a nominal quota of its own on top. Its borrowing limit bounds what all
      its members together take from above, its lending limit what others get from them.
    - A member can use only what it has a cell for, and a cohort without a cell for something lets it through unbounded.
    """

    nominal: Amount
    borrowing: Amount | None = None
    lending: Amount | None = None


Key = tuple[str, str]
"""A pool and a resource that it hands out."""

Cells = Mapping[Key, Cell]


class _Grant(NamedTuple):
    """A tenant's quotas on what is counted in one pool; ``rest`` is what its children leave of the guarantee."""

    guaranteed: Amount
    limit: Amount | None
    lendable: Amount
    rest: Amount

    def plus(self, other: _Grant) -> _Grant:
        return _Grant(
            self.guaranteed + other.guaranteed,
            None if self.limit is None or other.limit is None else self.limit + other.limit,
            self.lendable + other.lendable,
            self.rest + other.rest,
        )

    @property
    def beyond(self) -> Amount | None:
        return None if self.limit is None else max(self.limit - self.guaranteed, 0)

    @property
    def lent(self) -> Amount | None:
        return None if self.lendable >= self.guaranteed else self.lendable


class Book(NamedTuple):
    """One thing that is counted: units by their resources, or CPU, memory or pods.

    ``tree`` has the tenants that have some of it, with its numbers in place of units. ``plenty`` is what stands for no
    bound, None for units: of those that a queue has no quota on it may use nothing.
    """

    tree: Tree
    counted: Counted | None
    plenty: Amount | None

    def resource(self, quota: Quota | Total) -> str | None:
        named = counted_resource(quota.pool, quota.unit)
        return named if self.counted is None or named is None else self.counted.value


PLENTY: Final = {Counted.CPU: 10**9, Counted.MEMORY: 2**50, Counted.PODS: 10**6}
"""A million CPUs, a Pi of memory, a million pods: more than there is, in numbers that can be added up."""


def books(plan: Plan) -> tuple[Book, ...]:
    """Return all that is counted on a cluster. CPU and memory are so in every queue, or in none.

    For Kueue's Configuration excludes a resource everywhere or nowhere, and what a queue does not cover no workload
    gets (`assignFlavors` in `pkg/scheduler/flavorassigner/flavorassigner.go`). Pods count only where a queue has them.
    """
    counted = (Book(tree, item, PLENTY[item]) for item, tree in plan.compute_trees.items())
    return (Book(plan.tree, None, None), *counted)


def own_cells(plan: Plan, tenant: Tenant) -> Cells:
    """Return the quotas of a tenant that divides nothing."""
    found = _cells(plan, tenant, lambda grant: Cell(grant.guaranteed, grant.beyond, grant.lent))
    return _in_order(plan, _filled(plan, tenant, found))


def rest_cells(plan: Plan, tenant: Tenant) -> Cells:
    """Return the quotas of a parent's own pods: what it leaves to no child. The bounds are its cohort's."""
    return _in_order(plan, _filled(plan, tenant, _cells(plan, tenant, lambda grant: Cell(grant.rest))))


def shared_cells(plan: Plan, tenant: Tenant) -> Cells:
    """Return a parent's cohort: the bounds of its quotas and, if no pods are its own, what is left of them."""
    has_work = tenant.has_work
    return _cells(plan, tenant, lambda grant: Cell(0 if has_work else grant.rest, grant.beyond, grant.lent))


def free_cells(plan: Plan) -> Cells:
    """Return what nobody has a guarantee on, for everybody to borrow, in the order of pools."""
    free: dict[Key, Amount] = {}
    for total in plan.totals:
        resource = counted_resource(total.pool, total.unit)
        if resource is not None and total.free > 0:
            key = total.pool.name, resource
            free[key] = free.get(key, 0) + total.free
    for counted, tree in plan.compute_trees.items():
        for pool in filter(counted_units, plan.pools):
            size = capacity(pool, counted)
            promised = sum(quota.guaranteed for _, quota in tree.outermost if quota.pool.name == pool.name)
            if size is not None and size > promised:
                free[pool.name, counted.value] = size - promised
    places = {pool.name: index for index, pool in enumerate(plan.pools)}
    return {key: Cell(free[key]) for key in sorted(free, key=lambda key: places[key[0]])}


def _cells(plan: Plan, tenant: Tenant, cell_of: Callable[[_Grant], Cell]) -> Cells:
    """Return the cells by pool and resource.

    Units of one pool may have one resource: a partition under strategy `single`, and a GPU that stays whole.
    """
    grants: dict[Key, _Grant] = {}
    for book in books(plan):
        holder = book.tree.find(tenant.name)
        for quota in holder.quotas if holder else ():
            resource = book.resource(quota)
            if holder and resource is not None:
                key, rest = (quota.pool.name, resource), book.tree.left_over(holder, quota.key)
                grant = _Grant(quota.guaranteed, quota.limit, quota.lendable, rest)
                grants[key] = grants[key].plus(grant) if key in grants else grant
    return {key: cell_of(grant) for key, grant in grants.items()}


def _filled(plan: Plan, tenant: Tenant, cells: Cells) -> Cells:
    """Return the cells of a queue, with those of what none of its quotas in a pool bounds.

    A parent that bounds it does so for its children: they borrow from it. What nobody bounds is the queue's own, and
    lent to nobody.
    """
    found = dict(cells)
    pools = dict.fromkeys(pool for pool, _ in cells)
    for book in books(plan):
        if book.counted is None or book.plenty is None:
            continue
        if book.counted is Counted.PODS and not any(resource == Counted.PODS.value for _, resource in cells):
            continue
        for pool in pools:
            if (pool, book.counted.value) not in found:
                above = (book.tree.find(holder.name) for holder in plan.tree.above(tenant))
                is_bounded = any(quota.pool.name == pool for holder in above if holder for quota in holder.quotas)
                found[pool, book.counted.value] = Cell(0) if is_bounded else Cell(book.plenty, lending=0)
    return found


def _in_order(plan: Plan, cells: Cells) -> Cells:
    """Return a queue's cells as the quotas name their pools, but a pool comes after one that falls back to it.

    Kueue tries the flavors of a queue in their order.
    """
    pools = in_order(plan.pools, (pool for pool, _ in cells))
    return {key: cells[key] for pool in pools for key in cells if key[0] == pool}
