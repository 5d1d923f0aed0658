"""Say in the words of the policy language what somebody has of a pool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.planning.amounts import amount_text, share_of_units
from gpuplan.compiler.planning.plan import Amount, Counted, Pool, Unit


class Share(NamedTuple):
    """The numbers of a tenant on a unit or a resource: ``limit`` is None if unbounded."""

    guaranteed: Amount
    limit: Amount | None
    lendable: Amount


def together(one: Share, other: Share) -> Share:
    """Return the sum of two shares."""
    limit = None if one.limit is None or other.limit is None else one.limit + other.limit
    return Share(one.guaranteed + other.guaranteed, limit, one.lendable + other.lendable)


class UnitShare(NamedTuple):
    """The share of a tenant in a pool's unit."""

    pool: Pool
    unit: Unit
    share: Share


def quotas(
    shares: Iterable[UnitShare], compute: Mapping[str, Mapping[Counted, Share]]
) -> tuple[Mapping[str, Any], ...]:
    """Entries of `spec.quotas`, less what is the default; CPU, memory and pods by pool stand in its first entry."""
    found: list[dict[str, Any]] = []
    units = [*shares]
    for item in units:
        pool = item.pool
        first = next(other for other in units if other.pool is pool)
        beside = compute.get(pool.name, {}) if item is first else {}
        found.append(
            {
                "pool": pool.name,
                **({"unit": item.unit.name} if len(pool.units) > 1 else {}),
                **_bounds(item.share),
                **_beside(pool, [other for other in units if other.pool is pool], beside),
            }
        )
    return tuple(found)


def _bounds(share: Share) -> dict[str, Any]:
    found: dict[str, Any] = {"guaranteed": _number(share.guaranteed)}
    if share.limit is None:
        found["limit"] = "none"
    elif share.limit != share.guaranteed:
        found["limit"] = _number(share.limit)
    if share.lendable < share.guaranteed:
        found["lendable"] = _number(share.lendable)
    return found


def _number(amount: Amount) -> int | float:
    return int(amount) if amount == int(amount) else float(amount)


def _beside(pool: Pool, units: Sequence[UnitShare], compute: Mapping[Counted, Share]) -> dict[str, Any]:
    """Return the quotas beside units, unless they follow from the units."""
    found: dict[str, Any] = {}
    for counted, share in compute.items():
        if pool.spec.follow_units and share[:2] == _following(units, counted):
            continue
        if counted is Counted.PODS:
            found["pods"] = int(share.guaranteed)
            continue
        text = amount_text(counted, int(share.guaranteed))
        if share.limit == share.guaranteed:
            found[counted.value] = text
        else:
            limit = "none" if share.limit is None else amount_text(counted, int(share.limit))
            found[counted.value] = {"guaranteed": text, "limit": limit}
    return found


def _following(units: Sequence[UnitShare], counted: Counted) -> tuple[Amount | None, Amount | None]:
    """Return the guarantee and the limit that follow from units in a pool that follows them."""
    guaranteed: Amount = 0
    limit: Amount | None = 0
    for pool, unit, share in units:
        guaranteed += share_of_units(pool, unit, share.guaranteed, counted) or 0
        most = None if share.limit is None else share_of_units(pool, unit, share.limit, counted)
        limit = None if limit is None or most is None else limit + most
    return guaranteed, limit
