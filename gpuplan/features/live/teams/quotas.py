"""Make quotas on units of pools of what ResourceQuotas cap in namespaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction as Ratio
from math import ceil, floor
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Finding, Label, Origin, Severity
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.planning.amounts import amount_text, portion_of
from gpuplan.compiler.planning.grants import FRACTION
from gpuplan.compiler.planning.plan import Counted, Plan, UnitKey
from gpuplan.compiler.policy.models import Cap as CappedBy
from gpuplan.features.live.rules import TEAM_SAID_IN_PART
from gpuplan.features.live.teams.asked import Asked, Place, uncapped
from gpuplan.features.live.teams.caps import COMPUTE_KEYS, Cap, Caps, Offer, Offers, grants_in, offers_in, read_caps
from gpuplan.features.live.teams.model import Space, Team, Told, told
from gpuplan.features.live.teams.recorded import Bounds, Recorded


class Share(Value):
    """What a team has of a unit; ``at`` is where a quota caps it. ``classes`` are caps of priority classes.

    Caps are by namespace, and None where nothing caps it.
    """

    team: str
    offer: Offer
    at: Origin | None
    caps: Mapping[str, int | None]
    classes: Mapping[str, Mapping[str, int]]

    @property
    def place(self) -> tuple[str, UnitKey]:
        return self.team, self.offer.key

    @property
    def total(self) -> int | None:
        """None where it is not bounded."""
        known = [cap for cap in self.caps.values() if cap is not None]
        return sum(known) if len(known) == len(self.caps) else None


# --- Quotas of tenants -------------------------------------------------------------------------------------------


def quotas_of(
    teams: Sequence[Team], plan: Plan, offers: Offers, recorded: Recorded, asked: Asked
) -> tuple[Mapping[str, tuple[Mapping[str, Any], ...]], tuple[Told, ...]]:
    """The entries of `spec.quotas` of each team: what its queues say, else what ResourceQuotas cap."""
    queued = {team.name: _with_units(team.queue.quotas, plan) for team in teams if team.queue and has_queue(team)}
    divider = Divider(offers, recorded.with_quotas(queued))
    shares: dict[str, tuple[Share, ...]] = {}
    unsaid: list[Told] = []
    for team in teams:
        shares[team.name], unclear = shares_of(team, divider, asked.get(team.name, {}))
        unsaid += () if has_queue(team) else unclear
    unknown = [
        share
        for team in teams
        for share in shares[team.name]
        if not has_queue(team) and not recorded.find(team.name, share.offer.key)
    ]
    own, beyond = guarantees(unknown)
    unsaid += beyond
    found: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for team in teams:
        if team.name in queued:
            known = _as_recorded(queued[team.name], recorded.bounds.get(team.name, {}))
            found[team.name] = tuple(_completed(team, quota, shares[team.name], plan.cluster.cap) for quota in known)
            continue
        quotas = [
            quota_of(team, share, own.get(share.place, 0), recorded, plan.cluster.cap) for share in shares[team.name]
        ]
        compute, undivided = ({}, ()) if plan.scheduler.counts_tenants else compute_of(team, quotas)
        unsaid += undivided
        found[team.name] = tuple({**quota, **compute.get(index, {})} for index, quota in enumerate(quotas))
    return found, tuple(unsaid)


def _with_units(quotas: Iterable[Mapping[str, Any]], plan: Plan) -> tuple[Mapping[str, Any], ...]:
    """A quota need not name the only unit of its pool."""
    only = {pool.name: pool.units[0].name for pool in plan.pools if len(pool.units) == 1}
    return tuple(
        {"pool": pool, "unit": only[pool], **quota}
        if "unit" not in quota and (pool := quota.get("pool")) in only
        else quota
        for quota in quotas
    )


def _as_recorded(
    quotas: Sequence[Mapping[str, Any]], recorded: Mapping[UnitKey, Bounds]
) -> Sequence[Mapping[str, Any]]:
    """With the units that gpuplan recorded, if it did: queues count GPUs, and do not tell one kind from another."""
    by_unit = {(quota.get("pool"), quota.get("unit")): quota for quota in quotas}
    firsts = {quota.get("pool"): quota for quota in reversed(quotas)}
    found: list[Mapping[str, Any]] = []
    for (pool, unit), bounds in recorded.items():
        of_pool = firsts.pop(pool, {})
        more = {field: value for field, value in of_pool.items() if field in _OF_POOL}
        rest = {field: value for field, value in by_unit.get((pool, unit), {}).items() if field not in _BOUNDS}
        found.append({**_bounded(pool, unit, bounds.guaranteed, bounds.limit), **rest, **more})
    return found or quotas


_OF_POOL: Final = ("cpu", "memory")
_BOUNDS: Final = ("guaranteed", "limit")


def _bounded(pool: str, unit: str, guaranteed: float, limit: float | None) -> dict[str, Any]:
    """A limit that is the guarantee is not stated."""
    entry: dict[str, Any] = {"pool": pool, "unit": unit, "guaranteed": guaranteed}
    if limit != guaranteed:
        entry["limit"] = "none" if limit is None else limit
    return entry


def _completed(team: Team, quota: Mapping[str, Any], shares: Iterable[Share], cap: CappedBy) -> Mapping[str, Any]:
    """With what no queue knows: how a cap is divided among namespaces, and caps of priority classes.

    ResourceQuotas that others wrote beside queues stay where they are, unless they divide just what the queue has.
    """
    share = next((found for found in shares if found.offer.key == (quota.get("pool"), quota.get("unit"))), None)
    if share is None:
        return quota
    limit = quota.get("limit", quota.get("guaranteed"))
    known = {name: cap for name, cap in share.caps.items() if cap is not None}
    limits = _class_limits(share) if team.is_own or cap is not CappedBy.QUEUE else {}
    if (
        len(known) < len(share.caps)
        or (len(known) == 1 and not is_withheld(team, share.offer))
        or not (team.is_own or sum(known.values()) == limit)
    ):
        return {**quota, **limits}
    undivided = {field: value for field, value in quota.items() if field != "split"}
    is_divided = any(cap != limit for cap in known.values()) or is_withheld(team, share.offer)
    split = {"split": quota.get("split", known)} if is_divided else {}
    return {**undivided, **split, **limits}


def _class_limits(share: Share) -> dict[str, Any]:
    limits = {name: sum(parts.values()) for name, parts in sorted(share.classes.items())}
    return {"classLimits": limits} if limits else {}


def is_withheld(team: Team, offer: Offer) -> bool:
    """Whether namespaces that are the tenant's by label may not use what the others may: so it is with a `split`."""
    by_label = {(pool, resource) for pool, resource, _ in grants_in(team.labelled)}
    return team.labelled is not None and (offer.pool.name, offer.unit.asked_as or FRACTION) not in by_label


