"""Quantities as the API server reads and writes them."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Final

from gpuplan.compiler.base.patterns import regex

_SUFFIXES: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_ONES: Final = _SUFFIXES.index("")
_NANO: Final = 10**9


def quantity(amount: int | Decimal) -> str:
    """The canonical form: `1000` is `1k`, `1500` stays, a half is `500m`; what is finer than a billionth is rounded up.

    It has no fraction and the largest suffix (`Quantity.CanonicalizeBytes` in `pkg/api/resource/quantity.go` of
    kubernetes/apimachinery). A controller that writes an object back writes this, so anything else shows as a
    difference to Git.
    """
    whole, power = (amount, _ONES) if isinstance(amount, int) else (ceil(amount * _NANO), 0)
    while whole and whole % 1000 == 0 and power < len(_SUFFIXES) - 1:
        whole, power = whole // 1000, power + 1
    return f"{whole}{_SUFFIXES[power]}" if whole else "0"


# `validSuffixes` and `parseQuantityString` in `pkg/api/resource/{suffix,quantity}.go` of kubernetes/apimachinery.
_QUANTITY: Final = regex(
    r"(?P<number>[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?", re.ASCII
)
_BINARY: Final = {f"{letter}i": Decimal(2) ** (10 * power) for power, letter in enumerate("KMGTPE", start=1)}
_POWERS_OF_TEN: Final = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def parse_quantity(text: str) -> Decimal | None:
    """The number that a quantity stands for, or None where it is none: `str` of what is no number or text never is."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return None
    amount, suffix = Decimal(found["number"]), found["suffix"] or ""
    if suffix in _BINARY:
        return amount * _BINARY[suffix]
    exponent = _POWERS_OF_TEN[suffix] if suffix in _POWERS_OF_TEN else int(suffix[1:])
    return amount.scaleb(exponent)


def exact_quantity(text: str) -> Fraction | None:
    """The number that a quantity stands for, however many digits it has; None where it is none."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return None
    amount, suffix = Fraction(Decimal(found["number"])), found["suffix"] or ""
    if suffix in _BINARY:
        return amount * int(_BINARY[suffix])
    return amount * Fraction(10) ** (_POWERS_OF_TEN[suffix] if suffix in _POWERS_OF_TEN else int(suffix[1:]))


def byte_quantity(size: int) -> str:
    """Bytes in canonical form: with the suffix of a power of 1024, or of 1000 where that is shorter.

    Either is what the API server gives back, which keeps the kind of suffix. Below 1024 it has none of the first kind.
    """
    whole, power = size, 0
    while whole and whole % 1024 == 0 and power < len(_BINARY):
        whole, power = whole // 1024, power + 1
    binary, decimal = f"{whole}{[*_BINARY][power - 1]}" if power else str(size), quantity(size)
    return decimal if len(decimal) < len(binary) else binary
