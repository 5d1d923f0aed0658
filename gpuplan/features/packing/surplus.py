"""What nobody is guaranteed, lent to those whose pods can ask for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction as Ratio
from math import ceil, floor

from gpuplan.compiler.planning.plan import Plan, UnitKey
from gpuplan.compiler.planning.portions import portion_of
from gpuplan.features.packing.assigning import Assignment
from gpuplan.features.packing.granting import (
    Flow,
    Grants,
    Item,
    Sort,
    cap_of,
    fill,
    item_of,
    items_of,
    key_in,
    new_item,
    sort_of,
)


def lending_surplus(
    plan: Plan, assignment: Assignment, grants: Grants, teams: Mapping[str, list[Item]]
) -> tuple[Grants, dict[str, list[Item]]]:
    """The same quotas, which may borrow what nobody has a guarantee on: else it would be room for nobody.

    Each may have all of it, where a scheduler takes units back for a guarantee. Where nothing does, it is divided: caps
    that add up to more than there is would leave no guarantee (GPU418).
    """
    written = {tenant.name: items_of(tenant, grants.quotas) for tenant in plan.tenants}
    lent = _Surplus(plan, assignment, {**written, **teams}).lent()
    changed = {name: lent[name] for name in written if lent[name] != written[name] or name in grants.quotas}
    return grants._replace(quotas=changed), {name: lent[name] for name in teams}


class _Surplus:
    """What nobody has a guarantee on, and the tenants that have such units: only their pods ask for them."""

    def __init__(self, plan: Plan, assignment: Assignment, quotas: Mapping[str, Sequence[Item]]) -> None:
        self._plan = plan
        self._quotas = {name: [(key_in(assignment, item), dict(item)) for item in quotas[name]] for name in quotas}
        self._keys = {name: {key for key, _ in items} for name, items in self._quotas.items()}
        self._above = {tenant.name: [one.name for one in plan.tree.above(tenant)] for tenant in plan.tenants}
        self._added: list[Item] = []
        self._left: dict[UnitKey, int] = {}
        self._sorts: dict[UnitKey, Sort] = {}
        for place in assignment.places:
            for unit, number in place.units().items():
                self._left[place.pool, unit] = number
                self._sorts[place.pool, unit] = sort_of(place.source.gpu.id, place.cut, unit)
        self._has: Counter[tuple[str, Sort]] = Counter()
        for name, items in self._quotas.items():
            for key, item in items:
                if key in self._left:
                    self._left[key] -= self._promised(name, key, item)
                    self._has[name, self._sorts[key]] += ceil(Ratio(str(item["guaranteed"])))

    def lent(self) -> dict[str, list[Item]]:
        for key, surplus in self._left.items():
            if surplus > 0:
                self._lend(key, surplus)
        useless = [id(item) for item in self._added if not item.get("limit")]
        return {name: [item for _, item in items if id(item) not in useless] for name, items in self._quotas.items()}

    def _promised(self, name: str, key: UnitKey, item: Item) -> int:
        """How many units are no surplus for this quota."""
        if self._plan.scheduler.counts_tenants:
            is_within = any(key in self._keys[above] for above in self._above.get(name, ()))
            return 0 if is_within else ceil(Ratio(str(item["guaranteed"])))
        cap = cap_of(item)
        return self._left[key] if isinstance(cap, str) else ceil(max(Ratio(str(cap)), Ratio(str(item["guaranteed"]))))

    def _lend(self, key: UnitKey, surplus: int) -> None:
        takers = self._takers(key) or self._with_new_quotas(key)
        bounded = [(name, item) for name, item in takers if not isinstance(cap_of(item), str)]
        if self._plan.scheduler.counts_tenants:
            for _, item in bounded:
                _limit(item, max(floor(Ratio(str(item["guaranteed"]))) + surplus, floor(Ratio(str(cap_of(item))))))
            return
        alone = [(name, item) for name, item in bounded if not self._is_nested(name, key)]
        weights = {place: Ratio(self._has[name, self._sorts[key]]) for place, (name, _) in enumerate(alone)}
        whole = sum(weights.values(), Ratio(0))
        parts = portion_of(surplus, weights, whole) if whole else {}
        for place, (_, item) in enumerate(alone):
            _limit(item, floor(Ratio(str(cap_of(item)))) + parts.get(place, 0))

    def _takers(self, key: UnitKey) -> list[tuple[str, Item]]:
        return [
            (name, item)
            for name, items in self._quotas.items()
            for mine, item in items
            if mine == key and self._has[name, self._sorts[key]]
        ]

    def _with_new_quotas(self, key: UnitKey) -> list[tuple[str, Item]]:
        """Quotas that guarantee nothing, for those that have the same unit of another pool."""
        tenants = {tenant.name: tenant for tenant in self._plan.tenants}
        for name, items in self._quotas.items():
            if self._has[name, self._sorts[key]]:
                flow = Flow(key, 0)
                self._added.append(new_item(self._plan, tenants[name], flow) if name in tenants else item_of(flow))
                items.append((key, self._added[-1]))
                self._keys[name].add(key)
        return self._takers(key)

    def _is_nested(self, name: str, key: UnitKey) -> bool:
        """Whether its quota lies within another, or another within it: then one cap counts in two."""
        below = [child for child, above in self._above.items() if name in above]
        return any(key in self._keys[other] for other in (*self._above.get(name, ()), *below))


def _limit(item: Item, limit: int) -> None:
    item["limit"] = limit
    if "split" in item:
        item["split"] = dict(item["split"])
        fill(item["split"], limit)
