"""Read KAI-Scheduler's queues: the tree of tenants, and what each has of the pools of a shard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction as Ratio
from math import ceil
from typing import Any, Final

from gpuplan.compiler.backends.namespaces import QUOTA
from gpuplan.compiler.base.plain import grouped, inside, text
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.manifests import parse_quantity
from gpuplan.compiler.planning.amounts import portion_of
from gpuplan.compiler.planning.discovered import GPU_RESOURCE
from gpuplan.compiler.planning.grants import FRACTION, SYSTEM_NAMESPACE
from gpuplan.compiler.planning.kai import queue_name, weight
from gpuplan.compiler.planning.plan import TENANT_LABEL, Counted, Plan, Pool
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL, QUEUE_LABEL
from gpuplan.compiler.policy.models import Cap
from gpuplan.compiler.policy.names import TENANT
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.queues.kai_units import Bounds, Capped, Found, UnitBounds, gpus_of, own_bounds
from gpuplan.features.live.queues.model import (
    Matching,
    Names,
    Queue,
    Read,
    Share,
    UnitShare,
    quotas,
    tell_faults,
    without_circles,
)
from gpuplan.features.live.queues.placing import Placing


class _Held(Value):
    """A tenant's queue in one shard, and the queue of its own work if other tenants are part of it."""

    whole: Item
    rest: Item | None = None

    @property
    def items(self) -> tuple[Item, ...]:
        return (self.whole, self.rest) if self.rest else (self.whole,)

    @property
    def for_work(self) -> Item:
        """The queue that its own work names."""
        return self.rest or self.whole


