"""Where the cells of Kueue's queues and cohorts come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuplan.compiler.backends.kueue.cells import Cells, Key, free_cells
from gpuplan.compiler.base.diagnostics import Path
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.manifests.provenance import (
    ANY,
    Links,
    Routes,
    adding,
    below,
    chosen,
    copied,
    multiplied,
    multiplying,
    ordered,
    ordering,
    summed,
)
from gpuplan.compiler.planning import sources
from gpuplan.compiler.planning.fallbacks import in_order, ordering_fallbacks
from gpuplan.compiler.planning.kueue import counted_resource
from gpuplan.compiler.planning.plan import Counted, Plan, Pool, Quota, Tenant, Total
from gpuplan.compiler.planning.tree import Tree

_GROUP: Path = ("spec", "resourceGroups", 0)


def trace_free_cells(plan: Plan) -> Routes:
    """Yield the routes of what is nobody's. A cell is there while something is left, so all numbers decide that."""
    cells = free_cells(plan)
    traced = [_free_cell(plan, total) for total in plan.totals if counted_resource(total.pool, total.unit)]
    for counted, tree in plan.compute_trees.items():
        traced += [_free_compute(tree, pool, counted) for pool in plan.pools if (pool.name, counted.value) in cells]
    if not cells:
        yield ("spec",), tuple(link for cell in traced for link in cell.presence)
    presence: dict[str, Links] = {}
    possible = {cell.key[0] for cell in traced}
    for pool in (pool.name for pool in plan.pools if pool.name in possible):
        found = [cell.presence for cell in traced if cell.key[0] == pool and cell.key in cells]
        absent = (link for cell in traced if cell.key[0] == pool for link in cell.presence)
        presence[pool] = _common(found) if found else tuple(absent)
    yield from below(_GROUP, _trace_group(cells, traced, presence))
    if len(pools := {pool for pool, _ in cells}) > 1:
        moved = ordered(*(sources.name_of(pool) for pool in plan.pools if pool.name in pools))
        yield (*_GROUP, "flavors", ANY, "name"), moved
        yield (*_GROUP, "flavors", ANY, "resources", ANY, "nominalQuota"), moved


def trace_cells(plan: Plan, tenant: Tenant, cells: Cells, *, has_rest: bool = True) -> Routes:
    """Yield the routes of a tenant's quotas; ``has_rest`` says whether what it leaves to no child is counted there.

    Flavors are in the order in which quotas first name them, and a pool comes after one that falls back to it. Of
    several quotas the pool so decides where numbers stand.
    """
    quotas = [quota for quota in tenant.quotas if counted_resource(quota.pool, quota.unit)]
    presence: dict[str, Links] = {}
    traced = []
    for quota in quotas:
        where = chosen(quota.at / "pool") if len(quotas) > 1 else ()
        presence.setdefault(quota.pool.name, where)
        rest = sources.left_of(plan.tree, tenant, quota) if has_rest else ()
        # Without a limit nothing bounds what is borrowed. A tenant that says nothing lends all that it has.
        beyond = summed(quota.at / "limit", quota.at / "guaranteed") if quota.spec.limit is not None else ()
        lent = (*copied(quota.at / "lendable"), *chosen(quota.at / "guaranteed"))
        lent = copied(quota.at / "guaranteed") if quota.spec.lendable is None else lent
        numbers = {"nominalQuota": rest, "borrowingLimit": beyond, "lendingLimit": lent}
        key = quota.pool.name, counted_resource(quota.pool, quota.unit) or ""
        pool = sources.flavor_by(quota)
        placed = {field: (*links, *where) for field, links in numbers.items()}
        traced.append(_TracedCell(key, pool, sources.asked_by(plan, quota), (), placed))
    for counted, tree in plan.compute_trees.items():
        held = [quota for quota in quotas if quota.find_compute(counted)]
        traced += [_compute_cell(tree, tenant, quota, counted, has_rest=has_rest) for quota in held]
        for quota in (quota for quota in quotas if not quota.find_compute(counted)):
            # No quota in a pool bounds it: the pool may say that it follows units.
            where = chosen(quota.pool.at / "followUnits", quota.at / "pool")
            numbers = dict.fromkeys(("nominalQuota", "borrowingLimit", "lendingLimit"), where)
            traced.append(_TracedCell((quota.pool.name, counted.value), sources.flavor_by(quota), (), (), numbers))
    moved = ordered(*ordering_fallbacks(plan.pools, [*presence]))
    yield (*_GROUP, "flavors", ANY), moved
    presence = {pool: presence[pool] for pool in in_order(plan.pools, presence)}
    yield from below(_GROUP, _trace_group(cells, traced, presence))


