"""Choices that HiGHS makes: one objective after another, and the most for earlier needs where not all is met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil, gcd, lcm

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.features.packing.sizing.answers import Bound, NodeType, Objective, Proof
from gpuplan.features.packing.sizing.choosing.accepting import accept
from gpuplan.features.packing.sizing.choosing.asking import Ask
from gpuplan.features.packing.sizing.choosing.fewer import is_complete, layouts, limited
from gpuplan.features.packing.sizing.choosing.highs import INFINITE, Outcome, Solution
from gpuplan.features.packing.sizing.choosing.program import Choice, Costs, Found, Maker

_GIB = 1024
_NEARLY = 1000
"""One part in so many more or less is as good, of memory that is granted."""
_A_WHILE = 2.0
"""Seconds for what is only nice to have."""
_FEW = 2
"""So many layouts are tried for where more were found that are as good."""


class Goal(NamedTuple):
    """What is to be as small as can be: a sum of whole numbers, in a unit that ``unit`` says the size of."""

    costs: Costs
    step: int
    unit: Fraction


class Settled(NamedTuple):
    """A solution that no goal can better, how much of each ask it answers, and what it costs by each goal."""

    found: Found
    amounts: Sequence[Fraction]
    costs: tuple[float, ...]


def solve(
    asked: Sequence[Ask],
    types: Sequence[NodeType],
    objective: Objective,
    most_layouts: int | None,
    time_limit_s: float,
    tolerance: float,
) -> Found | None:
    """The best answer and its bound, with few layouts where that costs nothing; None where HiGHS found none in time."""
    free = _settle(_unlimited(asked, types), asked, objective, time_limit_s)
    if free is None:
        return None
    if objective is Objective.ACCEPTED:
        return _accepting(asked, types, most_layouts, free, time_limit_s, tolerance)
    if most_layouts is not None and len(layouts(types, free.found)) > most_layouts:
        return _limited(asked, types, objective, most_layouts, free, time_limit_s)
    for most in range(1, min(len(layouts(types, free.found)), _FEW + 1)):
        few = _settle(limited(asked, types, most, free.found, time_limit_s), asked, objective, time_limit_s)
        if few and few[1:] == free[1:]:
            return replace(few.found, bound=free.found.bound)
    return free.found


def _limited(
    asked: Sequence[Ask], types: Sequence[NodeType], objective: Objective, most: int, free: Settled, time_limit_s: float
) -> Found | None:
    """With at most so many layouts; what is proven without that limit is proven of it, too, where as much is met."""
    few = _settle(limited(asked, types, most, free.found, time_limit_s), asked, objective, time_limit_s)
    if few is None or is_complete(types):
        return few and few.found
    proven = free.found.bound if few.amounts == free.amounts else Bound(Fraction(0), Proof.NONE)
    is_least = few.found.bound.least == proven.least
    return replace(few.found, bound=proven if is_least else replace(proven, proof=Proof.NONE, prices=None))


def _accepting(
    asked: Sequence[Ask],
    types: Sequence[NodeType],
    most: int | None,
    free: Settled,
    time_limit_s: float,
    tolerance: float,
) -> Found | None:
    """As much as can be is met, and the rest of the nodes has room for what may come beside it."""
    if most is None:
        return accept(_unlimited(asked, types), asked, types, free.amounts, tolerance, _nearest)
    make = limited(asked, types, most, free.found, time_limit_s)
    few = _settle(make, asked, Objective.ACCEPTED, time_limit_s)
    return few and accept(make, asked, types, few.amounts, tolerance, _nearest)


def _unlimited(asked: Sequence[Ask], types: Sequence[NodeType]) -> Maker:
    def choice(amounts: Sequence[Fraction]) -> Choice:
        made = Choice(types, asked)
        for at, amount in enumerate(amounts):
            made.demand(at, amount)
        return made

    return choice


def _settle(make: Maker, asked: Sequence[Ask], objective: Objective, time_limit_s: float) -> Settled | None:
    """One goal after another, each without harm to those before it."""
    amounts = [ask.amount for ask in asked]
    choice = make(amounts)
    goals = _goals(choice, objective)
    solution = _least(choice, goals[0], time_limit_s)
    if solution.outcome is Outcome.INFEASIBLE:
        amounts = _affordable(make, asked, time_limit_s)
        choice = make(amounts)
        goals = _goals(choice, objective)
        solution = _least(choice, goals[0], time_limit_s)
    if choice.program.upper and not (solution.values and choice.holds(solution, amounts)):
        return None
    bound = _bound(goals[0], solution)
    for goal, after in pairwise(goals):
        choice.limit(goal.costs, _cost(goal.costs, solution) + goal.step / 2)
        better = _least(choice, after, time_limit_s)
        solution = better if better.values and choice.holds(better, amounts) else solution
    costs = tuple(_cost(goal.costs, solution) for goal in goals)
    if objective is not Objective.ACCEPTED:
        solution = _smaller(choice, goals[-1], solution, amounts)
    return Settled(choice.found(solution, bound), amounts, costs)


def _smaller(choice: Choice, last: Goal, solution: Solution, amounts: Sequence[Fraction]) -> Solution:
    """As good by all goals, with smaller parts granted: what is left over can then be of use to somebody."""
    memory = {
        index: ceil((place[1].memory_mib or 0) / _GIB) * place[1].gpus
        for parts in choice.parts
        for place, index in parts.items()
    }
    choice.limit(last.costs, _cost(last.costs, solution) + last.step / 2)
    step = max(_cost(memory, solution) // _NEARLY, 1)
    better = choice.solve(memory, step=step, time_limit_s=_A_WHILE)
    return better if better.values and choice.holds(better, amounts) else solution


# --- Objectives --------------------------------------------------------------------------------------------------


def _goals(choice: Choice, objective: Objective) -> list[Goal]:
    """What comes first, and what decides among answers that are equal in that."""
    gpus = Goal(choice.by_nodes(dict(enumerate(t.gpus_per_node for t in choice.types))), _step(choice), Fraction(1))
    near = [_near(choice)] if choice.stays else []
    recut = Goal(dict.fromkeys(choice.recut.values(), 1), 1, Fraction(1))
    match objective:
        case Objective.PRICE:
            return [_price(choice), gpus, *near]
        case Objective.CHANGES:
            return [recut, gpus, *near]
        case Objective.GPUS | Objective.ACCEPTED:
            return [gpus, *near]


def _step(choice: Choice) -> int:
    return gcd(*(node_type.gpus_per_node for node_type in choice.types))


def _nearest(choice: Choice, time_limit_s: float) -> Solution:
    """Of all that a choice can be, what is nearest to how nodes are cut today."""
    goal = _near(choice) if choice.stays else Goal({}, 1, Fraction(1))
    return _least(choice, goal, time_limit_s)


def _near(choice: Choice) -> Goal:
    """The fewest nodes cut again, then the most that stay."""
    weight = 1 + sum(today.nodes for node_type in choice.types for today in node_type.pools)
    costs = {**dict.fromkeys(choice.recut.values(), weight), **dict.fromkeys(choice.stays, -1)}
    return Goal(costs, 1, Fraction(1))


def _price(choice: Choice) -> Goal:
    prices = [Fraction(node_type.price or Decimal(0)) for node_type in choice.types]
    denominators = lcm(*(price.denominator for price in prices))
    whole = [int(price * denominators) for price in prices]
    common = gcd(*whole) or 1
    costs = choice.by_nodes({number: price // common for number, price in enumerate(whole)})
    return Goal(costs, 1, Fraction(common, denominators))


def _least(choice: Choice, goal: Goal, time_limit_s: float) -> Solution:
    return choice.solve(goal.costs, step=goal.step, time_limit_s=time_limit_s)


def _cost(costs: Costs, solution: Solution) -> float:
    return sum(cost * solution.values[index] for index, cost in costs.items())


def _bound(goal: Goal, solution: Solution) -> Bound:
    if solution.outcome is Outcome.OPTIMAL:
        return Bound(Fraction(round(_cost(goal.costs, solution))) * goal.unit, Proof.SOLVER)
    least = max(ceil(solution.bound - 1e-6), 0) if abs(solution.bound) < INFINITE else 0
    return Bound(least * goal.unit, Proof.NONE)


# --- Too little for all ------------------------------------------------------------------------------------------


def _affordable(make: Maker, asked: Sequence[Ask], time_limit_s: float) -> list[Fraction]:
    """How much of each ask there can be, where an earlier need has what it can have before a later one has any.

    As many needs in a row as can be met whole are found by halving. The next one gets the most that is left for it,
    and so do the ones like it: nothing.
    """
    done = [Fraction(0)] * len(asked)
    steps = sorted(
        (number, at, amount)
        for at, ask in enumerate(asked)
        for number, amount in zip(ask.numbers, ask.amounts, strict=True)
    )
    while steps:
        met, least = 0, len(steps)
        while met < least:
            middle = (met + least) // 2
            if _is_feasible(make, _with(done, steps[: middle + 1]), time_limit_s):
                met = middle + 1
            else:
                least = middle
        done = _with(done, steps[:met])
        if met < len(steps):
            _, at, _ = steps[met]
            done[at] = _most(make, done, at, time_limit_s)
            steps = [step for step in steps[met + 1 :] if step[1] != at]
        else:
            break
    return done


def _with(done: Sequence[Fraction], steps: Sequence[tuple[int, int, Fraction]]) -> list[Fraction]:
    more = list(done)
    for _, at, amount in steps:
        more[at] += amount
    return more


def _is_feasible(make: Maker, amounts: Sequence[Fraction], limit: float) -> bool:
    return bool(make(amounts).solve({}, step=1, time_limit_s=limit).values)


def _most(make: Maker, done: Sequence[Fraction], at: int, limit: float) -> Fraction:
    choice = make(done)
    costs = {index: -worth for index, worth in choice.answers(at).items()}
    solution = choice.solve(costs, step=0, time_limit_s=limit)
    return choice.answered(at, solution) if solution.values else done[at]