class Reader:
    """The queues of KAI-Scheduler in a dump, and the tenants that they become."""

    def __init__(self, dump: Dump, plan: Plan) -> None:
        self.dump, self.plan, self.reports = dump, plan, Reports()
        self.granted = _granted(dump)
        self.capped = _capped(dump)
        self.matching, self.placing = Matching(dump, plan), Placing(dump, plan)
        found: dict[str, Counter[str]] = {}
        for item in dump.objects:
            template = inside(item.body, "spec", "template", "metadata", "labels")
            queue = item.labels.get(QUEUE_LABEL) or text(template.get(QUEUE_LABEL))
            if (item.group, item.kind) == (KAI_QUEUES, "PodGroup"):
                queue = text(inside(item.body, "spec").get("queue"))
            if queue and item.namespace:
                found.setdefault(queue, Counter())[item.namespace] += 1
        self.work = found
        tell_faults(dump, plan, self.reports)
        every = {item.name: item for item in dump.of_kind(KAI_QUEUES, "Queue")}
        self.items = {name: item for name, item in every.items() if not self._is_of_chart(item, every)}
        written = {name: _parent_of(item) for name, item in self.items.items()}
        self.parents = without_circles(
            {name: parent if parent in self.items else "" for name, parent in written.items()}
        )
        self.tenants = self._find_tenants()
        self.tenant_of = {
            item.name: tenant
            for tenant, shards in self.tenants.items()
            for held in shards.values()
            for item in held.items
        }
        self.owners = self._find_owners()
        shards = dict.fromkeys(map(_shard, self.items.values()))
        of_pools: dict[str, str] = {}  # what nobody labelled is of the shard that has no value
        for pool in plan.pools:
            nodes = self.matching.nodes_of(pool)
            unlabelled = pool.name if pool.name in shards else ""
            of_pools[pool.name] = nodes[0].labels.get(NODE_POOL_LABEL, "") if nodes else unlabelled
        self.pools = {shard: [pool for pool in plan.pools if of_pools[pool.name] == shard] for shard in shards}
        for item in dump.of_kind("kai.scheduler", "SchedulingShard"):
            value = text(inside(item.body, "spec").get("partitionLabelValue"))
            others = [pool.name for pool in plan.pools if of_pools[pool.name] == value != pool.name]
            if others:
                self.reports.about("shard-loses-nodes", item, "spec", pools=listing(others))

    def queues(self) -> Iterator[Read]:
        """Yield the tenants that Queues stand for, each after the one that it is part of."""
        above = {tenant: self._parent(tenant) for tenant in self.tenants}
        children = grouped((parent, tenant) for tenant, parent in above.items())
        order, waiting = [], [*reversed(children.get("", ()))]
        while waiting:
            order.append(waiting.pop())
            waiting += reversed(children.get(order[-1], ()))
        held: dict[str, Mapping[str, Found]] = {}
        below: dict[str, Mapping[str, Found]] = {}
        for tenant in reversed(order):
            parts = [below[child] for child in children.get(tenant, ())]
            within: dict[str, dict[str, UnitBounds]] = {}
            for part in parts:
                for pool, units in part.items():
                    into = within.setdefault(pool, {})
                    for name, bounds in units.items():
                        there = into.get(name, UnitBounds(0, 0))
                        limit = None if there.limit is None or bounds.limit is None else there.limit + bounds.limit
                        into[name] = UnitBounds(there.guaranteed + bounds.guaranteed, limit)
            held[tenant] = own = self._bounds(tenant, within, has_children=tenant in children)
            pools = dict.fromkeys((*own, *within))
            below[tenant] = {pool: {**within.get(pool, {}), **own.get(pool, {})} for pool in pools}
        for tenant in order:
            first = next(iter(self.tenants[tenant].values()))
            yield Read(self._queue(tenant, above[tenant], held[tenant]), first.whole)

    # --- The tree

    def _is_of_chart(self, queue: Item, every: Mapping[str, Item]) -> bool:
        """Whether it is one of the two that the chart makes, beside others, and nobody uses it."""
        is_used = "default-queue" in self.work or any(
            _parent_of(other) in _OF_CHART and other.name not in _OF_CHART for other in every.values()
        )
        if queue.name not in _OF_CHART or is_used or every.keys() <= _OF_CHART:
            return False
        self.reports.about("queue-of-chart", queue)
        return True

    def _find_tenants(self) -> Mapping[str, Mapping[str, _Held]]:
        """Return the queues by tenant and shard.

        A queue of gpuplan's displays the name of its tenant, once in each shard.
        """
        rests = {
            parent: item
            for name, item in self.items.items()
            if (parent := self.parents[name]) == f"{name}.all" and _display(item) == _display(self.items[parent])
        }
        wholes = [item for item in self.items.values() if item not in rests.values()]
        named = Counter((_display(item), _shard(item)) for item in wholes)
        names, found = Names(), dict[str, dict[str, _Held]]()
        for item in wholes:
            shown = _display(item)
            is_ours = bool(shown) and NODE_POOL_LABEL in item.labels and named[shown, _shard(item)] == 1
            if is_ours and shown in found and _shard(item) not in found[shown]:
                tenant = shown
            else:
                tenant = names.give(shown if is_ours else item.name)
            found.setdefault(tenant, {})[_shard(item)] = _Held(item, rests.get(item.name))
        return found

    def _parent(self, tenant: str) -> str:
        """Return the tenant above: in each shard the same, or the first that is found."""
        above = [(held, self.parents[held.whole.name]) for held in self.tenants[tenant].values()]
        found = [(held, self.tenant_of[name]) for held, name in above if name]
        for held, parent in found[1:]:
            if parent != found[0][1]:
                at = held.whole.at / "spec" / "parentQueue"
                self.reports.about("other-parent-in-shard", held.whole, at=at, first=found[0][1], parent=parent)
        return found[0][1] if found else ""

    # --- Numbers

    def _bounds(self, tenant: str, within: Mapping[str, Found], *, has_children: bool) -> Mapping[str, Found]:
        """Return the tenant's own quotas by pool."""
        found: dict[str, Found] = {}
        for shard, held in self.tenants[tenant].items():
            pools = self.pools[shard]
            if not pools:
                at, label = held.whole.at, "all nodes are in other shards"
                if shard:
                    at = at / "metadata" / "labels" / NODE_POOL_LABEL
                    label = f"no node with GPUs has `{NODE_POOL_LABEL}: {shard}`"
                self.reports.about("queue-of-no-pool", held.whole, at=at, label=label)
            whole = self._divided(held.whole, pools)
            rest = self._divided(held.rest, pools) if held.rest else {}
            for pool in pools:
                inner = within.get(pool.name, {})
                is_needed = not inner and not (has_children and self._has_queues_below(held.whole))
                read = self._of_pool(
                    tenant, pool, held, whole[pool.name], rest.get(pool.name), inner, is_needed=is_needed
                )
                if read:
                    found[pool.name] = read
        return found

    def _has_queues_below(self, queue: Item) -> bool:
        return queue.name in self.parents.values()

    def _of_pool(
        self, tenant: str, pool: Pool, held: _Held, whole: Bounds, rest: Bounds | None, below: Found, *, is_needed: bool
    ) -> Found:
        units = self._granted(tenant, pool)
        is_needed = is_needed or rest is not None or any(_share(held.whole, counted) for counted in _COMPUTE)
        capped = self._capped(tenant, pool)
        found = own_bounds(pool, whole, rest, below, units=units, capped=capped, may_be_none=not is_needed)
        if found is None and below and whole.quota is not None and whole.quota < gpus_of(pool, below):
            inner = [_quota_of(item) for name, item in self.items.items() if self.parents[name] == held.whole.name]
            if _quota_of(held.whole) < sum(inner, Ratio(0)):  # else its parts in pools are, once these are whole units
                self.reports.about("less-than-below", held.whole, "spec", "resources", "gpu")
            more = Bounds(None, None if whole.limit is None else max(whole.limit, gpus_of(pool, below)))
            found = own_bounds(pool, more, rest, below, units=units, may_be_none=not is_needed)
        if found is not None:
            return found
        # No units come to the number: the nearest whole ones.
        largest = max(pool.units, key=lambda unit: unit.capacity, default=None)
        unit = pool.find_unit(units[0]) if units else largest
        if unit is None:
            return {}
        cost, least = weight(pool, unit) or Ratio(1), below[unit.name].guaranteed if unit.name in below else 0
        guaranteed = max(int((whole.quota or Ratio(0)) / cost), least)
        limit = None if whole.limit is None else max(ceil(whole.limit / cost), guaranteed)
        label = f"read as {guaranteed} of `{unit.name}`" + ("" if limit is None else f", at most {limit}")
        self.reports.about("no-whole-units", held.whole, "spec", "resources", "gpu", label=label, pool=pool)
        return {unit.name: UnitBounds(guaranteed, limit)}

    def _granted(self, tenant: str, pool: Pool) -> list[str]:
        """Return the units that admission lets the tenant's pods ask for, where gpuplan's own parameters say it."""
        granted = self.granted.get(tenant, ())
        return [unit.name for unit in pool.units if (pool.name, unit.asked_as or FRACTION) in granted]

    def _capped(self, tenant: str, pool: Pool) -> Capped:
        """Return the caps of ResourceQuotas on a pool's units that no other pool of the tenant hands out."""
        granted = Counter(line[-1] for line in self.granted.get(tenant, ()))
        capped = self.capped.get(tenant, Counter[str]())
        amounts = {
            unit.name: capped[unit.resource]
            for unit in pool.units
            if unit.resource is not None and unit.resource in capped and granted[unit.resource] == 1
        }
        return Capped(amounts, self.plan.cluster.cap is not Cap.GUARANTEED)

    def _divided(self, queue: Item, pools: Sequence[Pool]) -> Mapping[str, Bounds]:
        """Divide a queue's quota among the pools of its shard: as its work needs it, and by what they have.

        Its limit holds in each, so that no pool has a lower one than the queue had. A missing number is 0, and a limit
        of 0 lets no pod run.
        """
        resources, at = inside(queue.body, "spec", "resources"), queue.at / "spec" / "resources"
        gpu = inside(resources, "gpu")
        for field in ("quota", "limit"):
            if field in gpu and _number(gpu[field]) is None:
                self.reports.about("no-number", queue, at=at / "gpu" / field, field=field)
        quota, limit = _number(gpu.get("quota")) or Ratio(0), _number(gpu.get("limit"))
        if limit is None:
            if resources:
                self.reports.about("no-limit", queue, at=(at / "gpu").key)
            limit = Ratio(-1) if quota < 0 else quota
        for counted in _COMPUTE if resources else ():
            written = inside(resources, counted.value)
            if _number(written.get("limit")) is None:
                # What is left out is 0 (`isOverLimit` in `capacity_policy/max_allowed_check.go` of KAI-
                # Scheduler v0.20.1).
                label = "read as if it were the `quota`" if written else "read as without a bound"
                place = at / counted.value if written else at
                self.reports.about("no-compute-limit", queue, at=place.key, counted=counted, label=label)
        bounds = Bounds(self._unlimited(queue, pools) if quota < 0 else quota, None if limit < 0 else limit)
        weights = {pool.name: _capacity(pool) for pool in pools}
        total = sum(weights.values(), Ratio(0))
        if len(pools) < 2 or not total:
            return dict.fromkeys(weights, bounds)
        if bounds.quota or bounds.limit is not None:
            names = joined([f"`{name}`" for name in sorted(weights)])
            self.reports.gather("one-quota-for-shard", queue.at / "spec", queue.name, pools=names)
            self.reports.remark(queue.identity, f"it had one quota for the pools {names}")
        parts = None if bounds.quota is None else self._parts(queue, bounds.quota, pools)
        return {name: Bounds(parts[name] if parts else None, bounds.limit) for name in weights}

    def _parts(self, queue: Item, quota: Ratio, pools: Sequence[Pool]) -> Mapping[str, Ratio]:
        """Divide a quota in GPUs; what is no whole one goes to the largest part."""
        needed: Counter[str] = Counter()
        for namespace in self.work.get(queue.name, ()):
            needed.update(self.placing.units_by_pool(namespace, GPU_RESOURCE))
        wanted = {pool.name: Ratio(needed[pool.name]) for pool in pools}
        room = {pool.name: max(_capacity(pool) - wanted[pool.name], Ratio(0)) for pool in pools}
        first = min(int(quota), sum(needed[pool.name] for pool in pools))
        found = Counter(_portion(first, wanted))
        found.update(_portion(int(quota) - first, room))
        largest = max(wanted, key=lambda name: found[name])
        return {name: found[name] + (quota - int(quota) if name == largest else Ratio(0)) for name in wanted}

    def _unlimited(self, queue: Item, pools: Sequence[Pool]) -> Ratio | None:
        """Return the number that a quota without a bound stands for, or None for all that is within it.

        A queue without queues below it has what nobody else is guaranteed.
        """
        if self._has_queues_below(queue):
            return None
        leaves = [other for other in self.items.values() if not self._has_queues_below(other)]
        quotas = [
            _number(inside(other.body, "spec", "resources", "gpu").get("quota"))
            for other in leaves
            if _shard(other) == _shard(queue)
        ]
        fixed = sum((quota for quota in quotas if quota and quota > 0), Ratio(0))
        several = sum(quota is not None and quota < 0 for quota in quotas)
        left = max(sum(map(_capacity, pools), Ratio(0)) - fixed, Ratio(0))
        self.reports.about("quota-without-bound", queue, "spec", "resources", "gpu", "quota")
        return Ratio(int(left / several)) if several else left

    # --- Tenants

    def _queue(self, tenant: str, parent: str, bounds: Mapping[str, Found]) -> Queue:
        shards = self.tenants[tenant]
        first = next(iter(shards.values()))
        items = [item for held in shards.values() for item in held.items]
        shares = [
            UnitShare(pool, unit, Share(part.guaranteed, part.limit, part.guaranteed))
            for shard in shards
            for pool in self.pools[shard]
            for name, part in bounds.get(pool.name, {}).items()
            if (unit := pool.find_unit(name))
        ]
        compute = {
            pool.name: {counted: share for counted in _COMPUTE if (share := _share(held.whole, counted, pool, pools))}
            for held, pools in ((held, self.pools[shard]) for shard, held in shards.items())
            for pool in pools
        }
        if (shown := text(inside(first.whole.body, "spec").get("displayName"))) not in ("", tenant):
            at = first.whole.at / "spec" / "displayName"
            self.reports.gather("display-name", at, shown)
        settings = _settings_of(first.whole)
        for held in shards.values():
            if _settings_of(held.whole) != settings:
                self.reports.about("other-settings-in-shard", held.whole, "spec", first=first.whole)
        names: dict[str, str] = {}  # those that differ from what gpuplan gives, by the first pool of each shard
        for shard, held in shards.items():
            name = held.for_work.name if held.rest else held.for_work.name.removesuffix(".all")
            for pool in self.pools[shard][:1]:
                usual = queue_name(tenant, pool.name)
                if name != usual and TENANT.is_spelt(name):
                    names[pool.name] = name
                elif name != usual:
                    self.reports.about("queue-loses-name", held.for_work, "metadata", "name", name=usual)
        if names:
            settings["names"] = {"queues": names}
        return Queue(
            tenant,
            parent,
            tuple(sorted(name for name, owner in self.owners.items() if owner == tenant)),
            quotas(shares, compute),
            settings,
            tuple(item.source for item in items),
            self.reports.remarks(*(item.identity for item in items)),
        )

    def _find_owners(self) -> Mapping[str, str]:
        """Return the tenant of each namespace whose work names queues: the one that most of its work is in."""
        counted: dict[str, Counter[str]] = {}
        for queue, found in self.work.items():
            for namespace, number in found.items() if queue in self.tenant_of else ():
                counted.setdefault(namespace, Counter())[self.tenant_of[queue]] += number
        owners = {
            name: min(tenants, key=lambda tenant: (-tenants[tenant], tenant)) for name, tenants in counted.items()
        }
        for queue, found in self.work.items():
            for namespace in found if queue in self.tenant_of else ():
                if (tenant := owners[namespace]) != self.tenant_of[queue]:
                    self.reports.about("work-in-two-queues", self.items[queue], namespace=namespace, tenant=tenant)
        return owners


