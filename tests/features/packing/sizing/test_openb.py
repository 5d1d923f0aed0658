"""The shared pods of a published trace as MIG instances: how many A100 they need, all at once."""

from __future__ import annotations

import pytest

from benchmarks.published import SHARED_PODS, find_folder, shared_pods
from gpuplan.compiler.catalog import load
from tests.features.packing.sizing.certificates import faults
from tests.features.packing.sizing.price_lists import pack

FOLDER = find_folder()
PROFILES = {1: "1g.5gb", 2: "2g.10gb", 3: "3g.20gb", 4: "4g.20gb", 7: "7g.40gb"}


@pytest.mark.skipif(FOLDER is None, reason="GPUPLAN_DATA names no folder of published traces")
def test_shared_pods_of_openb_by_the_slices_that_they_need() -> None:
    assert FOLDER is not None
    assert shared_pods(FOLDER) == SHARED_PODS


def test_shared_pods_of_openb_need_2377_a100() -> None:
    packing = pack(load().get("A100-40GB"), {PROFILES[slices]: pods for slices, pods in SHARED_PODS.items()})
    assert SHARED_PODS.total() == 3078
    assert packing.gpus == packing.least == 2377
    assert {name for name, price in packing.prices.items() if price == 1} == {"4g.20gb", "7g.40gb"}
    assert faults(packing) == []
