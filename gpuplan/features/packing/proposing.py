"""An answer as documents of the policy: pools, layouts, tenants and workloads as they are to be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.documents import Document
from gpuplan.compiler.planning.layouts import entry_of
from gpuplan.compiler.planning.plan import Mig, Plan, Pool
from gpuplan.compiler.planning.prices import node_type
from gpuplan.compiler.policy.models import ClusterMigStrategy, MigStrategy
from gpuplan.features.packing.assigning import Assignment, Place
from gpuplan.features.packing.fleet import Fleet, cut_of
from gpuplan.features.packing.granting import Flow, Flows, Grants, Seat, WrittenQuota
from gpuplan.features.packing.patching import Wanted
from gpuplan.features.packing.pricing import prices_with
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
    pools = [wanted._replace(spec=_serving(wanted.spec or {}, served.get(wanted.name, ()))) for wanted in pools]
    there = {place.pool for place in assignment.places}
    gone = [Wanted("Pool", pool.name, None) for pool in fleet.pools if pool.name not in there]
    others = [*_without_fallback(plan, fleet, {wanted.name for wanted in gone})]
    tenants = [
        Wanted("Tenant", tenant.name, {**_spec(tenant), "quotas": grants.quotas[tenant.name]})
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
        Wanted("Workload", seat.workload.name, {**_spec(seat.workload), "pool": seat.key[0], "unit": seat.key[1]})
        for seat in seats
        if seat.key is not None
    ]
    prices = prices_with(plan, assignment.places, {wanted.name for wanted in gone})
    return [*layouts.added, *pools, *gone, *others, *tenants, *drafted, *work, *prices]


def _spec(part: Any) -> Spec:  # noqa: ANN401 - any part of a plan with a place
    """What the policy says of a part of the plan, as it is written."""
    source = part.at.source
    if not isinstance(source, Document):
        raise TypeError(source)
    return dict(source.data.get("spec") or {})


# --- Pools -------------------------------------------------------------------------------------------------------


def _pool(plan: Plan, place: Place, layouts: _Layouts, assignment: Assignment, fleet: Fleet) -> Wanted:
    source = place.source
    spec = _spec(source)
    nodes: Spec = {**spec["nodes"], "count": place.nodes}
    if source.nodes.names or place.names:
        nodes["names"] = list(place.names)
    if place.is_new:
        nodes = {key: value for key, value in nodes.items() if key not in ("selector", "namePattern", "names")}
        nodes |= {"names": list(place.names)} if place.names else {}
        nodes |= {"namePattern": place.pattern} if place.pattern else {}
        spec = {key: value for key, value in spec.items() if key not in ("names", "rollout")}
        spec |= _billed_as(plan, source)
    spec["nodes"] = nodes
    if place.is_recut and not _is_cut_so(source, place.cut):
        spec["sharing"] = _sharing(plan, place, layouts)
    least = source.spec.memory_per_unit
    if least is not None and place.is_recut:
        spec.pop("memoryPerUnitMiB", None)
    if place.is_new or (place.is_recut and "fallback" in spec) or _is_lost(source, assignment, fleet):
        spec.pop("fallback", None)
    return Wanted("Pool", place.pool, spec)


def _billed_as(plan: Plan, source: Pool) -> Spec:
    """The type of nodes that have a price by it, which a pool says that does not choose them by their label."""
    name = node_type(source)
    if source.spec.billing.node_type or plan.prices is None or name not in plan.prices.spec.node_types:
        return {}
    return {"billing": {**(_spec(source).get("billing") or {}), "nodeType": name}}


def _is_cut_so(pool: Pool, cut: Cut) -> bool:
    today = cut_of(pool)
    return today is not None and today.key == cut.key


def _is_lost(pool: Pool, assignment: Assignment, fleet: Fleet) -> bool:
    """Whether the pool that another one falls back to goes, or hands out something else."""
    if pool.spec.fallback is None or pool.spec.fallback not in fleet.names:
        return False
    place = assignment.find(pool.spec.fallback)
    return place is None or place.is_recut


def _without_fallback(plan: Plan, fleet: Fleet, gone: Iterable[str]) -> Iterator[Wanted]:
    """Pools out of scope that fall back to one that goes."""
    names = set(gone)
    for pool in plan.pools:
        if pool.name not in fleet.names and pool.spec.fallback in names:
            yield Wanted("Pool", pool.name, {key: value for key, value in _spec(pool).items() if key != "fallback"})


def _sharing(plan: Plan, place: Place, layouts: _Layouts) -> Spec:
    cut = place.cut
    match cut.way:
        case Way.WHOLE:
            return {"exclusive": {}}
        case Way.TIME_SLICING | Way.MPS:
            before = (_spec(place.source)["sharing"] or {}).get(cut.way.value) or {}
            return {cut.way.value: {**before, "replicas": cut.replicas}}
        case Way.MIG:
            mig: Spec = {"layout": layouts.name_of(place.source, cut)}
            strategy = _strategy(plan, place)
            return {"mig": mig if strategy is MigStrategy.MIXED else {**mig, "strategy": strategy.value}}


def _strategy(plan: Plan, place: Place) -> MigStrategy:
    """The pool's own where it can be: `single` knows instances of one profile, on every GPU."""
    kinds = {profile for counts in place.cut.per_gpu for profile in (counts or {"gpu": 1})}
    sharing = place.source.sharing
    is_single = isinstance(sharing, Mig) and sharing.spec.strategy is MigStrategy.SINGLE
    is_single |= plan.cluster.gpu_operator.spec.mig_strategy is ClusterMigStrategy.SINGLE
    return MigStrategy.SINGLE if is_single and len(kinds) == 1 else MigStrategy.MIXED


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
        key = (pool.gpu.id, cut.key, len(cut.per_gpu))
        if key not in self._made:
            self._made[key] = self._there(pool, cut) or self._add(pool, cut)
        return self._made[key]

    def _there(self, pool: Pool, cut: Cut) -> str | None:
        for layout in self._plan.layouts:
            if layout.gpu is pool.gpu:
                entries = [entry_of(layout, index) for index in range(len(cut.per_gpu))]
                found = [dict(entry.instances) if entry and entry.mig_enabled else {} for entry in entries]
                names = [{pool.gpu.current_name(name): number for name, number in counts.items()} for counts in found]
                covers = all(entry is not None for entry in entries)
                stays = all(_covered(entry.gpus, len(cut.per_gpu)) for entry in layout.entries)
                if covers and stays and Cut(Way.MIG, tuple(names)).key == cut.key:
                    return layout.name
        return None

    def _add(self, pool: Pool, cut: Cut) -> str:
        name = _fresh(_title(pool, cut), self._names)
        self._names.add(name)
        self.added.append(Wanted("MigLayout", name, {"gpu": pool.gpu.id, **_division(cut)}))
        return name


