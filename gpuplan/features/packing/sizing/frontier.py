"""What one GPU of a model can hold at most, as layouts and as the prices that no layout exceeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations
from math import gcd, lcm
from operator import mul
from types import MappingProxyType

from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.catalog import Gpu
from gpuplan.compiler.planning.placement.layouts import Vector, maximal_layouts, valid_layouts
from gpuplan.compiler.planning.placement.placing import InstanceCounts, largest_first


class Prices(NamedTuple):
    """What an instance of each profile costs, in parts of which a GPU is worth ``gpu``; no layout costs more."""

    gpu: int
    each: Vector

    def least_gpus(self, demand: Vector) -> int:
        """No fewer GPUs can hold so many instances: all together cost more than one GPU less."""
        return -(-self.cost(demand) // self.gpu)

    def cost(self, instances: Vector) -> int:
        return sum(map(mul, self.each, instances))


class Layout(NamedTuple):
    """What a GPU can hold; ``takes`` is what that uses up of what is asked for, then of what each price leaves."""

    counts: InstanceCounts
    vector: Vector
    takes: tuple[tuple[int, int], ...]


class Frontier(Value, eq=False):
    """All layouts of a model, the maximal ones first, and all prices that some demand is bound by.

    The prices are the facets of the convex hull of the layouts: a demand fits on so many GPUs in parts of layouts
    exactly where no price says that it does not.
    """

    profiles: tuple[str, ...]
    layouts: tuple[Layout, ...]
    prices: tuple[Prices, ...]

    def vector(self, counts: Mapping[str, int]) -> Vector:
        return tuple(counts.get(name, 0) for name in self.profiles)

    def take(self, demand: Vector, gpus: int, layout: Vector, most: int | None = None) -> tuple[int, Vector]:
        """On how many of the GPUs a layout can be, and what remains of the demand then.

        So many that the prices allow the rest on the others, each holds something that was asked for, and there are
        at most ``most`` of them.
        """
        times, limit = 0, gpus if most is None else min(most, gpus)
        while times < limit and any(held := tuple(map(min, layout, demand))):
            more = min(limit - times, *(count // one for count, one in zip(demand, held, strict=True) if one))
            for prices in self.prices:
                if unused := prices.gpu - prices.cost(held):
                    more = min(more, (prices.gpu * (gpus - times) - prices.cost(demand)) // unused)
            if more < 1:
                break
            times += more
            demand = tuple(count - more * one for count, one in zip(demand, held, strict=True))
        return times, demand

    def by_profile(self, prices: Prices) -> Mapping[str, Fraction]:
        """The part of a GPU that each profile costs."""
        costs = zip(self.profiles, prices.each, strict=True)
        return MappingProxyType({name: Fraction(cost, prices.gpu) for name, cost in costs})


@lru_cache(maxsize=64)
def frontier(gpu: Gpu) -> Frontier:
    """Computed once for each model, from its placements; profiles of which a GPU holds none are left out."""
    names = [profile.name for profile in largest_first(gpu.profiles)]
    valid = valid_layouts(gpu, names)
    profiles = tuple(name for name in names if any(name in layout for layout in valid))
    full = maximal_layouts(gpu, names)
    vectors = [tuple(layout.get(name, 0) for name in profiles) for layout in full]
    prices = _prices(vectors, len(profiles))
    ordered = (*full, *(layout for layout in valid if layout not in full))
    return Frontier(profiles, tuple(_layout(layout, profiles, prices) for layout in ordered), prices)


def _layout(counts: InstanceCounts, profiles: Sequence[str], prices: Sequence[Prices]) -> Layout:
    vector = tuple(counts.get(name, 0) for name in profiles)
    takes = (*vector, *(price.gpu - price.cost(vector) for price in prices))
    return Layout(counts, vector, tuple((index, amount) for index, amount in enumerate(takes) if amount))


# --- Prices ------------------------------------------------------------------------------------------------------


class _Ray(NamedTuple):
    """A ray of the cone above all prices: the worth of a GPU, then of each profile; and the limits that it meets."""

    values: Vector
    meets: int


def _prices(layouts: Sequence[Vector], profiles: int) -> tuple[Prices, ...]:
    """The vertices of all p with ``p x layout <= 1``, those that no other exceeds: the double description method.

    Prices may be negative on the way. Every layout therefore counts with each part that leaves out whole profiles, and
    of all vertices only those remain that no price can be raised at: for a model of seven slices 7, where prices from
    zero up have 174. Begun with the limit of each profile alone: one vertex, and a ray down for each profile.
    """
    if not layouts:
        return ()
    most = [max(layout[index] for layout in layouts) for index in range(profiles)]
    worth = lcm(*most)
    unit = [tuple(int(index == other) for other in range(profiles)) for index in range(profiles)]
    alone = (1 << profiles) - 1
    rays = [_Ray((worth, *(worth // count for count in most)), alone)]
    rays += [_Ray((0, *(-one for one in row)), alone & ~(1 << index) | 1 << profiles) for index, row in enumerate(unit)]
    known = {tuple(count * one for one in row) for count, row in zip(most, unit, strict=True)}
    limits = sorted({part for layout in layouts for part in _parts(layout)} - known, key=_by_size)
    for at, limit in enumerate(limits, start=profiles + 1):
        rays = list(_cut(rays, limit, 1 << at, profiles))
    return tuple(sorted(Prices(ray.values[0], ray.values[1:]) for ray in rays if ray.values[0]))


def _parts(layout: Vector) -> Iterator[Vector]:
    """The layout with each choice of its profiles, and none of the others."""
    held = [index for index, count in enumerate(layout) if count]
    for kept in chain.from_iterable(combinations(held, size) for size in range(1, len(held) + 1)):
        yield tuple(count if index in kept else 0 for index, count in enumerate(layout))


def _by_size(part: Vector) -> tuple[int, Vector]:
    return sum(map(bool, part)), part


def _cut(rays: Sequence[_Ray], limit: Vector, bit: int, profiles: int) -> Iterator[_Ray]:
    """The rays of the cone below one more limit: those below it, and where an edge goes through it."""
    slack = [ray.values[0] - sum(map(mul, limit, ray.values[1:])) for ray in rays]
    below = [(ray, left) for ray, left in zip(rays, slack, strict=True) if left > 0]
    above = [(ray, left) for ray, left in zip(rays, slack, strict=True) if left < 0]
    for ray, left in zip(rays, slack, strict=True):
        if left >= 0:
            yield ray if left else _Ray(ray.values, ray.meets | bit)
    for one, left in below:
        for other, lacks in above:
            meets = one.meets & other.meets
            if meets.bit_count() >= profiles - 1 and _is_edge(meets, rays):
                between = (left * b - lacks * a for a, b in zip(one.values, other.values, strict=True))
                yield _Ray(_reduced(between), meets | bit)


def _is_edge(meets: int, rays: Iterable[_Ray]) -> bool:
    """Whether no third ray meets all that two do."""
    return sum(ray.meets & meets == meets for ray in rays) == 2


def _reduced(values: Iterable[int]) -> Vector:
    found = tuple(values)
    divisor = gcd(*found)
    return tuple(value // divisor for value in found)
