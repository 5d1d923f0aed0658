"""Read KAI-Scheduler's queues: the tree of tenants, and what each has of the pools of a shard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction as Ratio
from typing import Any, Final

from gpuplan.compiler.backends.namespaces import QUOTA
from gpuplan.compiler.base.diagnostics import Finding
from gpuplan.compiler.base.plain import inside, mapping, text
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.manifests import parse_quantity
from gpuplan.compiler.planning.amounts import portion_of
from gpuplan.compiler.planning.grants import FRACTION, SYSTEM_NAMESPACE
from gpuplan.compiler.planning.kai import queue_name, weight
from gpuplan.compiler.planning.plan import TENANT_LABEL, Counted, Plan, Pool
from gpuplan.compiler.planning.schedulers.kai import NODE_POOL_LABEL, QUEUE_LABEL
from gpuplan.compiler.planning.tenants import amount
from gpuplan.compiler.policy.models import Cap
from gpuplan.compiler.policy.names import TENANT
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.queues.faults import tell_faults
from gpuplan.features.live.queues.kai_units import Bounds, Capped, Found, UnitBounds, gpus_of, own_bounds
from gpuplan.features.live.queues.matching import Matching
from gpuplan.features.live.queues.model import Queue
from gpuplan.features.live.queues.naming import Names
from gpuplan.features.live.queues.shares import Share, UnitShare, quotas
from gpuplan.features.live.queues.told import Read, Told
from gpuplan.features.live.queues.trees import without_circles
from gpuplan.features.live.teams.recorded import Bounds as RecordedBounds, Recorded, read_recorded


def read(dump: Dump, plan: Plan) -> tuple[tuple[Read, ...], Told]:
    """The tenants that Queues stand for, each after the one that it is part of."""
    reader = _Reader(dump, plan)
    return tuple(reader.queues()), reader.told


class _Held(Value):
    """What a tenant has in one shard: its queue, and that of its own work where others are part of it."""

    whole: Item
    rest: Item | None = None

    @property
    def items(self) -> tuple[Item, ...]:
        return (self.whole, self.rest) if self.rest else (self.whole,)

    @property
    def for_work(self) -> Item:
        """The queue that its own work names."""
        return self.rest or self.whole


class _Reader:
    """What there is of KAI-Scheduler's in a dump, on its way to tenants."""

    def __init__(self, dump: Dump, plan: Plan) -> None:
        self.dump, self.plan, self.told = dump, plan, Told()
        self.recorded: Recorded = read_recorded(dump, plan.cluster.cap)
        self.granted = _granted(dump)
        self.capped = _capped(dump)
        self.matching = Matching(dump, plan)
        self.work = _namespaces(dump)
        tell_faults(dump, plan, self.told)
        every = {item.name: item for item in dump.of_kind(KAI_QUEUES, "Queue")}
        self.items = {name: item for name, item in every.items() if not self._is_of_chart(item, every)}
        self.parents = self._find_parents()
        self.tenants = self._find_tenants()
        self.tenant_of = {
            item.name: tenant
            for tenant, shards in self.tenants.items()
            for held in shards.values()
            for item in held.items
        }
        self.owners = self._find_owners()
        self.pools = {_shard(item): self._pools(_shard(item)) for item in self.items.values()}

    def queues(self) -> Iterator[Read]:
        above = {tenant: self._parent(tenant) for tenant in self.tenants}
        children: dict[str, list[str]] = {}
        for tenant, parent in above.items():
            children.setdefault(parent, []).append(tenant)
        order, waiting = [], [*reversed(children.get("", ()))]
        while waiting:
            order.append(waiting.pop())
            waiting += reversed(children.get(order[-1], ()))
        held: dict[str, Mapping[str, Found]] = {}
        below: dict[str, Mapping[str, Found]] = {}
        for tenant in reversed(order):
            within = _together([below[child] for child in children.get(tenant, ())])
            held[tenant] = self._bounds(tenant, within, has_children=tenant in children)
            below[tenant] = _over(held[tenant], within)
        for tenant in order:
            first = next(iter(self.tenants[tenant].values()))
            yield Read(self._queue(tenant, above[tenant], held[tenant]), first.whole)

    # --- The tree

    def _is_of_chart(self, item: Item, every: Mapping[str, Item]) -> bool:
        """Whether it is one of the two that the chart makes, beside others, and nobody uses it."""
        is_used = "default-queue" in self.work or any(
            _parent_of(other) in _OF_CHART and other.name not in _OF_CHART for other in every.values()
        )
        if item.name not in _OF_CHART or is_used or every.keys() <= _OF_CHART:
            return False
        finding = Finding(
            item.at,
            f"{item.title} is one that the chart of KAI-Scheduler makes",
            label="no tenant was made of it",
            notes=("no work of the dump is in it",),
            help="nothing, or `defaultQueue: {createDefaultQueue: false}` in the values of the chart",
        )
        self.told.otherwise(item, finding)
        return True

    def _find_parents(self) -> Mapping[str, str]:
        """The queue above each; where there is none, or in a circle, it is taken for one that nothing is above."""
        written = {name: _parent_of(item) for name, item in self.items.items()}
        return without_circles({name: parent if parent in self.items else "" for name, parent in written.items()})

    def _find_tenants(self) -> Mapping[str, Mapping[str, _Held]]:
        """By tenant and shard. What gpuplan wrote has the tenant's name to display, in each shard once."""
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
        """The tenant above: in each shard the same, or the first that is found."""
        above = [(held, self.parents[held.whole.name]) for held in self.tenants[tenant].values()]
        found = [(held, self.tenant_of[name]) for held, name in above if name]
        for held, parent in found[1:]:
            if parent != found[0][1]:
                finding = Finding(
                    held.whole.at / "spec" / "parentQueue",
                    f"{held.whole.title} is part of another team than in other shards",
                    label=f"`{found[0][1]}` there, `{parent}` here",
                    notes=("a tenant has one parent, in all pools",),
                    help="make a Tenant of its own for this shard",
                )
                self.told.lost(held.whole, finding)
        return found[0][1] if found else ""

    def _pools(self, shard: str) -> Sequence[Pool]:
        """The pools of a shard. What nobody labelled is of the one that has no value."""
        labelled = {pool.name: self._shard_of(pool) for pool in self.plan.pools}
        return [pool for pool in self.plan.pools if labelled[pool.name] == shard]

    def _shard_of(self, pool: Pool) -> str:
        if nodes := self.matching.nodes_of(pool):
            return nodes[0].labels.get(NODE_POOL_LABEL, "")
        return pool.name if any(_shard(item) == pool.name for item in self.items.values()) else ""

    # --- Numbers

    def _bounds(self, tenant: str, within: Mapping[str, Found], *, has_children: bool) -> Mapping[str, Found]:
        """By pool what the tenant's own quotas are."""
        found: dict[str, Found] = {}
        for shard, held in self.tenants[tenant].items():
            pools = self.pools[shard]
            if not pools:
                self._tell_nowhere(held.whole, shard)
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

    def _has_queues_below(self, item: Item) -> bool:
        return item.name in self.parents.values()

    def _of_pool(
        self, tenant: str, pool: Pool, held: _Held, whole: Bounds, rest: Bounds | None, below: Found, *, is_needed: bool
    ) -> Found:
        recorded = self.recorded.bounds.get(tenant, {})
        known = {unit: _in_units(bounds) for (name, unit), bounds in recorded.items() if name == pool.name}
        units = [*known] or self._granted(tenant, pool)
        is_needed = is_needed or rest is not None or any(_share(held.whole, counted) for counted in _COMPUTE)
        capped = self._capped(tenant, pool)
        found = own_bounds(pool, whole, rest, below, units=units, capped=capped, may_be_none=not is_needed)
        if found is None and below and whole.quota is not None and whole.quota < gpus_of(pool, below):
            self._tell_less(held.whole)
            more = Bounds(None, None if whole.limit is None else max(whole.limit, gpus_of(pool, below)))
            found = own_bounds(pool, more, rest, below, units=units, may_be_none=not is_needed)
        if found is None:
            return self._nearest(pool, held, whole, below, units)
        return known if known and known.keys() == found.keys() else found

    def _granted(self, tenant: str, pool: Pool) -> list[str]:
        """The units that admission lets the tenant's pods ask for, where gpuplan's own parameters say it."""
        granted = self.granted.get(tenant, ())
        return [unit.name for unit in pool.units if (pool.name, unit.asked_as or FRACTION) in granted]

    def _capped(self, tenant: str, pool: Pool) -> Capped:
        """What ResourceQuotas cap of a pool's units, as far as no other pool of the tenant's hands out the same."""
        granted = Counter(line[-1] for line in self.granted.get(tenant, ()))
        capped = self.capped.get(tenant, Counter[str]())
        amounts = {
            unit.name: capped[unit.resource]
            for unit in pool.units
            if unit.resource is not None and unit.resource in capped and granted[unit.resource] == 1
        }
        return Capped(amounts, self.plan.cluster.cap is not Cap.GUARANTEED)

    def _nearest(self, pool: Pool, held: _Held, whole: Bounds, below: Found, units: Sequence[str]) -> Found:
        """Whole units, where the queue has a number that no units come to."""
        item = held.whole
        largest = max(pool.units, key=lambda unit: unit.capacity, default=None)
        unit = pool.find_unit(units[0]) if units else largest
        if unit is None:
            return {}
        cost, inner = weight(pool, unit) or Ratio(1), below.get(unit.name)
        least = inner.guaranteed if inner else 0
        guaranteed = max(int((whole.quota or Ratio(0)) / cost), least)
        limit = None if whole.limit is None else max(int(whole.limit / cost), guaranteed)
        finding = Finding(
            item.at / "spec" / "resources" / "gpu",
            f"{item.title} has GPUs that are no whole number of what pool `{pool.name}` hands out",
            label=f"read as {guaranteed} of `{unit.name}`" + ("" if limit is None else f", at most {limit}"),
            notes=("policies count what a pool hands out; KAI-Scheduler counts GPUs, or slices of a partitioned one",),
            help="write the number of units that the team needs",
        )
        self.told.lost(item, finding)
        return {unit.name: UnitBounds(guaranteed, limit)}

    def _divided(self, item: Item, pools: Sequence[Pool]) -> Mapping[str, Bounds]:
        """What a queue has in each pool of its shard, by what they have."""
        bounds = self._gpus(item, pools)
        weights = {pool.name: _capacity(pool) for pool in pools}
        total = sum(weights.values(), Ratio(0))
        if len(pools) < 2 or not total:
            return dict.fromkeys(weights, bounds)
        if bounds.quota or bounds.limit is not None:
            finding = Finding(
                item.at / "spec",
                f"{item.title} has one quota for the pools {joined([f'`{name}`' for name in weights])}",
                label="a quota of a policy is on one pool",
                notes=("each pool has a scheduler of its own from now on; it was divided by what the pools have",),
                help="divide it as the team needs it, in the `quotas` of the tenant",
            )
            self.told.lost(item, finding)
        quota = None if bounds.quota is None else portion_of(int(bounds.quota), weights, total)
        limit = None if bounds.limit is None else portion_of(int(bounds.limit), weights, total)
        return {
            name: Bounds(
                None if quota is None else Ratio(quota[name]),
                None if limit is None else Ratio(limit[name]),
            )
            for name in weights
        }

    def _gpus(self, item: Item, pools: Sequence[Pool]) -> Bounds:
        """A number that is left out is 0, and -1 is without bound; a limit of none lets no pod run."""
        gpu = inside(item.body, "spec", "resources", "gpu")
        for field in ("quota", "limit"):
            if field in gpu and _number(gpu[field]) is None:
                self._tell_no_number(item, field)
        quota = _number(gpu.get("quota")) or Ratio(0)
        limit = _number(gpu.get("limit"))
        if limit is None:
            if inside(item.body, "spec", "resources"):
                self._tell_no_limit(item)
            limit = Ratio(-1) if quota < 0 else quota
        for counted in _COMPUTE if inside(item.body, "spec", "resources") else ():
            if _number(inside(item.body, "spec", "resources", counted.value).get("limit")) is None:
                self._tell_no_compute(item, counted)
        return Bounds(self._unlimited(item, pools) if quota < 0 else quota, None if limit < 0 else limit)

    def _unlimited(self, item: Item, pools: Sequence[Pool]) -> Ratio | None:
        """What a quota without a bound stands for: all that is within it, or what nobody else is guaranteed."""
        if self._has_queues_below(item):
            return None
        leaves = [other for other in self.items.values() if not self._has_queues_below(other)]
        quotas = [
            _number(inside(other.body, "spec", "resources", "gpu").get("quota"))
            for other in leaves
            if _shard(other) == _shard(item)
        ]
        fixed = sum((quota for quota in quotas if quota and quota > 0), Ratio(0))
        several = sum(quota is not None and quota < 0 for quota in quotas)
        left = max(sum(map(_capacity, pools), Ratio(0)) - fixed, Ratio(0))
        finding = Finding(
            item.at / "spec" / "resources" / "gpu" / "quota",
            f"{item.title} is guaranteed GPUs without a bound",
            label="read as what nobody else is guaranteed",
            notes=("guarantees of a policy stay within what there is",),
            help="write how many are the team's own in `guaranteed`, and `limit: none`",
        )
        self.told.lost(item, finding)
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
            pool.name: _compute(held, len(self.pools[shard]))
            for shard, held in shards.items()
            for pool in self.pools[shard]
        }
        return Queue(
            tenant,
            parent,
            tuple(sorted(name for name, owner in self.owners.items() if owner == tenant)),
            quotas(shares, compute),
            {**self._settings(first.whole, shards), **self._names(tenant, shards)},
            tuple(item.source for item in items),
            self.told.remarks(items),
        )

    def _find_owners(self) -> Mapping[str, str]:
        """The tenant of each namespace whose work names queues: the one that most of its work is in."""
        counted: dict[str, Counter[str]] = {}
        for queue, found in self.work.items():
            for namespace, number in found.items() if queue in self.tenant_of else ():
                counted.setdefault(namespace, Counter())[self.tenant_of[queue]] += number
        owners = {
            name: min(tenants, key=lambda tenant: (-tenants[tenant], tenant)) for name, tenants in counted.items()
        }
        for queue, found in self.work.items():
            for namespace in found if queue in self.tenant_of else ():
                if owners[namespace] != self.tenant_of[queue]:
                    self._tell_shared(self.items[queue], namespace, owners[namespace])
        return owners

    def _settings(self, first: Item, shards: Mapping[str, _Held]) -> dict[str, Any]:
        """The fields of a tenant that its queues say in all pools alike."""
        found = _settings_of(first)
        for held in shards.values():
            if _settings_of(held.whole) != found:
                finding = Finding(
                    held.whole.at / "spec",
                    f"{held.whole.title} has another weight, priority or time than in other shards",
                    label=f"`{first.name}` was read",
                    notes=("a tenant has the same in all pools",),
                    help="nothing, or make a Tenant of its own for this shard",
                )
                self.told.lost(held.whole, finding)
        return found

    def _names(self, tenant: str, shards: Mapping[str, _Held]) -> dict[str, Any]:
        """What its queues are called, where it is not as gpuplan calls them; in a shard of several pools, the first."""
        found: dict[str, str] = {}
        for shard, held in shards.items():
            name = held.for_work.name
            if held.rest is None and name.endswith(".all"):
                name = name.removesuffix(".all")
            for pool in self.pools[shard][:1]:
                if name == queue_name(tenant, pool.name):
                    continue
                if TENANT.is_spelt(name):
                    found[pool.name] = name
                else:
                    self._tell_name(held.for_work, queue_name(tenant, pool.name))
        return {"names": {"queues": found}} if found else {}

    # --- What cannot be said

    def _tell_nowhere(self, item: Item, shard: str) -> None:
        finding = Finding(
            item.at / "metadata" / "labels" / NODE_POOL_LABEL if shard else item.at,
            f"{item.title} is of a shard that has no pool",
            label=f"no node with GPUs has `{NODE_POOL_LABEL}: {shard}`" if shard else "all nodes are in other shards",
            help="label the nodes, or leave the queue out",
        )
        self.told.broken(item, finding)

    def _tell_no_number(self, item: Item, field: str) -> None:
        finding = Finding(
            item.at / "spec" / "resources" / "gpu" / field,
            f"{item.title} has a `{field}` that is no number",
            label="read as none",
            help="write a number of GPUs, or -1 for no bound",
        )
        self.told.broken(item, finding)

    def _tell_no_limit(self, item: Item) -> None:
        finding = Finding(
            (item.at / "spec" / "resources" / "gpu").key,
            f"{item.title} has no `limit` of GPUs, and none of its pods gets one",
            label="read as if it were the `quota`",
            notes=("a number that is left out is 0, and a limit of 0 lets no pod run",),
            help="write `limit: none` in the quota, if the team may use what is idle",
        )
        self.told.broken(item, finding)

    def _tell_no_compute(self, item: Item, counted: Counted) -> None:
        """What is left out is 0 (`isOverLimit` in `capacity_policy/max_allowed_check.go` of KAI-Scheduler v0.20.1)."""
        resources = item.at / "spec" / "resources"
        written = mapping(inside(item.body, "spec", "resources").get(counted.value))
        finding = Finding(
            (resources / counted.value).key if written else resources.key,
            f"{item.title} has no `limit` of `{counted.value}`, and no pod that asks for any gets some",
            label="read as if it were the `quota`" if written else "read as without a bound",
            notes=("a number that is left out is 0, and a limit of 0 lets no pod run",),
            help=f"nothing, or write `{counted.value}` in the quota of the tenant, if it is to be bounded",
        )
        self.told.broken(item, finding)

    def _tell_less(self, item: Item) -> None:
        finding = Finding(
            item.at / "spec" / "resources" / "gpu",
            f"{item.title} has a quota that is less than what the queues below it have",
            label="read as their sum",
            notes=("guarantees of tenants lie within those of their parent",),
            help="write smaller guarantees below it, if its quota is what was meant",
        )
        self.told.lost(item, finding)

    def _tell_shared(self, item: Item, namespace: str, tenant: str) -> None:
        finding = Finding(
            item.at,
            f"{item.title} has work of namespace `{namespace}`, most of whose work is in another queue",
            label=f"the namespace is tenant `{tenant}`'s",
            notes=("a namespace belongs to one tenant",),
            help=f"give the team of `{item.name}` a namespace of its own",
        )
        self.told.lost(item, finding)

    def _tell_name(self, item: Item, name: str) -> None:
        finding = Finding(
            item.at / "metadata" / "name",
            f"{item.title} cannot keep its name",
            label=f"`{name}` from the first sync on",
            notes=("a queue of a policy has lower-case letters, digits and `-` in its name",),
            help=f"write `{name}` in the label `{QUEUE_LABEL}` of its work",
        )
        self.told.lost(item, finding)


