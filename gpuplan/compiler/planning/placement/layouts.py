"""Enumerates the layouts that one GPU can take, and finds those nearest to one that it cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import product
from operator import mul
from types import MappingProxyType

from gpuplan.compiler.catalog import Gpu, Profile
from gpuplan.compiler.planning.placement.placing import InstanceCounts, Placed, largest_first, place

Vector = tuple[int, ...]
"""Numbers of instances, in the order of the given profiles."""


def valid_layouts(gpu: Gpu, profiles: Iterable[str] | None = None) -> tuple[InstanceCounts, ...]:
    """Every layout of at least one instance that fits, those of large instances first.

    They are made of the named profiles, or of all that have no ``+`` or ``-`` attribute.
    """
    return _valid_layouts(gpu, _names(gpu, profiles))


def maximal_layouts(gpu: Gpu, profiles: Iterable[str] | None = None) -> tuple[InstanceCounts, ...]:
    """The valid layouts to which no instance of those profiles can be added."""
    return _maximal_layouts(gpu, _names(gpu, profiles))


def layout_of_sizes(gpu: Gpu, sizes: Iterable[tuple[str, int]]) -> InstanceCounts:
    """Return a layout of plain profiles with these sizes, such as `20gb`, and numbers; empty if a size has no profile.

    Of several it is one that fits, and of those one of base profiles.
    """
    profiles = dict.fromkeys(profile.name for profile in (*gpu.base_profiles, *gpu.plain_profiles))
    counts: Counter[str] = Counter()
    for size, number in sizes:
        counts[size.lower()] += number
    choices = ([(name, n) for name in profiles if name.endswith(f".{size}")] for size, n in counts.items())
    layouts = [dict(chosen) for chosen in product(*choices)]
    return next((layout for layout in layouts if isinstance(place(gpu, layout), Placed)), next(iter(layouts), {}))


def nearest_layouts(gpu: Gpu, counts: InstanceCounts, limit: int = 3) -> tuple[InstanceCounts, ...]:
    """Valid layouts to propose instead of one that does not fit, nearest first.

    They are the part of the layout that keeps most memory slices, and maximal layouts of the profiles it names and of
    the model's base profiles. Nearest is what takes the fewest changes (an instance dropped, added, or exchanged for
    another), then what keeps the largest instances; what keeps none is not near. Another model's profile counts as
    the one of the same size here, and a layout that fits once it is so translated is the only one proposed.
    """
    wanted = _translate(gpu, counts)
    # The valid part of the layout that keeps the most memory slices in the fewest instances.
    parts = [layout for layout in valid_layouts(gpu, wanted) if _is_part(layout, wanted)]
    best = sorted(parts, key=lambda part: (-_memory_slices(gpu, part), sum(part.values())))[:1]
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
    """All that instances side by side can add up to, in one pass along the memory slices.

    ``ending[s]`` holds the layouts whose instances end at slice ``s`` or before it. Any part of a layout that fits fits
    too, so what breaks a limit is dropped where it does.
    """
    if not gpu.supports_mig or not gpu.is_complete:
        return ()
    profiles = [profile for name in names if (profile := gpu.find_profile(name))]
    # Each media engine, and how many an instance of each profile takes. A number that nobody has read refuses
    # nothing.
    used = [
        (total, tuple(getattr(profile, engine) or 0 for profile in profiles)) for engine, total in gpu.engines.items()
    ]
    engines = [(total, each) for total, each in used if total is not None and any(each)]
    last = max((placement.end for profile in profiles for placement in profile.placements), default=0)
    ending: list[set[Vector]] = [set() for _ in range(last + 1)]
    ending[0].add((0,) * len(profiles))
    for start in range(last):
        ending[start + 1] |= ending[start]
        for index, profile in enumerate(profiles):
            for placement in profile.placements:
                if placement.start == start:
                    grown = (
                        _with(layout, index, 1) for layout in ending[start] if layout[index] < profile.max_instances
                    )
                    ending[placement.end].update(layout for layout in grown if _suffice(engines, layout))
    return tuple(
        MappingProxyType({name: count for name, count in zip(names, layout, strict=True) if count})
        for layout in sorted(ending[-1], reverse=True)
        if any(layout)
    )


def _suffice(engines: Iterable[tuple[int, Vector]], layout: Vector) -> bool:
    return all(sum(map(mul, layout, each)) <= total for total, each in engines)


def _with(layout: Vector, index: int, more: int) -> Vector:
    return (*layout[:index], layout[index] + more, *layout[index + 1 :])


@lru_cache(maxsize=256)
def _maximal_layouts(gpu: Gpu, names: tuple[str, ...]) -> tuple[InstanceCounts, ...]:
    """Those of which no valid one holds one instance more."""
    valid = _valid_layouts(gpu, names)
    vectors = [tuple(layout.get(name, 0) for name in names) for layout in valid]
    smaller = {_with(vector, index, -1) for vector in vectors for index, count in enumerate(vector) if count}
    return tuple(layout for layout, vector in zip(valid, vectors, strict=True) if vector not in smaller)


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


def _distance(gpu: Gpu, wanted: InstanceCounts, layout: InstanceCounts) -> tuple[int, int, int]:
    kept = Counter(wanted) & Counter(layout)
    dropped, added = sum(wanted.values()) - kept.total(), sum(layout.values()) - kept.total()
    return max(dropped, added), -_memory_slices(gpu, kept), -_memory_slices(gpu, layout)


def _memory_slices(gpu: Gpu, layout: Mapping[str, int]) -> int:
    return sum(layout.get(profile.name, 0) * profile.memory_slices for profile in gpu.profiles)


def _is_part(layout: InstanceCounts, whole: InstanceCounts) -> bool:
    return all(count <= whole.get(name, 0) for name, count in layout.items())