def has_queue(team: Team) -> bool:
    """Whether queues say what it has."""
    return team.queue is not None and bool(team.queue.quotas)


# --- Who has what of which pool ----------------------------------------------------------------------------------


class Divider:
    """Divides what a namespace has of a resource among the pools that hand it out.

    It goes where most is left, so that the guarantees fit into the pools if they can.
    """

    def __init__(self, offers: Offers, recorded: Recorded) -> None:
        self.offers = offers
        self.recorded = recorded
        self._left = {offer.key: offer.unit.capacity for found in offers.values() for offer in found}
        self._given: dict[tuple[str, UnitKey], int] = {}

    def divide(self, team: str, amount: int, offers: Sequence[Offer]) -> Mapping[UnitKey, int]:
        """Each gets one at least, for one that gets none could not be used any more."""
        parts = self._by_records(team, amount, offers) or self._by_room(amount, offers)
        for key, part in parts.items():
            self._left[key] -= part
        return parts

    def _by_records(self, team: str, amount: int, offers: Sequence[Offer]) -> Mapping[UnitKey, int]:
        """By what gpuplan recorded, or queues say, of each: as much where that is all of it, else of what is left."""
        found = {offer.key: self.recorded.cap(team, offer.key) for offer in offers}
        caps = {key: Ratio(str(cap)) for key, cap in found.items() if cap is not None}
        if len(caps) < len(offers):
            return {}
        rest = {key: cap - self._given.get((team, key), 0) for key, cap in caps.items()}
        whole = sum(caps.values(), Ratio(0))
        weights = rest if amount != whole and amount <= sum(rest.values()) else caps
        parts = portion_of(amount, weights, sum(weights.values(), Ratio(0))) if any(weights.values()) else {}
        for key, part in parts.items():
            self._given[team, key] = self._given.get((team, key), 0) + part
        return parts

    def _by_room(self, amount: int, offers: Sequence[Offer]) -> Mapping[UnitKey, int]:
        by_room = sorted(offers, key=lambda offer: -self._left[offer.key])
        parts = {offer.key: 1 if index < amount else 0 for index, offer in enumerate(by_room)}
        rest = amount - sum(parts.values())
        room = {key: Ratio(max(self._left[key] - part, 0)) for key, part in parts.items()}
        whole = sum(room.values(), Ratio(0))
        if not whole:
            room, whole = dict.fromkeys(parts, Ratio(1)), Ratio(len(parts))
        more = portion_of(rest, room, whole)
        return {key: part + more[key] for key, part in parts.items()}


