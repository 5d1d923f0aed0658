"""As many GPUs in fewer layouts: what is held, how few there are, and beside all ways to choose them."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from random import Random

import pytest
from hypothesis import given, strategies as st

from gpuplan.compiler.catalog import load
from gpuplan.compiler.planning.placement.placing import fits
from gpuplan.features.packing.sizing.fewest_layouts import with_fewest_layouts
from gpuplan.features.packing.sizing.packing import pack
from tests.cluster.proof import IS_ASKED_FOR
from tests.compiler.planning.placement.oracle import Vector, board, valid_vectors
from tests.compiler.planning.placement.test_placing import MIG_GPUS
from tests.features.packing.sizing import brute_force, highs
from tests.features.packing.sizing.certificates import held_by
from tests.features.packing.sizing.test_packing import LARGE, MEDIUM, OWN, SMALL

A100 = load().get("A100-80GB")
A30 = load().get("A30-24GB")
DEMANDS = 60 if IS_ASKED_FOR else 2
MANY = {"7g.80gb": 1331, "4g.40gb": 2011, "3g.40gb": 1777, "2g.20gb": 2503, "1g.10gb": 2378}


def test_two_layouts_do_what_four_did() -> None:
    packing = pack(A100, {"4g.40gb": 2, "3g.40gb": 3, "2g.20gb": 5, "1g.10gb": 4})
    simpler = with_fewest_layouts(packing)
    assert [times for _, times in packing.layouts] == [2, 1, 1, 1]
    assert [(dict(layout), times) for layout, times in simpler.packing.layouts] == [
        ({"4g.40gb": 1, "2g.20gb": 1, "1g.10gb": 1}, 2),
        ({"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}, 3),
    ]
    assert simpler.least == 2
    assert simpler.packing.idle == {"1g.10gb": 4}


def test_of_many_gpus_it_says_how_few_layouts_are_ruled_out() -> None:
    packing = pack(A100, MANY)
    simpler = with_fewest_layouts(packing)
    assert (len(packing.layouts), len(simpler.packing.layouts), simpler.least) == (7, 5, 4)
    assert simpler.packing.gpus == packing.gpus
    assert simpler.packing.bound is packing.bound


def test_nothing_takes_no_layout() -> None:
    nothing = pack(A100, {})
    assert with_fewest_layouts(nothing).packing == nothing
    assert with_fewest_layouts(nothing).least == 0


def test_a_model_whose_prices_do_not_settle_it() -> None:
    simpler = with_fewest_layouts(pack(OWN, {LARGE: 2, MEDIUM: 3, SMALL: 6}))
    assert simpler.packing.gpus == 3
    assert held_by(simpler.packing) >= Counter({LARGE: 2, MEDIUM: 3, SMALL: 6})


def test_small_demands_take_as_few_layouts_as_any_choice_of_them() -> None:
    judge = board(A30.id)
    wrong = []
    for demand, gpus in brute_force.fewest_gpus(A30.id, 4).items():
        simpler = with_fewest_layouts(pack(A30, judge.counts(demand)))
        if not fewest(demand, gpus) == len(simpler.packing.layouts) == simpler.least:
            wrong.append(demand)
    assert wrong == []


def fewest(demand: Vector, gpus: int) -> int:
    """By all ways to give each GPU a layout of the demand's profiles."""
    valid = [vector for vector in valid_vectors(A30.id) if is_within(vector, demand)]
    return min(
        len(set(chosen))
        for chosen in combinations_with_replacement(valid, gpus)
        if all(sum(counts) >= count for *counts, count in zip(*chosen, demand, strict=True))
    )


def is_within(vector: Vector, demand: Vector) -> bool:
    return any(vector) and all(count for held, count in zip(vector, demand, strict=True) if held)


@pytest.mark.parametrize("model", ["A30-24GB", "A100-80GB", *["RTX-PRO-6000-96GB"] * IS_ASKED_FOR])
def test_large_demands_take_hardly_a_layout_more_than_highs_needs(model: str) -> None:
    judge, random = board(model), Random(model)
    more: Counter[int] = Counter()
    for _ in range(DEMANDS):
        demand = tuple(round(random.choice([10, 50, 500]) * random.random()) for _ in judge.names)
        simpler = with_fewest_layouts(pack(load().get(model), judge.counts(demand)))
        fewest = highs.fewest_layouts(model, demand, simpler.packing.gpus)
        assert simpler.least <= fewest
        more[len(simpler.packing.layouts) - fewest] += 1
    print(f"{model}: {dict(more)}")
    assert set(more) <= {0, 1}
    assert more[0] >= DEMANDS * 0.8


@given(st.data())
def test_any_demand_is_held_in_no_more_layouts(data: st.DataObject) -> None:
    gpu = data.draw(st.sampled_from(MIG_GPUS))
    counts = {profile.name: data.draw(st.integers(0, 12)) for profile in data.draw(st.permutations(gpu.profiles))[:5]}
    packing = pack(gpu, counts)
    simpler = with_fewest_layouts(packing)
    assert simpler.packing.gpus == packing.gpus
    assert held_by(simpler.packing) >= Counter(counts)
    assert simpler.packing.idle == held_by(simpler.packing) - Counter(counts)
    assert simpler.least <= len(simpler.packing.layouts) <= len(packing.layouts)
    assert all(fits(gpu, layout) for layout, _ in simpler.packing.layouts)
