"""Which instances fit on one GPU together: known layouts, and agreement with an independent judge."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.planning.placement.placing import Placed, Refusal, RefusedBy, arrangements, fits, place
from tests.compiler.planning.placement.oracle import all_vectors, board, sets_of_placements, valid_vectors
from tests.every import every_row

KNOWN = yaml.safe_load((Path(__file__).parents[2] / "catalog" / "known_good_layouts.yaml").read_text())
MIG_GPUS = tuple(gpu for gpu in load().all() if gpu.profiles)
SEVEN_SLICE_GPUS = tuple(gpu for gpu in MIG_GPUS if gpu.compute_slices == 7)
A100_80 = load().get("A100-80GB")
A100_40 = load().get("A100-40GB")

each_mig_gpu = pytest.mark.parametrize("gpu", MIG_GPUS, ids=lambda gpu: gpu.id)
each_seven_slice_gpu = pytest.mark.parametrize("gpu", SEVEN_SLICE_GPUS, ids=lambda gpu: gpu.id)


def spots(gpu: Gpu, counts: dict[str, int]) -> list[tuple[str, str]]:
    placed = place(gpu, counts)
    assert isinstance(placed, Placed)
    return [(instance.profile.name, str(instance.placement)) for instance in placed.instances]


# --- The question every platform team asks -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "counts", [{"1g.10gb": 7}, {"2g.20gb": 3, "1g.10gb": 1}, {"3g.40gb": 1, "2g.20gb": 2}], ids=str
)
def test_three_ways_to_divide_an_80_gb_a100(counts: dict[str, int]) -> None:
    assert isinstance(place(A100_80, counts), Placed)


def test_two_3g_and_a_1g_do_not_fit_though_their_compute_slices_add_up() -> None:
    assert place(A100_80, {"3g.40gb": 2, "1g.10gb": 1}) == Refusal(
        rule=RefusedBy.NO_ARRANGEMENT,
        profiles=("3g.40gb", "1g.10gb"),
        summary="no placement is left for `1g.10gb` beside 2x `3g.40gb`",
        facts=(
            "`3g.40gb` takes 4 memory slices and can start only at 0 or 4",
            "2x `3g.40gb` can only take memory slices 0-3 and 4-7; `1g.10gb` can start only at 0-6: none is left",
            "2x `3g.40gb` and `1g.10gb` add up to 7 of 7 compute slices and 9 of 8 memory slices",
        ),
    )


def test_three_3g_do_not_fit_on_a_40_gb_a100() -> None:
    refusal = place(A100_40, {"3g.20gb": 3})
    assert isinstance(refusal, Refusal)
    assert (refusal.rule, refusal.summary) == (RefusedBy.TOO_MANY, "at most 2 `3g.20gb` on A100-40GB")


# --- Layouts that are known to work, or not ----------------------------------------------------------------------


def layout_of(gpu_id: str, counts: dict[str, int]) -> str:
    return f"{gpu_id} {counts}"


@every_row(((gpu_id, row["instances"]) for row in KNOWN["published"] for gpu_id in row.get("gpus", ())), layout_of)
def test_published_layouts_fit(gpu_id: str, counts: dict[str, int]) -> None:
    assert isinstance(place(load().get(gpu_id), counts), Placed)


@every_row(
    ((gpu_id, row["instances"]) for row in KNOWN["published"] for gpu_id in row.get("legacy_gpus", ())), layout_of
)
def test_published_layouts_in_early_names_fit_once_renamed(gpu_id: str, counts: dict[str, int]) -> None:
    gpu = load().get(gpu_id)
    assert isinstance(place(gpu, counts), Refusal)
    assert isinstance(place(gpu, {gpu.legacy_names[name].profile: count for name, count in counts.items()}), Placed)


@every_row(KNOWN["generated_all_balanced"].items(), layout_of)
def test_generated_all_balanced_fits(gpu_id: str, counts: dict[str, int]) -> None:
    assert isinstance(place(load().get(gpu_id), counts), Placed)


@pytest.mark.parametrize("row", KNOWN["observed"], ids=lambda row: f"{row['gpu']}-{row['instances']}")
def test_observed_layouts_fit(row: dict[str, Any]) -> None:
    assert isinstance(place(load().get(row["gpu"]), row["instances"]), Placed)


@pytest.mark.parametrize("row", KNOWN["refused"], ids=lambda row: f"{row['gpu']}-{row['instances']}")
def test_impossible_layouts_are_refused_by_the_right_rule(row: dict[str, Any]) -> None:
    refusal = place(load().get(row["gpu"]), row["instances"])
    assert isinstance(refusal, Refusal)
    assert refusal.rule == row["rule"]


# --- Where instances go ------------------------------------------------------------------------------------------


def test_all_balanced_goes_where_hardware_puts_it() -> None:
    assert spots(A100_80, {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}) == [
        ("2g.20gb", "0-1"),
        ("1g.10gb", "2"),
        ("1g.10gb", "3"),
        ("3g.40gb", "4-7"),
    ]


def test_4g_2g_1g_goes_where_the_mig_guide_shows_it() -> None:
    assert spots(A100_40, {"4g.20gb": 1, "2g.10gb": 1, "1g.5gb": 1}) == [
        ("4g.20gb", "0-3"),
        ("2g.10gb", "4-5"),
        ("1g.5gb", "6"),
    ]


def test_a_lone_1g_leaves_the_most_room() -> None:
    assert spots(A100_80, {"1g.10gb": 1}) == [("1g.10gb", "6")]


def test_four_1g_beside_a_3g_need_the_3g_on_the_right() -> None:
    assert spots(A100_80, {"3g.40gb": 1, "1g.10gb": 4})[-1] == ("3g.40gb", "4-7")


def test_2g_and_two_1g_on_twelve_slices() -> None:
    assert spots(load().get("RTX-PRO-6000-96GB"), {"2g.48gb": 1, "1g.24gb": 2}) == [
        ("2g.48gb", "0-5"),
        ("1g.24gb", "6-8"),
        ("1g.24gb", "9-11"),
    ]


def test_slices_in_use_are_counted() -> None:
    placed = place(A100_80, {"3g.40gb": 2})
    assert isinstance(placed, Placed)
    assert (placed.memory_slices, placed.compute_slices) == (8, 6)


def test_no_instances_fit() -> None:
    assert place(A100_80, {}) == Placed(A100_80, ())


def test_a_zero_count_is_no_instance() -> None:
    assert place(A100_80, {"3g.40gb": 2, "1g.10gb": 0}) == place(A100_80, {"3g.40gb": 2})


def test_a_negative_count_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match=r"-1 instances of 1g\.10gb"):
        place(A100_80, {"1g.10gb": -1})


# --- Agreement with an independent judge -------------------------------------------------------------------------


@each_mig_gpu
def test_every_vector_is_judged_as_brute_force_judges_it(gpu: Gpu) -> None:
    """All layouts of one instance more than the fullest that fits; a larger one has an impossible part."""
    valid = valid_vectors(gpu.id)
    fullest = max(map(sum, valid))
    judge = board(gpu.id)
    wrong = [
        vector
        for vector in all_vectors(gpu.id, most=fullest + 1)
        if fits(gpu, judge.counts(vector)) != (vector in valid)
    ]
    assert wrong == []


@each_mig_gpu
def test_every_valid_vector_is_placed_without_overlap(gpu: Gpu) -> None:
    judge = board(gpu.id)
    for vector in valid_vectors(gpu.id):
        counts = judge.counts(vector)
        placed = place(gpu, counts)
        assert isinstance(placed, Placed)
        assert Counter(instance.profile.name for instance in placed.instances) == counts
        assert all(instance.placement in instance.profile.placements for instance in placed.instances)
        taken = [slice_ for _, spot in placed.instances for slice_ in range(spot.start, spot.end)]
        assert taken == sorted(set(taken))


@each_seven_slice_gpu
def test_compute_slices_never_bind(gpu: Gpu) -> None:
    slices = [row["compute_slices"] for row in board(gpu.id).rows]
    assert all(
        sum(count * size for count, size in zip(vector, slices, strict=True)) <= 7 for vector in valid_vectors(gpu.id)
    )


def some_counts(gpu: Gpu) -> st.SearchStrategy[dict[str, int]]:
    names = [*board(gpu.id).names, *gpu.legacy_names, "1g.5gb", "1c.3g.20gb", "nonsense"]
    return st.dictionaries(st.sampled_from(names), st.integers(0, 12), max_size=5)


requests = st.sampled_from(MIG_GPUS).flatmap(lambda gpu: st.tuples(st.just(gpu), some_counts(gpu)))


@given(requests)
def test_any_request_is_judged_as_brute_force_judges_it(request: tuple[Gpu, dict[str, int]]) -> None:
    gpu, counts = request
    judge = board(gpu.id)
    wanted = {name: count for name, count in counts.items() if count}
    is_valid = set(wanted) <= set(judge.names) and judge.vector(wanted) in valid_vectors(gpu.id)
    assert isinstance(place(gpu, counts), Placed if is_valid else Refusal)
    assert fits(gpu, counts) == is_valid


@given(requests, st.randoms(use_true_random=False))
def test_the_order_of_a_layout_does_not_matter(request: tuple[Gpu, dict[str, int]], random: Random) -> None:
    gpu, counts = request
    shuffled = list(counts.items())
    random.shuffle(shuffled)
    assert place(gpu, dict(shuffled)) == place(gpu, counts)


@settings(max_examples=50)
@given(requests)
def test_what_is_placed_is_one_of_all_arrangements(request: tuple[Gpu, dict[str, int]]) -> None:
    gpu, counts = request
    placed = place(gpu, counts)
    if isinstance(placed, Placed):
        assert placed.instances in set(arrangements(gpu, counts))


# --- Figures others have published -------------------------------------------------------------------------------


BASE = ("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")


@pytest.mark.parametrize(("profiles", "number"), [(BASE, 298), ((*BASE, "1g.20gb"), 723)], ids=["base", "double"])
def test_number_of_sets_of_placements(profiles: tuple[str, ...], number: int) -> None:
    layouts = [board("A100-80GB").counts(vector) for vector in valid_vectors("A100-80GB")]
    ours = [way for counts in layouts if set(counts) <= set(profiles) for way in arrangements(A100_80, counts)]
    assert len(ours) == len(set(ours)) == len(sets_of_placements("A100-80GB", profiles)) == number


def test_nineteen_sets_of_placements_are_saturated() -> None:
    sets = sets_of_placements("A100-80GB", BASE)
    assert sum(not any(placements < other for other in sets) for placements in sets) == 19