def shares_of(team: Team, divider: Divider, asked: Mapping[str, Place]) -> tuple[tuple[Share, ...], tuple[Told, ...]]:
    """What ResourceQuotas give the team, and what nobody can tell of it."""
    caps: dict[UnitKey, dict[str, int | None]] = {}
    classes: dict[UnitKey, dict[str, dict[str, int]]] = {}
    offers: dict[UnitKey, Offer] = {}
    places: dict[UnitKey, Origin | None] = {}
    unclear: list[Told] = []
    for space in team.spaces:
        found = read_caps(space.quotas)
        for key, candidates in _candidates(space, found, divider.offers).items():
            cap = found.plain.get(key)
            parts = _parts(team, cap, candidates, divider)
            at = cap.at if cap else None
            for offer in candidates:
                offers[offer.key], places[offer.key] = offer, at
                caps.setdefault(offer.key, {})[space.name] = parts[offer.key]
            for name, capped in found.by_class.items():
                if limit := capped.get(key):
                    for offer_key, part in _class_parts(int(limit.amount), parts).items():
                        classes.setdefault(offer_key, {}).setdefault(name, {})[space.name] = part
            if at and not space.parameters and len(candidates) > 1:
                unclear.append(_ambiguous(team, at, key, parts, candidates))
    for offer in offers_in(team.labelled, divider.offers) if not team.spaces else ():
        offers[offer.key], places[offer.key] = offer, None
        caps[offer.key] = {"": None}  # nothing caps namespaces that are the tenant's by label
    for key, place in asked.items():
        if not any(offer.counted_as == key for offer in offers.values()):
            unclear.append(uncapped(team, key, place, divider.offers))
            for offer in divider.offers[key]:
                offers[offer.key], places[offer.key] = offer, None
                caps[offer.key] = dict.fromkeys(team.namespaces, None)
    shares = (
        Share(team.name, offers[key], places[key], dict.fromkeys(team.namespaces, 0) | caps[key], classes.get(key, {}))
        for key in caps
    )
    return (*_ordered(team, shares, divider),), tuple(unclear)


def _ordered(team: Team, shares: Iterable[Share], divider: Divider) -> Iterator[Share]:
    """In the order that gpuplan recorded, with what was recorded and nobody may use; else by pool and unit."""
    found = {share.offer.key: share for share in sorted(shares, key=lambda share: share.offer.key)}
    units = {offer.key: offer for known in divider.offers.values() for offer in known}
    for key in divider.recorded.bounds.get(team.name, {}):
        if key in found:
            yield found.pop(key)
        elif key in units and team.spaces and not has_queue(team):
            yield Share(team.name, units[key], None, dict.fromkeys(team.namespaces, 0), {})
    yield from found.values()


