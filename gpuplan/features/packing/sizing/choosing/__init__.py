"""From needs and nodes to an answer: what GPUs are cut into, and who gets what of them."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.wording import count, listing
from gpuplan.features.packing.sizing.answers import Answer, NodeType, Objective
from gpuplan.features.packing.sizing.choosing import highs, solving
from gpuplan.features.packing.sizing.choosing.asking import asks
from gpuplan.features.packing.sizing.choosing.assembling import Granted, assemble, groups, pods_for
from gpuplan.features.packing.sizing.choosing.forms import standing_places
from gpuplan.features.packing.sizing.needs import Need


def choose(
    needs: Sequence[Need],
    node_types: Sequence[NodeType],
    objective: Objective,
    *,
    most_layouts: int | None = None,
    clock: highs.Clock = highs.ALL_THE_TIME,
    may_lack: bool = True,
) -> Answer:
    """Return the best answer to all needs in that objective. If there is too little for all, earlier needs come first.

    GpuplanError if none is found in time that has all that is asked for besides, and if there is too little for all
    though none ``may_lack``.

    Pools that are kept are in the answer with all their nodes. Of answers that are equally good it takes the one that
    cuts the fewest nodes in another way than today.
    """
    if objective is Objective.PRICE and (unpriced := [one.name for one in node_types if one.price is None]):
        hint = "add a `Prices` document with a price for each GPU model"
        raise GpuplanError(f"no price is known of {listing(unpriced, None)}", hint)
    asked = asks(needs, node_types, standing_places(node_types))
    able = [ask for ask in asked if ask.worth]
    chosen = solving.solve(able, node_types, objective, most_layouts, clock, may_lack=may_lack)
    if chosen is None:
        goal = "an answer" if most_layouts is None else f"an answer with {count(most_layouts, 'layout')}"
        raise GpuplanError(f"the solver HiGHS has not found {goal} in time", "ask for fewer pools at once: `--pool`")
    grouped = groups(node_types, assemble(node_types, chosen.nodes, chosen.gpus))
    granted = Granted(node_types, grouped)
    for ask, taken, stood_for in zip(able, granted.fitted(able, chosen.taken), chosen.stood_for, strict=True):
        granted.serve(ask, taken, stood_for)
    order = {id(need): at for at, need in enumerate(needs)}
    unmet = granted.unmet + [
        (need, pods_for(ask, amount))
        for ask in asked
        if not ask.worth
        for need, amount in zip(ask.needs, ask.amounts, strict=True)
        if amount
    ]
    return Answer(
        groups=tuple(group for group, _ in grouped),
        grants=tuple(sorted(granted.grants, key=lambda grant: order[id(grant.need)])),
        unmet=tuple(sorted(unmet, key=lambda pair: order[id(pair[0])])),
        objective=objective,
        bound=chosen.bound,
        is_exhaustive=chosen.is_exhaustive,
    )
