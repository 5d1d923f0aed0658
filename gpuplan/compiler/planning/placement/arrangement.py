"""Arranges GPU instances on the memory slices of one GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog import Gpu, Placement, Profile

InstanceCounts = Mapping[str, int]
"""How many GPU instances of each profile one GPU holds."""

Key = tuple[tuple[str, int], ...]
"""Instance counts in a form that can be cached: sorted by name, without zeros."""


class Instance(NamedTuple):
    """A GPU instance at its place."""

    profile: Profile
    placement: Placement


Arrangement = tuple[Instance, ...]
"""Instances in the order of their memory slices; no two overlap."""


def as_key(counts: InstanceCounts) -> Key:
    for name, count in counts.items():
        if count < 0:
            raise ValueError(f"{count} instances of {name}")
    return tuple(sorted((name, count) for name, count in counts.items() if count))


@lru_cache(maxsize=16384)
def arrange(gpu: Gpu, counts: Key) -> Arrangement | None:
    """The arrangement that the driver would make, or None when there is none; the profiles must be the model's."""
    profiles = one_by_one(gpu, counts)
    dead_ends: set[tuple[int, int]] = set()

    def extend(index: int, taken: int) -> Arrangement | None:
        if index == len(profiles):
            return ()
        if (index, taken) in dead_ends:
            return None
        for placement in _least_obstructive_first(gpu, profiles[index], taken):
            rest = extend(index + 1, taken | placement.mask)
            if rest is not None:
                return (Instance(profiles[index], placement), *rest)
        dead_ends.add((index, taken))
        return None

    arrangement = extend(0, 0)
    return None if arrangement is None else _by_slice(arrangement)


def arrangements(gpu: Gpu, counts: InstanceCounts) -> Iterator[Arrangement]:
    """Every way to place the instances; those of one profile are interchangeable."""
    profiles = one_by_one(gpu, as_key(counts))

    def extend(index: int, taken: int, chosen: Arrangement) -> Iterator[Arrangement]:
        if index == len(profiles):
            yield _by_slice(chosen)
            return
        profile = profiles[index]
        after = chosen[-1].placement.start if chosen and chosen[-1].profile is profile else -1
        for placement in profile.placements:
            if placement.start > after and not placement.mask & taken:
                yield from extend(index + 1, taken | placement.mask, (*chosen, Instance(profile, placement)))

    return extend(0, 0, ())


def one_by_one(gpu: Gpu, counts: Key) -> list[Profile]:
    """One profile per instance, the largest first."""
    wanted = dict(counts)
    return [profile for profile in largest_first(gpu.profiles) for _ in range(wanted.get(profile.name, 0))]


def largest_first(profiles: Iterable[Profile]) -> list[Profile]:
    return sorted(profiles, key=lambda profile: (-profile.compute_slices, -profile.memory_slices))


def _least_obstructive_first(gpu: Gpu, profile: Profile, taken: int) -> list[Placement]:
    """The profile's free placements, the one first that blocks the fewest other free ones."""
    free = [mask for mask in _masks(gpu) if not mask & taken]
    candidates = [placement for placement in profile.placements if not placement.mask & taken]
    return sorted(candidates, key=lambda place: (sum(bool(mask & place.mask) for mask in free), place.start))


@lru_cache(maxsize=256)
def _masks(gpu: Gpu) -> tuple[int, ...]:
    return tuple(placement.mask for profile in gpu.profiles for placement in profile.placements)


def _by_slice(instances: Iterable[Instance]) -> Arrangement:
    return tuple(sorted(instances, key=lambda instance: instance.placement.start))
