"""What Kueue counts for each tenant, and for everybody: cells, one for each flavor and resource of a queue."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.planning.kueue import counted_resource
from gpuplan.planning.plan import Amount, Plan, Tenant
from gpuplan.planning.tree import Tree
from gpuplan.values import NamedTuple


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
    """A tenant's quotas on one resource of one pool; ``left`` is what its children leave of the guarantee."""

    guaranteed: Amount
    limit: Amount | None
    lendable: Amount
    left: Amount

    @property
    def beyond(self) -> Amount | None:
        return None if self.limit is None else max(self.limit - self.guaranteed, 0)

    @property
    def lent(self) -> Amount | None:
        return None if self.lendable >= self.guaranteed else self.lendable


def own_cells(tree: Tree, tenant: Tenant) -> Cells:
    """The quotas of a tenant that divides nothing."""
    return {key: Cell(grant.guaranteed, grant.beyond, grant.lent) for key, grant in _grants(tree, tenant).items()}


def rest_cells(tree: Tree, tenant: Tenant) -> Cells:
    """What a parent has for its own pods: what it leaves to no child. The bounds are its cohort's."""
    return {key: Cell(grant.left) for key, grant in _grants(tree, tenant).items()}


def shared_cells(tree: Tree, tenant: Tenant) -> Cells:
    """What a parent's cohort has: the bounds of its quotas and, if no pods are its own, what is left of them."""
    return {
        key: Cell(0 if tenant.spec.namespaces else grant.left, grant.beyond, grant.lent)
        for key, grant in _grants(tree, tenant).items()
    }


def free_cells(plan: Plan) -> Cells:
    """What nobody has a guarantee on, for everybody to borrow."""
    free: dict[Key, Amount] = {}
    for total in plan.totals:
        resource = counted_resource(total.pool, total.unit)
        if resource is not None and total.free > 0:
            key = total.pool.name, resource
            free[key] = free.get(key, 0) + total.free
    return {key: Cell(amount) for key, amount in free.items()}


def _grants(tree: Tree, tenant: Tenant) -> Mapping[Key, _Grant]:
    """Units of one pool may have one resource: a partition under strategy `single`, and a GPU that stays whole."""
    found: dict[Key, _Grant] = {}
    for quota in tenant.quotas:
        resource = counted_resource(quota.pool, quota.unit)
        if resource is not None:
            key = quota.pool.name, resource
            grant = _Grant(quota.guaranteed, quota.limit, quota.lendable, tree.left_over(tenant, quota.key))
            found[key] = _add(found[key], grant) if key in found else grant
    return found


def _add(one: _Grant, other: _Grant) -> _Grant:
    return _Grant(
        one.guaranteed + other.guaranteed,
        None if one.limit is None or other.limit is None else one.limit + other.limit,
        one.lendable + other.lendable,
        one.left + other.left,
    )
