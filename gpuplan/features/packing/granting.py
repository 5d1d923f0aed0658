"""Quotas on pools that are cut in another way: who has which units of which pool then, and where work goes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction as Ratio
from math import floor
from typing import Any, Final

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.documents import Document
from gpuplan.compiler.planning.amounts import amount_text
from gpuplan.compiler.planning.plan import Counted, Plan, Quota, Tenant, UnitKey, Workload
from gpuplan.features.packing.assigning import Assignment
from gpuplan.features.packing.sizing.answers import Answer, Cut, Grant, Way

Item = dict[str, Any]
"""A quota as the policy writes it."""


class Flow(NamedTuple):
    """So many units of a pool, as it is to be."""

    key: UnitKey
    units: int


class Moved(NamedTuple):
    """A quota on a unit and what comes of it; ``after`` is empty where nothing is left to grant."""

    tenant: str
    before: UnitKey | None
    after: tuple[Flow, ...]


class Grants(NamedTuple):
    """The quotas of each tenant that change, as the policy writes them, and which quota became which."""

    quotas: Mapping[str, list[Item]]
    moved: tuple[Moved, ...]


Flows = Mapping[tuple[str, UnitKey | None], Sequence[Flow]]
"""The units of each tenant's needs by the quota that counts them today, None for one that no quota does."""


def flows_of(plan: Plan, answer: Answer, assignment: Assignment) -> Flows:
    """Who gets units of which pool.

    An answer says of which group they are; one of another group is as good where the model, the way of sharing and the
    unit are the same. What runs stays in its pool first, then whoever is in it today, and then the fewest are divided.
    """
    taking = _Taking(assignment)
    left = [(grant, grant.units) for grant in answer.grants]
    running: Counter[tuple[str, UnitKey]] = Counter()
    for workload in plan.workloads:
        running[workload.tenant.name, workload.key] += _amount(workload)
    for at_most in (running, None):
        after = []
        for grant, units in left:
            today = grant.need.today
            wanted = units if at_most is None or today is None else min(units, at_most[grant.need.team, today])
            home = (today[0], grant.unit) if today else ("", "")
            after.append((grant, units - taking.take(grant, home, wanted)))
        left = after
    for grant, units in sorted(left, key=lambda item: -item[1]):
        taking.take_anywhere(grant, units)
    return {key: [Flow(unit, number) for unit, number in found.items()] for key, found in taking.found.items()}


Sort = tuple[str, Way, int, str]
"""What makes units equal: model, way of sharing, shares, unit."""


class _Taking:
    """The units that pools hand out, on their way to tenants."""

    def __init__(self, assignment: Assignment) -> None:
        self._left: dict[UnitKey, int] = {}
        self._sorts: defaultdict[Sort, list[UnitKey]] = defaultdict(list)
        for place in assignment.places:
            for unit, number in place.units().items():
                self._left[place.pool, unit] = number
                self._sorts[sort_of(place.source.gpu.id, place.cut, unit)].append((place.pool, unit))
        self.found: defaultdict[tuple[str, UnitKey | None], Counter[UnitKey]] = defaultdict(Counter)

    def take(self, grant: Grant, key: UnitKey, wanted: int) -> int:
        taken = min(wanted, self._left.get(key, 0)) if key in self._alike(grant) else 0
        if taken:
            self._left[key] -= taken
            self.found[grant.need.team, grant.need.today][key] += taken
        return taken

    def take_anywhere(self, grant: Grant, wanted: int) -> None:
        """Of the pool that has least of those that have enough, else of the one that has most, and so on."""
        while wanted:
            rest = [(self._left[key], key) for key in self._alike(grant) if self._left[key]]
            if not rest:
                return
            key = min((item for item in rest if item[0] >= wanted), default=max(rest))[1]
            wanted -= self.take(grant, key, wanted)

    def _alike(self, grant: Grant) -> Sequence[UnitKey]:
        return self._sorts.get(sort_of(grant.group.node_type.gpu.id, grant.group.cut, grant.unit), ())


def sort_of(model: str, cut: Cut, unit: str) -> Sort:
    is_shared = unit == "shared"
    return model, cut.way if is_shared else Way.MIG, cut.replicas if is_shared else 1, unit


# --- Quotas ------------------------------------------------------------------------------------------------------


