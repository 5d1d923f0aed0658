"""Random valid policies: pools of each kind of sharing that a scheduler counts, and trees of tenants within them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from hypothesis import strategies as st

from gpuplan.compiler.planning.plan import Plan
from gpuplan.compiler.planning.schedulers import SCHEDULERS
from tests.plans import a_cluster, a_plan


class Kind(NamedTuple):
    """A pool of two nodes with eight GPUs each; ``units`` are the resource, the capacity and the price of each.

    The price is what one unit costs in GPUs, or in compute slices where GPUs are partitioned.
    """

    sharing: str
    units: dict[str, tuple[str, int, int]]
    schedulers: frozenset[str]


ALL: Final = frozenset(SCHEDULERS)
COUNT_RESOURCES: Final = frozenset(("kubernetes", "kueue"))
COUNT_GPUS: Final = ALL - COUNT_RESOURCES

WHOLE: Final = {"gpu": ("nvidia.com/gpu", 16, 1)}
KINDS: Final = {
    "whole": Kind("exclusive: {}", WHOLE, ALL),
    "fast": Kind("exclusive: {}", WHOLE, ALL),
    "turns": Kind("timeSlicing: {replicas: 3}", {"shared": ("nvidia.com/gpu.shared", 48, 0)}, COUNT_RESOURCES),
    "mps": Kind("mps: {replicas: 2}", {"shared": ("nvidia.com/gpu.shared", 32, 0)}, COUNT_RESOURCES),
    "mixed": Kind(
        "mig: {instances: {2g.20gb: 2, 3g.40gb: 1}}",
        {"2g.20gb": ("nvidia.com/mig-2g.20gb", 32, 2), "3g.40gb": ("nvidia.com/mig-3g.40gb", 16, 3)},
        ALL,
    ),
    "small": Kind("mig: {instances: {1g.10gb: 7}}", {"1g.10gb": ("nvidia.com/mig-1g.10gb", 112, 1)}, ALL),
    "parts": Kind("fraction: {}", {"fraction": ("", 16, 1)}, COUNT_GPUS),
}


class Grant(NamedTuple):
    """What a tenant has of a unit; ``limit`` is None where unbounded, ``split`` is for its namespaces, if any."""

    pool: str
    unit: str
    guaranteed: int
    limit: int | None
    lendable: int
    split: tuple[int, ...]

    @property
    def resource(self) -> str:
        return KINDS[self.pool].units[self.unit][0]

    @property
    def price(self) -> int:
        return KINDS[self.pool].units[self.unit][2]


class Team(NamedTuple):
    """A tenant; its parent is an earlier one."""

    name: str
    parent: str
    namespaces: tuple[str, ...]
    grants: tuple[Grant, ...]


class Policy(NamedTuple):
    """Tenants whose guarantees fit into the pools and into those of their parents; leaves have namespaces."""

    teams: tuple[Team, ...]
    text: str

    @property
    def plan(self) -> Plan:
        return _planned(self.text)

    def children(self, name: str) -> tuple[Team, ...]:
        return tuple(team for team in self.teams if team.parent == name)

    def below(self, team: Team) -> Iterator[Team]:
        """The tenant and all that are part of it."""
        yield team
        for child in self.children(team.name):
            yield from self.below(child)


@lru_cache(1)
def _planned(text: str) -> Plan:
    return a_plan(text)


@st.composite
def policies(draw: st.DrawFn, scheduler: str, *, is_flat: bool = False, cap: str = "limit") -> Policy:
    names = draw(st.lists(st.sampled_from(_pools_of(scheduler)), min_size=1, max_size=4, unique=True))
    units = [(pool, unit) for pool in names for unit in KINDS[pool].units]
    left = {("", pool, unit): KINDS[pool].units[unit][1] for pool, unit in units}
    count = draw(st.integers(1, 5))
    parents: list[str] = []
    for index in range(count):
        others = [name for name, above in zip(_names(index), parents, strict=True) if not above or _is_deep(scheduler)]
        parents.append("" if is_flat else draw(st.sampled_from(["", *others])))
    teams: list[Team] = []
    for name, parent in zip(_names(count), parents, strict=True):
        namespaces = draw(st.integers(0 if name in parents else 1, 2))
        grants = [
            _grant(draw, name, pool, unit, namespaces, _holder(teams, left, parent, pool, unit), left, cap)
            for pool, unit in draw(st.lists(st.sampled_from(units), unique=True, max_size=4))
        ]
        teams.append(Team(name, parent, tuple(f"{name}-{number}" for number in range(namespaces)), tuple(grants)))
    documents = [a_cluster(f"kind: {scheduler}, cap: {cap}"), *map(_pool, names), *map(_tenant, teams)]
    return Policy(tuple(teams), "---\n".join(documents))


def _is_deep(scheduler: str) -> bool:
    """Run:ai has one level of departments."""
    return scheduler != "runai"


def _names(count: int) -> list[str]:
    return [f"t{index}" for index in range(count)]


def _pools_of(scheduler: str) -> list[str]:
    return [name for name, kind in KINDS.items() if scheduler in kind.schedulers]


def _holder(teams: list[Team], left: dict[tuple[str, str, str], int], parent: str, pool: str, unit: str) -> str:
    """Whose guarantee on the unit one of a child of ``parent`` lies within."""
    by_name = {team.name: team for team in teams}
    while parent and (parent, pool, unit) not in left:
        parent = by_name[parent].parent
    return parent


def _grant(
    draw: st.DrawFn,
    name: str,
    pool: str,
    unit: str,
    namespaces: int,
    holder: str,
    left: dict[tuple[str, str, str], int],
    cap: str,
) -> Grant:
    guaranteed = draw(st.integers(0, left[holder, pool, unit]))
    left[holder, pool, unit] -= guaranteed
    left[name, pool, unit] = guaranteed
    limit = draw(st.none() | st.integers(guaranteed, guaranteed + 10))
    lendable = draw(st.just(guaranteed) | st.integers(0, guaranteed))
    split: tuple[int, ...] = ()
    if namespaces == 2:
        limit = guaranteed if limit is None else limit
        capped = limit if cap == "limit" else guaranteed
        part = draw(st.integers(0, capped))
        split = (part, capped - part)
    return Grant(pool, unit, guaranteed, limit, lendable, split)


def _pool(name: str) -> str:
    nodes = f"{{count: 2, gpusPerNode: 8, names: [{name}-1, {name}-2]}}"
    return _document("Pool", name, f"gpu: A100-80GB, nodes: {nodes}, sharing: {{{KINDS[name].sharing}}}")


def _tenant(team: Team) -> str:
    parent = f"parent: {team.parent}, " if team.parent else ""
    quotas = ", ".join(_quota(team, grant) for grant in team.grants)
    return _document("Tenant", team.name, f"{parent}namespaces: [{', '.join(team.namespaces)}], quotas: [{quotas}]")


def _quota(team: Team, grant: Grant) -> str:
    limit = "none" if grant.limit is None else grant.limit
    parts = ", ".join(f"{name}: {part}" for name, part in zip(team.namespaces, grant.split, strict=False))
    return (
        f"{{pool: {grant.pool}, unit: {grant.unit}, guaranteed: {grant.guaranteed}, limit: {limit}, "
        f"lendable: {grant.lendable}{f', split: {{{parts}}}' if grant.split else ''}}}"
    )


def _document(kind: str, name: str, spec: str) -> str:
    return f"apiVersion: gpuplan.dev/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
