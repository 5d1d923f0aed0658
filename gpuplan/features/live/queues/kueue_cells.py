"""Read the numbers of Kueue's queues and cohorts: cells, by what pools hand out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction as Ratio
from functools import cached_property

from gpuplan.compiler.backends.kueue.cells import Cell, Cells, Key
from gpuplan.compiler.base.diagnostics import Finding, Origin
from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.manifests import Identity, exact_quantity
from gpuplan.compiler.planning.amounts import amount_of, portion_of
from gpuplan.compiler.planning.discovered import GPU_RESOURCE
from gpuplan.compiler.planning.kueue import counted_resource
from gpuplan.compiler.planning.plan import Amount, Counted, Plan, Pool, Unit
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.queues.cohorts import KUEUE_GROUP, cohort_of
from gpuplan.features.live.queues.matching import Matching
from gpuplan.features.live.queues.told import Told

_COUNTED: Mapping[str, Counted] = {item.value: item for item in Counted}
_OF_NODES = frozenset((*_COUNTED, "ephemeral-storage"))
"""What every node has."""


class _Quota(NamedTuple):
    """The quota of a queue on a resource of a flavor, as it is written."""

    at: Origin
    flavor: str
    flavor_at: Origin
    resource: str
    cell: Cell


class CellReader(Value, eq=False):
    """The cells of queues and cohorts, by pools of the plan in place of flavors."""

    dump: Dump
    plan: Plan
    matching: Matching
    told: Told

    @cached_property
    def _told_of(self) -> set[Identity]:
        """Flavors of which something was said that is said once."""
        return set()

    def read(self, item: Item) -> Cells:
        """Those of a ClusterQueue or a Cohort, in the order of its flavors.

        CPU, memory and pods count where the queue has units of the pool.
        """
        quotas = [*self._quotas(item)]
        found: dict[Key, Cell] = {}
        twice: set[Key] = set()
        divided: set[str] = set()
        for quota in quotas:
            is_of_nodes = quota.resource in _OF_NODES
            pools = self._pools(item, quota, [pool for pool, _ in found] if is_of_nodes else None)
            if len(pools) > 1 and quota.flavor not in divided:
                divided.add(quota.flavor)
                self._tell_division(item, quota, pools)
            for name, cell in _parts(quota, pools).items():
                key = name, quota.resource
                if key in found and key not in twice:
                    twice.add(key)
                    self._tell_sum(item, quota, name)
                found[key] = _sum(found[key], cell) if key in found else cell
        order = dict.fromkeys(pool for pool, _ in found)
        return {key: found[key] for pool in order for key in found if key[0] == pool}

    def _quotas(self, item: Item) -> Iterator[_Quota]:
        """Units first: what else is counted is so beside them."""
        found = [*self._written(item)]
        yield from (quota for quota in found if quota.resource not in _OF_NODES)
        yield from (quota for quota in found if quota.resource in _OF_NODES)

    def _written(self, item: Item) -> Iterator[_Quota]:
        at = item.at / "spec" / "resourceGroups"
        for index, group in enumerate(sequence(inside(item.body, "spec").get("resourceGroups"))):
            for number, flavor in enumerate(map(mapping, sequence(mapping(group).get("flavors")))):
                place = at / index / "flavors" / number
                for count, quota in enumerate(map(mapping, sequence(flavor.get("resources")))):
                    resource = text(quota.get("name"))
                    cell = self._cell(item, place / "resources" / count, resource, quota)
                    if resource and cell:
                        flavor_name = text(flavor.get("name"))
                        yield _Quota(place / "resources" / count, flavor_name, place / "name", resource, cell)

    def _cell(self, item: Item, at: Origin, resource: str, quota: Mapping[str, object]) -> Cell | None:
        numbers: dict[str, Amount | None] = {}
        for field in ("nominalQuota", "borrowingLimit", "lendingLimit"):
            value = quota.get(field)
            numbers[field] = None if value is None else _amount(resource, value)
            if numbers[field] is None and (value is not None or field == "nominalQuota"):
                finding = Finding(
                    at / field if value is not None else at,
                    f"{item.title} has a quota on `{resource}` that is no number of them",
                    label=f"`{field}`",
                    help="write a whole number, or a quantity of CPU or memory",
                )
                self.told.broken(item, finding)
                return None
        return Cell(numbers["nominalQuota"] or 0, numbers["borrowingLimit"], numbers["lendingLimit"])

    # --- Pools

    def _pools(self, item: Item, quota: _Quota, among: Sequence[str] | None) -> Mapping[str, Ratio]:
        """The pools that a quota is on, with what each counts for; of those ``among`` where it is of nodes."""
        flavor = self.dump.find(KUEUE_GROUP, "ResourceFlavor", quota.flavor)
        if flavor is None:
            named = self.plan.find_pool(quota.flavor)
            pools = [named] if named else []
        else:
            pools = [*self.matching.pools_of(node_labels(flavor))]
            if not pools:
                self._tell_nowhere(item, flavor)
                return {}
            self._tell_taints(item, flavor, pools)
        if among is not None:
            held = {pool.name: Ratio(pool.nodes.count) for pool in pools if pool.name in among}
            if among and not held and _counts(item, quota.cell):
                self._tell_uncounted(item, quota)
            return held if quota.resource in _COUNTED else {}
        found = {pool.name: _capacity(pool, quota.resource) for pool in pools if units_of(pool, quota.resource)}
        if not found and pools and quota.cell.nominal > 0:  # a group is a rectangle: 0 fills its gaps, borrowed or not
            self._tell_no_unit(item, quota, pools)
        return found

    # --- What cannot be said

    def _tell_division(self, item: Item, quota: _Quota, pools: Mapping[str, Ratio]) -> None:
        names = joined([f"`{name}`" for name in pools])
        finding = Finding(
            quota.flavor_at,
            f"{item.title} has one quota for the pools {names}",
            label="a quota of a policy is on one pool",
            notes=("it was divided by what the pools have, so that the sum is the same",),
            help="divide it as the team needs it, in the `quotas` of the tenant",
        )
        self.told.lost(item, finding)

    def _tell_sum(self, item: Item, quota: _Quota, pool: str) -> None:
        finding = Finding(
            quota.flavor_at,
            f"{item.title} has several flavors for pool `{pool}`",
            label="added to the one before",
            notes=("a tenant has one quota on what a pool hands out",),
            help="nothing, or make a pool of the nodes of each flavor",
        )
        self.told.lost(item, finding)

    def _tell_nowhere(self, item: Item, flavor: Item) -> None:
        """Nodes without GPUs are no pool; what no node has is nothing."""
        labels, nodes = node_labels(flavor), self.dump.of_kind("", "Node")
        if not nodes or any(labels.items() <= node.labels.items() for node in nodes):
            return
        finding = Finding(
            flavor.at / "spec" / "nodeLabels",
            f"{flavor.title} is of no node",
            label="no node of the dump has these labels",
            notes=("what is admitted with it waits for ever, and no quota was made of it",),
            help="correct the labels, or leave the flavor out of its queues",
        )
        self.told.note_on(item, finding)
        if flavor.identity not in self._told_of:
            self._told_of.add(flavor.identity)
            self.told.broken(flavor, finding)

    def _tell_taints(self, item: Item, flavor: Item, pools: Sequence[Pool]) -> None:
        """What a flavor says of taints follows from those of its pool."""
        spec = inside(flavor.body, "spec")
        known = {taint.key for pool in pools for taint in pool.taints}
        others = [
            found for found in map(mapping, sequence(spec.get("tolerations"))) if text(found.get("key")) not in known
        ]
        if sequence(spec.get("nodeTaints")):
            route, what = "nodeTaints", "names taints that pods have to tolerate by themselves"
            change = "from the first sync on Kueue adds tolerations of the pool's taints to all pods that it admits"
        elif others:
            route, what = "tolerations", "tolerates taints that no node of its pool has"
            change = "from the first sync on Kueue adds tolerations of the pool's taints alone"
        else:
            return
        finding = Finding(
            flavor.at / "spec" / route,
            f"{flavor.title} {what}",
            label="the taints of the pool decide that",
            notes=(change,),
            help="write the taints that its nodes have in the `taints` of the pool",
        )
        self.told.note_on(item, finding)
        if flavor.identity not in self._told_of:
            self._told_of.add(flavor.identity)
            self.told.otherwise(flavor, finding)

    def _tell_uncounted(self, item: Item, quota: _Quota) -> None:
        finding = Finding(
            quota.at,
            f"{item.title} counts `{quota.resource}` where it has no GPUs",
            label=f"flavor `{quota.flavor}`",
            notes=("policies count CPU, memory and pods of pools, beside the units of a quota there",),
            help="keep it as a patch in a Component, if work without GPUs is to be counted",
        )
        self.told.lost(item, finding)

    def _tell_no_unit(self, item: Item, quota: _Quota, pools: Sequence[Pool]) -> None:
        names = joined([f"`{pool.name}`" for pool in pools])
        offered = joined(
            [f"`{name}`" for pool in pools for unit in pool.units if (name := counted_resource(pool, unit))]
        )
        finding = Finding(
            quota.at,
            f"{item.title} counts `{quota.resource}`, which no node of flavor `{quota.flavor}` hands out",
            label="no quota was made of it",
            notes=(f"its nodes are pool {names}" + (f", which hands out {offered}" if offered else ""),),
            help="count what the nodes hand out, in the `quotas` of the tenant",
        )
        is_ours = quota.resource.startswith(GPU_RESOURCE.partition("/")[0])
        (self.told.broken if is_ours else self.told.lost)(item, finding)


def _counts(item: Item, cell: Cell) -> bool:
    """Whether a cell gives anything; those that fill the gaps of a group do not."""
    return cell.nominal > 0 or bool(cohort_of(item) and cell.borrowing != 0)


def node_labels(flavor: Item) -> Mapping[str, str]:
    """The labels of the nodes that a flavor is of; none where it is of all."""
    found = inside(flavor.body, "spec", "nodeLabels")
    return {key: value for key, value in found.items() if isinstance(value, str)}


def units_of(pool: Pool, resource: str) -> list[Unit]:
    """The units of a pool that Kueue counts by a resource: several under strategy `single`."""
    return [unit for unit in pool.units if counted_resource(pool, unit) == resource]


def _capacity(pool: Pool, resource: str) -> Ratio:
    return Ratio(sum(unit.capacity for unit in units_of(pool, resource)))


def _parts(quota: _Quota, pools: Mapping[str, Ratio]) -> Mapping[str, Cell]:
    """What each pool gets of a quota that is on several."""
    if len(pools) < 2:
        return dict.fromkeys(pools, quota.cell)
    weights = pools if sum(pools.values()) else dict.fromkeys(pools, Ratio(1))
    total = sum(weights.values(), Ratio(0))
    numbers = [
        dict.fromkeys(pools) if amount is None else portion_of(int(amount), weights, total) for amount in quota.cell
    ]
    return {name: Cell(numbers[0][name] or 0, numbers[1][name], numbers[2][name]) for name in pools}


def _sum(one: Cell, other: Cell) -> Cell:
    borrowing = None if one.borrowing is None or other.borrowing is None else one.borrowing + other.borrowing
    lent = [cell.nominal if cell.lending is None else cell.lending for cell in (one, other)]
    is_bounded = one.lending is not None or other.lending is not None
    return Cell(one.nominal + other.nominal, borrowing, sum(lent) if is_bounded else None)


def _amount(resource: str, value: object) -> int | None:
    """Millicores, bytes or devices; what is finer is rounded up, as Kueue does. None for what is no number of them."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    number = exact_quantity(str(value))
    if number is None or number < 0:
        return None
    if resource in _COUNTED:
        return amount_of(_COUNTED[resource], str(value))
    return int(number) if number == int(number) else None
