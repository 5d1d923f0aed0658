"""Which profiles hold a pod, and which of them need not be thought of."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpuplan.compiler.catalog import Gpu, load
from gpuplan.compiler.planning.plan import Isolation
from gpuplan.features.packing.sizing.answers import Way
from gpuplan.features.packing.sizing.choosing.parts import (
    instance,
    is_no_larger,
    most_shares,
    requests,
    smallest_profiles,
)
from gpuplan.features.packing.sizing.needs import Need
from tests.features.packing.sizing.choosing.building import A100, L4, a_need, a_service

RTX = load().get("RTX-PRO-6000-96GB")
H20 = load().get("H20-141GB")
V100 = load().get("V100-16GB")


@pytest.mark.parametrize(
    ("need", "names"),
    [
        (a_need(), ["1g.10gb"]),
        (a_need(memory=9), ["1g.10gb"]),
        (a_need(memory=10), ["1g.20gb"]),
        (a_need(memory=20), ["3g.40gb"]),
        (a_need(compute="4/7"), ["4g.40gb"]),
        (a_need(engines={"dec": 1}), ["1g.10gb+me", "1g.20gb"]),
        (a_need(engines={"dec": 2}), ["3g.40gb"]),
        (a_need(memory=79), []),
        (a_need(gpus=1), []),
        (a_need(isolation=Isolation.WHOLE_GPU), []),
        (a_need(models=("H100-80GB",)), []),
        (a_service(1, {1: 10, 2: 10, 3: 20}), ["1g.10gb", "3g.40gb"]),
    ],
)
def test_the_profiles_that_hold_a_pod_and_no_larger_ones(need: Need, names: list[str]) -> None:
    assert [profile.name for profile in smallest_profiles(A100, need)] == names


def test_profiles_that_may_not_be_made_are_left_out() -> None:
    need = a_need(memory=15)
    assert [profile.name for profile in smallest_profiles(A100, need, ["1g.10gb", "2g.20gb"])] == ["2g.20gb"]


def test_memory_that_nobody_has_read_is_enough_for_no_need_that_asks_for_some() -> None:
    assert smallest_profiles(H20, a_need(memory=1)) == ()
    assert [profile.name for profile in smallest_profiles(H20, a_need())] == ["1g.18gb"]


@pytest.mark.parametrize(
    ("gpu", "one", "other", "is_smaller"),
    [
        (A100, "1g.20gb", "2g.20gb", True),
        (A100, "2g.20gb", "1g.20gb", False),
        (A100, "3g.40gb", "4g.40gb", True),
        (RTX, "1g.24gb-me", "2g.48gb-me", True),
        (RTX, "1g.24gb", "2g.48gb-me", False),
        (H20, "1g.18gb", "2g.35gb", True),
        (H20, "1g.18gb+me", "2g.35gb", False),
    ],
)
def test_a_profile_replaces_another_that_takes_all_that_it_takes(
    gpu: Gpu, one: str, other: str, is_smaller: bool
) -> None:
    found = {profile.name: profile for profile in gpu.profiles}
    assert is_no_larger(found[one], found[other]) is is_smaller


@pytest.mark.parametrize(
    ("need", "way", "most"),
    [
        (a_need(memory=5, isolation=Isolation.NONE), Way.TIME_SLICING, 4),
        (a_need(memory=5, compute="1/3", isolation=Isolation.NONE), Way.TIME_SLICING, 3),
        (a_need(memory=5, isolation=Isolation.MPS), Way.MPS, 4),
        (a_need(memory=5, isolation=Isolation.MPS), Way.TIME_SLICING, 0),
        (a_need(memory=5), Way.TIME_SLICING, 0),
        (a_need(memory=12, isolation=Isolation.NONE), Way.TIME_SLICING, 0),
        (a_need(isolation=Isolation.NONE), Way.TIME_SLICING, 0),
        (a_need(gpus=1, memory=5, isolation=Isolation.NONE), Way.TIME_SLICING, 0),
        (a_need(compute="1/1000", isolation=Isolation.NONE), Way.TIME_SLICING, 48),
    ],
)
def test_a_gpu_has_as_many_shares_as_each_is_enough(need: Need, way: Way, most: int) -> None:
    assert most_shares(L4, way, need) == most


def test_mps_has_fewer_clients_on_older_gpus() -> None:
    need = a_need(isolation=Isolation.MPS, compute="1/1000")
    assert (most_shares(V100, Way.MPS, need), most_shares(L4, Way.MPS, need)) == (16, 48)


def test_requests_are_counted_to_a_millionth() -> None:
    need = a_service(0.3, {1: 0.1 * 3})
    assert need.service is not None
    assert Fraction(0.1 * 3) != Fraction(3, 10)
    (profile,) = smallest_profiles(A100, need)
    assert requests(need.service, instance(A100, profile)) == Fraction(3, 10)


def test_what_is_measured_below_a_millionth_of_a_request_is_nothing() -> None:
    assert smallest_profiles(A100, a_service(1, {1: 1e-7})) == ()
