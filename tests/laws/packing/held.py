"""Whether units hold what teams ask for, counted from what was written alone: nothing here knows how `pack` chooses.

A team holds so many units of each kind. Some of them are large enough for a need, and no two needs have one unit. By
Hall's theorem that can be divided among its needs if, and only if, whichever of them are looked at together, the units
that suit at least one are as many as they ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import ceil
from typing import Any, Final, NamedTuple

Data = Mapping[str, Any]


class Kind(NamedTuple):
    """What one unit is; ``compute`` is its part of a GPU's, and ``isolation`` the better the higher."""

    model: str
    memory_mib: int
    compute: Fraction
    isolation: int


class Wanted(NamedTuple):
    """So many units of a team, each at least so large; of any model where ``models`` is empty."""

    team: str
    units: int
    memory_mib: int
    compute: Fraction
    isolation: int
    models: tuple[str, ...] = ()

    def is_held_by(self, kind: Kind) -> bool:
        return (
            kind.memory_mib >= self.memory_mib
            and kind.compute >= self.compute
            and kind.isolation >= self.isolation
            and (not self.models or kind.model in self.models)
        )


Held = Mapping[str, Mapping[Kind, int]]
"""How many units of each kind a team has for itself, without what those have that are part of it."""

ISOLATION: Final = {"none": 0, "MPS memory limit": 1, "MIG partition": 2, "whole GPU": 3}
DEMANDED: Final = {"none": 0, "mps": 1, "hardware": 2, "wholeGpu": 3}


def missing(wanted: Iterable[Wanted], held: Held) -> Iterator[str]:
    """What teams ask for and do not hold."""
    by_team: dict[str, list[Wanted]] = {}
    for item in wanted:
        by_team.setdefault(item.team, []).append(item)
    for team, items in by_team.items():
        kinds = held.get(team, {})
        for some in _subsets(items):
            there = sum(number for kind, number in kinds.items() if any(item.is_held_by(kind) for item in some))
            asked = sum(item.units for item in some)
            if asked > there:
                yield f"{team} holds {there} of {asked}: {some} in {dict(kinds)}"


def _subsets(items: Sequence[Wanted]) -> Iterator[tuple[Wanted, ...]]:
    for number in range(1, len(items) + 1):
        yield from combinations(items, number)


# --- What is held ------------------------------------------------------------------------------------------------


def held_in(plan: Data, pools: Iterable[str] | None = None) -> Held:
    """What each tenant of a plan holds, as `gpuplan show -o json` prints it, in some pools or all."""
    chosen = {pool["name"] for pool in plan["pools"]} if pools is None else {*pools}
    kinds = {(pool["name"], unit["name"]): _kind(pool, unit) for pool in plan["pools"] for unit in pool["units"]}
    found: dict[str, dict[Kind, int]] = {}
    for (tenant, pool, unit), number in _own(plan).items():
        kind = kinds[pool, unit]
        if pool in chosen and number:
            mine = found.setdefault(tenant, {})
            mine[kind] = mine.get(kind, 0) + int(number)
    return found


def _kind(pool: Data, unit: Data) -> Kind:
    return Kind(pool["gpu"], unit["memory_mib"] or 0, _compute(pool, unit), ISOLATION[unit["isolation"]])


def _compute(pool: Data, unit: Data) -> Fraction:
    """By its name for a profile: `3g.40gb` has three slices, of seven or, on smaller boards, of four."""
    slices, is_profile, _ = unit["name"].partition("g.")
    if is_profile and slices.isdigit():
        return Fraction(int(slices), 4 if pool["gpu"].startswith(("A30", "RTX-PRO")) else 7)
    return Fraction(1, pool["sharing"].get("replicas", 1)) if unit["name"] == "shared" else Fraction(1)


def _own(plan: Data) -> dict[tuple[str, str, str], int]:
    """What is left of each guarantee when the nearest ones below it have theirs."""
    parents = {tenant["name"]: tenant["parent"] for tenant in plan["tenants"]}
    given = {
        (tenant["name"], quota["pool"], quota["unit"]): quota["guaranteed"]
        for tenant in plan["tenants"]
        for quota in tenant["quotas"]
    }
    own = dict(given)
    for (tenant, *key), number in given.items():
        above = parents[tenant]
        while above and (above, *key) not in given:
            above = parents[above]
        if above:
            own[above, key[0], key[1]] -= number
    return own


# --- What is asked for -------------------------------------------------------------------------------------------


def wanted_today(held: Held) -> Iterator[Wanted]:
    """What teams hold, as what they want to go on holding."""
    for team, kinds in held.items():
        for kind, number in kinds.items():
            yield Wanted(team, number, kind.memory_mib, kind.compute, kind.isolation, (kind.model,))


def wanted_by(needs: Iterable[Data], growth: float | str | None = None) -> Iterator[Wanted]:
    """What items of a `Demand` document ask for, but for services, which say no number of pods."""
    for need in needs:
        if "service" in need:
            continue
        pods = ceil(max(need["pods"], need.get("burst", 0)) * _factor(need.get("growth", growth)))
        gpus = need.get("gpus", 0)
        yield Wanted(
            team=need["team"],
            units=pods * max(gpus, 1),
            memory_mib=_mib(need["memory"]) if "memory" in need else 0,
            compute=Fraction(str(need.get("compute", 0))),
            isolation=3 if gpus else DEMANDED[need.get("isolation", "hardware")],
            models=tuple(need.get("models", ())),
        )


def _factor(growth: float | str | None) -> Fraction:
    if isinstance(growth, str):
        return 1 + Fraction(growth.removesuffix("%")) / 100
    return Fraction(str(growth or 1))


def _mib(text: str) -> int:
    return int(text[:-2]) * {"Mi": 1, "Gi": 1024}[text[-2:]]
