"""Random platforms for the round trip: over all schedulers, with trees of tenants, and with work of every kind."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count
from typing import Final, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

from gpuplan.compiler.planning.schedulers import SCHEDULERS as TRAITS
from tests.features.live.rich_clusters import random_rich_platform
from tests.laws.orders import platforms as orders
from tests.laws.properties import policies as trees, work

SCHEDULERS: Final = tuple(TRAITS)
CLUSTER: Final = orders.CLUSTER


class Drawn(NamedTuple):
    """A platform as files by path, what it was drawn by, and what can be edited, unless it was drawn as a text."""

    name: str
    files: dict[str, str]
    platform: orders.Platform | None = None


def platforms(number: int, start: int = 0) -> Iterator[Drawn]:
    """As many platforms; the same for the same numbers. Of ten, five are whole, two
    have a cluster with many settings, two are trees, one is about work."""
    trees_of = {kind: _drawn(trees.policies(kind).map(lambda policy: policy.text), kind, start) for kind in SCHEDULERS}
    work_of = {kind: _drawn(work.platforms(kind), kind, start) for kind in SCHEDULERS}
    for index in range(start, start + number):
        kind = SCHEDULERS[index // 10 % len(SCHEDULERS)]
        match index % 10:
            case 0:
                yield Drawn(f"{index} work on {kind}", _as_files(next(work_of[kind])))
            case 1 | 2:
                yield Drawn(f"{index} a tree on {kind}", _as_files(next(trees_of[kind])))
            case 3 | 4:
                kind = SCHEDULERS[(index // 10 * 2 + index % 10) % len(SCHEDULERS)]  # two of ten, on each in turn
                rich = random_rich_platform(random.Random(index), kind)
                yield Drawn(f"{index} rich on {kind}", rich.files(), rich)
            case _:
                yield _whole(index)


def _whole(number: int) -> Drawn:
    kind = SCHEDULERS[number % len(SCHEDULERS)]
    rng = random.Random(number)
    platform = orders.random_platform(rng, scheduler=kind)
    return Drawn(f"{number} on {kind}", platform.files(), platform)


def _as_files(text: str) -> dict[str, str]:
    return {f"overlays/{CLUSTER}/all.yaml": text}


def _drawn(strategy: st.SearchStrategy[str], kind: str, start: int) -> Iterator[str]:
    """Draws of a strategy, twenty at a time, always the same ones."""
    for number in count(start):
        yield from _twenty(strategy, f"{kind}{number}")


def _twenty(strategy: st.SearchStrategy[str], name: str) -> list[str]:
    found: list[str] = []

    @seed(name)
    @settings(
        max_examples=20, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck]
    )
    @given(strategy)
    def draw(text: str) -> None:
        found.append(text)

    draw()
    return found