class _Rewriting:
    """All quotas of a plan on their way to the pools as they are to be."""

    def __init__(
        self,
        plan: Plan,
        scope: frozenset[str],
        assignment: Assignment,
        flows: Flows,
    ) -> None:
        self._plan = plan
        self._scope = scope
        self._own = flows
        self._nested: defaultdict[tuple[str, UnitKey], list[tuple[str, UnitKey]]] = defaultdict(list)
        for part in plan.tree.nested_quotas:
            self._nested[part.holder.name, part.quota.key].append((part.tenant.name, part.quota.key))
        self._capacity = {
            (place.pool, unit): number for place in assignment.places for unit, number in place.units().items()
        }
        self._assignment = assignment
        self._for_itself: Counter[tuple[str, UnitKey]] = Counter()
        for (tenant, _), mine in flows.items():
            for flow in mine:
                self._for_itself[tenant, flow.key] += flow.units
        self._children: defaultdict[str, list[str]] = defaultdict(list)
        for item in plan.tenants:
            self._children[item.parent or ""].append(item.name)
        self._merged: dict[str, dict[UnitKey, Item]] = {}
        self.moved: list[Moved] = []

    def flows(self, tenant: str, key: UnitKey) -> list[Flow]:
        """What a quota becomes: its own units, and those of the quotas that lie within it."""
        found: Counter[UnitKey] = Counter()
        for flow in self._own.get((tenant, key), ()):
            found[flow.key] += flow.units
        for child, same in self._nested.get((tenant, key), ()):
            for flow in self.flows(child, same):
                found[flow.key] += flow.units
        return [Flow(unit, number) for unit, number in found.items()]

    def all(self) -> dict[str, list[Item]]:
        """The quotas of each tenant, as the policy writes them."""
        found = {tenant.name: self._of(tenant, _written(tenant)) for tenant in self._plan.tenants}
        for tenant in self._plan.tenants:
            for key in self._merged[tenant.name]:
                self._promised(tenant.name, key)
        for merged in self._merged.values():
            for key, item in merged.items():
                _hold_within(item, self._capacity.get(key, 0))
        return found

    def _promised(self, tenant: str, key: UnitKey) -> int:
        """How many units a tenant and those below it are guaranteed: a quota has room for all that lies within it.

        Quotas that were on two units may be on one now, and then one lies within the other.
        """
        below = sum(self._promised(child, key) for child in self._children[tenant])
        item = self._merged[tenant].get(key)
        if item is None:
            return below
        _raise(item, max(self._for_itself[tenant, key] + below - item["guaranteed"], 0))
        return int(item["guaranteed"])

    def _of(self, tenant: Tenant, written: Sequence[Item]) -> list[Item]:
        resolved = {quota.at.path[-1]: quota for quota in tenant.quotas}
        out: list[Item] = []
        merged = self._merged[tenant.name] = {}
        for index, item in enumerate(written):
            quota = resolved.get(index)
            if quota is None or quota.pool.name not in self._scope:
                out.append(dict(item))
                continue
            for key, new in self._items(tenant, quota, item):
                if key in merged:
                    _add(merged[key], new)
                else:
                    merged[key] = new
                    out.append(new)
        for flow in self._own.get((tenant.name, None), ()):
            if flow.key in merged:
                _raise(merged[flow.key], flow.units)
            else:
                merged[flow.key] = new_item(self._plan, tenant, flow)
                out.append(merged[flow.key])
            self.moved.append(Moved(tenant.name, None, (flow,)))
        return out

    def _items(self, tenant: Tenant, quota: Quota, item: Item) -> Iterator[tuple[UnitKey, Item]]:
        flows = self.flows(tenant.name, quota.key)
        if not flows and any(flow.key == quota.key for flow in self._own.get((tenant.name, None), ())):
            flows = [Flow(quota.key, 0)]
        elif not flows and quota.guaranteed == 0:
            flows = [Flow(key, 0)] if (key := self._instead(quota)) else []
        self.moved.append(Moved(tenant.name, quota.key, tuple(flows)))
        for flow, part in zip(flows, _parts(flows), strict=True):
            is_alone = sum(pool == flow.key[0] for pool, _ in self._capacity) == 1
            yield flow.key, _part_of(item, quota, flow, part, is_alone=is_alone)

    def _instead(self, quota: Quota) -> UnitKey | None:
        """The unit on which a quota that guarantees nothing may borrow: its own, or the smallest that holds as much."""
        if quota.key in self._capacity:
            return quota.key
        same = [key for key in self._capacity if key[1] == quota.unit.name]
        gpu = quota.pool.gpu
        fitting = [
            (profile.memory_slices, place.pool, profile.name)
            for place in self._assignment.places
            for unit in place.units()
            if place.source.gpu is gpu
            and (profile := gpu.find_profile(unit))
            and (mine := gpu.find_profile(quota.unit.name))
            and profile.memory_slices >= mine.memory_slices
        ]
        return same[0] if same else min(fitting)[1:] if fitting else None


def rewritten(
    plan: Plan,
    scope: frozenset[str],
    assignment: Assignment,
    flows: Flows,
) -> Grants:
    """The quotas of all tenants that have some on the pools in scope, or get some there."""
    rewriting = _Rewriting(plan, scope, assignment, flows)
    new = rewriting.all()
    changed = {tenant.name: new[tenant.name] for tenant in plan.tenants if new[tenant.name] != _written(tenant)}
    return Grants(changed, tuple(rewriting.moved))