def _candidates(space: Space, caps: Caps, offers: Offers) -> Mapping[str, tuple[Offer, ...]]:
    """The units that a namespace may use, by what a quota counts them by.

    gpuplan's parameters say it, else its quotas do.
    """
    if space.parameters:
        found: dict[str, list[Offer]] = {}
        for offer in offers_in(space.parameters, offers):
            found.setdefault(offer.counted_as, []).append(offer)
        return {key: tuple(known) for key, known in found.items()}
    counted = {key for caps_of in (caps.plain, *caps.by_class.values()) for key in caps_of if key in offers}
    return {key: offers[key] for key in sorted(counted) if key not in caps.plain or caps.plain[key].amount >= 1}


def _parts(team: Team, cap: Cap | None, candidates: Sequence[Offer], divider: Divider) -> Mapping[UnitKey, int | None]:
    if cap is None:
        return dict.fromkeys((offer.key for offer in candidates), None)
    return divider.divide(team.name, int(cap.amount), candidates)


def _class_parts(amount: int, parts: Mapping[UnitKey, int | None]) -> Mapping[UnitKey, int]:
    """The same part of each of its units."""
    weights = {key: Ratio(1 if part is None else part) for key, part in parts.items()}
    whole = sum(weights.values(), Ratio(0))
    return portion_of(amount, weights, whole) if whole else {}


def _ambiguous(
    team: Team, at: Origin, key: str, parts: Mapping[UnitKey, int | None], candidates: Sequence[Offer]
) -> Told:
    resource = key.removeprefix("requests.")
    taken = joined([f"{parts[offer.key]} of {offer.title}" for offer in candidates if parts[offer.key]])
    unused = [offer.title for offer in candidates if parts[offer.key] == 0]
    finding = Finding(
        at.key,
        f"`{resource}` is handed out by {len(candidates)} pools, and a ResourceQuota does not say which is meant",
        label=f"{listing([offer.pool.name for offer in candidates])}",
        notes=(
            f"tenant `{team.name}` got {taken}, so that the sum stays what it is"
            if taken
            else f"tenant `{team.name}` may use all of them",
            *((f"it may use none of {joined(unused)} any more",) if unused else ()),
        ),
        help="divide the number among the pools that the team is meant to use",
    )
    return told(team.name, TEAM_SAID_IN_PART, finding)


# --- One quota ---------------------------------------------------------------------------------------------------


def guarantees(shares: Iterable[Share]) -> tuple[Mapping[tuple[str, UnitKey], int], tuple[Told, ...]]:
    """What is each team's own, by team and unit: as much as its cap, or where all caps together are too many, its part.

    A ResourceQuota promises nothing: with caps beyond what there is, who comes first has it.
    """
    by_unit: dict[UnitKey, list[Share]] = {}
    for share in shares:
        by_unit.setdefault(share.offer.key, []).append(share)
    found: dict[tuple[str, UnitKey], int] = {}
    beyond: list[Told] = []
    for key, whose in by_unit.items():
        caps = {share.team: share.total or 0 for share in whose}
        promised, capacity = sum(caps.values()), whose[0].offer.unit.capacity
        if promised > capacity:
            weights = {team: Ratio(cap) for team, cap in caps.items()}
            beyond += _beyond([share for share in whose if share.total], promised)
            caps = dict(portion_of(capacity, weights, Ratio(promised)))
        found |= {(team, key): cap for team, cap in caps.items()}
    return found, tuple(beyond)


def _beyond(shares: Sequence[Share], promised: int) -> Iterator[Told]:
    places = {share.team: share.at for share in shares if share.at}
    offer, first = shares[0].offer, next(iter(places.values()), None)
    if first is None:
        return
    capacity = offer.unit.capacity
    finding = Finding(
        first,
        f"quotas on {offer.title} add up to {promised} of {capacity}",
        label=f"`{shares[0].team}` may use so many",
        related=tuple(Label(at, f"and `{team}` so many") for team, at in [*places.items()][1:]),
        notes=(f"the caps stay, as `limit`, and each is guaranteed its part of {capacity}",),
        help="set `guaranteed` in the Tenants to what each is meant to have at any time",
    )
    yield Told(tuple(share.team for share in shares), TEAM_SAID_IN_PART.report(finding))


