"""The most that one GPU of a model can hold, as layouts and as prices that no layout exceeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    """A list with a price of each profile. A GPU is worth ``gpu``, and no layout costs more."""

    gpu: int
    each: Vector

    def least_gpus(self, demand: Vector) -> int:
        """Return a number of GPUs so that no fewer hold the instances: they cost more than one GPU less is worth."""
        return -(-self.cost(demand) // self.gpu)

    def cost(self, instances: Vector) -> int:
        return sum(map(mul, self.each, instances))


class Layout(NamedTuple):
    """Instances that a GPU can hold.

    ``takes`` holds pairs of an index and an amount that is not 0: the instances of each profile, then what each price
    list leaves of the GPU.
    """

    counts: InstanceCounts
    vector: Vector
    takes: tuple[tuple[int, int], ...]


class Frontier(Value, eq=False):
    """All layouts of a model, the maximal ones first, and all prices by which some demand is bound.

    The prices are the facets of the convex hull of the layouts: a demand fits on some GPUs in parts of layouts if, and
    only if, no price rules it out.
    """

    profiles: tuple[str, ...]
    layouts: tuple[Layout, ...]
    prices: tuple[Prices, ...]

    def vector(self, counts: Mapping[str, int]) -> Vector:
        return tuple(counts.get(name, 0) for name in self.profiles)

    def by_profile(self, prices: Prices) -> Mapping[str, Fraction]:
        """Return the part of a GPU that each profile costs."""
        costs = zip(self.profiles, prices.each, strict=True)
        return MappingProxyType({name: Fraction(cost, prices.gpu) for name, cost in costs})


@lru_cache(maxsize=64)
def frontier(gpu: Gpu) -> Frontier:
    """Return the frontier of a model, from its placements; profiles of which a GPU holds none are left out."""
    names = [profile.name for profile in largest_first(gpu.profiles)]
    valid = valid_layouts(gpu, names)
    profiles = tuple(name for name in names if any(name in layout for layout in valid))
    full = maximal_layouts(gpu, names)
    vectors = [tuple(layout.get(name, 0) for name in profiles) for layout in full]
    prices = _prices(vectors, len(profiles))
    ordered = (*full, *(layout for layout in valid if layout not in full))
    layouts = []
    for counts in ordered:
        vector = tuple(counts.get(name, 0) for name in profiles)
        takes = (*vector, *(price.gpu - price.cost(vector) for price in prices))
        layouts.append(Layout(counts, vector, tuple((at, amount) for at, amount in enumerate(takes) if amount)))
    return Frontier(profiles, tuple(layouts), prices)


# --- Prices ------------------------------------------------------------------------------------------------------


class _Ray(NamedTuple):
    """A ray of the cone above all prices: the worth of a GPU, then of each profile; and the limits that it meets."""

    values: Vector
    meets: int


def _prices(layouts: Sequence[Vector], profiles: int) -> tuple[Prices, ...]:
    """Return the vertices of all p with ``p x layout <= 1`` that no other exceeds, by the double description method.

    Prices may be negative on the way. Every layout therefore counts with each part that leaves out whole profiles, and
    of all vertices only those remain at which no price can be raised: for a model of seven slices 7, while prices from
    zero up have 174. It begins with the limit of each profile alone: one vertex, and a ray down for each profile.
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
    parts = {part for layout in layouts for part in _parts(layout)} - known
    limits = sorted(parts, key=lambda part: (sum(map(bool, part)), part))
    for at, limit in enumerate(limits, start=profiles + 1):
        rays = list(_cut(rays, limit, 1 << at, profiles))
    return tuple(sorted(Prices(ray.values[0], ray.values[1:]) for ray in rays if ray.values[0]))


def _parts(layout: Vector) -> Iterator[Vector]:
    """Yield the layout with each choice of its profiles, and none of the others."""
    held = [index for index, count in enumerate(layout) if count]
    for kept in chain.from_iterable(combinations(held, size) for size in range(1, len(held) + 1)):
        yield tuple(count if index in kept else 0 for index, count in enumerate(layout))


def _cut(rays: Sequence[_Ray], limit: Vector, bit: int, profiles: int) -> Iterator[_Ray]:
    """Yield the rays of the cone below one more limit: those below it, and those through which an edge goes."""
    slack = [ray.values[0] - sum(map(mul, limit, ray.values[1:])) for ray in rays]
    below = [(ray, rest) for ray, rest in zip(rays, slack, strict=True) if rest > 0]
    above = [(ray, rest) for ray, rest in zip(rays, slack, strict=True) if rest < 0]
    for ray, rest in zip(rays, slack, strict=True):
        if rest >= 0:
            yield ray if rest else _Ray(ray.values, ray.meets | bit)
    for one, rest in below:
        for other, lacks in above:
            meets = one.meets & other.meets
            is_edge = meets.bit_count() >= profiles - 1 and sum(ray.meets & meets == meets for ray in rays) == 2
            if is_edge:  # no third ray meets all that two do
                between = [rest * b - lacks * a for a, b in zip(one.values, other.values, strict=True)]
                divisor = gcd(*between)
                yield _Ray(tuple(value // divisor for value in between), meets | bit)
