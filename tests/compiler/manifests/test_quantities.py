"""Quantities are read exactly and written as the API server would give them back."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from gpuplan.compiler.manifests import byte_quantity, exact_quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", Fraction(0)),
        ("64", Fraction(64)),
        ("1500m", Fraction(3, 2)),
        ("1.", Fraction(1)),
        (".5Gi", Fraction(2**29)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("1E", Fraction(10**18)),
        ("1Ei", Fraction(2**60)),
        ("12e3", Fraction(12_000)),
        ("5E-1", Fraction(1, 2)),
        ("123456789012345678.123456789", Fraction(123456789012345678123456789, 10**9)),
        ("0.1m", Fraction(1, 10_000)),
    ],
)
def test_a_quantity_stands_for_an_exact_number(text: str, number: Fraction) -> None:
    assert exact_quantity(text) == number


@pytest.mark.parametrize("text", ["", "GB", "1 Gi", "32GB", "1gi", "1K", "1.5.5", "64 cores", "+-1", "+"])
def test_other_texts_are_none(text: str) -> None:
    assert exact_quantity(text) is None


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0"),
        (1000, "1k"),
        (1023, "1023"),
        (1024, "1Ki"),
        (1536 * 2**20, "1536Mi"),
        (1900 * 2**30, "1900Gi"),
        (2**40, "1Ti"),
        (64 * 10**9, "64G"),
        (2**60, "1Ei"),
    ],
)
def test_bytes_have_the_suffix_that_is_shorter(size: int, text: str) -> None:
    assert byte_quantity(size) == text


@given(st.integers(0, 2**63 - 1))
def test_bytes_are_canonical(size: int) -> None:
    """No fraction, nothing lost, and the largest suffix of its kind (`Quantity` of kubernetes/apimachinery)."""
    text = byte_quantity(size)
    assert exact_quantity(text) == size
    found = re.fullmatch(r"([0-9]+)([KMGTPE]i|[kMGTPE])?", text)
    assert found
    base = 1024 if (found[2] or "").endswith("i") else 1000
    is_largest = int(found[1]) % base or (found[2] or "")[:1] == "E" or size == 0
    assert is_largest or (found[2] is None and size % 1000)