def item_of(flow: Flow) -> Item:
    return {"pool": flow.key[0], "unit": flow.key[1], "guaranteed": flow.units}


def new_item(plan: Plan, tenant: Tenant, flow: Flow) -> Item:
    """A first quota on a unit, divided evenly where each namespace is counted by itself."""
    item = item_of(flow)
    names = tenant.spec.namespaces
    if len(names) > 1 and not plan.scheduler.counts_tenants:
        item["split"] = dict.fromkeys(names, 0)
        fill(item["split"], flow.units)
    return item


def items_of(tenant: Tenant, quotas: Mapping[str, list[Item]]) -> list[Item]:
    """The quotas of a tenant as they are to be: those that change, which may be none, else those that are written."""
    return quotas[tenant.name] if tenant.name in quotas else _written(tenant)


def _written(tenant: Tenant) -> list[Item]:
    source = tenant.at.source
    if not isinstance(source, Document):
        raise TypeError(source)
    spec = source.data.get("spec") or {}
    return [dict(item) for item in spec.get("quotas") or ()]


# --- One quota ---------------------------------------------------------------------------------------------------


def _parts(flows: Sequence[Flow]) -> list[Ratio]:
    """The part of the whole that each flow is."""
    whole = sum(flow.units for flow in flows)
    return [Ratio(flow.units, whole) if whole else Ratio(1, len(flows)) for flow in flows]


def _part_of(item: Item, quota: Quota, flow: Flow, part: Ratio, *, is_alone: bool) -> Item:
    """A quota as it was, on another unit: what belongs to it keeps its relation to what is guaranteed."""
    pool, unit = flow.key
    new: Item = {"pool": pool, "unit": unit, "guaranteed": flow.units}
    before = Ratio(quota.guaranteed)
    for name, value in item.items():
        if name in new:
            continue
        if name == "limit" and not isinstance(value, str):
            new[name] = flow.units + floor((Ratio(str(value)) - before) * part)
        elif name == "lendable":
            new[name] = min(floor(Ratio(str(value)) * Ratio(flow.units) / before) if before else 0, flow.units)
        elif name == "classLimits":
            beyond = {key: floor((Ratio(str(number)) - before) * part) for key, number in value.items()}
            new[name] = {key: max(flow.units + number, 0) for key, number in beyond.items()}
        elif name == "split":
            new[name] = {key: floor(Ratio(str(number)) * part) for key, number in value.items()}
        elif name in _COUNTED and part != 1:
            new[name] = _scaled(quota, _COUNTED[name], part)
        elif name == "pods":
            new[name] = max(flow.units + floor((value - before) * part), 1)
        else:
            new[name] = value
    if "split" in new:
        cap = new.get("limit", flow.units)
        if not isinstance(cap, str):
            fill(new["split"], int(cap))
    if "unit" not in item and flow.key == quota.key and is_alone:
        del new["unit"]
    return {name: new[name] for name in dict.fromkeys((*item, *new)) if name in new}


_COUNTED: Final = {"cpu": Counted.CPU, "memory": Counted.MEMORY}


def _scaled(quota: Quota, counted: Counted, part: Ratio) -> Item | str:
    found = quota.find_compute(counted)
    if found is None:
        return {"guaranteed": "0"}
    step = 1 if counted is Counted.CPU else 1 << 20
    least = amount_text(counted, floor(found.guaranteed * part / step) * step)
    if found.limit is None:
        return {"guaranteed": least, "limit": "none"}
    return {"guaranteed": least, "limit": amount_text(counted, floor(found.limit * part / step) * step)}


def fill(split: dict[str, Any], cap: int) -> None:
    """Divide what rounding has left over, so that the parts are the whole."""
    names = list(split)
    for index in range(max(cap - sum(split.values()), 0)):
        split[names[index % len(names)]] += 1
    while names and sum(split.values()) > cap:
        most = max(names, key=lambda name: split[name])
        split[most] -= 1


def cap_of(item: Item) -> Any:  # noqa: ANN401 - a number, or `none`
    """What it may use at most."""
    return item.get("limit", item["guaranteed"])


def _lendable(item: Item) -> int:
    return int(item["lendable"] if "lendable" in item else item["guaranteed"])


def _raise(item: Item, units: int) -> None:
    """Let a quota have so many more guaranteed, with a pod for each, for any class; what it may borrow stays."""
    item["guaranteed"] += units
    for name in ("limit", "pods"):
        if isinstance(item.get(name), int):
            item[name] += units
    if "classLimits" in item:
        item["classLimits"] = {name: number + units for name, number in item["classLimits"].items()}
    if "split" in item and not isinstance(cap_of(item), str):
        fill(item["split"], int(cap_of(item)))