KAI_QUEUES: Final = "scheduling.run.ai"
_OF_CHART: Final = frozenset(("default-parent-queue", "default-queue"))
"""What the chart makes unless told otherwise (`deployments/kai-scheduler/templates/default-queue.yaml`)."""

_COMPUTE: Final = (Counted.CPU, Counted.MEMORY)
_MEGABYTE: Final = 1_000_000
_USUAL_PRIORITY: Final = 100


def _shard(item: Item) -> str:
    return item.labels.get(NODE_POOL_LABEL, "")


def _display(item: Item) -> str:
    name = text(inside(item.body, "spec").get("displayName"))
    return name if TENANT.is_spelt(name) else ""


def _parent_of(item: Item) -> str:
    return text(inside(item.body, "spec").get("parentQueue"))


def _namespaces(dump: Dump) -> Mapping[str, Counter[str]]:
    """By queue the namespaces of the work that names it, with how much each has."""
    found: dict[str, Counter[str]] = {}
    for item in dump.objects:
        template = inside(item.body, "spec", "template", "metadata", "labels")
        queue = item.labels.get(QUEUE_LABEL) or text(template.get(QUEUE_LABEL))
        if (item.group, item.kind) == (KAI_QUEUES, "PodGroup"):
            queue = text(inside(item.body, "spec").get("queue"))
        if queue and item.namespace:
            found.setdefault(queue, Counter())[item.namespace] += 1
    return found


