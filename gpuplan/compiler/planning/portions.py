"""Divide whole numbers by parts that need not be whole."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction as Ratio
from typing import TypeVar

_Part = TypeVar("_Part", bound=Hashable)


def portion_of(amount: int, weights: Mapping[_Part, Ratio], total: Ratio) -> Mapping[_Part, int]:
    """The largest remainders: parts that add up to the amount, and differ from the exact ones by less than one."""
    exact = {name: amount * weight / total for name, weight in weights.items()}
    parts = {name: int(part) for name, part in exact.items()}
    rest = amount - sum(parts.values())
    for name in sorted(exact, key=lambda name: parts[name] - exact[name])[:rest]:
        parts[name] += 1
    return parts
