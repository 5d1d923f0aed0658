"""Quantities in the form in which the API server writes them back."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.manifests import quantity

SCALE = {suffix: Decimal(1000) ** power for power, suffix in enumerate(["n", "u", "m", "", "k", "M", "G"], -3)}


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0, "0"),
        (7, "7"),
        (999, "999"),
        (1000, "1k"),
        (1500, "1500"),
        (120_000, "120k"),
        (5_000_000, "5M"),
        (10**18, "1E"),
        (10**21, "1000E"),
        (Decimal(0), "0"),
        (Decimal(2), "2"),
        (Decimal("0.5"), "500m"),
        (Decimal("1.25"), "1250m"),
        (Decimal("0.000001"), "1u"),
        (Decimal("2000.0"), "2k"),
        (Decimal("1E-9"), "1n"),
        (Decimal("1.5E-9"), "2n"),
        (Decimal("1E-12"), "1n"),
    ],
)
def test_quantity(number: int | Decimal, written: str) -> None:
    assert quantity(number) == written


@given(st.integers(0, 10**9))
def test_a_quantity_is_the_number_that_it_was_made_of(billionths: int) -> None:
    number = Decimal(billionths).scaleb(-9)
    written = quantity(number)
    digits = written.rstrip("numkMG")
    assert digits.isdecimal()
    assert int(digits) * SCALE[written[len(digits) :]] == number