def _compute_cell(tree: Tree, tenant: Tenant, quota: Quota, counted: Counted, *, has_rest: bool) -> _TracedCell:
    """Return CPU, memory or pods of a quota; of several quotas the pool decides where they stand.

    Where nothing is borrowed the pool still decides that it is said: in one that does not follow units it is not.
    """
    where = chosen(quota.at / "pool") if len(tenant.quotas) > 1 else ()
    limit, guaranteed = (sources.compute_of(quota, counted, field) for field in ("limit", "guaranteed"))
    rest = sources.compute_left_of(tree, tenant, quota, counted) if has_rest else ()
    beyond = adding((*limit, *guaranteed)) if limit != guaranteed else ()
    if any(found.counted is counted and found.is_derived for found in quota.compute):
        beyond = (*beyond, *chosen(quota.pool.at / "followUnits", quota.at / "pool"))
    # The part of the guarantee is lent that is lent of units; of pods none is, whatever their number is.
    lent = (*multiplying(guaranteed), *multiplied(quota.at / "lendable", quota.at / "guaranteed"))
    lent = adding(guaranteed) if quota.spec.lendable is None else lent
    numbers = {"nominalQuota": rest, "borrowingLimit": beyond, "lendingLimit": () if counted is Counted.PODS else lent}
    pool = sources.flavor_by(quota)
    placed = {field: (*links, *where) for field, links in numbers.items()}
    return _TracedCell((quota.pool.name, counted.value), pool, (), (), placed)


class _TracedCell(NamedTuple):
    """A cell that is there, or would be with other numbers.

    ``pool`` and ``resource`` are links of what these are called, ``presence`` those of what decides else that the cell
    is there, ``numbers`` those of its bounds by field.
    """

    key: Key
    pool: Links
    resource: Links
    presence: Links
    numbers: Mapping[str, Links]


def _free_cell(plan: Plan, total: Total) -> _TracedCell:
    """Return capacity, less all guarantees on it; a quota that moved elsewhere would take none."""
    counted = [quota for _, quota in total.quotas]
    numbers = (
        *sources.capacity_of(total.pool, total.unit),
        *summed(*(quota.at / "guaranteed" for quota in counted)),
        *chosen(*(quota.at / field for quota in counted for field in ("pool", "unit"))),
        *chosen(*(tenant.at / "parent" for tenant, _ in plan.tree.holders(total.key))),
    )
    key = total.pool.name, counted_resource(total.pool, total.unit) or ""
    resource = sources.resource_of(total.pool, total.unit)
    return _TracedCell(key, sources.flavor_of(total.pool), resource, numbers, {"nominalQuota": numbers})


def _free_compute(tree: Tree, pool: Pool, counted: Counted) -> _TracedCell:
    """Return what the nodes have, less the reserve and all guarantees on it."""
    nodes = pool.at / "nodes"
    held = [(tenant, quota) for tenant, quota in tree.outermost if quota.pool.name == pool.name]
    numbers = (
        *multiplied(nodes / "count", nodes / counted.value, nodes / "reserve" / counted.value),
        *adding(link for _, quota in held for link in sources.compute_of(quota, counted, "guaranteed")),
        *chosen(*(quota.at / field for _, quota in held for field in ("pool", "unit"))),
        *chosen(*(tenant.at / "parent" for tenant in tree.tenants if tenant.quotas)),
    )
    return _TracedCell((pool.name, counted.value), sources.flavor_of(pool), (), numbers, {"nominalQuota": numbers})


# --- The rectangle -----------------------------------------------------------------------------------------------


def _trace_group(cells: Cells, traced: Sequence[_TracedCell], presence: Mapping[str, Links]) -> Routes:
    """Yield the routes of a group, which grows and shrinks by flavors and by resources.

    ``presence`` says by pool what decides that its flavor is there, in the order of flavors; those that could be there
    are among them, for they would come before others.
    """
    present = [cell for cell in traced if cell.key in cells]
    pools = [*dict.fromkeys(pool for pool, _ in cells)]
    resources = sorted({resource for _, resource in cells})
    before: Links = ()
    for pool, links in presence.items():
        if pool in pools:
            flavor: Path = ("flavors", pools.index(pool))
            yield flavor, (*links, *ordering(before))
            yield (*flavor, "name"), _common([cell.pool for cell in present if cell.key[0] == pool])
        before += links
    for index, resource in enumerate(resources):
        own = [cell for cell in present if cell.key[1] == resource]
        where = (*_common([cell.presence for cell in own]), *_earlier(traced, resources, resource))
        called = _common([cell.resource for cell in own])
        yield ("coveredResources", index), (*called, *where)
        yield ("flavors", ANY, "resources", index), where
        yield ("flavors", ANY, "resources", index, "name"), called
    for pool, resource in cells:
        route = ("flavors", pools.index(pool), "resources", resources.index(resource))
        same = [cell.numbers for cell in present if cell.key == (pool, resource)]
        for field in same[0] if same else ():  # if no quota says it, a queue has more than there is, or nothing
            links = tuple(link for numbers in same for link in numbers.get(field, ()))
            yield (*route, field), adding(links) if len(same) > 1 else links


def _common(alternatives: Sequence[Links]) -> Links:
    """Return the links that all have: of several that are enough by themselves, nothing else decides."""
    if not alternatives:
        return ()
    return tuple(link for link in alternatives[0] if all(link in other for other in alternatives[1:]))


def _earlier(traced: Sequence[_TracedCell], resources: Sequence[str], resource: str) -> Links:
    """Return what decides where a resource stands: the names of others, and whether those before it are there."""
    names = (cell.resource for cell in traced if cell.key[1] in resources and cell.key[1] != resource)
    absent = (cell.presence for cell in traced if cell.key[1] not in resources and cell.key[1] < resource)
    smaller = ([cell.presence for cell in traced if cell.key[1] == name] for name in resources if name < resource)
    return ordering(link for links in (*names, *absent, *map(_common, smaller)) for link in links)
