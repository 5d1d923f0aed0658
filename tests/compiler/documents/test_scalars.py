"""Plain scalars are read by the core schema of YAML 1.2, and what YAML 1.1 reads differently is a finding."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pytest
import yaml
from hypothesis import example, given, strategies as st

from gpuplan.compiler.documents.rules import AMBIGUOUS_NUMBER, AMBIGUOUS_TEXT, NUMBER_OUT_OF_RANGE
from gpuplan.compiler.documents.scalars import Doubt, read_plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("nUll", "nUll"),
        ("true", True),
        ("False", False),
        ("tRUE", "tRUE"),
        ("0", 0),
        ("-0", 0),
        ("12", 12),
        ("+12", 12),
        ("-12", -12),
        ("0x1F", 31),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1.5", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-0.5", -0.5),
        ("1.5e+3", 1500.0),
        ("1g.10gb", "1g.10gb"),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
        ("none", "none"),
        ("A100-80GB", "A100-80GB"),
        ("10Gi", "10Gi"),
        ("0b", "0b"),
        ("0x", "0x"),
        ("1:2:x", "1:2:x"),
        ("2026-01", "2026-01"),
    ],
)
def test_reads_the_core_schema_without_a_doubt(text: str, value: object) -> None:
    reading = read_plain(text)
    assert (reading.value, type(reading.value)) == (value, type(value))
    assert reading.doubt is None


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("012", 12, "plain `012` is 12 here, but 10 (octal) in YAML 1.1"),
        ("-012", -12, "plain `-012` is -12 here, but -10 (octal) in YAML 1.1"),
        ("08", 8, "plain `08` is 8 here, but text in YAML 1.1"),
        ("00", 0, "plain `00` is 0 here, but 0 (octal) in YAML 1.1"),
        ("0o14", 12, "plain `0o14` is 12 here, but text in YAML 1.1"),
        ("1e3", 1000.0, "plain `1e3` is 1000 here, but text in YAML 1.1"),
        ("1.25e-1", 0.125, None),
        ("1.5e3", 1500.0, "plain `1.5e3` is 1500 here, but text in YAML 1.1"),
        ("+.5", 0.5, "plain `+.5` is 0.5 here, but text in YAML 1.1"),
        ("1_000", "1_000", "plain `1_000` is text here, but a number in YAML 1.1"),
        ("0b101", "0b101", "plain `0b101` is text here, but a number in YAML 1.1"),
        ("-0x1f", "-0x1f", "plain `-0x1f` is text here, but a number in YAML 1.1"),
        ("1_0.5", "1_0.5", "plain `1_0.5` is text here, but a number in YAML 1.1"),
    ],
)
def test_ambiguous_numbers_are_read_as_yaml_1_2_and_reported(text: str, value: object, message: str | None) -> None:
    reading = read_plain(text)
    assert reading.value == value
    if message is None:
        assert reading.doubt is None
    else:
        assert reading.doubt is not None
        assert (reading.doubt.rule, reading.doubt.message) == (AMBIGUOUS_NUMBER, message)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (".inf", math.inf),
        ("-.Inf", -math.inf),
        ("+.INF", math.inf),
        ("1e400", math.inf),
        ("-1e400", -math.inf),
        ("9223372036854775808", 2**63),
        ("-9223372036854775809", -(2**63) - 1),
        ("9" * 5000, math.inf),
        ("0x" + "f" * 17, 16**17 - 1),
        ("0x" + "f" * 5000, math.inf),
        ("0o" + "7" * 30, 8**30 - 1),
    ],
)
def test_numbers_out_of_range_are_reported(text: str, value: float) -> None:
    reading = read_plain(text)
    assert reading.value == value
    assert reading.doubt is not None
    assert reading.doubt.rule is NUMBER_OUT_OF_RANGE


def test_what_is_not_a_number_is_out_of_range() -> None:
    reading = read_plain(".nan")
    assert isinstance(reading.value, float)
    assert math.isnan(reading.value)
    assert reading.doubt is not None
    assert reading.doubt.rule is NUMBER_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("yes", "the boolean true"),
        ("NO", "the boolean false"),
        ("On", "the boolean true"),
        ("off", "the boolean false"),
        ("y", "the boolean true"),
        ("N", "the boolean false"),
        ("1:30", "a number in base 60"),
        ("22:30:15.5", "a number in base 60"),
        ("2026-01-31", "a date"),
        ("2026-1-31 10:00:00 +01:00", "a date"),
    ],
)
def test_words_that_yaml_1_1_reads_differently_stay_text_and_are_reported(text: str, reading: str) -> None:
    value, doubt = read_plain(text)
    assert value == text
    assert doubt is not None
    assert (doubt.rule, doubt.message) == (AMBIGUOUS_TEXT, f"plain `{text}` is text here, but {reading} in YAML 1.1")


def doubt_about(text: str) -> Doubt:
    doubt = read_plain(text).doubt
    assert doubt is not None
    return doubt


def test_help_says_what_to_type() -> None:
    assert doubt_about("012").help == 'write `12`, or `"012"` for text'
    assert doubt_about("1_000").help == 'write the number in plain decimal digits, or `"1_000"` for text'
    assert doubt_about("yes").help == 'write `"yes"` for text, or `true`'
    assert doubt_about("22:30").help == 'write `"22:30"`'


def test_long_text_is_shortened_in_messages() -> None:
    assert len(doubt_about("1" + "_" * 10_000).message) < 150


NUMBER_LIKE = st.text(alphabet="0123456789+-._:eExXobTZ yn", min_size=1, max_size=12).map(str.strip).filter(bool)


@given(NUMBER_LIKE)
@example("0_7")
@example("2026-01-31T10:00:00Z")
@example("190:20:30.15")
@example("0o7")
@example("1e1_0")
def test_what_yaml_1_1_reads_differently_is_never_without_a_doubt(text: str) -> None:
    reading = read_plain(text)
    legacy = legacy_reading(text)
    if not same(reading.value, legacy):
        assert reading.doubt is not None, (reading.value, legacy)


@given(st.integers() | st.floats())
def test_numbers_as_yaml_writes_them_are_read_back(number: float) -> None:
    written = yaml.safe_dump(number).splitlines()[0]
    reading = read_plain(written)
    if reading.doubt is None:
        assert same(reading.value, number)
    else:
        assert reading.doubt.rule is NUMBER_OUT_OF_RANGE


def legacy_reading(text: str) -> object:
    """What PyYAML makes of a plain scalar; text where it finds a type but no value."""
    loader: Any = yaml.SafeLoader("")
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))
    try:
        return loader.construct_object(yaml.ScalarNode(tag, text))
    except (ValueError, IndexError, OverflowError, yaml.YAMLError):
        return date.max  # it would fail there: different from whatever is read here


def same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return (
        left == right
        and isinstance(left, bool) == isinstance(right, bool)
        and isinstance(left, str) == isinstance(right, str)
    )
