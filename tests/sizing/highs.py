"""The fewest GPUs by a solver that others wrote, for demands that are too large to try all."""

from __future__ import annotations

import highspy

from tests.planning.placement.oracle import Vector
from tests.sizing.brute_force import full_vectors


def fewest_gpus(model: str, demand: Vector) -> int:
    """HiGHS proves it: a whole number of GPUs for each layout, that hold the demand or more."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]  # it declares none
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    times = [(layout, solver.addIntegral(lb=0)) for layout in full_vectors(model)]
    for index, count in enumerate(demand):
        if count:
            solver.addConstr(sum(layout[index] * on for layout, on in times if layout[index]) >= count)
    solver.minimize(sum(on for _, on in times))
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    found = solver.getInfo().objective_function_value
    assert abs(found - round(found)) < 1e-3
    return round(found)
