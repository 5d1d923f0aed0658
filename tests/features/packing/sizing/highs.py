"""The fewest GPUs, by a solver that others wrote: for what is too large to try all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import highspy

from tests.compiler.planning.placement.oracle import Vector
from tests.features.packing.sizing.brute_force import full_vectors


def fewest_gpus(model: str, demand: Vector) -> int:
    """A whole number of GPUs for each layout, that together hold the demand or more."""
    solver = _solver()
    times = _hold(solver, full_vectors(model), demand)
    return _least(solver, sum(on for _, on in times))


def _solver() -> highspy.Highs:
    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # it declares none
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("threads", 1)  # all that is solved in one process has as many
    return solver


def _hold(solver: highspy.Highs, layouts: Sequence[Vector], demand: Vector) -> list[tuple[Vector, Any]]:
    """How many GPUs have each layout, so that they hold the demand."""
    times = [(layout, solver.addIntegral(lb=0)) for layout in layouts]
    for index, count in enumerate(demand):
        if count:
            solver.addConstr(sum(layout[index] * on for layout, on in times if layout[index]) >= count)
    return times


def _least(solver: highspy.Highs, total: Any) -> int:
    solver.minimize(total)
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    found = solver.getInfo().objective_function_value
    assert abs(found - round(found)) < 1e-3
    return round(found)
