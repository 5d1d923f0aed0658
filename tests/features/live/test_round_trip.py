"""Importing what gpuplan built, and building that, changes no applied object and no label on nodes.

``LOST`` lists what an import may change all the same: values that no cluster shows.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.cluster.proof import only_in_proof
from tests.features.live.platforms import SCHEDULERS, Drawn, platforms
from tests.features.live.round_trip import LOST, trip_of

LEAST, OF, MOST_REASONS = 199, 200, 5


@pytest.mark.parametrize("drawn", [*platforms(8, start=3), *platforms(2, start=11)], ids=lambda drawn: str(drawn.name))
def test_an_import_changes_nothing_that_is_applied(drawn: Drawn) -> None:
    trip = trip_of(drawn)
    assert trip is not None
    assert trip.differing == ()


def test_each_exception_is_needed() -> None:
    drawn = [found for found in platforms(27) if found.name.split(" ")[0] in ("4", "26")]

    trips = [trip for trip in map(trip_of, drawn) if trip]

    assert frozenset[str]().union(*(trip.lost for trip in trips)) == LOST.keys()


def test_rich_platforms_are_drawn_for_every_scheduler() -> None:
    drawn = [found for ten in range(len(SCHEDULERS)) for found in platforms(2, start=10 * ten + 3)]

    assert {found.name.split(" rich on ")[1] for found in drawn} == {*SCHEDULERS}


@only_in_proof
def test_nearly_all_of_two_hundred_stay_as_they_are() -> None:
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


def reason(titles: tuple[str, ...]) -> str:
    """The kinds of objects by which a platform is another one."""
    return ", ".join(sorted({title.split(" ")[0] for title in titles}))
