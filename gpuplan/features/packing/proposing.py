"""Makes documents of the policy of an answer: pools, layouts, tenants, workloads and prices as they are to be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, count
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.documents import Document
from gpuplan.compiler.planning.layouts import entry_of
from gpuplan.compiler.planning.plan import Mig, Plan, Pool
from gpuplan.compiler.planning.prices import node_price, node_type, rates_for
from gpuplan.compiler.policy.models import ClusterMigStrategy, MigStrategy
from gpuplan.features.packing.assigning import Assignment, Place
from gpuplan.features.packing.fleet import Fleet, cut_of
from gpuplan.features.packing.granting import Flow, Flows, Grants, Seat, WrittenQuota, spec_of
from gpuplan.features.packing.patching import Wanted
from gpuplan.features.packing.sizing.answers import Cut, Way

Spec = dict[str, Any]


def documents_of(
    plan: Plan,
    fleet: Fleet,
    assignment: Assignment,
    grants: Grants,
    seats: Sequence[Seat],
    new_teams: Mapping[str, Sequence[Flow]],
) -> list[Wanted]:
    """Return what the policies are to say, document by document; the rest of them stays."""
    layouts = _Layouts(plan)
    pools = [_pool(plan, place, layouts, assignment, fleet) for place in assignment.places]
    served = _served_anew(plan, grants, {wanted.name: wanted.spec or {} for wanted in pools})
    for at, wanted in enumerate(pools):
        spec = wanted.spec or {}
        if kinds := served.get(wanted.name):
            types = [*dict.fromkeys((*(spec.get("workloadTypes") or ()), *kinds))]
            pools[at] = wanted._replace(spec={**spec, "workloadTypes": types})
    there = {place.pool for place in assignment.places}
    gone = [Wanted("Pool", pool.name, None) for pool in fleet.pools if pool.name not in there]
    removed = {wanted.name for wanted in gone}
    others = [
        Wanted("Pool", pool.name, {key: value for key, value in spec_of(pool).items() if key != "fallback"})
        for pool in plan.pools
        if pool.name not in fleet.names and pool.spec.fallback in removed
    ]
    tenants = [
        Wanted("Tenant", tenant.name, {**spec_of(tenant), "quotas": grants.quotas[tenant.name]})
        for tenant in plan.tenants
        if tenant.name in grants.quotas
    ]
    drafted = [
        Wanted(
            "Tenant",
            name,
            {"namespaces": [name], "quotas": [WrittenQuota(*flow.key, flow.units).as_data() for flow in flows]},
        )
        for name, flows in new_teams.items()
    ]
    work = [
        Wanted("Workload", seat.workload.name, {**spec_of(seat.workload), "pool": seat.key[0], "unit": seat.key[1]})
        for seat in seats
        if seat.key is not None
    ]
    prices = _prices_with(plan, assignment.places, removed)
    return [*layouts.added, *pools, *gone, *others, *tenants, *drafted, *work, *prices]


# --- Pools -------------------------------------------------------------------------------------------------------


def _pool(plan: Plan, place: Place, layouts: _Layouts, assignment: Assignment, fleet: Fleet) -> Wanted:
    source = place.source
    spec = spec_of(source)
    nodes: Spec = {**spec["nodes"], "count": place.nodes}
    if source.nodes.names or place.names:
        nodes["names"] = list(place.names)
    if place.is_new:
        nodes = {key: value for key, value in nodes.items() if key not in ("selector", "namePattern", "names")}
        nodes |= {"names": list(place.names)} if place.names else {}
        nodes |= {"namePattern": place.pattern} if place.pattern else {}
        spec = {key: value for key, value in spec.items() if key not in ("names", "rollout")}
        # a pool that does not choose nodes by their label says their type, if they have a price by it
        name = node_type(source)
        if not source.spec.billing.node_type and plan.prices is not None and name in plan.prices.spec.node_types:
            spec["billing"] = {**(spec.get("billing") or {}), "nodeType": name}
    spec["nodes"] = nodes
    today = cut_of(source)
    if place.is_recut and (today is None or today.key != place.cut.key):
        spec["sharing"] = _sharing(plan, place, layouts)
    if source.spec.memory_per_unit is not None and place.is_recut:
        spec.pop("memoryPerUnitMiB", None)
    fallback = assignment.find(source.spec.fallback or "")
    is_lost = source.spec.fallback in fleet.names and (fallback is None or fallback.is_recut)
    if place.is_new or place.is_recut or is_lost:
        spec.pop("fallback", None)
    return Wanted("Pool", place.pool, spec)


def _sharing(plan: Plan, place: Place, layouts: _Layouts) -> Spec:
    cut = place.cut
    match cut.way:
        case Way.WHOLE:
            return {"exclusive": {}}
        case Way.TIME_SLICING | Way.MPS:
            before = (spec_of(place.source)["sharing"] or {}).get(cut.way.value) or {}
            return {cut.way.value: {**before, "replicas": cut.replicas}}
        case Way.MIG:
            mig: Spec = {"layout": layouts.name_of(place.source, cut)}
            sharing = place.source.sharing
            is_single = isinstance(sharing, Mig) and sharing.spec.strategy is MigStrategy.SINGLE
            is_single |= plan.cluster.gpu_operator.spec.mig_strategy is ClusterMigStrategy.SINGLE
            # `single` knows instances of one profile, on every GPU
            if is_single and len({profile for counts in cut.per_gpu for profile in (counts or {"gpu": 1})}) == 1:
                mig["strategy"] = MigStrategy.SINGLE.value
            return {"mig": mig}


# --- Layouts -----------------------------------------------------------------------------------------------------


class _Layouts:
    """Layouts by what they do: those that the platform has, and those that are added."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._names = {layout.name for layout in plan.layouts}
        self._names |= {name for kind, name in plan.removed if kind == "MigLayout"}
        self._made: dict[object, str] = {}
        self.added: list[Wanted] = []

    def name_of(self, pool: Pool, cut: Cut) -> str:
        """Return the name of a layout that divides GPUs so: one that the platform has, or a new one."""
        key = (pool.gpu.id, cut.key, len(cut.per_gpu))
        if key not in self._made:
            name = self._find(pool, cut)
            if name is None:
                name = _fresh(_title(pool, cut), self._names)
                self._names.add(name)
                self.added.append(Wanted("MigLayout", name, {"gpu": pool.gpu.id, **_division(cut)}))
            self._made[key] = name
        return self._made[key]

    def _find(self, pool: Pool, cut: Cut) -> str | None:
        number = len(cut.per_gpu)
        for layout in self._plan.layouts:
            if layout.gpu is pool.gpu:
                entries = [entry_of(layout, index) for index in range(number)]
                per_gpu = [dict(entry.instances) if entry and entry.mig_enabled else {} for entry in entries]
                names = [{pool.gpu.current_name(name): count for name, count in held.items()} for held in per_gpu]
                fits = all(entry.gpus is None or max(entry.gpus, default=-1) < number for entry in layout.entries)
                if None not in entries and fits and Cut(Way.MIG, tuple(names)).key == cut.key:
                    return layout.name
        return None


