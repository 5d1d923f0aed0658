"""Read Run:ai's departments and projects, written as requests to its API or printed as answers of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction as Ratio
from typing import Any, Final

from gpuplan.compiler.backends.runai import SCHEDULING_RULES
from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.plain import inside, mapping, sequence, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.documents import Document
from gpuplan.compiler.planning.plan import Counted
from gpuplan.compiler.planning.projects import DEFAULT_RANK, RANKS
from gpuplan.features.live.dump import Dump


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
    """What they are is told by their fields: a project has a namespace, a node pool the label of its nodes."""
    bodies = [found for document in dump.others for found in _bodies(document.origin, mapping(document.data))]
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
    ranks = [text(item.get("rank")) for item in resources if item.get("rank") in RANKS]
    return Org(
        at,
        name,
        text(body.get("requestedNamespace")) or text(inside(body, "status").get("namespace"))
        if _is_project(body)
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
        max((_number(weight) or Ratio(0) for weight in weights), default=Ratio(1)),
        RANKS.index(ranks[0]) - DEFAULT_RANK if ranks else 0,
        _times(mapping(body.get("schedulingRules"))),
        tuple(sorted(key for key, value in body.items() if key not in _KNOWN and value)),
    )


def _is_project(body: Mapping[str, Any]) -> bool:
    return "requestedNamespace" in body or "defaultNodePools" in body or "namespace" in inside(body, "status")


def _bounds(value: object, one: int = 1) -> Bounds:
    """Who has no weight gets nothing beyond what it deserves."""
    amounts = mapping(value)
    deserved, limit = _number(amounts.get("deserved")) or Ratio(0), _number(amounts.get("limit"))
    return Bounds(deserved * one, None if limit is None else limit * one)


def _number(value: object) -> Ratio | None:
    """As it is written: of a fraction of GPUs all digits were printed."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        return None
    return Ratio(str(value))


_MOST: Final = 10**15


def _times(rules: Mapping[str, Any]) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for (work, field), name in SCHEDULING_RULES.items():
        seconds = rules.get(name)
        if isinstance(seconds, int) and 0 < seconds < _MOST:
            found.setdefault(work, {})[field] = spelt(seconds)
    return found


def spelt(seconds: int) -> str:
    """A duration as policies have it."""
    for length, unit in ((3600, "h"), (60, "m")):
        if seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
