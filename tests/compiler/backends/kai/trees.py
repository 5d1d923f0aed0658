"""Trees of tenants with quotas on partitions, as random policies."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from hypothesis import strategies as st

from gpuplan.compiler.planning.plan import Plan
from tests.plans import a_cluster, a_plan

POOL = """\
apiVersion: gpuplan.dev/v1
kind: Pool
metadata: {name: mig}
spec:
  gpu: A100-80GB
  nodes: {count: 20, gpusPerNode: 8, names: [a]}
  sharing: {mig: {instances: {2g.20gb: 3, 1g.10gb: 1}}}
"""
SLICES = {"1g.10gb": 1, "2g.20gb": 2}


class Grant(NamedTuple):
    """What a tenant has of a unit; ``limit`` is None where unbounded."""

    unit: str
    guaranteed: int
    limit: int | None


class Team(NamedTuple):
    """A tenant; its parent is an earlier one."""

    name: str
    parent: str
    has_namespaces: bool
    grants: tuple[Grant, ...]


@st.composite
def teams(draw: st.DrawFn) -> tuple[Team, ...]:
    """Trees of up to six tenants in which children's guarantees fit into their parents'."""
    count = draw(st.integers(1, 6))
    parents = [draw(st.integers(-1, index - 1)) for index in range(count)]
    found: dict[int, Team] = {}
    promised: dict[tuple[int, str], int] = {}
    for index in reversed(range(count)):
        grants = []
        for unit in SLICES:
            below = sum(promised.get((child, unit), 0) for child in range(count) if parents[child] == index)
            promised[index, unit] = below
            if draw(st.booleans()):
                guaranteed = below + draw(st.integers(0, 4))
                promised[index, unit] = guaranteed
                extra = draw(st.none() | st.integers(0, 4))
                grants.append(Grant(unit, guaranteed, None if extra is None else guaranteed + extra))
        parent = "" if parents[index] < 0 else f"t{parents[index]}"
        found[index] = Team(f"t{index}", parent, draw(st.booleans()), tuple(grants))
    return tuple(found[index] for index in range(count))


@cache
def planned(team: tuple[Team, ...]) -> Plan:
    return a_plan("---\n".join([a_cluster("kind: kai"), POOL, *map(document, team)]))


def document(team: Team) -> str:
    grants = ", ".join(
        f"{{pool: mig, unit: {grant.unit}, guaranteed: {grant.guaranteed}, "
        f"limit: {'none' if grant.limit is None else grant.limit}}}"
        for grant in team.grants
    )
    parent = f"  parent: {team.parent}\n" if team.parent else ""
    namespaces = f"  namespaces: [{team.name}]\n" if team.has_namespaces else ""
    return (
        f"apiVersion: gpuplan.dev/v1\nkind: Tenant\nmetadata: {{name: {team.name}}}\nspec:\n"
        f"{parent}{namespaces}  quotas: [{grants}]\n"
    )


def guaranteed_slices(team: Team) -> int:
    return sum(SLICES[grant.unit] * grant.guaranteed for grant in team.grants)


def allowed_slices(team: Team) -> int | None:
    if any(grant.limit is None for grant in team.grants):
        return None
    return sum(SLICES[grant.unit] * (grant.limit or 0) for grant in team.grants)
