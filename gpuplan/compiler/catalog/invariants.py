"""Invariants of every board that can be partitioned: a model of the catalog, or one that a platform describes."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor

from gpuplan.compiler.base.wording import joined
from gpuplan.compiler.catalog.models import Gpu, Profile


def contradictions(gpu: Gpu) -> Iterator[str]:
    """Each thing that cannot be so of a model's MIG profiles, as a sentence; nothing of a model without any."""
    if not gpu.profiles:
        return
    yield from _of_board(gpu)
    for profile in gpu.profiles:
        yield from (f"`{profile.name}` {what}" for what in _of_profile(gpu, profile))


def _of_board(gpu: Gpu) -> Iterator[str]:
    names = [profile.name for profile in gpu.profiles]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        yield f"{joined([f'`{name}`' for name in twice])} is there twice"
    whole = [profile for profile in gpu.base_profiles if _is_whole(gpu, profile)]
    if not whole:
        yield "no profile is the whole board, with all slices from 0 on"
    elif whole[-1].parsed.gigabytes != gpu.memory_gib:
        yield f"`{whole[-1].name}` is the whole board, which has {gpu.memory_gib} GiB"


def _is_whole(gpu: Gpu, profile: Profile) -> bool:
    return (profile.compute_slices, profile.memory_slices, profile.starts) == (
        gpu.compute_slices,
        gpu.memory_slices,
        (0,),
    )


def _of_profile(gpu: Gpu, profile: Profile) -> Iterator[str]:
    if not profile.placements:
        yield "may start nowhere"
    elif outside := [place.start for place in profile.placements if place.end > gpu.memory_slices]:
        yield f"cannot start at {outside[0]}: it takes {profile.memory_slices} of {gpu.memory_slices} memory slices"
    if profile.placements and profile.max_instances != (most := 1 if profile.is_media else most_disjoint(profile)):
        yield f"fits {most} times by its placements, not {profile.max_instances} times"
    if profile.parsed.is_compute_instance or profile.parsed.is_long_spelling:
        yield "is a compute instance's name, not a GPU instance's"
    size = memory_in_name(gpu, profile)
    if "name" not in profile.derived and profile.parsed.gigabytes != size:
        share = f"{profile.memory_slices} of {gpu.memory_slices} memory slices of {gpu.memory_gib} GiB"
        yield f"has {share}, which is {size}gb"
    if profile.memory_gib is not None and not 0.8 < profile.memory_gib / max(profile.parsed.gigabytes, 1) < 1:
        yield f"cannot have {profile.memory_gib:g} GiB: a little less than its name says is right"


def most_disjoint(profile: Profile) -> int:
    """Return how many instances of one profile fit: greedy from the left is optimal for intervals of one length."""
    count = end = 0
    for start in profile.starts:
        if start >= end:
            count, end = count + 1, start + profile.memory_slices
    return count


def memory_in_name(gpu: Gpu, profile: Profile) -> int:
    """The gigabytes in a profile's name: its share of the board in eighths, rounded."""
    eighths = ceil(profile.memory_slices / gpu.memory_slices * 8)
    return floor(eighths / 8 * gpu.memory_gib + 0.5)