def quota_of(team: Team, share: Share, guaranteed: int, recorded: Recorded, capped_by: CappedBy) -> dict[str, Any]:
    """An entry of `spec.quotas`."""
    known, total = recorded.find(team.name, share.offer.key), share.total
    if known:
        entry = _bounded(*share.offer.key, known.guaranteed, known.limit)
    else:
        own = (total or 0) if capped_by is CappedBy.GUARANTEED else guaranteed
        entry = _bounded(*share.offer.key, own, total)
    if total is not None and (len(team.namespaces) > 1 or is_withheld(team, share.offer)):
        entry["split"] = {name: cap for name, cap in share.caps.items() if cap is not None}
    return {**entry, **_class_limits(share)}


# --- CPU, memory and pods ----------------------------------------------------------------------------------------


def compute_of(
    team: Team, quotas: Sequence[Mapping[str, Any]]
) -> tuple[Mapping[int, dict[str, Any]], tuple[Told, ...]]:
    """What quotas say of CPU, memory and pods, by the index of each.

    A ResourceQuota counts them in all pools at once: the first quota in each pool gets a part of it.
    """
    found: dict[int, dict[str, Any]] = {}
    unsaid: list[Told] = []
    firsts = {quota["pool"]: index for index, quota in reversed([*enumerate(quotas)])}
    caps = {space.name: read_caps(space.quotas).plain for space in team.spaces}
    for key, counted in COMPUTE_KEYS.items():
        stated = {name: plain[key] for name, plain in caps.items() if key in plain}
        if not stated or not firsts:
            continue
        one = 1000 if counted is Counted.CPU else 1
        amounts = {name: ceil(cap.amount * one) for name, cap in stated.items()}
        whole = _whole(amounts, quotas[min(firsts.values())].get("split"), team.namespaces)
        if whole is None:
            unsaid.append(_undivided(team, key, stated))
            whole = sum(amounts.values())
        weights = dict.fromkeys(sorted(firsts), Ratio(1))
        for pool, part in portion_of(whole, weights, Ratio(len(weights))).items():
            entry = found.setdefault(firsts[pool], {})
            entry[counted.value] = part if counted is Counted.PODS else amount_text(counted, part)
    return found, tuple(unsaid)


def _whole(amounts: Mapping[str, int], split: Mapping[str, int] | None, namespaces: Sequence[str]) -> int | None:
    """What is divided among namespaces into these amounts, by the parts of ``split``; None where nothing is."""
    if split is None:
        return next(iter(amounts.values())) if len(set(amounts.values())) == 1 else None
    all_parts = sum(split.values())
    parts = {name: Ratio(split.get(name, 0), all_parts) if all_parts else Ratio(0) for name in namespaces}
    whole = max((ceil(amounts[name] / part) for name, part in parts.items() if part and name in amounts), default=None)
    is_exact = whole is not None and all(
        floor(whole * part) == amounts.get(name) for name, part in parts.items() if part
    )
    return whole if is_exact else None


def _undivided(team: Team, key: str, stated: Mapping[str, Cap]) -> Told:
    first = next(iter(stated.values()))
    finding = Finding(
        first.at.key,
        f"namespaces of tenant `{team.name}` have caps on `{key}` in other parts than on GPUs",
        label="the sum is kept",
        related=tuple(Label(cap.at.key, f"namespace `{name}`") for name, cap in list(stated.items())[1:]),
        notes=("a `split` divides GPUs, CPU and memory by the same parts",),
        help="make a Tenant of each namespace where that matters",
        severity=Severity.WARNING,
    )
    return told(team.name, TEAM_SAID_IN_PART, finding)
