"""Choices that HiGHS makes: one objective after another, and the most for earlier needs where not all is met."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil, gcd, lcm

from gpuplan.sizing.answers import Bound, NodeType, Objective, Proof
from gpuplan.sizing.choosing.asking import Ask
from gpuplan.sizing.choosing.highs import INFINITE, Outcome, Solution
from gpuplan.sizing.choosing.program import Choice, Costs, Found
from gpuplan.values import NamedTuple


class Goal(NamedTuple):
    """What is to be as small as can be: a sum of whole numbers, in a unit that ``unit`` says the size of."""

    costs: Costs
    step: int
    unit: Fraction


def solve(asked: Sequence[Ask], types: Sequence[NodeType], objective: Objective, time_limit_s: float) -> Found | None:
    """The best answer and its bound; None where HiGHS found none in time."""
    amounts = [ask.amount for ask in asked]
    choice = _choice(asked, types, amounts)
    goals = _goals(choice, objective)
    solution = _least(choice, goals[0], time_limit_s)
    if solution.outcome is Outcome.INFEASIBLE:
        amounts = _affordable(asked, types, time_limit_s)
        choice = _choice(asked, types, amounts)
        goals = _goals(choice, objective)
        solution = _least(choice, goals[0], time_limit_s)
    if not solution.values and choice.program.upper:
        return None
    bound = _bound(goals[0], solution)
    for goal, after in pairwise(goals):
        choice.limit(goal.costs, _cost(goal.costs, solution) + goal.step / 2)
        better = _least(choice, after, time_limit_s)
        solution = better if better.values else solution
    return choice.found(solution, bound)


def _choice(asked: Sequence[Ask], types: Sequence[NodeType], amounts: Sequence[Fraction]) -> Choice:
    choice = Choice(types, asked)
    for at, amount in enumerate(amounts):
        choice.demand(at, amount)
    return choice


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


def _affordable(asked: Sequence[Ask], types: Sequence[NodeType], time_limit_s: float) -> list[Fraction]:
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
            if _is_feasible(asked, types, _with(done, steps[: middle + 1]), time_limit_s):
                met = middle + 1
            else:
                least = middle
        done = _with(done, steps[:met])
        if met < len(steps):
            _, at, _ = steps[met]
            done[at] = _most(asked, types, done, at, time_limit_s)
            steps = [step for step in steps[met + 1 :] if step[1] != at]
        else:
            break
    return done


def _with(done: Sequence[Fraction], steps: Sequence[tuple[int, int, Fraction]]) -> list[Fraction]:
    more = list(done)
    for _, at, amount in steps:
        more[at] += amount
    return more


def _is_feasible(asked: Sequence[Ask], types: Sequence[NodeType], amounts: Sequence[Fraction], limit: float) -> bool:
    return bool(_choice(asked, types, amounts).solve({}, step=1, time_limit_s=limit).values)


def _most(asked: Sequence[Ask], types: Sequence[NodeType], done: Sequence[Fraction], at: int, limit: float) -> Fraction:
    choice = _choice(asked, types, done)
    costs = {index: -worth for index, worth in choice.answers(at).items()}
    solution = choice.solve(costs, step=0, time_limit_s=limit)
    return choice.answered(at, solution) if solution.values else done[at]
