"""The currencies that prices may be in (`price_data/currencies.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gpuplan.compiler.catalog.loading import facts


@cache
def currencies() -> Mapping[str, int]:
    """The digits behind the point of amounts, by the code of the currency."""
    rows: Mapping[str, str] = facts("price_data", "currencies.yaml")["currencies"]
    return dict(sorted((code, int(digits)) for digits, codes in rows.items() for code in codes.split()))