def _granted(dump: Dump) -> Mapping[str, set[tuple[str, ...]]]:
    """By tenant the pools and resources that its pods may ask for, as parameters of gpuplan's admission say it."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for item in dump.of_kind("", "ConfigMap"):
        data = inside(item.body, "data")
        if item.namespace == SYSTEM_NAMESPACE and (tenant := text(data.get("tenant"))):
            lines = text(data.get("grants")).splitlines()
            found.setdefault(tenant, set()).update(tuple(line.split()[:2]) for line in lines)
    return found


def _capped(dump: Dump) -> Mapping[str, Counter[str]]:
    """By tenant what gpuplan's ResourceQuotas cap in its namespaces together, by resource."""
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


def _in_units(recorded: RecordedBounds) -> UnitBounds:
    limit = None if recorded.limit is None else amount(recorded.limit)
    return UnitBounds(amount(recorded.guaranteed), limit)


def _number(value: object) -> Ratio | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MOST:
        return None
    return Ratio(Decimal(str(value)))


_MOST: Final = 1e12
"""Whatever is beyond it, or no number at all, is none of GPUs."""
_NAMES: Final = {"preemptMinRuntime": "preempt", "reclaimMinRuntime": "reclaim"}


def _settings_of(item: Item) -> dict[str, Any]:
    spec = inside(item.body, "spec")
    weight_of_gpu = _number(inside(spec, "resources", "gpu").get("overQuotaWeight")) or Ratio(0)
    priority = _number(spec.get("priority"))
    surplus: dict[str, Any] = {}
    if weight_of_gpu != 1 and weight_of_gpu >= 0:
        surplus["weight"] = int(weight_of_gpu) if weight_of_gpu.denominator == 1 else float(weight_of_gpu)
    if priority is not None and int(priority) != _USUAL_PRIORITY:
        surplus["rank"] = int(priority) - _USUAL_PRIORITY
    protect = {name: text(spec.get(field)) for field, name in _NAMES.items() if text(spec.get(field))}
    return {**({"surplus": surplus} if surplus else {}), **({"protect": protect} if protect else {})}


