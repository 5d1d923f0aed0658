"""Chooses how nodes are cut for what is needed, and who gets what of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from gpuplan.diagnostics import GpuplanError
from gpuplan.sizing.answers import Answer, NodeType, Objective, Way
from gpuplan.sizing.choosing import counting, highs, solving
from gpuplan.sizing.choosing.asking import Ask, asks
from gpuplan.sizing.choosing.assembling import assemble, groups
from gpuplan.sizing.choosing.fewer import layouts
from gpuplan.sizing.choosing.forms import standing_places
from gpuplan.sizing.choosing.granting import Granted, pods_for
from gpuplan.sizing.choosing.program import Found
from gpuplan.sizing.needs import Need

EVERY_WAY = tuple(Way)


def choose(
    needs: Sequence[Need],
    node_types: Sequence[NodeType],
    objective: Objective,
    *,
    most_layouts: int | None = None,
    ways: Iterable[Way] = EVERY_WAY,
    time_limit_s: float = 20,
) -> Answer:
    """The best answer to all needs in that objective; where there is too little for all, to the earlier ones first.

    Pools that are kept are in the answer with all their nodes. Of answers that are equally good it takes the one that
    cuts the fewest nodes in another way than today.
    """
    asked = asks(needs, node_types, ways, standing_places(node_types))
    able = [ask for ask in asked if ask.worth]
    found = _solve(able, node_types, objective, most_layouts, time_limit_s)
    grouped = groups(node_types, assemble(node_types, found.nodes, found.gpus))
    granted = Granted(node_types, grouped)
    for ask, taken in zip(able, found.taken, strict=True):
        granted.serve(ask, taken)
    order = {id(need): at for at, need in enumerate(needs)}
    none = [(need, pods_for(ask, amount)) for ask in asked if not ask.worth for need, amount in _each(ask) if amount]
    return Answer(
        groups=tuple(group for group, _ in grouped),
        grants=tuple(sorted(granted.grants, key=lambda grant: order[id(grant.need)])),
        unmet=tuple(sorted((*granted.unmet, *none), key=lambda item: order[id(item[0])])),
        objective=objective,
        bound=found.bound,
    )


def _each(ask: Ask) -> Iterable[tuple[Need, Fraction]]:
    return zip(ask.needs, ask.amounts, strict=True)


def _solve(
    asked: Sequence[Ask], types: Sequence[NodeType], objective: Objective, most: int | None, time_limit_s: float
) -> Found:
    counted = counting.count(asked, types, objective)
    if counted is not None and len(layouts(types, counted)) <= (1 if highs.is_there() and most is None else most or 0):
        return counted
    if not highs.is_there():
        raise GpuplanError("this is not decided without a solver", "run `pip install gpuplan[solver]`")
    found = solving.solve(asked, types, objective, most, time_limit_s)
    if found is None:
        raise GpuplanError("this is not decided without a solver", "run `pip install gpuplan[solver]`")
    if counted is not None and counted.bound.least == found.bound.least:
        return replace(found, bound=counted.bound)
    return found
