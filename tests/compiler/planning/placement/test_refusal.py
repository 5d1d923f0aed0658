"""What a refusal says, and that its proof holds."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.planning.placement.placing import Placed, Refusal, RefusedBy, fits, place
from tests.compiler.planning.placement.oracle import all_vectors, board, valid_vectors
from tests.compiler.planning.placement.test_placing import MIG_GPUS, requests


def refusal_of(gpu_id: str, **counts: int) -> Refusal:
    refusal = place(load().get(gpu_id), counts)
    assert isinstance(refusal, Refusal)
    return refusal


def test_a_model_without_mig() -> None:
    refusal = refusal_of("L4-24GB", **{"1g.5gb": 1})
    assert (refusal.rule, refusal.summary) == (RefusedBy.NO_MIG, "L4-24GB has no MIG")


def test_a_model_that_cannot_be_judged() -> None:
    refusal = refusal_of("RTX-PRO-5000-48GB", **{"1g.24gb": 1})
    assert refusal.rule is RefusedBy.INCOMPLETE_MODEL
    assert refusal.summary == "MIG layouts cannot be judged on RTX-PRO-5000-48GB"
    assert refusal.facts == (
        "its MIG profiles changed between driver 580 and 610, and their placements are not published",
    )


def test_a_profile_of_another_model() -> None:
    refusal = refusal_of("A30-24GB", **{"1g.5gb": 4, "1g.6gb": 1})
    assert refusal.rule is RefusedBy.UNKNOWN_PROFILE
    assert refusal.profiles == ("1g.5gb",)
    assert refusal.summary == "A30-24GB has no profile `1g.5gb`"
    assert refusal.facts == ("profiles of A30-24GB: `1g.6gb`, `1g.6gb+me`, `2g.12gb`, `2g.12gb+me` and `4g.24gb`",)


def test_a_legacy_name() -> None:
    refusal = refusal_of("GB200-186GB", **{"7g.189gb": 1})
    assert refusal.rule is RefusedBy.UNKNOWN_PROFILE
    assert refusal.facts[0] == (
        "`7g.189gb` is another name of `7g.186gb`: early boards and drivers, which report 189 GiB in total"
    )


def test_two_profiles_over_their_maximum() -> None:
    refusal = refusal_of("A100-80GB", **{"4g.40gb": 2, "1g.20gb": 5})
    assert refusal.rule is RefusedBy.TOO_MANY
    assert refusal.profiles == ("1g.20gb", "4g.40gb")
    assert refusal.summary == "at most 4 `1g.20gb` and at most 1 `4g.40gb` on A100-80GB"
    assert refusal.facts == (
        "`1g.20gb` takes 2 memory slices and can start only at 0, 2, 4 or 6",
        "`4g.40gb` takes 4 memory slices and can start only at 0",
    )


def test_a_second_media_instance() -> None:
    refusal = refusal_of("A100-80GB", **{"1g.10gb+me": 2})
    assert refusal.rule is RefusedBy.TOO_MANY
    assert refusal.facts == ("`1g.10gb+me` takes the optical flow engine, and a GPU has one to give away",)


def test_media_instances_of_two_sizes() -> None:
    refusal = refusal_of("A30-24GB", **{"1g.6gb+me": 1, "2g.12gb+me": 1})
    assert refusal.rule is RefusedBy.ENGINES
    assert refusal.summary == "needs 2 of 1 JPEG engines and 2 of 1 optical flow engines"
    assert refusal.facts == (
        "each `1g.6gb+me` takes 1 of 1 JPEG engines and 1 of 1 optical flow engines",
        "each `2g.12gb+me` takes 1 of 1 JPEG engines and 1 of 1 optical flow engines",
    )


def test_all_media_engines_in_one_instance() -> None:
    refusal = refusal_of("RTX-PRO-6000-96GB", **{"1g.24gb+me.all": 1, "1g.24gb": 1, "1g.24gb-me": 1})
    assert refusal.rule is RefusedBy.ENGINES
    assert refusal.profiles == ("1g.24gb", "1g.24gb+me.all")


def test_an_instance_that_takes_some_of_the_engines_in_question_has_its_part() -> None:
    refusal = refusal_of("RTX-PRO-6000-96GB", **{"1g.24gb+me.all": 1, "1g.24gb+me": 1, "1g.24gb": 1})
    assert refusal.rule is RefusedBy.ENGINES
    assert refusal.profiles == ("1g.24gb", "1g.24gb+me", "1g.24gb+me.all")


def test_instances_that_have_one_arrangement_without_the_last() -> None:
    refusal = refusal_of("A100-80GB", **{"4g.40gb": 1, "1g.10gb": 4})
    assert refusal.summary == "no placement is left for another `1g.10gb` beside `4g.40gb` and 3x `1g.10gb`"
    collision, sums = refusal.facts[-2:]
    assert collision == (
        "`4g.40gb` and 3x `1g.10gb` can only take memory slices so: `4g.40gb` at 0-3, `1g.10gb` at 4, 5 and 6;"
        " another `1g.10gb` can start only at 0-6: none is left"
    )
    assert sums == "`4g.40gb` and 4x `1g.10gb` add up to 8 of 7 compute slices and 8 of 8 memory slices"


def test_instances_that_have_several_arrangements_without_the_last() -> None:
    refusal = refusal_of("A100-80GB", **{"3g.40gb": 1, "2g.20gb": 1, "1g.20gb": 1, "1g.10gb": 1})
    ways, none_left = refusal.facts[3:5]
    assert ways == (
        "`3g.40gb`, `2g.20gb` and `1g.20gb` fit in 3 ways: `3g.40gb` at 0-3, `2g.20gb` at 4-5, `1g.20gb` at 6-7;"
        " `3g.40gb` at 4-7, `2g.20gb` at 0-1, `1g.20gb` at 2-3; `3g.40gb` at 4-7, `2g.20gb` at 2-3, `1g.20gb` at 0-1"
    )
    assert none_left == "`1g.10gb` can start only at 0-6: none is left in any of them"


def test_the_proof_leaves_out_what_does_not_collide() -> None:
    refusal = refusal_of("A100-80GB", **{"4g.40gb": 1, "2g.20gb": 2, "1g.10gb": 3})
    assert refusal.profiles == ("4g.40gb", "2g.20gb")


@pytest.mark.parametrize("gpu", MIG_GPUS, ids=lambda gpu: gpu.id)
def test_the_profiles_of_a_proof_are_enough_to_refuse(gpu: Gpu) -> None:
    judge = board(gpu.id)
    fullest = max(map(sum, valid_vectors(gpu.id)))
    for vector in all_vectors(gpu.id, most=min(fullest + 1, 5)):
        counts = judge.counts(vector)
        refusal = place(gpu, counts)
        if isinstance(refusal, Refusal):
            assert not fits(gpu, {name: counts[name] for name in refusal.profiles})


@given(requests)
def test_a_refusal_says_what_and_why(request_: tuple[Gpu, dict[str, int]]) -> None:
    gpu, counts = request_
    refusal = place(gpu, counts)
    if not isinstance(refusal, Placed):
        assert refusal.profiles
        assert set(refusal.profiles) <= set(counts)
        assert all(text and not text.endswith(".") for text in (refusal.summary, *refusal.facts))
        assert max(Counter(refusal.facts).values()) == 1
