"""Run:ai's departments and projects, as requests to its API or answers of it, and the tenants that they are."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction as Ratio
from operator import mul
from typing import Any, Final, TypeVar

from gpuplan.compiler.backends.runai import SCHEDULING_RULES
from gpuplan.compiler.base.diagnostics import Origin, Severity
from gpuplan.compiler.base.plain import grouped, inside, mapping, sequence, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.documents import Document
from gpuplan.compiler.planning.amounts import amount_text
from gpuplan.compiler.planning.plan import Counted, UnitKey
from gpuplan.compiler.planning.projects import DEFAULT_RANK, RANKS, seconds
from gpuplan.features.live.drafts import spelt
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.queues.model import Queue
from gpuplan.features.live.teams.caps import Offer, Offers, Space, offers_in, read_caps


class Bounds(NamedTuple):
    """GPUs, or millicores or bytes; ``limit`` is None where unbounded."""

    deserved: Ratio
    limit: Ratio | None

    def plus(self, other: Bounds) -> Bounds:
        bounds = (self.limit, other.limit)
        known = [limit for limit in bounds if limit is not None]
        return Bounds(self.deserved + other.deserved, sum(known, Ratio(0)) if len(known) == len(bounds) else None)


NOTHING: Final = Bounds(Ratio(0), Ratio(0))


class Org(Value):
    """A project, which has a ``namespace``, or a department. What it has is by node pool.

    ``order`` are the node pools that its work is sent to. ``others`` are fields that say something else.
    """

    at: Origin
    name: str
    namespace: str
    parent: str
    order: tuple[str, ...]
    gpus: Mapping[str, Bounds]
    compute: Mapping[tuple[str, Counted], Bounds]
    weight: Ratio
    rank: int
    times: Mapping[str, Mapping[str, str]]
    others: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"project `{self.name}`" if self.namespace else f"department `{self.name}`"

    @property
    def source(self) -> str:
        return f"{self.title} ({self.at.locate().file.path})"


class Orgs(Value):
    """``run_times`` are how long work is safe from eviction, by node pool."""

    projects: tuple[Org, ...]
    departments: tuple[Org, ...]
    run_times: Mapping[str, str]


def read_orgs(dump: Dump) -> Orgs:
    """Return the projects, departments and node pools of a dump.

    A project has a namespace, and a node pool the label of its nodes.
    """
    bodies = [found for document in dump.others for found in _bodies(document.origin, mapping(document.data))]
    bodies += map(_body_of, dump.of_kind(*_OBJECTS))
    names = {text(body.get("id")): text(body.get("name")) for _, body in bodies if text(body.get("id"))}
    projects: list[Org] = []
    departments: list[Org] = []
    run_times: dict[str, str] = {}
    for at, body in bodies:
        if "labelKey" in body:
            run_times[text(body.get("name"))] = text(
                inside(body, "schedulingConfiguration").get("minGuaranteedRuntime")
            )
        elif (org := _org(at, body, names)).name:
            (projects if org.namespace else departments).append(org)
    return Orgs(tuple(projects), tuple(departments), {pool: time for pool, time in run_times.items() if time})


_OBJECTS: Final = ("kai.resources", "Project", "Department")


def _body_of(org: Item) -> tuple[Origin, Mapping[str, Any]]:
    """Return a project or a department of Run:ai 3.0 in the words of its API.

    Its queues are those of its node pools (`kai/v1alpha1/project_types.go` and `resources.go` of
    kai-scheduler/kai-resource-management-api). There -1 is no bound, and a missing number is 0.
    """
    spec, status = inside(org.body, "spec"), inside(org.body, "status")
    resources = []
    for queue in map(mapping, sequence(spec.get("queues"))):
        found: dict[str, Any] = {"nodePool": {"name": text(queue.get("nodepool"))}}
        for resource in ("gpu", "cpu", "memory"):
            amounts = inside(queue, "resources", resource)
            if amounts:
                found[resource] = {**amounts, "limit": amounts.get("limit", amounts.get("deserved", 0))}
        resources.append(found)
    body: dict[str, Any] = {"name": org.name, "resources": resources, "parent": {"name": text(spec.get("parent"))}}
    if org.kind == "Project":
        body["requestedNamespace"] = text(status.get("namespace")) or text(spec.get("namespace")) or org.name
        body["defaultNodePools"] = sequence(spec.get("defaultNodePools"))
    return org.at / "metadata", body


def has_orgs(document: Document) -> bool:
    """Whether a document has a project, a department or a node pool in it."""
    return any(_bodies(document.origin, mapping(document.data)))


_LISTS: Final = ("projects", "departments", "nodePools")


def _bodies(at: Origin, data: Mapping[str, Any]) -> Iterator[tuple[Origin, Mapping[str, Any]]]:
    for key in _LISTS:
        for index, body in enumerate(sequence(data.get(key))):
            yield from _bodies(at / key / index, mapping(body))
    if isinstance(data.get("name"), str) and ("resources" in data or "labelKey" in data):
        yield at, data


_KNOWN: Final = frozenset(
    (
        *("clusterId", "createdAt", "createdBy", "defaultNodePools", "description", "id", "name", "parent", "parentId"),
        *("phase", "requestedNamespace", "resources", "schedulingRules", "status", "totalResources", "updatedAt"),
        *("updatedBy", "effective", "overtimeData", "parents", "tenantId", "updatedBy"),
    )
)


def _org(at: Origin, body: Mapping[str, Any], names: Mapping[str, str]) -> Org:
    name = text(body.get("name"))
    resources = [mapping(item) for item in sequence(body.get("resources"))]
    by_pool = {text(inside(item, "nodePool").get("name")): item for item in resources}
    weights = [mapping(item.get("gpu")).get("overQuotaWeight") for item in resources]
    rules, times = mapping(body.get("schedulingRules")), dict[str, dict[str, str]]()
    for (work, field), rule in SCHEDULING_RULES.items():
        length = rules.get(rule)
        if isinstance(length, int) and 0 < length < _MOST:
            times.setdefault(work, {})[field] = spelt(length)
    ranks = [text(item.get("rank")) for item in resources if item.get("rank") in RANKS]
    return Org(
        at,
        name,
        text(body.get("requestedNamespace")) or text(inside(body, "status").get("namespace"))
        if ("requestedNamespace" in body or "defaultNodePools" in body or "namespace" in inside(body, "status"))
        else "",
        text(inside(body, "parent").get("name")) or names.get(text(body.get("parentId")), ""),
        tuple(text(pool) for pool in sequence(body.get("defaultNodePools"))),
        {pool: _bounds(item.get("gpu")) for pool, item in by_pool.items()},
        {
            (pool, counted): _bounds(item.get(counted.value), 1 if counted is Counted.CPU else 1_000_000)
            for pool, item in by_pool.items()
            for counted in (Counted.CPU, Counted.MEMORY)
            if mapping(item.get(counted.value))
        },
        max((_ratio(weight) or Ratio(0) for weight in weights), default=Ratio(1)),
        RANKS.index(ranks[0]) - DEFAULT_RANK if ranks else 0,
        times,
        tuple(sorted(key for key, value in body.items() if key not in _KNOWN and value)),
    )


def _bounds(value: object, one: int = 1) -> Bounds:
    """Return the bounds of a resource, in GPUs, millicores or bytes."""
    amounts = mapping(value)
    deserved, limit = _ratio(amounts.get("deserved")) or Ratio(0), _ratio(amounts.get("limit"))
    return Bounds(deserved * one, None if limit is None else limit * one)


def _ratio(value: object) -> Ratio | None:
    """As it is written: of a fraction of GPUs all digits were printed."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        return None
    return Ratio(str(value))


