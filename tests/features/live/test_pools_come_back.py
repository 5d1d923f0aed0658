"""Pools on their way, with retained keys and every way of sharing, stay as they are when they are imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.features.live.platforms import CLUSTER, Drawn
from tests.features.live.round_trip import trip_of

PLATFORMS = Path(__file__).parents[2] / "laws/tracing/platforms"


@pytest.mark.parametrize("name", ["keys", "moves", "sharing", "on-demand"])
def test_an_import_changes_nothing_that_pools_apply(name: str) -> None:
    text = (PLATFORMS / f"{name}.yaml").read_text()

    trip = trip_of(Drawn(name, {f"overlays/{CLUSTER}/all.yaml": text}))

    assert trip is not None
    assert [title for title in trip.differing if not title.startswith("PriorityClass")] == []
