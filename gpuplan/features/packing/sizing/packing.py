"""The fewest GPUs of one model that hold so many MIG instances of each profile, with the layouts and the proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from fractions import Fraction
from types import MappingProxyType

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning.placement.layouts import Vector
from gpuplan.compiler.planning.placement.placing import InstanceCounts, Key, as_key, fits
from gpuplan.features.packing.sizing.answers import Bound, Proof
from gpuplan.features.packing.sizing.frontier import Frontier, Layout, Prices, frontier

MOST_STATES = 20_000
"""How many states a search looks at before it gives up; a few seconds."""
MOST_BACK = 8
"""How many GPUs of each layout a search may cut in another way."""


class Packing(Value):
    """So many instances on GPUs of one model: what one GPU holds, and how many GPUs hold that.

    Where ``bound.least`` is ``gpus``, fewer cannot do.
    """

    gpu: Gpu
    counts: InstanceCounts
    layouts: tuple[tuple[InstanceCounts, int], ...]
    bound: Bound

    @property
    def gpus(self) -> int:
        return sum(times for _, times in self.layouts)

    @property
    def idle(self) -> InstanceCounts:
        """The instances that the layouts hold beyond what was asked for."""
        held: Counter[str] = Counter()
        for layout, times in self.layouts:
            held.update({name: count * times for name, count in layout.items()})
        return MappingProxyType({name: count for name, count in (held - Counter(self.counts)).items() if count})


def pack(gpu: Gpu, counts: Mapping[str, int]) -> Packing:
    """The fewest GPUs for instances by profile; their layouts hold just these.

    Each of a model's prices is a bound, and no mix of layouts in parts needs more than the largest of them (see
    `frontier`). So many GPUs are filled layout by layout, each as often as leaves a rest that the prices allow on the
    rest of the GPUs. That ends with nothing left wherever the rest of every demand that its prices allow can be packed,
    as on every model of the catalog; where something is left, a search settles it.

    ValueError where the model has no such profile, or no GPU can hold one.
    """
    found = frontier(gpu)
    if unknown := sorted(name for name, count in counts.items() if count and name not in found.profiles):
        raise ValueError(f"no {gpu.id} can hold {listing(unknown, None, 'or')}")
    if negative := sorted(name for name, count in counts.items() if count < 0):
        raise ValueError(f"fewer than no instances of {listing(negative, None, 'or')}")
    demand = found.vector(counts)
    if not any(demand):
        return Packing(gpu, counts, (), Bound(Fraction(0), Proof.PRICES, MappingProxyType({})))
    dearest = max(found.prices, key=lambda prices: Fraction(prices.cost(demand), prices.gpu))
    times, bound = _settle(found, demand, dearest)
    held = ((layout.counts, count) for layout, count in zip(found.layouts, times, strict=True) if count)
    return Packing(gpu, counts, tuple(held), bound)


def keep_layouts(packing: Packing, in_use: Iterable[tuple[InstanceCounts, int]]) -> Packing:
    """As many GPUs, of which as many as can keep the layout that they have: it is said on how many GPUs each is in use.

    They are kept in their order, each on as many GPUs as leaves the rest to the others. What a GPU that is kept holds
    beyond what is asked for is idle. A layout that the model cannot have is passed over.
    """
    known = frontier(packing.gpu)
    left, gpus = known.vector(packing.counts), packing.gpus
    kept: list[tuple[InstanceCounts, int]] = []
    for layout, most in in_use:
        if fits(packing.gpu, layout):
            times, left = known.take(left, gpus, known.vector(layout), most)
            kept.append((layout, times))
            gpus -= times
    rest = pack(packing.gpu, dict(zip(known.profiles, left, strict=True)))
    if rest.gpus > gpus:
        return packing
    merged: dict[Key, tuple[InstanceCounts, int]] = {}
    for layout, times in (*kept, *rest.layouts):
        first, before = merged.get(as_key(layout), (layout, 0))
        merged[as_key(layout)] = first, before + times
    layouts = tuple((layout, times) for layout, times in merged.values() if times)
    return Packing(packing.gpu, packing.counts, layouts, packing.bound)


def _settle(found: Frontier, demand: Vector, dearest: Prices) -> tuple[Sequence[int], Bound]:
    """How often each layout is taken, on as few GPUs as can be, and why fewer cannot do."""
    gpus = least = dearest.least_gpus(demand)
    proof = Proof.PRICES
    while True:
        outcome = _take(found, demand, gpus)
        if not isinstance(outcome, _Failure):
            bound = Bound(Fraction(least), proof, found.by_profile(dearest))
            return outcome, bound
        gpus += 1
        if outcome is _Failure.GAVE_UP:
            proof = Proof.NONE
        elif proof is not Proof.NONE:
            least, proof = gpus, Proof.SEARCH


class _Failure(Enum):
    """Why no way was found to hold instances on so many GPUs."""

    NONE_FITS = auto()
    GAVE_UP = auto()


def _take(found: Frontier, demand: Vector, gpus: int) -> Sequence[int] | _Failure:
    """How often each layout is taken to hold so many instances on so many GPUs.

    Where layouts taken one after the other leave a rest, it is searched, together with some of each layout: that it
    fails with these says nothing of all, unless these are all.
    """
    left = [*demand, *(prices.gpu * gpus - prices.cost(demand) for prices in found.prices)]
    times = _fill(found.layouts, left)
    if not any(left[: len(demand)]):
        return times
    back = [min(count, MOST_BACK) for count in times]
    for layout, count in zip(found.layouts, back, strict=True):
        for at, amount in layout.takes:
            left[at] += amount * count
    outcome = _search(found, tuple(left))
    if isinstance(outcome, _Failure):
        return outcome if back == times else _Failure.GAVE_UP
    return [count - less + outcome[at] for at, (count, less) in enumerate(zip(times, back, strict=True))]


def _fill(layouts: Sequence[Layout], left: list[int]) -> list[int]:
    """Take each layout as often as what is left allows, of the demand and below each price, one after the other."""
    times = []
    for layout in layouts:
        count = min([left[at] // amount for at, amount in layout.takes])
        if count:
            for at, amount in layout.takes:
                left[at] -= amount * count
        times.append(count)
    return times


def _search(found: Frontier, left: Vector) -> Mapping[int, int] | _Failure:
    """How often each layout is taken so that nothing of the demand remains; all is looked at, or so much of it.

    Some GPU holds the first profile that is asked for, and it holds no less of anything than it could.
    """
    profiles = len(found.profiles)
    states: list[tuple[Vector, tuple[int, ...]]] = [(left, ())]
    seen = set()
    while states:
        left, taken = states.pop()
        if not any(left[:profiles]):
            return Counter(taken)
        if left in seen:
            continue
        seen.add(left)
        if len(seen) > MOST_STATES:
            return _Failure.GAVE_UP
        first = next(index for index, count in enumerate(left) if count)
        fitting = [
            (at, layout)
            for at, layout in enumerate(found.layouts)
            if layout.vector[first] and all(left[index] >= amount for index, amount in layout.takes)
        ]
        for at, layout in fitting:
            if not any(layout is not other and _holds(other, layout) for _, other in fitting):
                states.append((_without(left, layout), (*taken, at)))
    return _Failure.NONE_FITS


def _holds(layout: Layout, other: Layout) -> bool:
    return all(map(int.__ge__, layout.vector, other.vector))


def _without(left: Vector, layout: Layout) -> Vector:
    rest = list(left)
    for at, amount in layout.takes:
        rest[at] -= amount
    return tuple(rest)
