"""What gpuplan wrote comes back: imported with its nodes and built again, it is the same to the byte."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.cluster.proof import only_in_proof
from tests.features.live.platforms import SCHEDULERS, Drawn, platforms
from tests.features.live.round_trip import trip_of

LEAST, OF, MOST_REASONS = 190, 200, 5


@pytest.mark.parametrize("drawn", [*platforms(8, start=3), *platforms(2, start=11)], ids=lambda drawn: str(drawn.name))
def test_what_was_built_is_built_again(drawn: Drawn) -> None:
    trip = trip_of(drawn)
    assert trip is not None
    assert trip.differing == ()


@only_in_proof
def test_nearly_all_of_two_hundred_come_back() -> None:
    alike = 0
    seen: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for drawn in platforms(OF + OF // 10):
        if sum(seen.values()) == OF:
            break
        trip = trip_of(drawn)
        if trip is None:
            continue
        seen[next(kind for kind in SCHEDULERS if drawn.name.endswith(kind))] += 1
        alike += not trip.differing
        if trip.differing:
            reasons[reason(trip.differing)] += 1
    print(dict(seen), dict(reasons))
    assert sum(seen.values()) == OF
    assert alike >= LEAST, reasons
    assert len(reasons) <= MOST_REASONS


def reason(paths: tuple[str, ...]) -> str:
    """The kind of file by which a platform is another one."""
    stages = sorted({path.split("/")[1] for path in paths if path.startswith("test/") and path.count("/") > 1})
    return next((stage for stage in ("workloads", "queues", "scheduling") if stage in stages), ", ".join(stages))
