"""Instances drawn on the memory slices of a GPU."""

from __future__ import annotations

import pytest

from gpuplan.catalog import load
from gpuplan.planning.placement import ASCII, UNICODE, BoxStyle, Placed, draw_slices, maximal_layouts, place
from tests.planning.placement.test_placing import MIG_GPUS


def drawing(gpu_id: str, counts: dict[str, int], style: BoxStyle = UNICODE) -> str:
    gpu = load().get(gpu_id)
    placed = place(gpu, counts)
    assert isinstance(placed, Placed)
    return draw_slices(gpu, placed.instances, style)


def test_a_full_board():
    assert drawing("A100-80GB", {"3g.40gb": 1, "2g.20gb": 2}) == (
        "  0    1    2    3    4    5    6    7\n"
        "┌─────────┬─────────┬───────────────────┐\n"
        "│ 2g.20gb │ 2g.20gb │      3g.40gb      │\n"
        "└─────────┴─────────┴───────────────────┘"
    )


def test_the_same_in_ascii():
    assert drawing("A100-80GB", {"3g.40gb": 1, "2g.20gb": 2}, ASCII) == (
        "  0    1    2    3    4    5    6    7\n"
        "+---------+---------+-------------------+\n"
        "| 2g.20gb | 2g.20gb |      3g.40gb      |\n"
        "+---------+---------+-------------------+"
    )


def test_idle_slices_are_shaded():
    assert drawing("A100-80GB", {"3g.40gb": 1}) == (
        " 0  1  2  3  4  5  6  7\n┌───────────┬───────────┐\n│░░░idle░░░░│  3g.40gb  │\n└───────────┴───────────┘"
    )


def test_an_idle_board():
    assert drawing("A100-80GB", {}, ASCII) == (
        " 0  1  2  3  4  5  6  7\n+-----------------------+\n|.........idle..........|\n+-----------------------+"
    )


def test_seven_small_instances_stay_on_a_terminals_line():
    lines = drawing("A100-80GB", {"1g.10gb": 7}).splitlines()
    assert lines[2] == "│1g.10gb│1g.10gb│1g.10gb│1g.10gb│1g.10gb│1g.10gb│1g.10gb│░idle░░│"


def test_twelve_slices():
    assert drawing("RTX-PRO-6000-96GB", {"2g.48gb": 1, "1g.24gb": 2}) == (
        "  0   1   2   3   4   5   6   7   8   9  10  11\n"
        "┌───────────────────────┬───────────┬───────────┐\n"
        "│        2g.48gb        │  1g.24gb  │  1g.24gb  │\n"
        "└───────────────────────┴───────────┴───────────┘"
    )


@pytest.mark.parametrize("gpu", MIG_GPUS, ids=lambda gpu: gpu.id)
@pytest.mark.parametrize("style", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_boxes_are_aligned_whatever_is_in_them(gpu, style: BoxStyle):
    for layout in ({}, *maximal_layouts(gpu, [profile.name for profile in gpu.profiles])):
        placed = place(gpu, layout)
        assert isinstance(placed, Placed)
        numbers, top, middle, bottom = draw_slices(gpu, placed.instances, style).splitlines()
        assert len(top) == len(middle) == len(bottom) >= len(numbers)
        assert all(profile.name in middle for profile, _ in placed.instances)
        walls = [index for index, character in enumerate(middle) if character == style.down]
        assert walls == [index for index, character in enumerate(top) if character in style.top]
        width = (len(top) - 1) // gpu.memory_slices
        assert {placement.start * width for _, placement in placed.instances} <= set(walls)


def test_ascii_is_ascii():
    assert drawing("A100-80GB", {"3g.40gb": 1, "1g.10gb": 2}, ASCII).isascii()
