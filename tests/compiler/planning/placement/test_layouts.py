"""Which layouts a GPU can take, what can still be added to one, and what is near one that does not fit."""

from __future__ import annotations

import pytest
from hypothesis import given

from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.planning.placement.layouts import maximal_layouts, nearest_layouts, valid_layouts
from gpuplan.compiler.planning.placement.placing import fits
from tests.compiler.planning.placement.oracle import board, valid_vectors
from tests.compiler.planning.placement.test_placing import MIG_GPUS, SEVEN_SLICE_GPUS, each_mig_gpu, requests

A100 = load().get("A100-80GB")
BASE = tuple(profile.name for profile in A100.base_profiles)


# --- Valid and maximal -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu", SEVEN_SLICE_GPUS, ids=lambda gpu: gpu.id)
def test_layouts_of_seven_slice_boards(gpu: Gpu) -> None:
    base = [profile.name for profile in gpu.base_profiles]
    assert len(valid_layouts(gpu, base)) == 37
    assert len(valid_layouts(gpu)) == 77
    assert len(valid_layouts(gpu, [profile.name for profile in gpu.profiles])) == 127
    assert len(maximal_layouts(gpu, base)) == 12
    assert len(maximal_layouts(gpu)) == 28


@each_mig_gpu
def test_valid_layouts_are_those_of_brute_force(gpu: Gpu) -> None:
    judge = board(gpu.id)
    ours = [judge.vector(dict(layout)) for layout in valid_layouts(gpu, judge.names)]
    assert len(ours) == len(set(ours))
    assert set(ours) == {vector for vector in valid_vectors(gpu.id) if any(vector)}


@each_mig_gpu
def test_maximal_layouts_are_those_of_brute_force(gpu: Gpu) -> None:
    judge = board(gpu.id)
    valid = valid_vectors(gpu.id)
    maximal = {vector for vector in valid if not any(_one_more(vector, at) in valid for at in range(len(vector)))}
    assert {judge.vector(dict(layout)) for layout in maximal_layouts(gpu, judge.names)} == maximal


def _one_more(vector: tuple[int, ...], at: int) -> tuple[int, ...]:
    return (*vector[:at], vector[at] + 1, *vector[at + 1 :])


def test_the_twelve_maximal_layouts_of_the_base_profiles_in_order() -> None:
    assert [dict(layout) for layout in maximal_layouts(A100, BASE)] == [
        {"7g.80gb": 1},
        {"4g.40gb": 1, "3g.40gb": 1},
        {"4g.40gb": 1, "2g.20gb": 1, "1g.10gb": 1},
        {"4g.40gb": 1, "1g.10gb": 3},
        {"3g.40gb": 2},
        {"3g.40gb": 1, "2g.20gb": 2},
        {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2},
        {"3g.40gb": 1, "1g.10gb": 4},
        {"2g.20gb": 3, "1g.10gb": 1},
        {"2g.20gb": 2, "1g.10gb": 3},
        {"2g.20gb": 1, "1g.10gb": 5},
        {"1g.10gb": 7},
    ]


@pytest.mark.parametrize(
    ("gpu_id", "layouts"),
    [
        ("A30-24GB", [{"4g.24gb": 1}, {"2g.12gb": 2}, {"2g.12gb": 1, "1g.6gb": 2}, {"1g.6gb": 4}]),
        ("RTX-PRO-6000-96GB", [{"4g.96gb": 1}, {"2g.48gb": 2}, {"2g.48gb": 1, "1g.24gb": 2}, {"1g.24gb": 4}]),
    ],
)
def test_the_four_shapes_of_a_board_in_quarters(gpu_id: str, layouts: list[dict[str, int]]) -> None:
    assert [dict(layout) for layout in maximal_layouts(load().get(gpu_id))] == layouts


def test_a_layout_names_its_largest_profile_first() -> None:
    assert [list(layout) for layout in maximal_layouts(A100, ["1g.10gb", "3g.40gb"])] == [
        ["3g.40gb"],
        ["3g.40gb", "1g.10gb"],
        ["1g.10gb"],
    ]


def test_a_model_without_mig_has_no_layouts() -> None:
    assert maximal_layouts(load().get("L4-24GB")) == ()


# --- Room --------------------------------------------------------------------------------------------------------


# --- Near --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpu_id", "counts", "nearest"),
    [
        (
            "A100-80GB",
            {"3g.40gb": 2, "1g.10gb": 1},
            [{"3g.40gb": 2}, {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}, {"4g.40gb": 1, "3g.40gb": 1}],
        ),
        ("A100-40GB", {"3g.20gb": 3}, [{"3g.20gb": 2}, {"4g.20gb": 1, "3g.20gb": 1}, {"3g.20gb": 1, "2g.10gb": 2}]),
        (
            "A100-80GB",
            {"4g.40gb": 1, "2g.20gb": 2},
            [{"4g.40gb": 1, "2g.20gb": 1, "1g.10gb": 1}, {"3g.40gb": 1, "2g.20gb": 2}, {"4g.40gb": 1, "3g.40gb": 1}],
        ),
        ("A100-80GB", {"1g.5gb": 7}, [{"1g.10gb": 7}]),
        ("GB200-186GB", {"7g.189gb": 1}, [{"7g.186gb": 1}]),
        ("A100-80GB", {"9g.99gb": 1}, []),
        ("L4-24GB", {"1g.10gb": 1}, []),
        ("A100-80GB", {}, []),
    ],
    ids=str,
)
def test_the_nearest_layouts(gpu_id: str, counts: dict[str, int], nearest: list[dict[str, int]]) -> None:
    assert [dict(layout) for layout in nearest_layouts(load().get(gpu_id), counts)] == nearest


def test_a_layout_that_fits_is_its_own_nearest() -> None:
    assert nearest_layouts(A100, {"1g.10gb": 2}) == ({"1g.10gb": 2},)


def test_a_media_instance_is_kept() -> None:
    assert nearest_layouts(A100, {"1g.10gb+me": 2})[0] == {"1g.10gb+me": 1}


def test_the_limit_is_kept() -> None:
    assert len(nearest_layouts(A100, {"3g.40gb": 2, "1g.10gb": 1}, limit=1)) == 1


@given(requests)
def test_nearest_layouts_always_fit_and_differ(request_: tuple[Gpu, dict[str, int]]) -> None:
    gpu, counts = request_
    nearest = nearest_layouts(gpu, counts)
    assert all(layout and fits(gpu, layout) for layout in nearest)
    assert len({frozenset(layout.items()) for layout in nearest}) == len(nearest) <= 3


def test_every_model_has_something_near_its_own_whole_board_twice() -> None:
    twice = [(gpu, gpu.base_profiles[-1].name) for gpu in MIG_GPUS]
    assert [nearest_layouts(gpu, {name: 2})[0] for gpu, name in twice] == [{name: 1} for _, name in twice]
