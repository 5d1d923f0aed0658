"""Read the numbers of Kueue's queues and cohorts: cells, by what pools hand out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction as Ratio
from functools import cached_property
from typing import Any

from gpuplan.compiler.backends.kueue.cells import Cell, Cells, Key
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.manifests import Identity, exact_quantity
from gpuplan.compiler.planning.amounts import amount_of, portion_of
from gpuplan.compiler.planning.discovered import GPU_RESOURCE
from gpuplan.compiler.planning.kueue import counted_resource
from gpuplan.compiler.planning.plan import Counted, Plan, Pool, Unit
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import Reports, report
from gpuplan.features.live.queues.model import KUEUE_GROUP, Matching, cohort_of
from gpuplan.features.live.rules import QUEUE_NOT_SAID, QUEUE_WITHOUT_EFFECT

_COUNTED: Mapping[str, Counted] = {item.value: item for item in Counted}
_OF_NODES = frozenset((*_COUNTED, "ephemeral-storage"))
"""The resources that every node has."""


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
    reports: Reports

    @cached_property
    def _told_of(self) -> set[Identity]:
        """Flavors of which something was said that is said once."""
        return set()

    def read(self, holder: Item) -> Cells:
        """Return those of a ClusterQueue or a Cohort, in the order of its flavors.

        CPU, memory and pods count where the queue has units of the pool.
        """
        quotas = sorted(self._written(holder), key=lambda quota: quota.resource in _OF_NODES)  # beside units
        found: dict[Key, Cell] = {}
        twice: set[Key] = set()
        divided: set[str] = set()
        for quota in quotas:
            is_of_nodes = quota.resource in _OF_NODES
            pools = self._pools(holder, quota, [pool for pool, _ in found] if is_of_nodes else None)
            if len(pools) > 1 and quota.flavor not in divided:
                divided.add(quota.flavor)
                names = joined([f"`{name}`" for name in pools])
                self.reports.say("one-quota-for-pools", quota.flavor_at, holder.identity, item=holder, names=names)
            for name, cell in _parts(quota, pools).items():
                key = name, quota.resource
                if key in found and key not in twice:
                    twice.add(key)
                    self.reports.say("several-flavors", quota.flavor_at, holder.identity, item=holder, pool=name)
                found[key] = _sum(found[key], cell) if key in found else cell
        order = dict.fromkeys(pool for pool, _ in found)
        return {key: found[key] for pool in order for key in found if key[0] == pool}

    def _written(self, holder: Item) -> Iterator[_Quota]:
        at = holder.at / "spec" / "resourceGroups"
        for index, group in enumerate(sequence(inside(holder.body, "spec").get("resourceGroups"))):
            for number, flavor in enumerate(map(mapping, sequence(mapping(group).get("flavors")))):
                place = at / index / "flavors" / number
                for count, quota in enumerate(map(mapping, sequence(flavor.get("resources")))):
                    resource, here = text(quota.get("name")), place / "resources" / count
                    stated = {name: quota.get(name) for name in ("nominalQuota", "borrowingLimit", "lendingLimit")}
                    amounts = {
                        name: None if value is None else _amount(resource, value) for name, value in stated.items()
                    }
                    lacking = (name for name, amount in amounts.items() if amount is None)
                    field = next((name for name in lacking if name == "nominalQuota" or stated[name] is not None), None)
                    if field is not None:
                        wrong = here / field if stated[field] is not None else here
                        say, whose = self.reports.say, holder.identity
                        say("quota-is-no-number", wrong, whose, field=field, item=holder, resource=resource)
                    elif resource:
                        nominal, borrowing, lending = amounts.values()
                        cell = Cell(nominal or 0, borrowing, lending)
                        yield _Quota(here, text(flavor.get("name")), place / "name", resource, cell)

    # --- Pools

    def _pools(self, holder: Item, quota: _Quota, among: Sequence[str] | None) -> Mapping[str, Ratio]:
        """Return the pools that a quota is on, with what each counts for; of those ``among`` where it is of nodes."""
        flavor = self.dump.find(KUEUE_GROUP, "ResourceFlavor", quota.flavor)
        if flavor is None:
            named = self.plan.find_pool(quota.flavor)
            pools = [named] if named else []
        else:
            pools = [*self.matching.pools_of(node_labels(flavor))]
            if not pools:
                labels, nodes = node_labels(flavor), self.dump.of_kind("", "Node")
                if nodes and not any(labels.items() <= node.labels.items() for node in nodes):
                    self._tell_once("flavor-of-no-node", holder, flavor, "nodeLabels")
                return {}  # nodes without GPUs are no pool, and what no node has is nothing
            self._tell_taints(holder, flavor, pools)
        if among is not None:
            held = {pool.name: Ratio(pool.nodes.count) for pool in pools if pool.name in among}
            if among and not held and (quota.cell.nominal > 0 or bool(cohort_of(holder) and quota.cell.borrowing != 0)):
                self.reports.say("compute-without-gpus", quota.at, holder.identity, item=holder, quota=quota)
            return held if quota.resource in _COUNTED else {}
        found = {
            pool.name: Ratio(sum(unit.capacity for unit in units_of(pool, quota.resource)))
            for pool in pools
            if units_of(pool, quota.resource)
        }
        if not found and pools and quota.cell.nominal > 0:  # a group is a rectangle: 0 fills its gaps, borrowed or not
            names = joined([f"`{pool.name}`" for pool in pools])
            offered = joined(
                [f"`{name}`" for pool in pools for unit in pool.units if (name := counted_resource(pool, unit))]
            )
            is_ours = quota.resource.startswith(GPU_RESOURCE.partition("/")[0])
            self.reports.say(
                "not-handed-out",
                quota.at,
                holder.identity,
                rule=(QUEUE_WITHOUT_EFFECT if is_ours else QUEUE_NOT_SAID).code,
                notes=(f"its nodes are pool {names}" + (f", which hands out {offered}" if offered else ""),),
                item=holder,
                quota=quota,
            )
        return found

    # --- What cannot be said

    def _tell_once(self, row: str, holder: Item, flavor: Item, field: str, **values: Any) -> None:  # noqa: ANN401 - as `report`
        """Report a flavor once, with a remark on each queue that has it."""
        diagnostic = report(row, flavor.at / "spec" / field, item=flavor, **values)
        self.reports.remark(holder.identity, diagnostic.finding.message)
        if flavor.identity not in self._told_of:
            self._told_of.add(flavor.identity)
            self.reports.add(diagnostic, flavor.identity)

    def _tell_taints(self, holder: Item, flavor: Item, pools: Sequence[Pool]) -> None:
        """Report what a flavor says of taints and its pool does not."""
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
        self._tell_once("flavor-taints", holder, flavor, route, what=what, notes=(change,))


def node_labels(flavor: Item) -> Mapping[str, str]:
    """Return the labels of the nodes that a flavor is of; none where it is of all."""
    found = inside(flavor.body, "spec", "nodeLabels")
    return {key: value for key, value in found.items() if isinstance(value, str)}


def units_of(pool: Pool, resource: str) -> list[Unit]:
    """Return the units of a pool that Kueue counts by a resource: several under strategy `single`."""
    return [unit for unit in pool.units if counted_resource(pool, unit) == resource]


def _parts(quota: _Quota, pools: Mapping[str, Ratio]) -> Mapping[str, Cell]:
    """Divide a quota that is on several pools among them."""
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
