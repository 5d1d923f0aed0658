"""Choices that HiGHS makes: one objective after another, and the most for earlier needs where not all is met."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import ceil, gcd, lcm
from time import monotonic

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.features.packing.sizing.answers import Bound, Cut, NodeType, Objective, Proof, Way
from gpuplan.features.packing.sizing.choosing.asking import Ask, in_order
from gpuplan.features.packing.sizing.choosing.assembling import assemble, layouts
from gpuplan.features.packing.sizing.choosing.forms import UNCUT, cut_of
from gpuplan.features.packing.sizing.choosing.highs import INFINITE, Clock, Outcome, Solution
from gpuplan.features.packing.sizing.choosing.program import Choice, Costs, Solved

_GIB = 1024
_NEARLY = 1000
"""The part of the granted memory that makes no difference is one in so many."""
_A_WHILE = 2.0
"""The seconds for what is only nice to have."""
_FEW = 2
"""The most layouts that are tried in place of more that are as good."""
_MOST_TRIES = 24

Maker = Callable[[Sequence[Fraction]], Choice]
"""A function that makes a choice which answers an amount of each ask."""


class Goal(NamedTuple):
    """A sum of whole numbers to make as small as possible; a step of the sum is worth ``unit``."""

    costs: Costs
    step: int
    unit: Fraction


class Settled(NamedTuple):
    """A solution that no goal can better, how much of each ask it answers, and what it costs by each goal."""

    solved: Solved
    amounts: Sequence[Fraction]
    costs: tuple[float, ...]


def solve(
    asked: Sequence[Ask],
    types: Sequence[NodeType],
    objective: Objective,
    most_layouts: int | None,
    clock: Clock,
    *,
    may_lack: bool,
) -> Solved | None:
    """Return the best answer and its bound, or None if HiGHS found none in time, or none for all if it may not lack.

    The answer has few layouts if that costs nothing. Few layouts are looked for among nodes whose GPUs are all alike
    and the cuts of `_candidates`, which is exact if nodes have one GPU or must be cut alike. A bound that is proven
    without a limit on layouts is proven with the limit, too, if as much is met.
    """
    free = _settle(partial(Choice, types, asked), asked, objective, clock, may_lack=may_lack)
    if free is None:
        return None

    number = len(layouts(types, free.solved.nodes, free.solved.gpus))
    is_too_many = most_layouts is not None and number > most_layouts
    if number < 2 and not is_too_many:
        return free.solved
    alike = [replace(node_type, is_equal_within_node=True) for node_type in types]
    quick = clock if is_too_many else clock._replace(each_s=_A_WHILE)
    limited = partial(Choice, alike, asked, cuts=list(_candidates(asked, types, free.solved, quick)))
    if is_too_many:
        few = _settle(partial(limited, most_layouts=most_layouts), asked, objective, clock, may_lack=may_lack)
        if few is None or all(node_type.is_equal_within_node or node_type.gpus_per_node == 1 for node_type in types):
            return few and few.solved
        proven = free.solved.bound if few.amounts == free.amounts else Bound(Fraction(0), Proof.NONE)
        is_least = few.solved.bound.least == proven.least
        bound = proven if is_least else replace(proven, proof=Proof.NONE)
        return replace(few.solved, bound=bound, is_exhaustive=few.amounts == free.amounts)
    for most in range(1, min(number, _FEW + 1)):
        few = _settle(
            partial(limited, most_layouts=most), asked, objective, quick, amounts=free.amounts, may_lack=False
        )
        if few and few.costs == free.costs:
            return replace(few.solved, bound=free.solved.bound)
    return free.solved


def _settle(
    make: Maker,
    asked: Sequence[Ask],
    objective: Objective,
    clock: Clock,
    *,
    amounts: Sequence[Fraction] | None = None,
    may_lack: bool,
) -> Settled | None:
    """Reach one goal after another, each without harm to those before it; None if it may not lack what it has to."""
    amounts = [ask.amount for ask in asked] if amounts is None else amounts
    choice = make(amounts)
    goals = _goals(choice, objective)
    solution = _least(choice, goals[0], clock)
    is_exhaustive = True
    if solution.outcome is Outcome.INFEASIBLE and not may_lack:
        return None
    if solution.outcome is Outcome.INFEASIBLE:
        amounts, is_exhaustive = _affordable(make, asked, clock)
        choice = make(amounts)
        solution = _least(choice, goals[0], clock)
    if choice.program.upper and not (solution.values and choice.holds(solution, amounts)):
        return None
    bound = _bound(goals[0], solution)
    for goal, after in pairwise(goals):
        choice.program.row(-INFINITE, goal.costs, _cost(goal.costs, solution) + goal.step / 2)
        better = _least(choice, after, clock)
        solution = better if better.values and choice.holds(better, amounts) else solution
    costs = tuple(_cost(goal.costs, solution) for goal in goals)
    solved = choice.solved(_smaller(choice, goals[-1], solution, amounts, clock), bound)
    return Settled(replace(solved, is_exhaustive=is_exhaustive), amounts, costs)


def _smaller(choice: Choice, last: Goal, solution: Solution, amounts: Sequence[Fraction], clock: Clock) -> Solution:
    """Return a solution that is as good by all goals and grants smaller parts: others can use what remains."""
    memory = {
        index: ceil((place[1].memory_mib or 0) / _GIB) * place[1].gpus
        for parts in choice.parts
        for place, index in parts.items()
    }
    choice.program.row(-INFINITE, last.costs, _cost(last.costs, solution) + last.step / 2)
    step = max(_cost(memory, solution) // _NEARLY, 1)
    better = choice.program.solve(memory, step=step, time_limit_s=min(_A_WHILE, clock.rest_s))
    return better if better.values and choice.holds(better, amounts) else solution


# --- Objectives --------------------------------------------------------------------------------------------------


def _goals(choice: Choice, objective: Objective) -> list[Goal]:
    """Return what comes first, then what decides among answers that are equal in that.

    The nearest answer to today cuts the fewest nodes again, and of these the most nodes stay.
    """
    each = [node_type.gpus_per_node for node_type in choice.types]
    gpus = Goal(choice.by_nodes(dict(enumerate(each))), gcd(*each), Fraction(1))
    weight = 1 + sum(today.nodes for node_type in choice.types for today in node_type.pools)
    costs = {**dict.fromkeys(choice.recut.values(), weight), **dict.fromkeys(choice.stays, -1)}
    near = [Goal(costs, 1, Fraction(1))] if choice.stays else []
    recut = Goal(dict.fromkeys(choice.recut.values(), 1), 1, Fraction(1))
    match objective:
        case Objective.PRICE:
            return [_price(choice), gpus, *near]
        case Objective.CHANGES:
            return [recut, gpus, *near]
        case Objective.GPUS:
            return [gpus, *near]


def _price(choice: Choice) -> Goal:
    prices = [Fraction(node_type.price or Decimal(0)) for node_type in choice.types]
    denominators = lcm(*(price.denominator for price in prices))
    whole = [int(price * denominators) for price in prices]
    common = gcd(*whole) or 1
    costs = choice.by_nodes({number: price // common for number, price in enumerate(whole)})
    return Goal(costs, 1, Fraction(common, denominators))


def _least(choice: Choice, goal: Goal, clock: Clock) -> Solution:
    return choice.program.solve(goal.costs, step=goal.step, time_limit_s=clock.rest_s)


def _cost(costs: Costs, solution: Solution) -> float:
    return sum(cost * solution.values[index] for index, cost in costs.items())


def _bound(goal: Goal, solution: Solution) -> Bound:
    if solution.outcome is Outcome.OPTIMAL:
        return Bound(Fraction(round(_cost(goal.costs, solution))) * goal.unit, Proof.SOLVER)
    least = max(ceil(solution.bound - 1e-6), 0) if abs(solution.bound) < INFINITE else 0
    return Bound(least * goal.unit, Proof.NONE)


# --- Too little for all ------------------------------------------------------------------------------------------


def _affordable(make: Maker, asked: Sequence[Ask], clock: Clock) -> tuple[list[Fraction], bool]:
    """Return how much of each ask there can be: an earlier need gets all that it can before a later one gets any.

    As many needs in a row as can be met whole are found by halving. The next one gets the most that remains for it,
    and the ones like it get nothing. With it comes whether each of these questions was decided in time: all of them
    have the time of one program.
    """
    is_exhaustive = True
    clock = clock._replace(end_s=min(clock.end_s, monotonic() + clock.each_s))

    def with_steps(more: Sequence[tuple[int, int, Fraction]]) -> list[Fraction]:
        amounts = list(done)
        for _, at, amount in more:
            amounts[at] += amount
        return amounts

    done = [Fraction(0)] * len(asked)
    steps = in_order(asked)
    while steps:
        if not clock.rest_s:
            return done, False
        met, least = 0, len(steps)
        while met < least:
            middle = (met + least) // 2
            tried = make(with_steps(steps[: middle + 1])).program.solve({}, step=1, time_limit_s=clock.rest_s)
            is_exhaustive &= tried.outcome is not Outcome.UNDECIDED
            if tried.values:
                met = middle + 1
            else:
                least = middle
        done = with_steps(steps[:met])
        if met == len(steps):
            break
        _, at, _ = steps[met]
        choice = make(done)
        costs = {index: -worth for index, worth in choice.answers(at).items()}
        solution = choice.program.solve(costs, step=0, time_limit_s=clock.rest_s)
        is_exhaustive &= solution.outcome is Outcome.OPTIMAL
        done[at] = choice.answered(at, solution) if solution.values else done[at]
        steps = [step for step in steps[met + 1 :] if step[1] != at]
    return done, is_exhaustive


# --- Cuts for few layouts ----------------------------------------------------------------------------------------


def _candidates(
    asked: Sequence[Ask], types: Sequence[NodeType], free: Solved, clock: Clock
) -> Iterator[tuple[int, Cut]]:
    """Yield the cuts of the answer without a limit, and for each type some with which few nodes do for all.

    A type whose nodes can only be cut alike needs none: the choice has all its cuts.
    """
    known = assemble(types, free.nodes, free.gpus)
    yield from ((one.number, one.cut) for one in known if one.today is None and one.cut.way is Way.MIG)
    for number, node_type in enumerate(types):
        if node_type.is_equal_within_node or node_type.gpus_per_node == 1:
            continue
        mine = [ask for ask in asked if any(at == number for at, _ in ask.worth)]
        least, most = 1, node_type.nodes or max(2 * sum(one.nodes for one in known), 1)
        for _ in range(_MOST_TRIES):
            if least > most:
                break
            nodes = (least + most) // 2
            cut = _one_for_all(mine, number, types, nodes, clock)
            if cut is None:
                least = nodes + 1
            else:
                yield number, cut
                most = nodes - 1


def _one_for_all(asked: Sequence[Ask], number: int, types: Sequence[NodeType], nodes: int, clock: Clock) -> Cut | None:
    """Return a cut of so many equal nodes of one type that do for all by themselves, or None if none is found."""
    choice = Choice([replace(other, pools=(), nodes=None) for other in types], asked)
    program = choice.program
    mine = [index for index, form in choice.node_forms.items() if form.number == number and not form.cut]
    gpus = [index for index, form in choice.gpu_forms.items() if form.number == number]
    for index in {*choice.node_forms, *choice.gpu_forms} - {*mine, *gpus}:
        program.upper[index] = 0
    for index in (*mine, *gpus):
        program.row(0, {index: 1, program.number(): -nodes}, 0)
    program.row(0, dict.fromkeys(mine, 1), nodes)
    choice.demand([ask.amount for ask in asked])
    solution = program.solve({}, step=1, time_limit_s=clock.rest_s)
    if not solution.values:
        return None
    per_gpu = [
        form.instances for index, form in choice.gpu_forms.items() for _ in range(solution.values[index] // nodes)
    ]
    cut = cut_of([*per_gpu, *[UNCUT] * (types[number].gpus_per_node - len(per_gpu))])
    return cut if cut.way is Way.MIG else None
