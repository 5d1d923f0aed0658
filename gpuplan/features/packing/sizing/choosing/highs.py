"""Integer programs, as HiGHS solves them: the same answer each time, and nothing printed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from time import monotonic
from typing import Any

from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.compiler.base.values import NamedTuple

INFINITE = math.inf
_ROUNDING = 1e-6
"""A row of whole factors that does not hold misses by more; one of others is judged by who made it."""


class Outcome(StrEnum):
    OPTIMAL = "optimal"
    """The best there is."""
    FEASIBLE = "feasible"
    """One that holds; whether there are better ones was not decided in time."""
    INFEASIBLE = "infeasible"
    """There is none."""
    UNDECIDED = "undecided"


class Solution(NamedTuple):
    """Whole numbers, which were rounded and are still to be checked; ``bound`` is what none can go below."""

    outcome: Outcome
    values: tuple[int, ...]
    bound: float


class Clock(NamedTuple):
    """A limit on searches: ``each_s`` seconds for each program, and none goes on after ``end_s`` (`monotonic`)."""

    each_s: float = 20
    end_s: float = INFINITE

    @property
    def rest_s(self) -> float:
        return max(min(self.each_s, self.end_s - monotonic()), 0)


ALL_THE_TIME = Clock()


class Program:
    """Whole numbers with bounds, rows that hold of them, and a sum that is to be as small as can be."""

    def __init__(self) -> None:
        self.upper: list[float] = []
        self.lower: list[float] = []
        self.rows: list[tuple[float, Mapping[int, float], float]] = []

    def number(self, upper: float = INFINITE, lower: float = 0) -> int:
        self.upper.append(upper)
        self.lower.append(lower)
        return len(self.upper) - 1

    def row(self, lower: float, factors: Mapping[int, float], upper: float) -> None:
        self.rows.append((lower, factors, upper))

    def solve(self, costs: Mapping[int, float], *, step: float = 0, time_limit_s: float = INFINITE) -> Solution:
        """The numbers at the least cost; all costs are a multiple of ``step`` apart, where one is known."""
        if not self.upper:
            return Solution(Outcome.OPTIMAL, (), 0)
        try:
            import highspy  # takes long to load
        except ImportError as error:
            help_ = "run `pip install --force-reinstall highspy`"
            raise GpuplanError(f"the solver HiGHS cannot be loaded: {error}", help_) from error
        solver: Any = getattr(highspy, "_Highs", highspy.Highs)()  # `Highs` adds callbacks, and prints as it does so
        for option, value in {**_OPTIONS, "time_limit": float(time_limit_s), "mip_abs_gap": 0.5 * step or 1e-9}.items():
            solver.setOptionValue(option, value)
        solver.passModel(self._model(highspy, costs))
        solver.run()
        status, info = solver.getModelStatus(), solver.getInfo()
        if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            return Solution(Outcome.INFEASIBLE, (), INFINITE)
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return Solution(Outcome.UNDECIDED, (), info.mip_dual_bound)
        values = tuple(round(value) for value in solver.getSolution().col_value)
        is_best = status == highspy.HighsModelStatus.kOptimal
        return Solution(Outcome.OPTIMAL if is_best else Outcome.FEASIBLE, values, info.mip_dual_bound)

    def holds(self, values: Sequence[int]) -> bool:
        """Whether all rows hold of these whole numbers; where the factors are whole too, nothing is rounded in that."""
        return all(
            lower - _ROUNDING <= sum(factor * values[index] for index, factor in factors.items()) <= upper + _ROUNDING
            for lower, factors, upper in self.rows
        )

    def _model(self, highspy: Any, costs: Mapping[int, float]) -> Any:  # noqa: ANN401 - highspy has no types
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self.upper), len(self.rows)
        model.col_cost_ = [costs.get(index, 0.0) for index in range(len(self.upper))]
        model.col_lower_, model.col_upper_ = list(map(float, self.lower)), list(map(float, self.upper))
        model.row_lower_ = [float(lower) for lower, _, _ in self.rows]
        model.row_upper_ = [float(upper) for _, _, upper in self.rows]
        starts, index, value = [0], [], []
        for _, factors, _ in self.rows:
            index += list(factors)
            value += [float(factor) for factor in factors.values()]
            starts.append(len(index))
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.num_col_, model.a_matrix_.num_row_ = len(self.upper), len(self.rows)
        model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = starts, index, value
        model.integrality_ = [highspy.HighsVarType.kInteger] * len(self.upper)
        return model


_OPTIONS: Mapping[str, object] = {
    "output_flag": False,
    "log_to_console": False,
    "threads": 1,
    "parallel": "off",
    "random_seed": 1,
    "mip_rel_gap": 0.0,
    "mip_feasibility_tolerance": 1e-9,
    "primal_feasibility_tolerance": 1e-9,
    "mip_max_nodes": 20_000,
}
