"""Find the units that a number of GPUs stands for: queues of KAI-Scheduler add up all that a pool hands out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction as Ratio
from itertools import combinations

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.kai import weight
from gpuplan.compiler.planning.plan import Amount, Pool, Unit


class Bounds(NamedTuple):
    """The numbers of a queue, in GPUs: ``quota`` is None for all that is within it, ``limit`` if unbounded."""

    quota: Ratio | None
    limit: Ratio | None


class UnitBounds(NamedTuple):
    """The numbers of a tenant on one unit."""

    guaranteed: Amount
    limit: Amount | None


Found = Mapping[str, UnitBounds]
"""Bounds by the names of units."""


class Capped(NamedTuple):
    """The caps of ResourceQuotas on a tenant's namespaces together, by unit: its limits, or else its guarantees."""

    amounts: Mapping[str, Amount]
    are_limits: bool


UNCAPPED = Capped({}, are_limits=True)


def own_bounds(
    pool: Pool,
    whole: Bounds,
    rest: Bounds | None,
    below: Found,
    *,
    units: Iterable[str] = (),
    capped: Capped = UNCAPPED,
    may_be_none: bool = True,
) -> Found | None:
    """Return the quotas of a tenant that its queue and, if it has its own work as well, the queue of that come of.

    ``below`` is what lies within, by unit. ``units`` are those that it is known to be granted. What is ``capped`` tells
    how GPUs are divided among units, where it comes to the same number. None where no quotas in whole units come to
    these numbers.
    """
    sets = [tuple(name for name in units if pool.find_unit(name))]
    names = [unit.name for unit in sorted(pool.units, key=lambda unit: -unit.capacity)]
    sets += [chosen for count in range(len(names) + 1) for chosen in combinations(names, count)]
    for chosen in sets:
        if (chosen or may_be_none) and (found := _as_said(pool, chosen, whole, rest, below, capped)) is not None:
            return found
    return None


def _as_said(
    pool: Pool, chosen: Sequence[str], whole: Bounds, rest: Bounds | None, below: Found, capped: Capped
) -> Found | None:
    """Return the quotas on these units; None where they come to other numbers."""
    others = {name: part for name, part in below.items() if name not in chosen}
    within = gpus_of(pool, {name: part for name, part in below.items() if name in chosen})
    beside, is_bounded = gpus_of(pool, others), all(part.limit is not None for part in others.values())
    limits = (_cost(pool, name) * Ratio(part.limit or 0) for name, part in others.items())
    other_limit = sum(limits, Ratio(0)) if is_bounded else None
    left = Ratio(0) if whole.quota is None else whole.quota - beside - within
    if rest is not None and not _is_same(left, rest.quota or Ratio(0)):
        return None
    if not chosen:
        return {} if whole.limit is None and _is_same(left, Ratio(0)) else None
    if rest is not None:
        limit = rest.limit
    elif whole.limit is None or other_limit is None:
        limit = None
    else:
        limit = whole.limit - other_limit
    together = None if limit is None or other_limit is None else limit + other_limit
    if (together is None) is not (whole.limit is None) or not _is_same(together or Ratio(0), whole.limit or Ratio(0)):
        return None
    inner = {name: below[name].guaranteed if name in below else 0 for name in chosen}
    if (found := _as_capped(pool, inner, left, limit, capped)) is not None:
        return found
    parts = divide(pool, chosen, left)
    beyond = None if limit is None else divide(pool, chosen, limit - left - within)
    if parts is None or (limit is not None and beyond is None):
        return None
    guaranteed = {name: parts[name] + inner[name] for name in chosen}
    return {
        name: UnitBounds(number, None if beyond is None else number + beyond[name])
        for name, number in guaranteed.items()
    }


def _as_capped(
    pool: Pool, inner: Mapping[str, Amount], remainder: Ratio, limit: Ratio | None, capped: Capped
) -> Found | None:
    """Return the quotas that caps tell; None where they do not tell all, or come to other numbers.

    ``inner`` is what lies within, ``remainder`` the GPUs that are guaranteed beside that.
    """
    if not inner.keys() <= capped.amounts.keys():
        return None
    caps = {name: capped.amounts[name] for name in inner}
    gpus = sum((_cost(pool, name) * Ratio(number) for name, number in caps.items()), Ratio(0))
    if capped.are_limits:
        beside = {name: caps[name] - number for name, number in inner.items()}
        if limit is None or not _is_same(gpus, limit) or min(beside.values()) < 0:
            return None
        parts = divide(pool, [*inner], remainder, beside)
        if parts is None:
            return None
        return {name: UnitBounds(parts[name] + inner[name], cap) for name, cap in caps.items()}
    within = sum((_cost(pool, name) * Ratio(number) for name, number in inner.items()), Ratio(0))
    if not _is_same(gpus, remainder + within):
        return None
    beyond = None if limit is None else divide(pool, [*inner], limit - gpus)
    if limit is not None and beyond is None:
        return None
    return {name: UnitBounds(cap, None if beyond is None else cap + beyond[name]) for name, cap in caps.items()}


def gpus_of(pool: Pool, bounds: Found) -> Ratio:
    """Return the GPUs that guarantees add up to."""
    return sum((_cost(pool, name) * Ratio(part.guaranteed) for name, part in bounds.items()), Ratio(0))


def _cost(pool: Pool, name: str) -> Ratio:
    unit = pool.find_unit(name)
    return weight(pool, unit) if unit else Ratio(0)


def _is_same(one: Ratio, other: Ratio) -> bool:
    """Queues have 64-bit floats."""
    return abs(one - other) < Ratio(1, 10**9)


_MOST_STEPS = 100_000


def divide(
    pool: Pool, names: Sequence[str], gpus: Ratio, most: Mapping[str, Amount] | None = None
) -> Mapping[str, Amount] | None:
    """Numbers of units that come to a number of GPUs, by what there is of each; None where there are none.

    Of a unit there may be at ``most`` so many.
    """
    units = [unit for name in names if (unit := pool.find_unit(name))]
    for parts in _divisions(pool, units, gpus, [_MOST_STEPS]):
        found = {unit.name: number for unit, number in zip(units, parts, strict=True)}
        if most is None or all(number <= most[name] for name, number in found.items()):
            return found
    return None


def _around(usual: int, most: int) -> Iterator[int]:
    """Whole numbers up to the most, the nearest to the usual one first."""
    usual = min(usual, most)
    yield usual
    for distance in range(1, max(usual, most - usual) + 1):
        yield from (number for number in (usual + distance, usual - distance) if 0 <= number <= most)


def _divisions(pool: Pool, units: Sequence[Unit], gpus: Ratio, steps: list[int]) -> Iterator[tuple[Amount, ...]]:
    if gpus < 0 or not units:
        if not units and _is_same(gpus, Ratio(0)):
            yield ()
        return
    unit, cost = units[0], weight(pool, units[0])
    if unit.resource is None and unit.device_class is None:  # a fraction is any number of GPUs
        exact = Decimal(gpus.numerator) / Decimal(gpus.denominator)
        yield (int(exact) if exact == int(exact) else round(exact, 9), *(0 for _ in units[1:]))
        return
    most = round(gpus / cost) if cost else 0
    there = sum((weight(pool, other) * other.capacity for other in units), Ratio(0))
    usual = round(gpus * unit.capacity / there) if there else most
    for number in _around(usual, most) if len(units) > 1 else (most,):
        steps[0] -= 1
        if steps[0] < 0:
            return
        left = gpus - number * cost
        for others in _divisions(pool, units[1:], Ratio(0) if _is_same(left, Ratio(0)) else left, steps):
            yield (number, *others)
