"""From needs and nodes to an answer: what GPUs are cut into, and who gets what of them."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.wording import count, listing
from gpuplan.features.packing.sizing.answers import Answer, NodeType, Objective
from gpuplan.features.packing.sizing.choosing import highs, serving, solving
from gpuplan.features.packing.sizing.choosing.asking import asks
from gpuplan.features.packing.sizing.choosing.assembling import Granted, assemble, groups, layouts, pods_for
from gpuplan.features.packing.sizing.choosing.forms import standing_places
from gpuplan.features.packing.sizing.needs import Need


def choose(
    needs: Sequence[Need],
    node_types: Sequence[NodeType],
    objective: Objective,
    *,
    most_layouts: int | None = None,
    time_limit_s: float = 20,
) -> Answer:
    """Return the best answer to all needs in that objective. If there is too little for all, earlier needs come first.

    Pools that are kept are in the answer with all their nodes. Of answers that are equally good it takes the one that
    cuts the fewest nodes in another way than today. Without HiGHS it is an answer that holds, and nothing proves it.
    """
    if objective is Objective.PRICE and (unpriced := [one.name for one in node_types if one.price is None]):
        hint = "add a `Prices` document with a price for each GPU model"
        raise GpuplanError(f"no price is known of {listing(unpriced, None)}", hint)
    asked = asks(needs, node_types, standing_places(node_types))
    able = [ask for ask in asked if ask.worth]
    has_solver = highs.is_there()
    chosen = solving.solve(able, node_types, objective, most_layouts, time_limit_s) if has_solver else None
    if chosen is None:
        chosen = serving.serve(able, node_types, objective)
        if objective is Objective.CHANGES:
            _refuse("the fewest nodes to cut again", has_solver=has_solver)
        if most_layouts is not None and len(layouts(node_types, chosen.nodes, chosen.gpus)) > most_layouts:
            _refuse(f"{count(most_layouts, 'layout')} for all needs", has_solver=has_solver)
    grouped = groups(node_types, assemble(node_types, chosen.nodes, chosen.gpus))
    granted = Granted(node_types, grouped)
    for ask, taken in zip(able, granted.fitted(able, chosen.taken), strict=True):
        granted.serve(ask, taken)
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
    )


def _refuse(goal: str, *, has_solver: bool) -> None:
    if has_solver:
        raise GpuplanError(f"the solver HiGHS has not found {goal} in time", "ask for fewer pools at once: `--pool`")
    raise GpuplanError(f"cannot find {goal} without the solver HiGHS", "run `pip install gpuplan[solver]`")
