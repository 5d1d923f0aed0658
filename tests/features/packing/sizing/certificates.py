"""Judges a packing by what it says alone: that it is one, and that its prices prove it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from gpuplan.compiler.planning.placement.placing import fits
from tests.compiler.planning.placement.oracle import board, valid_vectors
from tests.features.packing.sizing.price_lists import Packing


def faults(packing: Packing, layouts: Iterable[Mapping[str, int]] | None = None) -> list[str]:
    """What is wrong with a packing that claims to be the least by its prices; nothing where all is true.

    A GPU's layouts are those that brute force finds in the model's data file, unless they are given.
    """
    found = not_held(packing)
    if packing.least != packing.gpus:
        return [*found, f"{packing.least} of {packing.gpus} GPUs are certain"]
    all_layouts = catalogued(packing.gpu.id) if layouts is None else tuple(layouts)
    found += [f"a GPU with {dict(layout)} costs too much" for layout in all_layouts if cost(packing.prices, layout) > 1]
    if packing.gpus and cost(packing.prices, packing.counts) <= packing.gpus - 1:
        found.append(f"{packing.counts} cost {cost(packing.prices, packing.counts)}")
    return found


def not_held(packing: Packing) -> list[str]:
    """What is wrong with the layouts: they hold what was asked for, and no more, on as many GPUs as is said."""
    held = held_by(packing)
    found = [f"{dict(layout)} does not fit" for layout, _ in packing.layouts if not fits(packing.gpu, layout)]
    found += [f"{dict(layout)} {times} times" for layout, times in packing.layouts if times < 1]
    if sum(times for _, times in packing.layouts) != packing.gpus:
        found.append(f"{packing.gpus} GPUs")
    if held != Counter(packing.counts):
        found.append(f"{dict(held)} instead of {dict(packing.counts)}")
    return found


def held_by(packing: Packing) -> Counter[str]:
    held: Counter[str] = Counter()
    for layout, times in packing.layouts:
        held.update({name: count * times for name, count in layout.items()})
    return held


def cost(prices: Mapping[str, Fraction], instances: Mapping[str, int]) -> Fraction:
    """What instances cost together; a profile without a price costs nothing."""
    return sum((prices.get(name, Fraction()) * count for name, count in instances.items()), Fraction())


def catalogued(model: str) -> tuple[Mapping[str, int], ...]:
    return tuple(board(model).counts(vector) for vector in valid_vectors(model))
