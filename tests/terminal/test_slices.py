"""A GPU drawn slice by slice."""

from __future__ import annotations

import pytest

from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.planning.placement.layouts import maximal_layouts
from gpuplan.compiler.planning.placement.placing import Placed, place
from gpuplan.terminal.catalog import SIZE_STYLES, boxes, strip


def a_placement(model: str, layout: dict[str, int]) -> Placed:
    placed = place(load().get(model), layout)
    assert isinstance(placed, Placed)
    return placed


def test_boxes_are_as_wide_as_the_slices_they_take() -> None:
    placed = a_placement("A100-80GB", {"3g.40gb": 1, "2g.20gb": 2})

    assert boxes(placed.gpu, placed.instances) == "|2g.20gb|2g.20gb|3g.40gb        |"


def test_slices_that_nothing_takes_are_dots() -> None:
    placed = a_placement("A100-80GB", {"1g.10gb": 7})

    assert strip(placed.gpu, placed.instances) == "|1|1|1|1|1|1|1|.|"
    assert boxes(placed.gpu, placed.instances).endswith("|1g.10gb|.      |")


def test_an_empty_gpu_is_all_dots() -> None:
    gpu = load().get("A30-24GB")

    assert strip(gpu, ()) == "|.|.|.|.|"
    assert boxes(gpu, ()) == "|. |. |. |. |"


@pytest.mark.parametrize("gpu", [gpu for gpu in load().all() if gpu.profiles], ids=lambda gpu: gpu.id)
def test_every_layout_of_every_model_covers_the_axis(gpu: Gpu) -> None:
    for layout in maximal_layouts(gpu):
        placed = place(gpu, layout)
        assert isinstance(placed, Placed)

        drawn = strip(gpu, placed.instances)

        assert len(drawn.replace("|", "")) == gpu.memory_slices
        assert drawn.replace(".", "").count("|") >= len(placed.instances) + 1
        (width,) = {len(box) + 1 for box in boxes(gpu, placed.instances)[1:-1].split("|") if box.strip() == "."} or {0}
        assert width == 0 or len(boxes(gpu, placed.instances)) == gpu.memory_slices * width + 1


def test_instances_of_every_size_have_a_colour() -> None:
    sizes = {str(profile.compute_slices) for gpu in load().all() for profile in gpu.profiles}
    assert sizes == SIZE_STYLES.keys()
