"""A board that differs from the catalog is told field by field; one that does not is not."""

from __future__ import annotations

import pytest

from gpuplan.compiler.catalog.loading import load
from tests.gpu.comparing import Board, Instances, differences, find_model

A100 = load().get("A100-80GB")
T4 = load().get("T4-16GB")

SMALL = Instances("1g.10gb", 1, 7, 14, 1, 0, 0, 0, 0, 9728, tuple((start, 1) for start in range(7)))
"""As `nvidia-smi mig -lgip` and `-lgipp` print it of an A100 of 80 GB (NVIDIA's MIG user guide)."""
BOARD = Board("NVIDIA A100-SXM4-80GB", 0x20B210DE, 81920, (8, 0), "580.65.06", is_mig_on=False)


def test_a_board_as_the_catalog_says_has_no_differences() -> None:
    assert find_model(BOARD, load().all()) is A100
    assert differences(BOARD, A100) == []


def test_a_board_without_mig_has_no_differences() -> None:
    board = Board("Tesla T4", 0x1EB810DE, 15360, (7, 5), "580.65.06", is_mig_on=None)
    assert find_model(board, load().all()) is T4
    assert differences(board, T4) == []


@pytest.mark.parametrize(
    ("board", "message"),
    [
        (BOARD._replace(name="NVIDIA A100X"), "product: the board is NVIDIA-A100X, A100-80GB is "),
        (BOARD._replace(pci=0x20B010DE), "pci: the board is 0x20B0, A100-80GB is "),
        (BOARD._replace(pci=0x20B21002), "pci: the board is 0x20B2, A100-80GB is "),
        (BOARD._replace(memory_mib=40960), "memory: the board has 40960 MiB, A100-80GB 81920 MiB"),
        (BOARD._replace(compute_capability=(9, 0)), "compute capability: the board has (9, 0), A100-80GB (8, 0)"),
        (BOARD._replace(is_mig_on=None), "MIG: the board has none, A100-80GB says otherwise"),
    ],
    ids=["product", "device", "vendor", "memory", "compute", "mig"],
)
def test_each_field_of_a_board_is_compared(board: Board, message: str) -> None:
    (found,) = differences(board, A100)
    assert found.startswith(message)


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (SMALL._replace(compute_slices=2), "1g.10gb: compute_slices 2, and not 1"),
        (SMALL._replace(max_instances=6), "1g.10gb: max_instances 6, and not 7"),
        (SMALL._replace(sm=16), "1g.10gb: sm 16, and not 14"),
        (SMALL._replace(ce=2), "1g.10gb: ce 2, and not 1"),
        (SMALL._replace(dec=1), "1g.10gb: dec 1, and not 0"),
        (SMALL._replace(enc=1), "1g.10gb: enc 1, and not 0"),
        (SMALL._replace(jpeg=1), "1g.10gb: jpeg 1, and not 0"),
        (SMALL._replace(ofa=1), "1g.10gb: ofa 1, and not 0"),
        (SMALL._replace(memory_mib=4864), "1g.10gb: memory 4864 MiB, and not 9728"),
        (SMALL._replace(placements=((0, 1),)), "1g.10gb: placements [(0, 1)], and not [(0, 1), (1, 1)"),
        (SMALL._replace(name="1g.11gb"), "1g.11gb: A100-80GB has no such profile"),
    ],
    ids=["slices", "instances", "sm", "ce", "dec", "enc", "jpeg", "ofa", "memory", "placements", "name"],
)
def test_each_field_of_a_profile_is_compared(profile: Instances, message: str) -> None:
    found = differences(BOARD._replace(is_mig_on=True, profiles=(profile,)), A100)
    assert any(text.startswith(message) for text in found)


def test_profiles_that_the_board_lacks_are_told_where_it_tells_of_any() -> None:
    found = differences(BOARD._replace(is_mig_on=True, profiles=(SMALL,)), A100)
    assert "7g.80gb: the board has no such profile with driver 580.65.06" in found
    assert not [text for text in found if text.startswith("1g.10gb:")]


def test_a_profile_that_needs_a_newer_driver_is_not_missed() -> None:
    assert A100.min_drivers["1g.10gb+me"] == "R470"
    board = BOARD._replace(is_mig_on=True, profiles=(SMALL,))
    missed = "1g.10gb+me: the board has no such profile with driver "
    assert f"{missed}580.65.06" in differences(board, A100)
    assert f"{missed}450.80.02" not in differences(board._replace(driver="450.80.02"), A100)


def test_profiles_without_names_are_those_that_are_alike() -> None:
    unnamed = SMALL._replace(name="")
    assert differences(BOARD._replace(profiles=(unnamed,)), A100) == []
    (found,) = differences(BOARD._replace(profiles=(unnamed._replace(max_instances=5),)), A100)
    assert found == "a profile of 1 slices, 5 times: A100-80GB has none like it"


def test_a_board_that_nothing_lists_is_of_no_model() -> None:
    assert find_model(BOARD._replace(name="NVIDIA Z1", pci=0xFFFF10DE), load().all()) is None
