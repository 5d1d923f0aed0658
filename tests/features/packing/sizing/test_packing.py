"""The fewest GPUs for instances by profile: known counts, certificates, and what is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from gpuplan.compiler.catalog import Engines, Gpu, Placement, Profile, load
from tests.compiler.planning.placement.test_placing import MIG_GPUS, each_mig_gpu
from tests.features.packing.sizing.certificates import catalogued, cost, faults, not_held
from tests.features.packing.sizing.frontier import frontier
from tests.features.packing.sizing.price_lists import Packing, pack

A100 = load().get("A100-40GB")
A30 = load().get("A30-24GB")

SMALL, MEDIUM, LARGE = "1g.1gb", "2g.2gb", "3g.3gb"


def a_model_of_decoders(total: int, slices: int, *each: int) -> Gpu:
    """A small, a medium and a large instance, each of one slice anywhere, that take so many decoders."""
    anywhere = tuple(Placement(start, 1) for start in range(slices))
    profiles = tuple(
        Profile(name, size, 1, slices, anywhere, (), dec=decoders)
        for size, (name, decoders) in enumerate(zip((SMALL, MEDIUM, LARGE), each, strict=True), start=1)
    )
    return replace(A30, id="OWN", profiles=profiles, memory_slices=slices, engines=Engines(dec=total))


OWN = a_model_of_decoders(132, 11, 12, 33, 44)
"""Eleven fill a GPU, or four, or three; the classic example of a bound that is not reached."""


# --- Known counts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "gpus"),
    [
        ({}, 0),
        ({"1g.5gb": 0}, 0),
        ({"1g.5gb": 7}, 1),
        ({"1g.5gb": 8}, 2),
        ({"1g.5gb": 6, "1g.5gb+me": 1}, 1),
        ({"1g.5gb+me": 2}, 2),
        ({"3g.20gb": 2}, 1),
        ({"3g.20gb": 2, "1g.5gb": 1}, 2),
        ({"2g.10gb": 3, "1g.5gb": 1}, 1),
        ({"4g.20gb": 10, "3g.20gb": 10}, 10),
        ({"1g.5gb": 32, "2g.10gb": 280, "3g.20gb": 389, "4g.20gb": 971, "7g.40gb": 1406}, 2377),
    ],
    ids=str,
)
def test_the_fewest_a100(counts: dict[str, int], gpus: int) -> None:
    packing = pack(A100, counts)
    assert packing.gpus == gpus
    assert faults(packing) == []


def test_the_layouts_say_what_a_gpu_holds_and_on_how_many() -> None:
    assert by_layout(pack(A30, {"2g.12gb": 3, "1g.6gb": 1})) == [({"2g.12gb": 2}, 1), ({"2g.12gb": 1, "1g.6gb": 1}, 1)]


def test_prices_prove_the_bound() -> None:
    packing = pack(A30, {"2g.12gb": 3, "1g.6gb": 1})
    assert packing.least == 2
    assert packing.prices == {
        "4g.24gb": 1,
        "2g.12gb": Fraction(1, 2),
        "2g.12gb+me": Fraction(1, 2),
        "1g.6gb": Fraction(1, 4),
        "1g.6gb+me": Fraction(1, 4),
    }


# --- Every model -------------------------------------------------------------------------------------------------


@given(st.data())
def test_any_demand_is_packed_and_its_prices_prove_it(data: st.DataObject) -> None:
    gpu = data.draw(st.sampled_from(MIG_GPUS))
    most = data.draw(st.sampled_from([2, 9, 300, 10**6]))
    counts = {profile.name: data.draw(st.integers(0, most)) for profile in gpu.profiles}
    assert faults(pack(gpu, {name: count for name, count in counts.items() if count})) == []


@each_mig_gpu
def test_layouts_of_the_frontier_are_those_of_brute_force(gpu: Gpu) -> None:
    known = frontier(gpu)
    assert Counter(layout.vector for layout in known.layouts) == Counter(
        known.vector(layout) for layout in catalogued(gpu.id) if layout
    )


@each_mig_gpu
def test_what_is_asked_for_alone_takes_as_many_gpus_as_its_maximum_says(gpu: Gpu) -> None:
    alone = {profile.name: pack(gpu, {profile.name: 100}).gpus for profile in gpu.profiles}
    assert alone == {profile.name: -(-100 // profile.max_instances) for profile in gpu.profiles}


def by_layout(packing: Packing) -> list[tuple[dict[str, int], int]]:
    return [(dict(layout), times) for layout, times in packing.layouts]


# --- A model whose prices do not settle it -----------------------------------------------------------------------


def test_a_search_proves_what_prices_cannot() -> None:
    packing = pack(OWN, {LARGE: 2, MEDIUM: 3, SMALL: 6})
    assert packing.gpus == packing.least == 3
    assert cost(packing.prices, packing.counts) <= 2
    assert not_held(packing) == []


def test_a_search_reaches_what_layouts_one_after_the_other_do_not() -> None:
    packing = pack(a_model_of_decoders(115, 6, 48, 19, 12), {SMALL: 4, MEDIUM: 6, LARGE: 9})
    assert packing.gpus == packing.least == 4
    assert cost(packing.prices, packing.counts) > 3
    assert not_held(packing) == []


def test_of_many_gpus_a_search_says_what_it_does_not_prove() -> None:
    packing = pack(OWN, {LARGE: 152, MEDIUM: 203, SMALL: 556})
    assert (packing.gpus, packing.least) == (153, 152)
    assert not_held(packing) == []


def test_prices_still_prove_what_they_can() -> None:
    packing = pack(OWN, {LARGE: 2, MEDIUM: 3, SMALL: 5})
    assert packing.gpus == packing.least == 2
    assert cost(packing.prices, packing.counts) > 1
    assert not_held(packing) == []


# --- Refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "counts", "words"),
    [
        ("A100-40GB", {"1g.10gb": 1, "3g.40gb": 1, "9g": 1}, "no A100-40GB can hold `3g.40gb` or `9g`"),
        ("L4-24GB", {"1g.5gb": 1}, "no L4-24GB can hold `1g.5gb`"),
        ("A100-40GB", {"1g.10gb": -1}, "fewer than no instances of `1g.10gb`"),
    ],
)
def test_trouble(model: str, counts: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        pack(load().get(model), counts)
