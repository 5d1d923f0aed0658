"""The fewest GPUs of one model that hold so many MIG instances of each profile, with the layouts and the proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from fractions import Fraction
from operator import ge
from types import MappingProxyType

from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning.placement.layouts import Vector
from gpuplan.compiler.planning.placement.placing import InstanceCounts
from tests.features.packing.sizing.frontier import Frontier, frontier

MOST_STATES = 20_000
"""The number of states after which a search gives up; that takes a few seconds."""
MOST_BACK = 8
"""The number of GPUs of each layout that a search may cut in another way."""


class Packing(Value):
    """Instances on GPUs of one model: layouts, and how many GPUs have each.

    No fewer GPUs than ``least`` can hold them. The ``prices`` by profile are the list by which they cost most, in parts
    of a GPU: no GPU holds instances that cost more than 1.
    """

    gpu: Gpu
    counts: InstanceCounts
    layouts: tuple[tuple[InstanceCounts, int], ...]
    least: int
    prices: Mapping[str, Fraction]

    @property
    def gpus(self) -> int:
        return sum(times for _, times in self.layouts)


def pack(gpu: Gpu, counts: Mapping[str, int]) -> Packing:
    """Return the fewest GPUs for instances by profile; their layouts hold just these.

    Each of a model's prices is a bound, and no mix of layouts in parts needs more than the largest of them (see
    `frontier`). So many GPUs are filled layout by layout, each as often as leaves a rest that the prices allow on the
    rest of the GPUs. That ends with nothing left wherever the rest of every demand that its prices allow can be packed,
    as on every model of the catalog; if something is left, a search settles it.

    ValueError if the model has no such profile, or no GPU can hold one.
    """
    known = frontier(gpu)
    if unknown := sorted(name for name, count in counts.items() if count and name not in known.profiles):
        raise ValueError(f"no {gpu.id} can hold {listing(unknown, None, 'or')}")
    if negative := sorted(name for name, count in counts.items() if count < 0):
        raise ValueError(f"fewer than no instances of {listing(negative, None, 'or')}")
    demand = known.vector(counts)
    if not any(demand):
        return Packing(gpu, counts, (), 0, MappingProxyType({}))
    dearest = max(known.prices, key=lambda prices: Fraction(prices.cost(demand), prices.gpu))
    gpus = least = dearest.least_gpus(demand)
    is_ruled_out = True
    while isinstance(times := _take(known, demand, gpus), _Failure):
        gpus += 1
        is_ruled_out &= times is _Failure.NONE_FITS
        if is_ruled_out:
            least = gpus
    held = ((layout.counts, count) for layout, count in zip(known.layouts, times, strict=True) if count)
    return Packing(gpu, counts, tuple(held), least, known.by_profile(dearest))


class _Failure(Enum):
    """The reasons why no layouts are known that hold instances on so many GPUs."""

    NONE_FITS = auto()
    GAVE_UP = auto()


def _take(known: Frontier, demand: Vector, gpus: int) -> Sequence[int] | _Failure:
    """Return how often each layout is taken to hold so many instances on so many GPUs.

    If layouts taken one after the other leave a rest, the rest is searched together with some GPUs of each layout. A
    search that fails with some GPUs says nothing about all of them.
    """
    rest = [*demand, *(prices.gpu * gpus - prices.cost(demand) for prices in known.prices)]
    times = []
    for layout in known.layouts:
        count = min([rest[at] // amount for at, amount in layout.takes])
        times.append(count)
        for at, amount in layout.takes if count else ():
            rest[at] -= amount * count
    if not any(rest[: len(demand)]):
        return times
    back = [min(count, MOST_BACK) for count in times]
    for layout, count in zip(known.layouts, back, strict=True):
        for at, amount in layout.takes:
            rest[at] += amount * count
    outcome = _search(known, tuple(rest))
    if isinstance(outcome, _Failure):
        return outcome if back == times else _Failure.GAVE_UP
    return [count - less + outcome[at] for at, (count, less) in enumerate(zip(times, back, strict=True))]


def _search(known: Frontier, rest: Vector) -> Mapping[int, int] | _Failure:
    """Return how often each layout is taken so that nothing of the demand remains, from a search of all states.

    Some GPU holds the first profile that is asked for, and it holds no less of anything than it could. The search gives
    up after `MOST_STATES`.
    """
    profiles = len(known.profiles)
    states: list[tuple[Vector, tuple[int, ...]]] = [(rest, ())]
    seen = set()
    while states:
        rest, taken = states.pop()
        if not any(rest[:profiles]):
            return Counter(taken)
        if rest in seen:
            continue
        seen.add(rest)
        if len(seen) > MOST_STATES:
            return _Failure.GAVE_UP
        first = next(index for index, count in enumerate(rest) if count)
        fitting = [
            (at, layout)
            for at, layout in enumerate(known.layouts)
            if layout.vector[first] and all(rest[index] >= amount for index, amount in layout.takes)
        ]
        for at, layout in fitting:
            if not any(layout is not other and all(map(ge, other.vector, layout.vector)) for _, other in fitting):
                after = list(rest)
                for index, amount in layout.takes:
                    after[index] -= amount
                states.append((tuple(after), (*taken, at)))
    return _Failure.NONE_FITS
