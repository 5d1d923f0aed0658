"""Quantities as the API server writes them: text that is read back as it was."""

from __future__ import annotations

from decimal import Decimal
from math import ceil
from typing import Final

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