def _division(cut: Cut) -> Spec:
    """Return the instances of each GPU, or of all GPUs if they are cut alike."""
    kinds = grouped((tuple(sorted(counts.items())), index) for index, counts in enumerate(cut.per_gpu))
    if len(kinds) == 1:
        return {"instances": dict(cut.per_gpu[0])}
    devices = []
    for indexes in kinds.values():
        counts = dict(cut.per_gpu[indexes[0]])
        devices.append({"gpus": indexes, "instances": counts} if counts else {"gpus": indexes, "enabled": False})
    return {"devices": devices}


_LONGEST: Final = 50


def _title(pool: Pool, cut: Cut) -> str:
    """Return a name that says what GPUs are divided into, if that is short enough."""
    model = pool.gpu.id.lower()
    kinds = Counter(tuple(counts.items()) for counts in cut.per_gpu)
    for is_short in (False, True):
        ways = [
            "-".join(f"{number}x{profile.partition('.')[0] if is_short else profile}" for profile, number in kind)
            for kind in kinds
        ]
        if len(kinds) > 1:
            ways = [f"{times}of-{way or 'whole'}" for way, times in zip(ways, kinds.values(), strict=True)]
        name = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in "-".join((model, *ways)).lower())
        if len(name) <= _LONGEST:
            return name
    digest = sha256(repr(cut.key).encode()).hexdigest()[:6]
    return f"{model[: _LONGEST - 13]}-packed-{digest}"