def _compute(held: _Held, parts: int) -> Mapping[Counted, Share]:
    """CPU and memory of a queue, an even part of it in each pool of its shard."""
    found: dict[Counted, Share] = {}
    for counted in _COMPUTE:
        if share := _share(held.whole, counted):
            limit = None if share.limit is None else int(share.limit) // parts
            found[counted] = Share(int(share.guaranteed) // parts, limit, int(share.guaranteed) // parts)
    return found


def _share(item: Item, counted: Counted) -> Share | None:
    """Millicores or bytes; None where nothing bounds them. CPU is in thousandths, memory in millions of bytes."""
    found = inside(item.body, "spec", "resources", counted.value)
    quota, limit = (_number(found.get(field)) or Ratio(0) for field in ("quota", "limit"))
    if quota < 0 or not found:
        return None
    factor = 1 if counted is Counted.CPU else _MEGABYTE
    # gpuplan writes the least number that is no less than the amount, once it is multiplied again.
    guaranteed = round(quota * factor)
    most = None if limit < 0 else max(round(limit * factor), guaranteed)
    return Share(guaranteed, most, guaranteed)


def _capacity(pool: Pool) -> Ratio:
    """What a pool has, as KAI-Scheduler counts it."""
    return sum((weight(pool, unit) * unit.capacity for unit in pool.units), Ratio(0))


def _together(parts: Sequence[Mapping[str, Found]]) -> Mapping[str, Found]:
    """What several tenants have, by pool and unit."""
    found: dict[str, dict[str, UnitBounds]] = {}
    for part in parts:
        for pool, units in part.items():
            into = found.setdefault(pool, {})
            for name, bounds in units.items():
                there = into.get(name, UnitBounds(0, 0))
                limit = None if there.limit is None or bounds.limit is None else there.limit + bounds.limit
                into[name] = UnitBounds(there.guaranteed + bounds.guaranteed, limit)
    return found


def _over(own: Mapping[str, Found], within: Mapping[str, Found]) -> Mapping[str, Found]:
    """What a tenant has with all that is part of it: of what it has a quota on, that one."""
    pools = dict.fromkeys((*own, *within))
    return {pool: {**within.get(pool, {}), **own.get(pool, {})} for pool in pools}