_MOST: Final = 10**15


def queues_of(orgs: Orgs, offers: Offers, spaces: Mapping[str, Space], reports: Reports) -> tuple[Queue, ...]:
    """Return a `Queue` for each tenant of Run:ai; ``spaces`` are namespaces that gpuplan wrote, with their tenant."""
    reader = _Reader(orgs, offers, spaces)
    reader.tell(reports)
    return tuple(reader.queues())


class _Team:
    """A tenant in the making: its projects, and what remains to it when the parts of others are taken off."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.projects: list[Org] = []
        self.parent = ""
        self.quotas: dict[UnitKey, dict[str, Any]] = {}

    @property
    def gpus(self) -> Mapping[str, Bounds]:
        return _sums(project.gpus for project in self.projects)

    @property
    def order(self) -> list[str]:
        """The pools in the order in which its work is sent there, then those in which it has something."""
        pools = (*self.projects[0].order, *(pool for pool, found in self.gpus.items() if found.limit != 0))
        return list(dict.fromkeys(pools))


class _Reader:
    def __init__(self, orgs: Orgs, offers: Offers, spaces: Mapping[str, Space]) -> None:
        self._orgs, self._spaces = orgs, spaces
        self._offers = offers
        self._by_pool = grouped((offer.pool.name, offer) for known in offers.values() for offer in known)
        self._departments = {org.name: org for org in orgs.departments}
        teams: dict[str, _Team] = {}
        for project in self._orgs.projects:
            space = self._spaces.get(project.namespace)
            name = space.owner if space and space.owner else project.name
            teams.setdefault(name, _Team(name)).projects.append(project)
        for team in teams.values():
            bounds = {
                pool: [project.gpus.get(pool, NOTHING) for project in team.projects] for pool in team.projects[0].gpus
            }
            even = [
                pool for pool, found in bounds.items() if len({part.limit for part in found}) == 1 and found[0].limit
            ]
            more = {
                id(project): sum((project.gpus.get(pool, NOTHING).deserved for pool in even), Ratio(0))
                for project in team.projects
            }
            team.projects = sorted(team.projects, key=lambda project: (-more[id(project)], project.name))
            team.quotas = self._own_quotas(team)
        for team in teams.values():
            if team.name not in self._departments:
                team.parent = team.projects[0].parent or self._likely_parent(team, teams)
        for name in self._departments:
            if name not in teams and any(team.parent == name for team in teams.values()):
                teams[name] = _Team(name)
        for name, department in self._departments.items():
            if name in teams:
                self._add_whole(teams[name], department, [team for team in teams.values() if team.parent == name])
        self._teams = teams

    # --- Who is there

    def _likely_parent(self, team: _Team, teams: Mapping[str, _Team]) -> str:
        """Return a department that has as much as a team, first one without projects.

        A request names the department by an id that Run:ai gives.
        """
        fitting = [
            name
            for name, found in self._departments.items()
            if all(bounds.deserved <= found.gpus.get(pool, NOTHING).deserved for pool, bounds in team.gpus.items())
        ]
        return next((name for name in fitting if name not in teams), next(iter(fitting), ""))

    # --- What they have

    def _units(self, team: _Team, pool: str) -> Sequence[Offer]:
        """Return the units of a pool that a team's namespaces may use, or else all of the pool's."""
        spaces = [self._spaces[item.namespace] for item in team.projects if item.namespace in self._spaces]
        if any(space.parameters for space in spaces):
            found = {offer.key: offer for space in spaces for offer in offers_in(space.parameters, self._offers)}
            here = [offer for offer in found.values() if offer.pool.name == pool]
            return here or self._by_pool.get(pool, ())[:1]  # a quota on nothing is in no grant
        return self._by_pool.get(pool, ())

    def _own_quotas(self, team: _Team) -> dict[UnitKey, dict[str, Any]]:
        found: dict[UnitKey, dict[str, Any]] = {}
        compute = _sums(project.compute for project in team.projects)
        for pool in team.order:
            units = self._units(team, pool)
            bounds = team.gpus.get(pool, NOTHING)
            spaces = [self._spaces[item.namespace] for item in team.projects if item.namespace in self._spaces]
            by_unit = [
                [cap.amount for space in spaces if (cap := read_caps(space.quotas).plain.get(offer.counted_as))]
                for offer in units
            ]
            whole = [sum(caps, Ratio(0)) for caps in by_unit]
            each = [max(caps, default=Ratio(0)) for caps in by_unit]
            weights, limit = [offer.unit.gpu_weight for offer in units], bounds.limit or Ratio(0)
            off = [abs(sum(map(mul, caps, weights), Ratio(0)) - limit) for caps in (whole, each)]
            nearest = each if off[1] < off[0] else whole
            caps = [cap if known else None for cap, known in zip(nearest, by_unit, strict=True)]
            limits = _limits(bounds.limit, units, caps)
            parts = [_Part(offer, _most(offer, limits[index])) for index, offer in enumerate(units)]
            deserved = _divided(bounds.deserved, parts)
            for index, offer in enumerate(units):
                found[offer.key] = _entry(offer, deserved[index], limits[index])
                if index == 0:
                    found[offer.key] |= _compute(compute, pool)
            if len(team.projects) > 1 and len(units) == 1:
                of_projects = {project.namespace: project.gpus.get(pool, NOTHING) for project in team.projects}
                gpus = {name: one.deserved if one.limit is None else one.limit for name, one in of_projects.items()}
                if units[0].unit.asked_as or len(set(gpus.values())) != 1:
                    split = {name: _number(_units(number, _Part(units[0]))) for name, number in gpus.items()}
                    found[units[0].key]["split"] = split
        return found

    def _add_whole(self, team: _Team, department: Org, inner: Sequence[_Team]) -> None:
        """A department has what is its own and what those have that are part of it."""
        below: defaultdict[UnitKey, Bounds] = defaultdict(lambda: NOTHING)
        for part in inner:
            for key, quota in part.quotas.items():
                below[key] = below[key].plus(Bounds(Ratio(str(quota["guaranteed"])), _limit(quota)))
        compute = department.compute
        for pool, bounds in department.gpus.items():
            keys = [key for key in (*team.quotas, *below) if key[0] == pool]
            units = [offer for offer in self._by_pool.get(pool, ()) if offer.key in keys] or self._units(team, pool)[:1]
            held = NOTHING
            for offer in units:
                (deserved, limit), weight = below.get(offer.key, NOTHING), offer.unit.gpu_weight
                held = held.plus(Bounds(deserved * weight, None if limit is None else limit * weight))
            has_compute = any((pool, counted) in compute for counted in Counted)
            if not units or (not team.projects and held == bounds and not has_compute):
                continue
            if team.projects:
                for offer in units:
                    if offer.key in team.quotas and offer.key in below:  # a guarantee is raised by what lies within it
                        quota = team.quotas[offer.key]
                        limit, deserved = _limit(quota), Ratio(str(quota["guaranteed"])) + below[offer.key].deserved
                        quota["guaranteed"] = _number(deserved)
                        if limit == deserved:
                            quota.pop("limit", None)
                        else:
                            quota["limit"] = "none" if limit is None else _number(max(limit, deserved))
            else:
                limits = _limits(bounds.limit, units, [None] * len(units))
                least = [below.get(offer.key, NOTHING).deserved for offer in units]
                numbers = zip(units, limits, least, strict=True)
                parts = [_Part(offer, _most(offer, limit), low) for offer, limit, low in numbers]
                shares = zip(units, _divided(bounds.deserved, parts), limits, strict=True)
                team.quotas |= {offer.key: _entry(offer, share, limit) for offer, share, limit in shares}
            first = next((team.quotas[offer.key] for offer in units if offer.key in team.quotas), None)
            if first is not None:
                first |= _compute(compute, pool)

    # --- What is said of them

    def queues(self) -> Iterator[Queue]:
        for name, team in sorted(self._teams.items()):
            department = self._departments.get(name)
            orgs = (*team.projects, *((department,) if department else ()))
            times = [self._orgs.run_times.get(pool, "") for pool in dict.fromkeys(pool for pool, _ in team.quotas)]
            run_time = min((_go(time) for time in times), key=seconds, default="") if times and all(times) else ""
            first = orgs[0]
            weight = _number(first.weight)
            surplus = {**({"weight": weight} if weight != 1 else {}), **({"rank": first.rank} if first.rank else {})}
            protect = {"preempt": run_time, "reclaim": run_time} if run_time else {}
            fields = {"surplus": surplus, "protect": protect, "timeLimits": dict(first.times)}
            spec = {name: value for name, value in fields.items() if value}
            yield Queue(
                name,
                team.parent,
                tuple(project.namespace for project in team.projects),
                tuple(team.quotas.values()),
                spec,
                tuple(org.source for org in orgs),
            )

    def tell(self, reports: Reports) -> None:
        for name, team in sorted(self._teams.items()):
            for project in team.projects:
                lost = [pool for pool, found in project.gpus.items() if found.limit != 0 and pool not in self._by_pool]
                if lost:
                    reason = f"has GPUs of {listing(lost)}, which is no pool"
                    _tell(reports, name, project, reason, Severity.WARNING)
                if project.others:
                    reason = f"says {listing(project.others)}, which no policy does"
                    _tell(reports, name, project, reason, Severity.NOTE)
        for name, department in sorted(self._departments.items()):
            if name not in self._teams:
                _tell(reports, "", department, "has no project", Severity.NOTE)


def _tell(reports: Reports, team: str, org: Org, reason: str, severity: Severity) -> None:
    reports.say(
        "runai-not-imported",
        org.at / "name",
        team,
        severity=severity,
        help="change it in Run:ai, or in the Tenant" if severity is Severity.WARNING else "leave it to Run:ai",
        org=org,
        what=reason,
    )


# --- Numbers -----------------------------------------------------------------------------------------------------


_Key = TypeVar("_Key", bound=Hashable)


def _sums(parts: Iterable[Mapping[_Key, Bounds]]) -> dict[_Key, Bounds]:
    found: dict[_Key, Bounds] = {}
    for part in parts:
        for key, bounds in part.items():
            found[key] = found[key].plus(bounds) if key in found else bounds
    return found


def _limits(total: Ratio | None, units: Sequence[Offer], caps: Sequence[Ratio | None]) -> list[Ratio | None]:
    """One that nothing caps takes the bound off all of them; the others have theirs all the same."""
    if total is None:
        return list(caps) if len(units) > 1 else [None] * len(units)
    return [*_divided(total, [_Part(offer, hint=cap) for offer, cap in zip(units, caps, strict=True)])]


def _most(offer: Offer, limit: Ratio | None) -> Ratio:
    """Return the most that may be guaranteed: no more than the limit and the capacity."""
    capacity = Ratio(offer.unit.capacity)
    return capacity if limit is None else min(limit, capacity)


class _Part(NamedTuple):
    """A unit of which a number is looked for: no more than ``most``, no less than ``least``, and best ``hint``."""

    offer: Offer
    most: Ratio | None = None
    least: Ratio = Ratio(0)
    hint: Ratio | None = None

    @property
    def weight(self) -> Ratio:
        return self.offer.unit.gpu_weight


def _divided(total: Ratio, parts: Sequence[_Part]) -> list[Ratio]:
    """Numbers of units that cost a number of GPUs together; the first takes what is left where none do so exactly."""
    found = _exact(total, parts) if len(parts) > 1 else None
    if found or not parts:
        return found or []
    first, rest = parts[0], [part.least for part in parts[1:]]
    cost = sum((part.least * part.weight for part in parts[1:]), Ratio(0))
    return [_units(max(total - cost, Ratio(0)), first), *rest]


def _units(total: Ratio, part: _Part) -> Ratio:
    """Numbers were printed with as many digits as a float has."""
    units = total / part.weight
    return Ratio(round(units)) if part.offer.unit.asked_as else units


def _exact(total: Ratio, parts: Sequence[_Part]) -> list[Ratio] | None:
    """Return the solution that is nearest to the hint of the first part, then of the second and so on."""
    part, rest = parts[0], parts[1:]
    units = _units(total, part)
    if not rest:
        fits = part.least <= units and (part.most is None or units <= part.most)
        return [units] if fits and abs(units * part.weight - total) < _TOLERANCE else None
    top = int(units if part.most is None else min(units, part.most))
    low = int(part.least)
    hint = min(max(top if part.hint is None else int(part.hint), low), top)
    around = range(max(hint - _REACH[len(rest)], low), min(hint + _REACH[len(rest)], top) + 1)
    for number in sorted(around, key=lambda number: abs(number - hint)):
        found = _exact(total - number * part.weight, rest)
        if found:
            return [Ratio(number), *found]
    return None


_REACH: Final = defaultdict(lambda: 1, {1: 500, 2: 20, 3: 5})
"""The distance from its hint at which a number is looked for, by the number of other units."""
_TOLERANCE: Final = Ratio(1, 1000)


def _entry(offer: Offer, deserved: Ratio, limit: Ratio | None) -> dict[str, Any]:
    pool, unit = offer.key
    entry = {"pool": pool, "unit": unit, "guaranteed": _number(deserved)}
    if limit != deserved:
        entry["limit"] = "none" if limit is None else _number(limit)
    return entry


def _number(amount: Ratio) -> int | float:
    return int(amount) if amount.denominator == 1 else round(float(amount), 2)


def _limit(quota: Mapping[str, Any]) -> Ratio | None:
    limit = quota.get("limit", quota["guaranteed"])
    return None if limit == "none" else Ratio(str(limit))


def _compute(compute: Mapping[tuple[str, Counted], Bounds], pool: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (name, counted), bounds in compute.items():
        if name == pool:
            guaranteed = amount_text(counted, int(bounds.deserved))
            limit = "none" if bounds.limit is None else amount_text(counted, int(bounds.limit))
            found[counted.value] = guaranteed if limit == guaranteed else {"guaranteed": guaranteed, "limit": limit}
    return found


# --- Times -------------------------------------------------------------------------------------------------------


def _go(time: str) -> str:
    """Return a length of days, hours and minutes in hours and minutes."""
    found = re.fullmatch(r"(?:([0-9]{1,4})d)?(?:([0-9]{1,4})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?", time)
    if not found:
        return ""
    days, hours, minutes, rest = (int(part or 0) for part in found.groups())
    return spelt(((days * 24 + hours) * 60 + minutes) * 60 + rest) if any((days, hours, minutes, rest)) else ""
