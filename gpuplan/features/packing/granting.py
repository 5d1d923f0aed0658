"""Quotas on pools that are cut in another way: who has which units of which pool then, and where work goes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction as Ratio
from math import floor
from typing import Any

from pydantic.alias_generators import to_camel

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.documents import Document
from gpuplan.compiler.planning.amounts import amount_text
from gpuplan.compiler.planning.plan import Counted, Plan, Quota, Tenant, UnitKey, Workload
from gpuplan.features.packing.assigning import Assignment, Place
from gpuplan.features.packing.sizing.answers import Answer, Cut, Gangs, Grant, Way
from gpuplan.features.packing.sizing.choosing.parts import SHARE, WHOLE
from gpuplan.features.packing.sizing.demand.plans import compute_share

Data = Mapping[str, Any]
"""A quota as the policy writes it."""


class Flow(NamedTuple):
    """A number of units of a pool, as the pool is to be."""

    key: UnitKey
    units: int


class Moved(NamedTuple):
    """A quota on a unit and what becomes of it; ``after`` is empty if nothing is left to grant."""

    tenant: str
    before: UnitKey | None
    after: tuple[Flow, ...]


class Grants(NamedTuple):
    """The quotas of each tenant that change, as the policy writes them, and which quota became which."""

    quotas: Mapping[str, Sequence[Data]]
    moved: tuple[Moved, ...]


Flows = Mapping[tuple[str, UnitKey | None], Sequence[Flow]]
"""The units of each tenant's needs by the quota that counts them today, None for those that no quota counts."""