def _add(item: Item, other: Item) -> None:
    """Make one quota of two on the same unit."""
    caps, lendable = [cap_of(item), cap_of(other)], _lendable(item) + _lendable(other)
    item["guaranteed"] += other["guaranteed"]
    if "limit" in item or "limit" in other:
        item["limit"] = "none" if any(isinstance(cap, str) for cap in caps) else sum(caps)
    if "lendable" in item or "lendable" in other:
        item["lendable"] = lendable
    for name in ("split", "classLimits"):
        if name in item and name in other:
            names = dict.fromkeys((*item[name], *other[name]))
            item[name] = {key: item[name].get(key, 0) + other[name].get(key, 0) for key in names}
        elif name == "classLimits":
            item.pop(name, None)
    if "split" not in item and "split" in other:
        item["split"] = dict(other["split"])
    if "split" in item and not isinstance(cap_of(item), str):
        fill(item["split"], int(cap_of(item)))
    for name in ("cpu", "memory", "pods"):
        if name in item and name in other and isinstance(item[name], int) and isinstance(other[name], int):
            item[name] += other[name]
        elif name in item and item[name] != other.get(name):
            item.pop(name)


def _hold_within(item: Item, capacity: int) -> None:
    """No limit beyond what there is: nobody could use it."""
    if isinstance(item.get("limit"), int | float | Decimal) and item["limit"] > capacity >= item["guaranteed"]:
        item["limit"] = capacity
        if "split" in item:
            fill(item["split"], capacity)
        for name, number in (item.get("classLimits") or {}).items():
            item["classLimits"][name] = min(number, capacity)


def key_in(assignment: Assignment, item: Item) -> UnitKey:
    """The unit that a quota is on; a pool with one unit need not be told which."""
    place = assignment.find(item["pool"])
    return item["pool"], item.get("unit") or (next(iter(place.units()), "") if place else "")


# --- Work --------------------------------------------------------------------------------------------------------


class Seat(NamedTuple):
    """Where a workload is to run; ``key`` is None where no quota of its tenant has room for its pods."""

    workload: Workload
    key: UnitKey | None


def seats(
    plan: Plan, scope: frozenset[str], quotas: Mapping[str, list[Item]], assignment: Assignment
) -> Iterator[Seat]:
    """The unit of each workload in scope whose own goes, or has no room for it any more.

    Services have to fit at once, and each job beside them. Those that can stay do so before others come.
    """
    left = dict(_rooms(plan, quotas, assignment))
    work = [item for item in plan.workloads if item.pool.name in scope and item.fraction is None]
    stays = {item.name for item in work if _rooms_of(item, left).get(item.key, 0) >= _amount(item)}
    for workload in sorted(work, key=lambda item: (item.ends, item.name not in stays, -_amount(item))):
        wanted, mine = _amount(workload), _rooms_of(workload, left)
        place = assignment.find(workload.pool.name)
        is_told = workload.spec.unit is not None or (place is not None and len(place.units()) == 1)
        found = workload.key if mine.get(workload.key, 0) >= wanted else _seat(mine, workload, wanted)
        if found is not None and not workload.ends:
            for namespace in ("", workload.namespace):
                if (workload.tenant.name, namespace, found) in left:
                    left[workload.tenant.name, namespace, found] -= wanted
        if found != workload.key or not is_told:
            yield Seat(workload, found)


Room = tuple[str, str, UnitKey]
"""A tenant's quota on a unit: all of it, or where it is divided, the part of one namespace."""


def _rooms(plan: Plan, quotas: Mapping[str, list[Item]], assignment: Assignment) -> Iterator[tuple[Room, int]]:
    """How many units pods may have at once, of all quotas on pools in scope; no limit makes a pool larger."""
    for tenant in plan.tenants:
        for item in items_of(tenant, quotas):
            place = assignment.find(item["pool"])
            units, key, cap = place.units() if place else {}, key_in(assignment, item), cap_of(item)
            room = min(units[key[1]], units[key[1]] if isinstance(cap, str) else floor(cap)) if key[1] in units else 0
            for namespace, part in (item.get("split") or {"": room}).items():
                yield (tenant.name, namespace, key), min(floor(part), room)


def _rooms_of(workload: Workload, rooms: Mapping[Room, int]) -> dict[UnitKey, int]:
    return {
        key: room
        for (tenant, namespace, key), room in rooms.items()
        if tenant == workload.tenant.name and namespace in ("", workload.namespace)
    }


def _amount(workload: Workload) -> int:
    return workload.most_pods * workload.spec.count


def _seat(mine: Mapping[UnitKey, int], workload: Workload, wanted: int) -> UnitKey | None:
    fitting = [key for key, room in mine.items() if room >= wanted]
    return min(fitting, key=lambda key: (key[1] != workload.unit.name, key[0] != workload.pool.name, key), default=None)
