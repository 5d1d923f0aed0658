"""Pods that find no room: by counting, and beside a simulation of pods that come and go."""

from __future__ import annotations

import heapq
from random import Random

import pytest
from hypothesis import given, strategies as st

from gpuplan.features.packing.sizing.overflow import Law, Overflow, erlang_b, off_by

PODS, WARM_UP = 40_000, 4_000


# --- Pods that are there at once ---------------------------------------------------------------------------------


def test_the_smallest_part_that_is_free_is_taken_first() -> None:
    away = Overflow([[0, 1], [1]]).turned_away([5, 2], [4, 2], Law.AT_ONCE)
    assert away == pytest.approx([1 / 3, 2 / 3])


def test_a_larger_pod_takes_no_smaller_part() -> None:
    assert Overflow([[0], [1]]).turned_away([1, 3], [9, 2], Law.AT_ONCE) == [0, 1]


def test_what_no_part_holds_finds_no_room() -> None:
    assert Overflow([[], [0]]).turned_away([2, 1], [3], Law.AT_ONCE) == [2, 0]


# --- Pods that come and go ---------------------------------------------------------------------------------------


@given(st.integers(0, 400), st.floats(0.01, 400))
def test_one_kind_of_part_is_erlangs_formula(servers: int, offered: float) -> None:
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    assert erlang_b(offered, servers) == pytest.approx(blocked, rel=1e-6, abs=1e-12)


@given(st.floats(0.1, 300), st.floats(0, 300))
def test_a_number_of_servers_may_be_broken(offered: float, servers: float) -> None:
    """B(n + 1) follows from B(n), whatever n is."""
    before = erlang_b(offered, servers)
    after = offered * before / (servers + 1 + offered * before)
    assert erlang_b(offered, servers + 1) == pytest.approx(after, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    ("reach", "pods", "room"),
    [
        pytest.param([[0]], [10], [12], id="one kind"),
        pytest.param([[0, 1], [1]], [8, 8], [8, 11], id="a larger kind helps out"),
        pytest.param([[0, 1, 2], [1, 2], [2]], [30, 20, 10], [28, 20, 13], id="two larger kinds"),
        pytest.param([[0, 2], [1, 2]], [12, 6], [10, 5, 5], id="two kinds of the same size"),
        pytest.param([[0, 1], [1]], [40, 1], [20, 10], id="far too little"),
    ],
)
def test_the_estimate_is_near_a_simulation(reach: list[list[int]], pods: list[float], room: list[int]) -> None:
    """Of all pods a part of at most 0.008 more or less finds no room: an estimate and a sample, each with its error."""
    estimated = Overflow(reach).turned_away(pods, room, Law.BY_CHANCE)
    assert sum(estimated) / sum(pods) == pytest.approx(simulated(reach, pods, room), abs=0.008)


def simulated(reach: list[list[int]], pods: list[float], room: list[int]) -> float:
    """The part of all pods that finds no room."""
    random = Random(1)
    free, busy = list(room), list[tuple[float, int]]()
    now, away = 0.0, 0
    for number in range(PODS):
        now += random.expovariate(sum(pods))
        need = random.choices(range(len(pods)), pods)[0]
        while busy and busy[0][0] <= now:
            free[heapq.heappop(busy)[1]] += 1
        part = next((part for part in reach[need] if free[part]), None)
        if part is None:
            away += number >= WARM_UP
        else:
            free[part] -= 1
            heapq.heappush(busy, (now + random.expovariate(1), part))
    return away / (PODS - WARM_UP)


@pytest.mark.parametrize("small", [0.5, 0.9, 1.3])
@pytest.mark.parametrize("large", [0.1, 0.5, 0.9, 1.2])
@pytest.mark.parametrize("room", [(1, 1), (1, 5), (3, 2), (6, 1), (6, 5)])
def test_the_estimate_is_near_the_exact_number_where_parts_are_few(
    small: float, large: float, room: tuple[int, int]
) -> None:
    """Small pods take a large part where no small one is free; ``small`` and ``large`` are pods for each part."""
    pods = small * room[0], large * room[1]
    estimated = Overflow([[0, 1], [1]]).turned_away(pods, room, Law.BY_CHANCE)
    assert sum(estimated) / sum(pods) == pytest.approx(exact(pods, room) / sum(pods), abs=0.013)


def exact(pods: tuple[float, float], room: tuple[int, int]) -> float:
    """How many of small and large pods find no room: the chain of busy parts of both kinds, until it is steady."""
    steps = sum(pods) + sum(room)
    busy = {(small, large): 0.0 for small in range(room[0] + 1) for large in range(room[1] + 1)}
    busy[0, 0] = 1.0
    for _ in range(100 * round(steps)):
        after = dict.fromkeys(busy, 0.0)
        for (small, large), share in busy.items():
            moves = [
                ((small + 1, large) if small < room[0] else (small, large + 1), pods[0]),
                ((small, large + 1), pods[1]),
                ((small - 1, large), small),
                ((small, large - 1), large),
            ]
            for to, rate in moves:
                after[to if to in busy else (small, large)] += share * rate / steps
            after[small, large] += share * (room[0] - small + room[1] - large) / steps
        busy = after
    large_busy = sum(share for (_, large), share in busy.items() if large == room[1])
    return pods[0] * busy[room] + pods[1] * large_busy


@given(st.lists(st.integers(0, 20), min_size=3, max_size=3), st.integers(0, 2), st.sampled_from(Law))
def test_more_room_turns_no_more_pods_away(room: list[int], more: int, law: Law) -> None:
    """Within the error of the estimate, which is not quite monotonic."""
    overflow = Overflow([[0, 1, 2], [1, 2], [2]])
    larger = [count + (at == more) for at, count in enumerate(room)]
    before, after = (sum(overflow.turned_away([9, 7, 5], one, law)) for one in (room, larger))
    assert after <= before + 0.05


# --- Demand that is off ------------------------------------------------------------------------------------------


def test_demand_is_off_as_much_up_as_down_and_the_same_each_time() -> None:
    found = [*off_by(3, 0.3)]
    assert found == [*off_by(3, 0.3)]
    assert len(found) == 64
    assert all(0.7 <= factor <= 1.3 for each in found for factor in each)
    assert [sum(each) for each in zip(*found, strict=True)] == pytest.approx([64, 64, 64])


def test_demand_that_is_not_off_is_as_planned() -> None:
    assert [*off_by(2, 0)] == [[1, 1]]