def _covered(gpus: Sequence[int] | None, number: int) -> bool:
    return gpus is None or all(index < number for index in gpus)


def _division(cut: Cut) -> Spec:
    """The instances of each GPU: once where all are cut alike."""
    kinds: dict[object, list[int]] = {}
    for index, counts in enumerate(cut.per_gpu):
        kinds.setdefault(tuple(sorted(counts.items())), []).append(index)
    if len(kinds) == 1:
        return {"instances": dict(cut.per_gpu[0])}
    devices = []
    for indexes in kinds.values():
        counts = dict(cut.per_gpu[indexes[0]])
        devices.append({"gpus": indexes, "instances": counts} if counts else {"gpus": indexes, "enabled": False})
    return {"devices": devices}


_LONGEST: Final = 50


def _title(pool: Pool, cut: Cut) -> str:
    """A name that says what a GPU is divided into, where that is short enough."""
    model = pool.gpu.id.lower()
    distinct = {tuple(sorted(counts.items())) for counts in cut.per_gpu}
    if len(distinct) == 1:
        parts = [f"{number}x{profile}" for profile, number in cut.per_gpu[0].items()]
        name = "-".join((model, *parts)).lower()
        name = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in name)
        if len(name) <= _LONGEST:
            return name
    digest = sha256(repr(cut.key).encode()).hexdigest()[:6]
    return f"{model[: _LONGEST - 13]}-packed-{digest}"


def _fresh(name: str, taken: Iterable[str]) -> str:
    known = set(taken)
    return (
        name
        if name not in known
        else next(found for number in range(2, len(known) + 3) if (found := f"{name}-{number}") not in known)
    )


# --- Tenants -----------------------------------------------------------------------------------------------------


def _served_anew(plan: Plan, grants: Grants, pools: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """What a pool has to be meant for now: work of a tenant that has left the pools which were."""
    found: dict[str, list[str]] = {}
    known = {pool.name: list(pool.spec.workload_types) for pool in plan.pools}
    known |= {name: list(spec.get("workloadTypes") or ()) for name, spec in pools.items()}
    for tenant in plan.tenants:
        items = grants.quotas.get(tenant.name)
        if items is None:
            continue
        was = {kind for quota in tenant.quotas for kind in quota.pool.spec.workload_types}
        serving = {kind for item in items for kind in known.get(item["pool"], ())}
        mine = [item for item in items if item["pool"] in pools]
        for kind in tenant.spec.workload_types:
            if kind in was and kind not in serving and mine:
                most = max(mine, key=lambda item: item["guaranteed"])["pool"]
                known[most].append(kind)
                found.setdefault(most, []).append(kind)
    return found


def _serving(spec: Mapping[str, Any], kinds: Sequence[str]) -> Mapping[str, Any]:
    if not kinds:
        return spec
    return {**spec, "workloadTypes": [*dict.fromkeys((*(spec.get("workloadTypes") or ()), *kinds))]}


def teams_of(plan: Plan, flows: Flows) -> dict[str, list[Flow]]:
    """The teams of a demand that no tenant is, by the name that each gets as one, with what they get."""
    known = {tenant.name for tenant in plan.tenants}
    taken = {*known, *(name for kind, name in plan.removed if kind == "Tenant")}
    taken |= {namespace for tenant in plan.tenants for namespace in tenant.spec.namespaces}
    names: dict[str, str] = {}
    found: dict[str, list[Flow]] = {}
    for (team, _), mine in flows.items():
        if team not in known:
            if team not in names:
                names[team] = _fresh(_as_label(team), taken)
                taken.add(names[team])
            found.setdefault(names[team], []).extend(mine)
    return found


def _as_label(team: str) -> str:
    """A team as a namespace may be called: `ML Team` is `ml-team`."""
    return regex(r"[^a-z0-9]+").sub("-", team.lower())[:_LONGEST].strip("-") or "team"
