"""The grammar of profile names."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from gpuplan.compiler.catalog import parse_profile, resource_suffix
from gpuplan.compiler.catalog.names import ProfileName


def test_a_plain_name() -> None:
    assert parse_profile("3g.40gb") == ProfileName(compute_slices=3, gigabytes=40)


def test_a_name_with_an_added_attribute() -> None:
    assert parse_profile("1g.24gb+me.all") == ProfileName(1, 24, attributes=("me.all",))


def test_a_name_with_several_attributes() -> None:
    assert parse_profile("1g.24gb+gfx,me") == ProfileName(1, 24, attributes=("gfx", "me"))


def test_a_name_with_a_removed_attribute() -> None:
    assert parse_profile("1g.24gb-me") == ProfileName(1, 24, exclusions=("me",))


def read(text: str) -> ProfileName:
    name = parse_profile(text)
    assert name is not None
    return name


def test_a_compute_instance() -> None:
    name = read("1c.3g.20gb")
    assert name == ProfileName(3, 20, compute_instance_slices=1)
    assert name.is_compute_instance
    assert not name.is_long_spelling
    assert name.gpu_instance == "3g.20gb"


def test_the_long_spelling_of_a_gpu_instance() -> None:
    name = read("7c.7g.80gb")
    assert name.is_long_spelling
    assert not name.is_compute_instance
    assert name.gpu_instance == "7g.80gb"


def test_the_short_spelling_is_neither() -> None:
    name = read("7g.80gb")
    assert not name.is_long_spelling
    assert not name.is_compute_instance


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1g",
        "1g-5gb",
        "1g.5GB",
        "1G.5gb",
        "g.5gb",
        "1g.gb",
        "1g.5gb+",
        "1g.5gb+me-gfx",
        "1g.5gb+1me",
        "1g.5gb+.me",
        "1g.5gb+me.",
        "1g.5gb,me",
        " 1g.5gb",
        "1g.5gb\n",
        "mig-1g.5gb",
        "c.1g.5gb",
    ],
)
def test_what_is_not_a_name(text: str) -> None:
    assert parse_profile(text) is None


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("1g.10gb", "1g.10gb"),
        ("1g.10gb+me", "1g.10gb.me"),
        ("1g.24gb+me.all", "1g.24gb.me.all"),
        ("1g.24gb-me", "1g.24gb-me"),
    ],
)
def test_how_resources_spell_a_name(name: str, suffix: str) -> None:
    assert resource_suffix(name) == suffix


attributes = st.lists(st.from_regex(r"[a-z]([a-z0-9.]{0,4}[a-z0-9])?", fullmatch=True), min_size=1, max_size=3)


@given(
    c=st.none() | st.integers(0, 9),
    g=st.integers(0, 99),
    gb=st.integers(0, 999),
    sign=st.sampled_from("+-"),
    names=st.just([]) | attributes,
)
def test_a_name_is_spelt_as_it_was_read(c: int | None, g: int, gb: int, sign: str, names: list[str]) -> None:
    text = f"{'' if c is None else f'{c}c.'}{g}g.{gb}gb{sign if names else ''}{','.join(names)}"
    assert str(parse_profile(text)) == text
