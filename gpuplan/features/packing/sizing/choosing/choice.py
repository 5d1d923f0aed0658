"""Chooses how nodes are cut for what is needed, and who gets what of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.wording import count, listing
from gpuplan.features.packing.sizing.answers import Answer, NodeType, Objective, Proof, Way
from gpuplan.features.packing.sizing.choosing import counting, highs, serving, solving
from gpuplan.features.packing.sizing.choosing.asking import Ask, asks
from gpuplan.features.packing.sizing.choosing.assembling import assemble, groups
from gpuplan.features.packing.sizing.choosing.fewer import layouts
from gpuplan.features.packing.sizing.choosing.forms import standing_places
from gpuplan.features.packing.sizing.choosing.granting import Granted, pods_for
from gpuplan.features.packing.sizing.choosing.program import Found
from gpuplan.features.packing.sizing.needs import Need

EVERY_WAY = tuple(Way)


def choose(
    needs: Sequence[Need],
    node_types: Sequence[NodeType],
    objective: Objective,
    *,
    most_layouts: int | None = None,
    ways: Iterable[Way] = EVERY_WAY,
    time_limit_s: float = 20,
    tolerance: float = 0,
) -> Answer:
    """The best answer to all needs in that objective; where there is too little for all, to the earlier ones first.

    Pools that are kept are in the answer with all their nodes. Of answers that are equally good it takes the one that
    cuts the fewest nodes in another way than today.

    Under `ACCEPTED` all nodes are used: what is asked for has room, and the rest is cut so that the fewest pods are
    turned away where they come and go at random, and each need is off by up to ``tolerance``. No bound is claimed.
    """
    if objective is Objective.PRICE and (unpriced := [one.name for one in node_types if one.price is None]):
        hint = "add a `Prices` document with a price for each GPU model"
        raise GpuplanError(f"no price is known of {listing(unpriced, None)}", hint)
    if objective is Objective.ACCEPTED and (endless := [one.name for one in node_types if one.nodes is None]):
        raise GpuplanError(f"nobody says how many nodes of {listing(endless, None)} there are", "give each a number")
    asked = asks(needs, node_types, ways, standing_places(node_types))
    able = [ask for ask in asked if ask.worth]
    found = _solve(able, node_types, objective, most_layouts, time_limit_s, tolerance)
    grouped = groups(node_types, assemble(node_types, found.nodes, found.gpus))
    granted = Granted(node_types, grouped)
    for ask, taken in zip(able, granted.fitted(able, found.taken), strict=True):
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
    asked: Sequence[Ask],
    types: Sequence[NodeType],
    objective: Objective,
    most: int | None,
    time_limit_s: float,
    tolerance: float,
) -> Found:
    """By counting where that proves it, else by HiGHS; without it, an answer that holds."""
    counted = counting.count(asked, types, objective)
    if counted is not None and _has_few(types, counted, most or (1 if highs.is_there() else None)):
        return counted
    found = solving.solve(asked, types, objective, most, time_limit_s, tolerance) if highs.is_there() else None
    if found is None:
        return _unsolved(counted or serving.serve(asked, types, objective), types, objective, most)
    is_proven = found.bound.proof is not Proof.NONE
    if counted is not None and is_proven and counted.bound.least == found.bound.least:
        return replace(found, bound=counted.bound)
    return found


def _has_few(types: Sequence[NodeType], found: Found, most: int | None) -> bool:
    return most is None or len(layouts(types, found)) <= most


def _unsolved(found: Found, types: Sequence[NodeType], objective: Objective, most: int | None) -> Found:
    what = _SOLVED.get(objective, "" if _has_few(types, found, most) else f"{count(most or 0, 'layout')} for all needs")
    if not what:
        return found
    if highs.is_there():
        raise GpuplanError(f"the solver HiGHS has not found {what} in time", "ask for fewer pools at once: `--pool`")
    raise GpuplanError(f"cannot find {what} without the solver HiGHS", "run `pip install gpuplan[solver]`")


_SOLVED = {
    Objective.CHANGES: "the fewest nodes to cut again",
    Objective.ACCEPTED: "what turns the fewest pods away",
}
"""What is only looked for with the solver."""