KAI_QUEUES: Final = "scheduling.run.ai"
_OF_CHART: Final = frozenset(("default-parent-queue", "default-queue"))
"""The queues that the chart makes unless its values say otherwise
(`deployments/kai-scheduler/templates/default-queue.yaml`)."""

_COMPUTE: Final = (Counted.CPU, Counted.MEMORY)
_MEGABYTE: Final = 1_000_000
_USUAL_PRIORITY: Final = 100


def _shard(queue: Item) -> str:
    return queue.labels.get(NODE_POOL_LABEL, "")


def _display(queue: Item) -> str:
    name = text(inside(queue.body, "spec").get("displayName"))
    return name if TENANT.is_spelt(name) else ""


def _parent_of(queue: Item) -> str:
    return text(inside(queue.body, "spec").get("parentQueue"))


def _granted(dump: Dump) -> Mapping[str, set[tuple[str, ...]]]:
    """Return by tenant the pools and resources that parameters of gpuplan's admission grant its pods."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for item in dump.of_kind("", "ConfigMap"):
        data = inside(item.body, "data")
        if item.namespace == SYSTEM_NAMESPACE and (tenant := text(data.get("tenant"))):
            lines = text(data.get("grants")).splitlines()
            found.setdefault(tenant, set()).update(tuple(line.split()[:2]) for line in lines)
    return found


def _capped(dump: Dump) -> Mapping[str, Counter[str]]:
    """Return by tenant the sums of what gpuplan's ResourceQuotas cap in its namespaces, by resource."""
    owners = {item.name: item.labels.get(TENANT_LABEL, "") for item in dump.of_kind("", "Namespace")}
    found: dict[str, Counter[str]] = {}
    for item in dump.of_kind("", "ResourceQuota"):
        if item.name != QUOTA or not (tenant := owners.get(item.namespace)):
            continue
        for key, value in inside(item.body, "spec", "hard").items():
            amount = parse_quantity(text(value)) if key.startswith(_REQUESTS) else None
            if amount is not None:
                found.setdefault(tenant, Counter())[key.removeprefix(_REQUESTS)] += int(amount)
    return found


