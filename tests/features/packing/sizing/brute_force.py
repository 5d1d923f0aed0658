"""The fewest GPUs for every small demand, by trying all; knows nothing but what a model's data file says.

What one GPU can hold comes from growing sets of placements (`tests.compiler.planning.placement.oracle`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tests.compiler.planning.placement.oracle import Vector, board, valid_vectors


def fewest_gpus(model: str, most: int) -> dict[Vector, int]:
    """The fewest GPUs of a model for each demand of at most so many instances.

    Some GPU of a best packing holds an instance of the demand's first profile: all that it can hold with that is tried,
    and what remains is a smaller demand.
    """
    profiles = len(board(model).names)
    holding = [
        sorted((vector for vector in valid_vectors(model) if vector[first] and sum(vector) <= most), reverse=True)
        for first in range(profiles)
    ]
    fewest = {(0,) * profiles: 0}
    for demand in sorted(demands(profiles, most), key=sum):
        if any(demand):
            first = next(index for index, count in enumerate(demand) if count)
            fewest[demand] = 1 + min(
                fewest[rest] for held in holding[first] if min(rest := tuple(map(int.__sub__, demand, held))) >= 0
            )
    return fewest


@cache
def full_vectors(model: str) -> tuple[Vector, ...]:
    """The layouts that are part of no other."""
    valid = valid_vectors(model)
    smaller = {less for vector in valid for less in _with_one_less(vector)}
    return tuple(sorted(valid - smaller))


def _with_one_less(vector: Vector) -> Iterator[Vector]:
    return ((*vector[:at], count - 1, *vector[at + 1 :]) for at, count in enumerate(vector) if count)


def demands(profiles: int, most: int) -> Iterator[Vector]:
    """Every demand of at most so many instances, none included."""
    if not profiles:
        yield ()
        return
    for count in range(most + 1):
        for rest in demands(profiles - 1, most - count):
            yield (count, *rest)
