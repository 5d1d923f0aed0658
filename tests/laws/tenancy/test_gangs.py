"""Gangs of one tenant behind its ResourceQuota: every interleaving of the Job controller and a scheduler, in a model.

What happens on the real ones `tests/cluster/test_gangs.py` shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations_with_replacement

import pytest

from gpuplan.compiler.backends import namespaces
from tests.laws.tenancy.gangs import Rules, explore
from tests.platforms import a_platform, pool, tenant

pytestmark = pytest.mark.no_cover
MOST_PODS = 8


def test_a_quota_at_the_limit_parts_two_gangs() -> None:
    """Three pods of each: neither is whole, and both hold what the other lacks."""
    explored = explore((6, 6), Rules(_written_quota("limit"), queue=6))
    assert (3, 3) in {tuple(gang.pods for gang in state) for state in explored.deadlocks}


def test_one_gang_alone_is_never_parted() -> None:
    assert explore((6,), Rules(quota=6, queue=6)).deadlocks == ()


def test_the_controller_starts_anew_with_one_pod() -> None:
    """A gang that was refused does not lose what it has, and has the rest when others end."""
    explored = explore((8, 1), Rules(quota=8, queue=8))
    assert explored.deadlocks == ()


@pytest.mark.parametrize("sizes", list(combinations_with_replacement(range(1, MOST_PODS + 1), 2)), ids=str)
def test_two_gangs_behind_a_quota_deadlock_unless_one_must_be_whole(sizes: tuple[int, ...]) -> None:
    assert _deadlocking(sizes) == _parting(sizes)


@pytest.mark.parametrize("most", range(1, MOST_PODS + 1))
def test_three_gangs_behind_a_quota_deadlock_unless_one_must_be_whole(most: int) -> None:
    for sizes in _threes(most):
        assert _deadlocking(sizes) == _parting(sizes), sizes


@pytest.mark.parametrize("sizes", list(combinations_with_replacement(range(1, MOST_PODS + 1), 2)), ids=str)
def test_two_gangs_behind_a_queue_all_end(sizes: tuple[int, ...]) -> None:
    assert _stuck_in_a_queue(sizes) == []


@pytest.mark.parametrize("most", range(1, MOST_PODS + 1))
def test_three_gangs_behind_a_queue_all_end(most: int) -> None:
    for sizes in _threes(most):
        assert not any(explore(sizes, Rules(_written_quota("queue"), limit)).deadlocks for limit in _limits(sizes)), (
            sizes
        )


def _deadlocking(sizes: tuple[int, ...]) -> list[int]:
    """The limits at which some interleaving never ends."""
    return [limit for limit in _limits(sizes) if explore(sizes, Rules(limit, limit)).deadlocks]


def _stuck_in_a_queue(sizes: tuple[int, ...]) -> list[int]:
    """The same where the queue is the cap."""
    return [limit for limit in _limits(sizes) if explore(sizes, Rules(_written_quota("queue"), limit)).deadlocks]


def _parting(sizes: tuple[int, ...]) -> list[int]:
    """The limits at which each gang can lack a pod."""
    return [limit for limit in _limits(sizes) if limit <= sum(size - 1 for size in sizes)]


def _limits(sizes: tuple[int, ...]) -> range:
    """From what lets the largest run alone, to what lets all run at once."""
    return range(max(sizes), sum(sizes) + 1)


def _threes(most: int) -> Iterator[tuple[int, ...]]:
    """The sizes of three gangs, the largest of which has so many pods."""
    for others in combinations_with_replacement(range(1, most + 1), 2):
        yield (*others, most)


@cache
def _written_quota(cap: str) -> int | None:
    """What the ResourceQuota of a tenant with six GPUs of KAI-Scheduler says."""
    plan = a_platform(pool("whole"), tenant("lab", "pool: whole, guaranteed: 6"), scheduler=f"kai, cap: {cap}")
    [quota] = [found.body for found in namespaces.render(plan) if found.kind == "ResourceQuota"]
    written = quota["spec"]["hard"].get("requests.nvidia.com/gpu")
    return None if written is None else int(written)