_REQUESTS: Final = "requests."


def _number(value: object) -> Ratio | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MOST:
        return None
    return Ratio(Decimal(str(value)))


_MOST: Final = 1e12
"""Whatever is beyond it, or no number at all, is none of GPUs."""
_NAMES: Final = {"preemptMinRuntime": "preempt", "reclaimMinRuntime": "reclaim"}


def _settings_of(queue: Item) -> dict[str, Any]:
    spec = inside(queue.body, "spec")
    weight_of_gpu = _number(inside(spec, "resources", "gpu").get("overQuotaWeight")) or Ratio(0)
    priority = _number(spec.get("priority"))
    surplus: dict[str, Any] = {}
    if weight_of_gpu != 1 and weight_of_gpu >= 0:
        surplus["weight"] = int(weight_of_gpu) if weight_of_gpu.denominator == 1 else float(weight_of_gpu)
    if priority is not None and int(priority) != _USUAL_PRIORITY:
        surplus["rank"] = int(priority) - _USUAL_PRIORITY
    protect = {name: text(spec.get(field)) for field, name in _NAMES.items() if text(spec.get(field))}
    return {**({"surplus": surplus} if surplus else {}), **({"protect": protect} if protect else {})}


def _share(queue: Item, counted: Counted, pool: Pool | None = None, pools: Sequence[Pool] = ()) -> Share | None:
    """Return a queue's millicores or bytes, None where nothing bounds them; of a ``pool`` the part that its GPUs are.

    The limit is whole in each pool. CPU is in thousandths, memory in millions of bytes.
    """
    found = inside(queue.body, "spec", "resources", counted.value)
    quota, limit = (_number(found.get(field)) or Ratio(0) for field in ("quota", "limit"))
    if quota < 0 or not found:
        return None
    factor, total = 1 if counted is Counted.CPU else _MEGABYTE, sum(map(_capacity, pools), Ratio(0))
    # gpuplan writes the least number that is no less than the amount, once it is multiplied again.
    guaranteed = int(round(quota * factor) * (_capacity(pool) / total if pool and total else 1))
    most = None if limit < 0 else max(round(limit * factor), guaranteed)
    return Share(guaranteed, most, guaranteed)


def _portion(amount: int, weights: Mapping[str, Ratio]) -> Mapping[str, int]:
    """Divide an amount by weights, evenly if there are none."""
    known = weights if any(weights.values()) else dict.fromkeys(weights, Ratio(1))
    return portion_of(amount, known, sum(known.values(), Ratio(0)))


def _quota_of(queue: Item) -> Ratio:
    return max(_number(inside(queue.body, "spec", "resources", "gpu").get("quota")) or Ratio(0), Ratio(0))


def _capacity(pool: Pool) -> Ratio:
    """Return the GPUs of a pool, as KAI-Scheduler counts them."""
    return sum((weight(pool, unit) * unit.capacity for unit in pool.units), Ratio(0))
