"""What may leave no place for one more, beside every state that arrivals and departures can reach."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pytest

from gpuplan.compiler import catalog
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning.placement.blocking import Blockade, blocking, find_blockade

H100 = catalog.load().get("H100-80GB")
B200 = catalog.load().get("B200-180GB")
A30 = catalog.load().get("A30-24GB")

Device = tuple[int, str, int]
"""A partition as the driver publishes it: GPU, profile and first memory slice."""


def test_one_small_instance_in_each_half_keeps_a_half_off() -> None:
    assert find_blockade(H100, "3g.40gb", 8, {"1g.10gb": 16}) == (Blockade({"1g.10gb": 2}, 8),)
    assert find_blockade(H100, "3g.40gb", 8, {"1g.10gb": 15}) is None


def test_kinds_of_blockades_add_up() -> None:
    most = {"1g.10gb": 3, "3g.40gb": 1}
    assert find_blockade(H100, "3g.40gb", 2, most) == (
        Blockade({"1g.10gb": 1, "3g.40gb": 1}, 1),
        Blockade({"1g.10gb": 2}, 1),
    )


def test_equal_instances_are_never_in_each_others_way_before_all_are_there() -> None:
    assert find_blockade(H100, "1g.10gb", 4, {"1g.10gb": 27}) is None
    assert find_blockade(H100, "1g.10gb", 4, {"1g.10gb": 28}) == (Blockade({"1g.10gb": 7}, 4),)


def test_wide_instances_may_stand_so_that_fewer_of_them_fit() -> None:
    """A `1g.20gb` may start at slice 6 where no `2g.20gb` may: three of them need not be in the way of a third one."""
    assert blocking(H100, "2g.20gb", ("1g.20gb",)) == ((3,),)


def test_media_engines_run_out_before_slices() -> None:
    assert blocking(H100, "1g.10gb+me", ("1g.10gb+me",)) == ((1,),)


def test_no_gpus_have_no_room() -> None:
    assert find_blockade(H100, "1g.10gb", 0, {}) == ()


def test_many_gpus_are_decided_exactly() -> None:
    """Three of a GPU's four kinds compete for the same instances; the bound in fractions is 4,096 of them."""
    most = {"1g.10gb": 4095, "2g.20gb": 2048, "3g.40gb": 2049}
    found = find_blockade(H100, "3g.40gb", 4096, most)
    assert found is not None
    assert sum(item.gpus for item in found) == 4096
    used = Counter[str]()
    for item in found:
        used.update({name: number * item.gpus for name, number in item.on_each.items()})
    assert all(used[name] <= number for name, number in most.items())


@pytest.mark.parametrize("seed", range(10))
def test_numbers_of_gpus_add_up_as_trying_all_of_them_does(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(30):
        gpu = chance.choice([A30, H100])
        names = tuple(sorted(chance.sample([profile.name for profile in gpu.profiles], 3)))
        most = {name: chance.randint(0, 9) for name in names}
        gpus, wanted = chance.randint(1, 5), chance.choice(names)
        kinds = blocking(gpu, wanted, names)
        tried = _add_up(kinds, tuple(most.values()), gpus)
        assert (find_blockade(gpu, wanted, gpus, most) is not None) == tried


@pytest.mark.parametrize(
    ("gpu", "wanted", "gpus", "most"),
    [
        (H100, "1g.20gb", 2, {"1g.20gb": 6, "2g.20gb": 3}),
        (B200, "1g.23gb", 1, {"1g.23gb": 3, "1g.23gb+me": 2, "1g.45gb": 2}),
        (B200, "1g.23gb", 3, {"1g.23gb": 9, "1g.23gb+me": 7, "2g.45gb": 1, "4g.90gb": 1}),
    ],
)
def test_what_fractions_leave_open_is_tried_both_ways(gpu: Gpu, wanted: str, gpus: int, most: dict[str, int]) -> None:
    found = find_blockade(gpu, wanted, gpus, most)
    assert found is not None
    assert sum(item.gpus for item in found) == gpus
    used = {name: sum(item.on_each.get(name, 0) * item.gpus for item in found) for name in most}
    assert all(used[name] <= number for name, number in most.items())


def _add_up(kinds: Sequence[tuple[int, ...]], left: tuple[int, ...], gpus: int) -> bool:
    rests = (tuple(map(int.__sub__, left, kind)) for kind in kinds)
    return not gpus or any(min(rest) >= 0 and _add_up(kinds, rest, gpus - 1) for rest in rests)


# --- Every state that can be -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_it_is_what_brute_force_finds(seed: int) -> None:
    chance = random.Random(seed)
    gpus = chance.choice([1, 2])
    names = chance.sample([profile.name for profile in A30.profiles], chance.randint(1, 3))
    most = {name: chance.randint(0, 3 if gpus == 1 else 2) for name in names}
    wanted = chance.choice(names)
    assert (find_blockade(A30, wanted, gpus, most) is not None) == _may_be_stuck(A30, wanted, gpus, most)


def _may_be_stuck(gpu: Gpu, wanted: str, gpus: int, most: Mapping[str, int]) -> bool:
    """Whether pods that come and go, each where it finds room, reach a state without room for one more.

    Every device has counters as the driver publishes them: one for each memory slice, and the media engines.
    """
    published = [*_devices(gpu, gpus)]
    start = frozenset[Device]()
    seen, states = {start}, [start]
    while states:
        state = states.pop()
        free = [device for device in published if device not in state and _is_free(gpu, state, device)]
        if not any(name == wanted for _, name, _ in free):
            return True
        held = Counter(name for _, name, _ in state)
        nexts = [state | {device} for device in free if held[device[1]] < most.get(device[1], 0)]
        nexts += [state - {device} for device in state]
        for reached in nexts:
            if reached not in seen:
                seen.add(reached)
                states.append(reached)
    return False


def _devices(gpu: Gpu, gpus: int) -> Iterator[Device]:
    for index in range(gpus):
        for profile in gpu.profiles:
            for start in profile.starts:
                yield index, profile.name, start


def _is_free(gpu: Gpu, state: frozenset[Device], one: Device) -> bool:
    left = Counter({f"memory-slice-{index}": 1 for index in range(gpu.memory_slices)})
    left.update({name: total for name, total in gpu.engines.items() if total is not None})
    for device in (*(other for other in state if other[0] == one[0]), one):
        left.subtract(_consumed(gpu, device))
    return all(number >= 0 for name, number in left.items() if name in _consumed(gpu, one))


def _consumed(gpu: Gpu, device: Device) -> Counter[str]:
    profile = gpu.find_profile(device[1])
    assert profile is not None
    slices = {f"memory-slice-{device[2] + index}": 1 for index in range(profile.memory_slices)}
    return Counter({**slices, **{name: amount for name, amount in profile.engines.items() if amount}})