def flows_of(plan: Plan, answer: Answer, assignment: Assignment) -> Flows:
    """Return who gets units of which pool.

    An answer names the group that units are of; a unit of another group is as good if the model, the way of sharing and
    the unit are the same. Pods with several GPUs come first: they get those of one node, as the answer has laid them.
    Of the other needs each workload keeps its pool, then each need, and then the fewest needs are divided.
    """
    taking = _Taking(answer, assignment)
    gangs = [grant for grant in answer.grants if grant.need.gpus > 1]
    running: Counter[tuple[str, UnitKey]] = Counter()
    for workload in plan.workloads:
        running[workload.tenant.name, workload.key] += _amount(workload)
    for grants in (gangs, [grant for grant in answer.grants if grant.need.gpus <= 1]):
        open_grants = [(grant, grant.units // max(grant.need.gpus, 1)) for grant in grants]
        for at_most in (running, None):
            after = []
            for grant, pods in open_grants:
                today = grant.need.today
                keeping = None if at_most is None or today is None else at_most[grant.need.team, today]
                wanted = pods if keeping is None else min(pods, keeping // max(grant.need.gpus, 1))
                home = (today[0], grant.unit) if today else ("", "")
                after.append((grant, pods - taking.take(grant, home, wanted)))
            open_grants = after
        for grant, pods in sorted(open_grants, key=lambda pair: (-pair[0].need.gpus, -pair[1])):
            taking.take_anywhere(grant, pods)
        taking.free_gangs()
    return {key: [Flow(unit, number) for unit, number in taken.items()] for key, taken in taking.taken.items()}


def cuts_guarantees(plan: Plan, scope: frozenset[str], flows: Flows) -> bool:
    """Whether tenants have less of the GPUs in scope than they are guaranteed today; pools are as they are today."""
    rest = Ratio(0)
    for tenant in plan.tenants:
        for quota in tenant.quotas:
            if quota.pool.name in scope:
                share = compute_share(quota.pool, quota.unit)
                rest += share * Ratio(plan.tree.left_over(tenant, quota.key))
    for (name, unit_name), units in (flow for mine in flows.values() for flow in mine):
        if (pool := plan.find_pool(name)) and (unit := pool.find_unit(unit_name)):
            rest -= compute_share(pool, unit) * units
    return rest > 0


Sort = tuple[str, Way, int, str]
"""The model, way of sharing, number of shares and name by which units are equal."""


def _sort_of(model: str, cut: Cut, unit: str) -> Sort:
    is_shared = unit == SHARE
    return model, cut.way if is_shared else Way.MIG, cut.replicas if is_shared else 1, unit


class _Taking:
    """The units that pools hand out on their way to tenants: one by one, and several of one node."""

    def __init__(self, answer: Answer, assignment: Assignment) -> None:
        self._free: Counter[tuple[UnitKey, int]] = Counter()
        """The number of pods with so many units of one node that have room in a pool."""
        self._sorts: defaultdict[Sort, list[UnitKey]] = defaultdict(list)
        for place in assignment.places:
            for unit, number in place.units().items():
                self._free[(place.pool, unit), 1] = number
                self._sorts[_sort_of(place.source.gpu.id, place.cut, unit)].append((place.pool, unit))
        for place, gangs in _gangs_of(answer, assignment):
            for size, number in gangs.items():
                self._free[(place.pool, WHOLE), size] += number
                self._free[(place.pool, WHOLE), 1] -= size * number
        self.taken: defaultdict[tuple[str, UnitKey | None], Counter[UnitKey]] = defaultdict(Counter)

    def take(self, grant: Grant, key: UnitKey, wanted: int) -> int:
        """Give a need units of that pool for as many of ``wanted`` pods as have room; return how many have."""
        size = max(grant.need.gpus, 1)
        taken = min(wanted, self._free[key, size]) if key in self._alike(grant) else 0
        if taken:
            self._free[key, size] -= taken
            self.taken[grant.need.team, grant.need.today][key] += taken * size
        return taken

    def take_anywhere(self, grant: Grant, wanted: int) -> None:
        """Take units of the smallest pool that has enough, else of the one that has most, and so on."""
        size = max(grant.need.gpus, 1)
        while wanted:
            rest = [(free, key) for key in self._alike(grant) if (free := self._free[key, size])]
            if not rest:
                return
            key = min((pair for pair in rest if pair[0] >= wanted), default=max(rest))[1]
            wanted -= self.take(grant, key, wanted)

    def free_gangs(self) -> None:
        """Give room that no pod with several GPUs has taken to pods with one."""
        for key, size in [*self._free]:
            if size > 1:
                self._free[key, 1] += size * self._free.pop((key, size))

    def _alike(self, grant: Grant) -> Sequence[UnitKey]:
        return self._sorts.get(_sort_of(grant.group.node_type.gpu.id, grant.group.cut, grant.unit), ())


def _gangs_of(answer: Answer, assignment: Assignment) -> Iterator[tuple[Place, Mapping[int, int]]]:
    """Yield how many pods of which number of GPUs, above one, each place has room for, as the answer lays them.

    Nodes of a group may be in several places: each gets those that have room for the pods that it has today.
    """
    today: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for grant in answer.grants:
        if grant.need.today is not None and grant.need.gpus > 1:
            today[grant.need.today[0]][grant.need.gpus] += grant.units // grant.need.gpus
    rest = [Counter(group.gangs) for group in answer.groups]
    for place in sorted(assignment.places, key=lambda one: one.pool not in today):
        wanted, laid = today[place.pool].copy(), Counter[int]()
        nodes = rest[place.group] if place.group >= 0 else Counter[Gangs]()
        for _ in range(place.nodes):
            if not (open_ := +nodes):
                break
            gangs = max(open_, key=lambda one: ((Counter[int](one) & wanted).total(), -sum(one), one))
            nodes[gangs] -= 1
            wanted -= Counter(gangs)
            laid.update(gangs)
        yield place, laid


# --- One quota ---------------------------------------------------------------------------------------------------


class WrittenQuota(Value):
    """A quota in whole numbers, on its way to how the policy writes it; a field that the policy leaves out is None.

    The parts of ``split`` add up to what the quota may use at most. ``order`` holds the names of fields as they stood.
    """

    pool: str
    unit: str | None
    guaranteed: int
    limit: int | str | None = None
    lendable: int | None = None
    split: Mapping[str, int] | None = None
    class_limits: Mapping[str, int] | None = None
    cpu: object = None
    memory: object = None
    pods: int | None = None
    order: tuple[str, ...] = ()

    @property
    def cap(self) -> int | str:
        """The most that it may use, or `none`."""
        return self.guaranteed if self.limit is None else self.limit

    def as_data(self) -> Data:
        values = {to_camel(name): getattr(self, name) for name in self.__match_args__ if name != "order"}
        return {name: values[name] for name in dict.fromkeys((*self.order, *values)) if values.get(name) is not None}

    def with_whole_split(self) -> WrittenQuota:
        """Divide what rounding has left over, so that the parts are the whole."""
        if not self.split or isinstance(self.cap, str):
            return self
        parts, names = dict(self.split), list(self.split)
        for index in range(max(self.cap - sum(parts.values()), 0)):
            parts[names[index % len(names)]] += 1
        while sum(parts.values()) > self.cap:
            parts[max(names, key=lambda name: parts[name])] -= 1
        return replace(self, split=parts)

    def raised(self, units: int) -> WrittenQuota:
        """Guarantee so many units more, with a pod for each, for any class; what it may borrow stays."""
        return replace(
            self,
            guaranteed=self.guaranteed + units,
            limit=self.limit + units if isinstance(self.limit, int) else self.limit,
            pods=None if self.pods is None else self.pods + units,
            class_limits=self.class_limits and {name: number + units for name, number in self.class_limits.items()},
        ).with_whole_split()

    def joined(self, other: WrittenQuota) -> WrittenQuota:
        """Make one quota of two on the same unit. Limits of classes stay if both have some."""
        limit, lendable = self.limit, self.lendable
        if limit is not None or other.limit is not None:
            is_endless = isinstance(self.cap, str) or isinstance(other.cap, str)
            limit = "none" if is_endless else int(self.cap) + int(other.cap)
        if lendable is not None or other.lendable is not None:
            parts = (one.guaranteed if one.lendable is None else one.lendable for one in (self, other))
            lendable = sum(parts)
        return replace(
            self,
            guaranteed=self.guaranteed + other.guaranteed,
            limit=limit,
            lendable=lendable,
            split=_sums(self.split or {}, other.split or {}) if self.split or other.split else self.split,
            class_limits=_sums(self.class_limits, other.class_limits)
            if self.class_limits is not None and other.class_limits is not None
            else None,
            cpu=_sum_of_bounds(self.cpu, other.cpu),
            memory=_sum_of_bounds(self.memory, other.memory),
            pods=None if self.pods is None or other.pods is None else self.pods + other.pods,
        ).with_whole_split()

    def held_within(self, capacity: int) -> WrittenQuota:
        """Lower a limit beyond what there is: nobody could use it."""
        if not isinstance(self.limit, int) or not self.limit > capacity >= self.guaranteed:
            return self
        classes = self.class_limits and {name: min(number, capacity) for name, number in self.class_limits.items()}
        return replace(self, limit=capacity, class_limits=classes).with_whole_split()


def _sums(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in dict.fromkeys((*one, *other))}


def _sum_of_bounds(one: object, other: object) -> object:
    """Return the sum of two numbers of CPUs, or what both say; texts are not added up."""
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    return one if one == other else None


def _part_of(data: Data, quota: Quota, flow: Flow, part: Ratio, *, is_alone: bool) -> WrittenQuota:
    """Return a quota as it was, on another unit: its other numbers keep their relation to what is guaranteed.

    ``is_alone`` is whether the pool hands out that unit alone: the policy need not name it then.
    """
    before = Ratio(quota.guaranteed)

    def moved(number: object) -> int:
        return flow.units + floor((Ratio(str(number)) - before) * part)

    limit, lendable, pods = data.get("limit"), data.get("lendable"), data.get("pods")
    if lendable is not None:
        lendable = min(floor(Ratio(str(lendable)) * Ratio(flow.units) / before) if before else 0, flow.units)
    needs_no_unit = "unit" not in data and flow.key == quota.key and is_alone
    return WrittenQuota(
        pool=flow.key[0],
        unit=None if needs_no_unit else flow.key[1],
        guaranteed=flow.units,
        limit=limit if limit is None or isinstance(limit, str) else moved(limit),
        lendable=lendable,
        split={name: floor(Ratio(str(number)) * part) for name, number in data["split"].items()}
        if "split" in data
        else None,
        class_limits={name: max(moved(number), 0) for name, number in data["classLimits"].items()}
        if "classLimits" in data
        else None,
        cpu=_bounds(data, "cpu", quota, Counted.CPU, part),
        memory=_bounds(data, "memory", quota, Counted.MEMORY, part),
        pods=None if pods is None else max(moved(pods), 1),
        order=tuple(data),
    ).with_whole_split()


def _bounds(data: Data, name: str, quota: Quota, counted: Counted, part: Ratio) -> object:
    """Return a part of what the quota's pods may have of CPU or memory."""
    if name not in data or part == 1:
        return data.get(name)
    whole = quota.find_compute(counted)
    if whole is None:
        return {"guaranteed": "0"}
    step = 1 if counted is Counted.CPU else 1 << 20
    least = amount_text(counted, floor(whole.guaranteed * part / step) * step)
    most = "none" if whole.limit is None else amount_text(counted, floor(whole.limit * part / step) * step)
    return {"guaranteed": least, "limit": most}


# --- All quotas --------------------------------------------------------------------------------------------------


def rewritten(
    plan: Plan, scope: frozenset[str], assignment: Assignment, flows: Flows, *, limits_stay: bool = False
) -> Grants:
    """Return the quotas of all tenants that have some on the pools in scope, or get some there, if they change.

    A limit rises with the guarantee, unless ``limits_stay`` as far as they can: guarantees have risen to them then.
    """
    rewriting = _Rewriting(plan, scope, assignment, flows, limits_stay=limits_stay)
    new = rewriting.all()
    changed = {tenant.name: new[tenant.name] for tenant in plan.tenants if new[tenant.name] != _written(tenant)}
    return Grants(changed, tuple(rewriting.moved))


def _written(tenant: Tenant) -> list[Data]:
    return list(spec_of(tenant).get("quotas") or ())


def spec_of(part: Any) -> dict[str, Any]:  # noqa: ANN401 - any part of a plan with a place
    """Return the spec of a part of the plan, as the policy writes it."""
    source = part.at.source
    if not isinstance(source, Document):
        raise TypeError(source)
    return dict(source.data.get("spec") or {})


class _Rewriting:
    """All quotas of a plan on their way to the pools as they are to be."""

    def __init__(
        self, plan: Plan, scope: frozenset[str], assignment: Assignment, flows: Flows, *, limits_stay: bool
    ) -> None:
        self._plan = plan
        self._limits_stay = limits_stay
        self._scope = scope
        self._flows = flows
        self._assignment = assignment
        self._nested: defaultdict[tuple[str, UnitKey], list[tuple[str, UnitKey]]] = defaultdict(list)
        for part in plan.tree.nested_quotas:
            self._nested[part.holder.name, part.quota.key].append((part.tenant.name, part.quota.key))
        self._capacity = {
            (place.pool, unit): number for place in assignment.places for unit, number in place.units().items()
        }
        self._for_itself: Counter[tuple[str, UnitKey]] = Counter()
        for (tenant, _), mine in flows.items():
            for flow in mine:
                self._for_itself[tenant, flow.key] += flow.units
        self._children: defaultdict[str, list[str]] = defaultdict(list)
        for one in plan.tenants:
            self._children[one.parent or ""].append(one.name)
        self._quotas: dict[tuple[str, UnitKey], WrittenQuota] = {}
        self.moved: list[Moved] = []

    def all(self) -> dict[str, list[Data]]:
        """Return the quotas of each tenant, as the policy writes them."""
        slots = {tenant.name: [*self._slots(tenant)] for tenant in self._plan.tenants}
        for tenant, key in self._quotas:
            self._promise(tenant, key)
        capped = {
            (tenant, key): quota.held_within(self._capacity.get(key, 0)).as_data()
            for (tenant, key), quota in self._quotas.items()
        }
        return {
            tenant: [capped[tenant, slot] if isinstance(slot, tuple) else slot for slot in mine]
            for tenant, mine in slots.items()
        }

    def _slots(self, tenant: Tenant) -> Iterator[UnitKey | Data]:
        """Rewrite a tenant's quotas; yield each one out of scope as it is written, and the unit of each other one."""
        resolved = {quota.at.path[-1]: quota for quota in tenant.quotas}
        first_flows = self._flows.get((tenant.name, None), ())
        for index, data in enumerate(_written(tenant)):
            quota = resolved.get(index)
            if quota is None or quota.pool.name not in self._scope:
                yield data
                continue
            flows = self._flows_of(tenant.name, quota.key)
            if not flows and any(flow.key == quota.key for flow in first_flows):
                flows = [Flow(quota.key, 0)]
            elif not flows and quota.guaranteed == 0:
                flows = [Flow(key, 0)] if (key := self._instead(quota)) else []
            self.moved.append(Moved(tenant.name, quota.key, tuple(flows)))
            units = sum(flow.units for flow in flows)
            for flow in flows:
                part = Ratio(flow.units, units) if units else Ratio(1, len(flows))
                is_alone = sum(pool == flow.key[0] for pool, _ in self._capacity) == 1
                new = _part_of(data, quota, flow, part, is_alone=is_alone)
                if self._limits_stay and isinstance(new.limit, int):
                    whole = floor(Ratio(str(data["limit"])) * part)
                    new = replace(new, limit=max(min(new.limit, whole), new.guaranteed)).with_whole_split()
                known = self._quotas.get((tenant.name, flow.key))
                self._quotas[tenant.name, flow.key] = known.joined(new) if known else new
                if known is None:
                    yield flow.key
        for flow in first_flows:
            known = self._quotas.get((tenant.name, flow.key))
            self._quotas[tenant.name, flow.key] = known.raised(flow.units) if known else self._first(tenant, flow)
            if known is None:
                yield flow.key
            self.moved.append(Moved(tenant.name, None, (flow,)))

    def _first(self, tenant: Tenant, flow: Flow) -> WrittenQuota:
        """Return a first quota on a unit, divided evenly if each namespace is counted by itself."""
        names = tenant.spec.namespaces
        split = dict.fromkeys(names, 0) if len(names) > 1 and not self._plan.scheduler.counts_tenants else None
        return WrittenQuota(*flow.key, flow.units, split=split).with_whole_split()

    def _flows_of(self, tenant: str, key: UnitKey) -> list[Flow]:
        """Return what a quota becomes: its own units, and those of the quotas that lie within it."""
        units: Counter[UnitKey] = Counter()
        for flow in self._flows.get((tenant, key), ()):
            units[flow.key] += flow.units
        for child, same in self._nested.get((tenant, key), ()):
            for flow in self._flows_of(child, same):
                units[flow.key] += flow.units
        return [Flow(unit, number) for unit, number in units.items()]

    def _promise(self, tenant: str, key: UnitKey) -> int:
        """Return how many units a tenant and those below it are guaranteed, after its quota has room for all of them.

        Quotas that were on two units may be on one now, and then one lies within the other.
        """
        below = sum(self._promise(child, key) for child in self._children[tenant])
        quota = self._quotas.get((tenant, key))
        if quota is None:
            return below
        lacking = self._for_itself[tenant, key] + below - quota.guaranteed
        self._quotas[tenant, key] = quota.raised(max(lacking, 0))
        return self._quotas[tenant, key].guaranteed

    def _instead(self, quota: Quota) -> UnitKey | None:
        """Return where a quota that guarantees nothing may borrow: its own unit, or the smallest that holds as much."""
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


# --- Work --------------------------------------------------------------------------------------------------------


class Seat(NamedTuple):
    """The unit on which a workload is to run; ``key`` is None if no quota of its tenant has room for its pods."""

    workload: Workload
    key: UnitKey | None


def seats(
    plan: Plan, scope: frozenset[str], quotas: Mapping[str, Sequence[Data]], assignment: Assignment
) -> Iterator[Seat]:
    """Yield the unit of each workload in scope whose own goes, or has no room for it any more.

    Services have to fit at once, and each job beside them. Those that can stay do so before others come.
    """
    free = dict(_rooms(plan, quotas, assignment))

    def rooms_of(workload: Workload) -> dict[UnitKey, int]:
        names = ("", workload.namespace)
        return {key: room for (who, name, key), room in free.items() if who == workload.tenant.name and name in names}

    work = [one for one in plan.workloads if one.pool.name in scope and one.fraction is None]
    stays = {one.name for one in work if rooms_of(one).get(one.key, 0) >= _amount(one)}
    for workload in sorted(work, key=lambda one: (one.ends, one.name not in stays, -_amount(one))):
        wanted, rooms = _amount(workload), rooms_of(workload)
        place = assignment.find(workload.pool.name)
        names_unit = workload.spec.unit is not None or (place is not None and len(place.units()) == 1)
        key: UnitKey | None = workload.key
        if rooms.get(workload.key, 0) < wanted:
            fitting = [
                (key[1] != workload.unit.name, key[0] != workload.pool.name, key)
                for key in rooms
                if rooms[key] >= wanted
            ]
            key = min(fitting)[2] if fitting else None
        if key is not None and not workload.ends:
            for namespace in ("", workload.namespace):
                if (workload.tenant.name, namespace, key) in free:
                    free[workload.tenant.name, namespace, key] -= wanted
        if key != workload.key or not names_unit:
            yield Seat(workload, key)


Room = tuple[str, str, UnitKey]
"""A tenant's quota on a unit: all of it, or the part of one namespace if the quota is divided."""


def _rooms(plan: Plan, quotas: Mapping[str, Sequence[Data]], assignment: Assignment) -> Iterator[tuple[Room, int]]:
    """Yield how many units pods may have at once, of all quotas on pools in scope; no limit makes a pool larger."""
    for tenant in plan.tenants:
        for data in quotas[tenant.name] if tenant.name in quotas else _written(tenant):
            place = assignment.find(data["pool"])
            units = place.units() if place else {}
            unit = data.get("unit") or next(iter(units), "")
            cap, capacity = data.get("limit", data["guaranteed"]), units.get(unit, 0)
            room = capacity if isinstance(cap, str) else min(capacity, floor(cap))
            for namespace, part in (data.get("split") or {"": room}).items():
                yield (tenant.name, namespace, (data["pool"], unit)), min(floor(part), room)


def _amount(workload: Workload) -> int:
    return workload.most_pods * workload.spec.count
