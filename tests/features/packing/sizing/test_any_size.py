"""A proof, by computer, that for demands of any size the largest price says how many GPUs hold them.

Instances of interchangeable profiles are one kind; one that is alone on its GPU always costs a whole GPU and takes one.
So ``n`` kinds remain, and three steps:

1. Each corner of what prices allow on one GPU is a layout. So whatever they allow on ``k`` GPUs is a sum of at most
   ``n + 1`` layouts, in parts that add up to ``k`` (Carathéodory).
2. Where ``k`` is more than ``n``, one of these parts is at least 1. Without it the rest is allowed on ``k - 1`` GPUs.
3. Whatever prices allow on ``n`` GPUs or fewer can be held by as many: `pack` does it, demand by demand.

By induction over ``k``, whatever prices allow on so many GPUs can be held by them. Steps 1 and 3 are tested, step 3 up
to few GPUs unless `make proof` asks for all; which profiles are one kind, and which are alone, is read off brute force.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

import pytest

from gpuplan.compiler.catalog import Gpu
from tests.cluster.proof import IS_ASKED_FOR
from tests.compiler.planning.placement.oracle import Vector, board, valid_vectors
from tests.compiler.planning.placement.test_placing import MIG_GPUS
from tests.features.packing.sizing.frontier import frontier
from tests.features.packing.sizing.price_lists import pack

SHAPES = {frozenset(valid_vectors(gpu.id)): gpu for gpu in reversed(MIG_GPUS)}
"""One model of those whose layouts are the same but for the names of profiles."""
MOST_GPUS = 99 if IS_ASKED_FOR else 2

each_shape = pytest.mark.parametrize("gpu", SHAPES.values(), ids=lambda gpu: gpu.id)


@each_shape
def test_each_corner_of_what_prices_allow_is_a_layout(gpu: Gpu) -> None:
    kinds, prices, layouts = kinds_of(gpu), prices_of(gpu), valid_vectors(gpu.id)
    corners = set(corners_of([[price[kind] for kind in kinds] for price in prices]))
    print(f"{gpu.id}: {len(corners)} corners of {len(prices)} prices")
    assert {spread(corner, kinds, len(gpu.profiles)) for corner in corners} <= layouts


@each_shape
def test_whatever_prices_allow_on_few_gpus_is_held_by_them(gpu: Gpu) -> None:
    judge, kinds, prices = board(gpu.id), kinds_of(gpu), prices_of(gpu)
    for gpus in range(1, min(len(kinds), MOST_GPUS) + 1):
        allowed = list(largest_within([[price[kind] for kind in kinds] for price in prices], Fraction(gpus)))
        print(f"{gpu.id}: {len(allowed)} demands for {gpus} GPUs")
        counts = [dict(zip(map(judge.names.__getitem__, kinds), demand, strict=True)) for demand in allowed]
        assert [demand for demand in counts if pack(gpu, demand).gpus > gpus] == []


@each_shape
def test_an_instance_that_is_alone_costs_a_gpu(gpu: Gpu) -> None:
    alone = [at for at in range(len(gpu.profiles)) if is_alone(valid_vectors(gpu.id), at)]
    assert alone
    assert {price[at] for price in prices_of(gpu) for at in alone} == {Fraction(1)}


# --- What brute force says of profiles ---------------------------------------------------------------------------


def kinds_of(gpu: Gpu) -> list[int]:
    """One profile of each kind of instance that can share a GPU."""
    layouts = valid_vectors(gpu.id)
    kinds: list[int] = []
    for at in range(len(gpu.profiles)):
        if not is_alone(layouts, at) and not any(are_one_kind(layouts, at, kind) for kind in kinds):
            kinds.append(at)
    return kinds


def is_alone(layouts: frozenset[Vector], at: int) -> bool:
    return all(sum(layout) == 1 for layout in layouts if layout[at])


def are_one_kind(layouts: frozenset[Vector], one: int, other: int) -> bool:
    """Whether any layout with either of them is one with the other in its place."""
    return all(
        moved(layout, this, that) in layouts
        for this, that in ((one, other), (other, one))
        for layout in layouts
        if layout[this]
    )


def moved(layout: Vector, this: int, that: int) -> Vector:
    counts = list(layout)
    counts[this] -= 1
    counts[that] += 1
    return tuple(counts)


# --- What prices allow -------------------------------------------------------------------------------------------


def prices_of(gpu: Gpu) -> list[tuple[Fraction, ...]]:
    known = frontier(gpu)
    by_name = [known.by_profile(prices) for prices in known.prices]
    return [tuple(prices[name] for name in board(gpu.id).names) for prices in by_name]


def largest_within(prices: Sequence[Sequence[Fraction]], gpus: Fraction) -> Iterator[Vector]:
    """The demands that cost at most so many GPUs at each price, with as many of the last profile as that allows."""

    def extend(demand: Vector, left: list[Fraction]) -> Iterator[Vector]:
        costs = [price[len(demand)] for price in prices]
        most = min(rest // cost for rest, cost in zip(left, costs, strict=True) if cost)
        if len(demand) == len(prices[0]) - 1:
            yield (*demand, most)
            return
        for count in range(most + 1):
            yield from extend((*demand, count), [rest - count * cost for rest, cost in zip(left, costs, strict=True)])

    return extend((), [gpus] * len(prices))


def corners_of(prices: Sequence[Sequence[Fraction]]) -> Iterator[tuple[Fraction, ...]]:
    """Of all that costs at most 1 at each price: where as many prices are met as counts are not zero."""
    kinds = range(len(prices[0]))
    for size in range(len(kinds) + 1):
        for held in combinations(kinds, size):
            for met in combinations(prices, size):
                counts = solve([[price[kind] for kind in held] for price in met])
                if counts is None or min(counts, default=0) < 0:
                    continue
                corner = tuple(dict(zip(held, counts, strict=True)).get(kind, Fraction()) for kind in kinds)
                if all(sum(map(Fraction.__mul__, corner, price)) <= 1 for price in prices):
                    yield corner


def solve(rows: list[list[Fraction]]) -> list[Fraction] | None:
    """The one x with ``row x = 1`` for each row, or None where there is not one."""
    left = [[*row, Fraction(1)] for row in rows]
    for at in range(len(left)):
        pivot = next((index for index in range(at, len(left)) if left[index][at]), None)
        if pivot is None:
            return None
        left[at], left[pivot] = left[pivot], left[at]
        left[at] = [value / left[at][at] for value in left[at]]
        for index, row in enumerate(left):
            if index != at and row[at]:
                left[index] = [value - row[at] * other for value, other in zip(row, left[at], strict=True)]
    return [row[-1] for row in left]


def spread(counts: Sequence[Fraction], kinds: Sequence[int], profiles: int) -> tuple[Fraction, ...]:
    """Counts of the kinds as those of all profiles."""
    of_kind = dict(zip(kinds, counts, strict=True))
    return tuple(of_kind.get(at, Fraction()) for at in range(profiles))
