"""Decides whether instances that others place as they like can leave no room for one more, on any of many GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.catalog import Gpu, Profile

Counts = tuple[int, ...]
"""Numbers of instances, in the order of the given profiles."""


class Blockade(NamedTuple):
    """Instances that keep one more of a profile off every GPU: what is on how many of them."""

    on_each: Mapping[str, int]
    gpus: int


def find_blockade(gpu: Gpu, profile: str, gpus: int, most: Mapping[str, int]) -> tuple[Blockade, ...] | None:
    """Return how at most so many instances of each profile can leave no place for one more, or None if they cannot.

    The instances stand wherever they may: what stood in their way when they came may have gone since, for a driver that
    makes partitions on demand never moves one. The search is exact: it looks through all that one GPU can hold
    (`blocking`), and for numbers of GPUs of each such kind that add up to all of them (`_cover`).
    """
    if gpus <= 0:
        return ()
    names = tuple(sorted(name for name, count in most.items() if count > 0))
    kinds = blocking(gpu, profile, names)
    found = _cover(kinds, tuple(most[name] for name in names), gpus)
    if found is None:
        return None
    blockades = [
        Blockade({name: count for name, count in zip(names, kind, strict=True) if count}, times)
        for kind, times in zip(kinds, found, strict=True)
        if times
    ]
    return tuple(sorted(blockades, key=lambda blockade: (-blockade.gpus, sorted(blockade.on_each.items()))))


# --- One GPU -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def blocking(gpu: Gpu, profile: str, names: Sequence[str]) -> tuple[Counts, ...]:
    """The fewest instances of these profiles that, well placed, leave no place on one GPU for one more of another.

    None of them does with fewer of any profile: whatever blocks holds one of these.
    """
    wanted = gpu.find_profile(profile)
    profiles = [known for name in names if (known := gpu.find_profile(name))]
    if wanted is None or len(profiles) < len(names):
        return ()
    found: set[Counts] = set()
    seen: set[tuple[Counts, int]] = set()
    states = [((0,) * len(names), 0)]
    while states:
        counts, taken = states.pop()
        if (counts, taken) in seen:
            continue
        seen.add((counts, taken))
        is_free = any(not taken & place.mask for place in wanted.placements)
        if not (is_free and _has_engines(gpu, profiles, counts, wanted)):
            found.add(counts)
            continue
        for index, other in enumerate(profiles):
            more = (*counts[:index], counts[index] + 1, *counts[index + 1 :])
            if _has_engines(gpu, profiles, counts, other):
                states += [(more, taken | place.mask) for place in other.placements if not taken & place.mask]
    # Counts that hold all of others say no more than these.
    kept: list[Counts] = []
    for counts in sorted(found, key=sum):
        if not any(all(map(int.__le__, less, counts)) for less in kept):
            kept.append(counts)
    return tuple(sorted(kept))


def _has_engines(gpu: Gpu, profiles: Sequence[Profile], counts: Counts, one: Profile) -> bool:
    """Whether the media engines suffice for one more; a number that nobody has read refuses nothing."""
    for engine, total in gpu.engines.items():
        if total is not None and (needed := getattr(one, engine) or 0):
            used = sum(count * (getattr(item, engine) or 0) for item, count in zip(profiles, counts, strict=True))
            if used + needed > total:
                return False
    return True


# --- Many GPUs ---------------------------------------------------------------------------------------------------


def _cover(kinds: Sequence[Counts], most: Counts, gpus: int) -> tuple[int, ...] | None:
    """Return the number of GPUs of each kind that make up all GPUs within so many instances, or None.

    Branch and bound on the linear relaxation, in exact fractions: what it gives, rounded down, is often enough, and its
    bound is often too small. In between it divides at a kind that has a fraction.
    """
    states: list[tuple[Counts, Mapping[int, int]]] = [((0,) * len(kinds), {})]
    while states:
        low, high = states.pop()
        left = tuple(
            have - sum(times * kind[index] for times, kind in zip(low, kinds, strict=True))
            for index, have in enumerate(most)
        )
        if min(left, default=0) < 0 or any(low[index] > bound for index, bound in high.items()):
            continue
        if sum(low) >= gpus:
            return _only(low, gpus)
        more = _relaxed(kinds, left, {index: bound - low[index] for index, bound in high.items()})
        if sum(low) + int(sum(more, Fraction())) < gpus:
            continue
        whole = tuple(times + int(extra) for times, extra in zip(low, more, strict=True))
        if sum(whole) >= gpus:
            return _only(whole, gpus)
        index = max(range(len(kinds)), key=lambda index: (more[index] % 1 != 0, more[index] % 1))
        states.append((low, {**high, index: whole[index]}))
        states.append(((*low[:index], whole[index] + 1, *low[index + 1 :]), high))
    return None


def _only(times: Sequence[int], gpus: int) -> tuple[int, ...]:
    """So many GPUs and no more: fewer of the last kinds."""
    left, kept = gpus, []
    for count in times:
        kept.append(min(count, left))
        left -= kept[-1]
    return tuple(kept)


def _relaxed(kinds: Sequence[Counts], rest: Counts, most: Mapping[int, int]) -> list[Fraction]:
    """The most GPUs in all, in fractions: the simplex method, by Bland's rule, which ends.

    One row for each profile, what remains of it; one for each kind that has a bound. Every kind takes something, so
    that there is a most.
    """
    count, slacks = len(kinds), len(rest) + len(most)
    needs = [[kind[index] for kind in kinds] for index in range(len(rest))]
    needs += [[int(other == index) for other in range(count)] for index in most]
    rows = [
        [Fraction(value) for value in (*need, *(int(slack == index) for slack in range(slacks)), bound)]
        for index, (need, bound) in enumerate(zip(needs, (*rest, *most.values()), strict=True))
    ]
    gains = [Fraction(1)] * count + [Fraction(0)] * (slacks + 1)
    basis = [count + index for index in range(slacks)]
    while (enters := next((index for index, gain in enumerate(gains[:-1]) if gain > 0), None)) is not None:
        ratios = [(row[-1] / row[enters], basis[at], at) for at, row in enumerate(rows) if row[enters] > 0]
        _, _, leaves = min(ratios)
        pivot = [value / rows[leaves][enters] for value in rows[leaves]]
        rows[leaves] = pivot
        for row in (*rows[:leaves], *rows[leaves + 1 :], gains):
            if factor := row[enters]:
                row[:] = [value - factor * other for value, other in zip(row, pivot, strict=True)]
        basis[leaves] = enters
    found = [Fraction(0)] * count
    for at, variable in enumerate(basis):
        if variable < count:
            found[variable] = rows[at][-1]
    return found
