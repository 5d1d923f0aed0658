"""Pools on their way, with retained keys and every way of sharing, come back as they were built."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.features.live.platforms import CLUSTER, Drawn
from tests.features.live.round_trip import trip_of

PLATFORMS = Path(__file__).parents[2] / "laws/tracing/platforms"
OF_POOLS = ("partitions/", "gpu-operator/configmap-gpuplan-mig", "gpu-operator/configmap-gpuplan-device")


@pytest.mark.parametrize("name", ["keys", "moves", "sharing", "on-demand"])
def test_pools_come_back(name: str) -> None:
    text = (PLATFORMS / f"{name}.yaml").read_text()

    trip = trip_of(Drawn(name, {f"overlays/{CLUSTER}/all.yaml": text}))

    assert trip is not None
    assert [path for path in trip.differing if any(part in path for part in OF_POOLS)] == []