def _fresh(name: str, taken: Container[str]) -> str:
    names = chain((name,), (f"{name}-{number}" for number in count(2)))
    return next(one for one in names if one not in taken)


# --- Tenants -----------------------------------------------------------------------------------------------------


def _served_anew(plan: Plan, grants: Grants, pools: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the types of work that pools are to be meant for now, by pool.

    A tenant that has left the pools which were meant for its work takes that with it, to the pool of its largest quota.
    """
    new: dict[str, list[str]] = {}
    known = {pool.name: list(pool.spec.workload_types) for pool in plan.pools}
    known |= {name: list(spec.get("workloadTypes") or ()) for name, spec in pools.items()}
    for tenant in plan.tenants:
        quotas = grants.quotas.get(tenant.name, ())
        was = {kind for quota in tenant.quotas for kind in quota.pool.spec.workload_types}
        serving = {kind for quota in quotas for kind in known.get(quota["pool"], ())}
        mine = [quota for quota in quotas if quota["pool"] in pools]
        for kind in tenant.spec.workload_types:
            if kind in was and kind not in serving and mine:
                most = max(mine, key=lambda quota: quota["guaranteed"])["pool"]
                known[most].append(kind)
                new.setdefault(most, []).append(kind)
    return new


def tenants_to_add(plan: Plan, flows: Flows) -> dict[str, str]:
    """Return the teams that get something and are no tenants, each with the name that it gets as a tenant.

    `ML Team` is `ml-team`: a tenant's namespace has its name.
    """
    known = {tenant.name for tenant in plan.tenants}
    taken = {*known, *plan.owners, *(name for kind, name in plan.removed if kind == "Tenant")}
    names: dict[str, str] = {}
    for team in dict.fromkeys(team for team, _ in flows if team not in known):
        label = regex(r"[^a-z0-9]+").sub("-", team.lower())[:_LONGEST].strip("-")
        names[team] = _fresh(label or "team", taken)
        taken.add(names[team])
    return names


# --- Prices ----------------------------------------------------------------------------------------------------------


def insist_on_prices(plan: Plan, fleet: Fleet) -> None:
    """Raise trouble if a pool in scope has no price: no sum says then which answer costs least."""
    unpriced = [pool for pool in fleet.pools if node_price(plan, pool) is None]
    if not unpriced:
        return
    if plan.prices is None:
        rates = ", ".join(f"{model}: {{perGpuHour: ...}}" for model in _models(unpriced))
        raise GpuplanError(
            "the lowest price cannot be found: no `Prices` document says what nodes cost",
            f"add one with `spec: {{currency: EUR, gpus: {{{rates}}}}}`, with your currency and numbers",
        )
    have = "has" if len(unpriced) == 1 else "have"
    rated = [pool for pool in unpriced if any(rates_for(plan.prices, pool))]
    terms = sorted({f"`{pool.spec.billing.term.value}` to its prices of {pool.gpu.id}" for pool in rated})
    unrated = _models(pool for pool in unpriced if pool not in rated)
    models = (f"`gpus: {{{model}: {{perGpuHour: ...}}}}`" for model in unrated)
    raise GpuplanError(
        f"the lowest price cannot be found: {listing([pool.name for pool in unpriced])} {have} no price "
        f"in `{plan.prices.name}`",
        f"add to the `Prices` document `{plan.prices.name}`: {joined([*terms, *models])}; "
        f"or choose pools with `--pool`",
    )


def _models(pools: Iterable[Pool]) -> list[str]:
    return sorted({pool.gpu.id for pool in pools})


def _prices_with(plan: Plan, places: Iterable[Place], gone: Collection[str]) -> Iterator[Wanted]:
    """Yield the list of prices without pools that go; new pools cost what the pools do that they are made like."""
    if plan.prices is None or not isinstance(plan.prices.at.source, Document):
        return
    spec: dict[str, Any] = dict(plan.prices.at.source.data["spec"])
    today = dict(spec.get("pools") or {})
    new = {place.pool: today[place.source.name] for place in places if place.is_new and place.source.name in today}
    pools = {name: rate for name, rate in {**today, **new}.items() if name not in gone}
    if pools != today:
        yield Wanted("Prices", plan.prices.name, {**spec, "pools": pools})
