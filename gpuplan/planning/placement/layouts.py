"""Enumerates the layouts that one GPU can take, and finds those nearest to one that it cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from gpuplan.catalog import Gpu, Profile
from gpuplan.planning.placement.arrangement import InstanceCounts, largest_first
from gpuplan.planning.placement.placing import fits


def valid_layouts(gpu: Gpu, profiles: Iterable[str] | None = None) -> tuple[InstanceCounts, ...]:
    """Every layout of at least one instance that fits, those of large instances first.

    They are made of the named profiles, or of all that have no ``+`` or ``-`` attribute.
    """
    return _valid_layouts(gpu, _names(gpu, profiles))


def maximal_layouts(gpu: Gpu, profiles: Iterable[str] | None = None) -> tuple[InstanceCounts, ...]:
    """The valid layouts to which no instance of those profiles can be added."""
    return _maximal_layouts(gpu, _names(gpu, profiles))


def room_left(gpu: Gpu, counts: InstanceCounts, profiles: Iterable[str] | None = None) -> tuple[Profile, ...]:
    """The profiles of which one more instance fits beside the layout, largest first."""
    return tuple(
        profile
        for profile in _chosen(gpu, profiles)
        if fits(gpu, {**counts, profile.name: counts.get(profile.name, 0) + 1})
    )


def nearest_layouts(gpu: Gpu, counts: InstanceCounts, limit: int = 3) -> tuple[InstanceCounts, ...]:
    """Valid layouts to propose instead of one that does not fit, nearest first.

    They are the part of the layout that keeps most memory slices, and maximal layouts of the profiles it names and of
    the model's base profiles. Nearest is what takes the fewest changes (an instance dropped, added, or exchanged for
    another), then what keeps the largest instances; what keeps none is not near. Another model's profile counts as
    the one of the same size here, and a layout that fits once it is so translated is the only one proposed.
    """
    wanted = _translate(gpu, counts)
    best = _best_part(gpu, wanted)
    if best == [wanted]:
        return tuple(best)
    names = {profile.name for profile in gpu.base_profiles} | set(wanted)
    near = [layout for layout in maximal_layouts(gpu, names) if set(layout) & set(wanted)]
    nearest: list[InstanceCounts] = []
    for layout in sorted([*best, *near], key=lambda layout: _distance(gpu, wanted, layout)):
        if not any(_is_part(layout, nearer) for nearer in nearest):
            nearest.append(layout)
    return tuple(nearest[:limit])


@lru_cache(maxsize=256)
def _valid_layouts(gpu: Gpu, names: tuple[str, ...]) -> tuple[InstanceCounts, ...]:
    """Any part of a layout that fits fits too, so the search stops where one does not."""
    most = {profile.name: profile.max_instances for profile in gpu.profiles}

    def extend(index: int, layout: dict[str, int]) -> Iterator[InstanceCounts]:
        if index == len(names):
            if layout:
                yield MappingProxyType(layout)
            return
        for count in range(most[names[index]], 0, -1):
            if fits(gpu, grown := {**layout, names[index]: count}):
                yield from extend(index + 1, grown)
        yield from extend(index + 1, layout)

    return tuple(extend(0, {}))


@lru_cache(maxsize=256)
def _maximal_layouts(gpu: Gpu, names: tuple[str, ...]) -> tuple[InstanceCounts, ...]:
    return tuple(layout for layout in _valid_layouts(gpu, names) if not room_left(gpu, layout, names))


def _names(gpu: Gpu, profiles: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(profile.name for profile in _chosen(gpu, profiles))


def _chosen(gpu: Gpu, profiles: Iterable[str] | None) -> list[Profile]:
    if profiles is None:
        return largest_first(gpu.plain_profiles)
    wanted = set(profiles)
    return largest_first(profile for profile in gpu.profiles if profile.name in wanted)


def _translate(gpu: Gpu, counts: InstanceCounts) -> InstanceCounts:
    """The layout in this model's names; what has no counterpart here is left out."""
    wanted: Counter[str] = Counter()
    for name, count in counts.items():
        known = gpu.find_profile(name)
        for profile in (known,) if known else gpu.similar_profiles(name)[:1]:
            wanted[profile.name] += count
    return +wanted


def _best_part(gpu: Gpu, wanted: InstanceCounts) -> list[InstanceCounts]:
    """The valid part of a layout that keeps the most memory slices in the fewest instances."""
    parts = [layout for layout in valid_layouts(gpu, wanted) if _is_part(layout, wanted)]
    return sorted(parts, key=lambda part: (-_memory_slices(gpu, part), sum(part.values())))[:1]


def _distance(gpu: Gpu, wanted: InstanceCounts, layout: InstanceCounts) -> tuple[int, int, int]:
    kept = Counter(wanted) & Counter(layout)
    dropped, added = sum(wanted.values()) - kept.total(), sum(layout.values()) - kept.total()
    return max(dropped, added), -_memory_slices(gpu, kept), -_memory_slices(gpu, layout)


def _memory_slices(gpu: Gpu, layout: Mapping[str, int]) -> int:
    return sum(layout.get(profile.name, 0) * profile.memory_slices for profile in gpu.profiles)


def _is_part(layout: InstanceCounts, whole: InstanceCounts) -> bool:
    return all(count <= whole.get(name, 0) for name, count in layout.items())
