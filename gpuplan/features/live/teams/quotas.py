"""Make quotas on units of pools of what ResourceQuotas cap in namespaces."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction as Ratio
from itertools import chain
from math import ceil, floor
from typing import Any, Final

from gpuplan.compiler.base.diagnostics import Label, Origin
from gpuplan.compiler.base.plain import grouped
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.planning.amounts import LEAST_BYTES, amount_text, portion_of
from gpuplan.compiler.planning.grants import FRACTION
from gpuplan.compiler.planning.plan import Counted, Plan, UnitKey
from gpuplan.compiler.policy.models import Cap as CappedBy
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.queues.placing import Placing
from gpuplan.features.live.teams.caps import (
    COMPUTE_KEYS,
    Cap,
    Caps,
    Offer,
    Offers,
    Space,
    Team,
    grants_in,
    offers_in,
    read_caps,
)


class Share(Value):
    """The caps of a team on a unit, by namespace; None if nothing caps it.

    ``at`` is the place of a quota that caps it. ``classes`` are caps of priority classes.
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
    teams: Sequence[Team], plan: Plan, offers: Offers, placing: Placing, reports: Reports
) -> Mapping[str, tuple[Mapping[str, Any], ...]]:
    """Return the entries of `spec.quotas` by team, from its queues if it has any, else from its ResourceQuotas."""
    only = {pool.name: {"unit": pool.units[0].name} for pool in plan.pools if len(pool.units) == 1}
    queued = {  # with the only unit of each pool, which a quota need not name
        team.name: [
            quota
            if "unit" in quota or (pool := quota.get("pool")) not in only
            else {"pool": pool, **only[pool], **quota}
            for quota in team.queue.quotas
        ]
        for team in teams
        if team.queue and has_queue(team)
    }
    of_queues = {name: _caps_of(quotas, plan.cluster.cap) for name, quotas in queued.items()}
    divider = Divider(offers, of_queues, placing, keeps_uncapped=not plan.scheduler.counts_tenants)
    shares: dict[str, tuple[Share, ...]] = {}
    for team in teams:
        unclear = Reports() if has_queue(team) else reports
        shares[team.name] = shares_of(team, divider, unclear)
    own = guarantees((share for team in teams if not has_queue(team) for share in shares[team.name]), reports)
    found: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for team in teams:
        if team.name in queued:
            completed = (_completed(team, quota, shares[team.name], plan.cluster.cap) for quota in queued[team.name])
            found[team.name] = tuple(completed)
            continue
        quotas = [quota_of(team, share, own.get(share.place, 0), plan.cluster.cap) for share in shares[team.name]]
        compute = {} if plan.scheduler.counts_tenants else compute_of(team, quotas, shares[team.name], reports)
        found[team.name] = tuple({**quota, **compute.get(index, {})} for index, quota in enumerate(quotas))
    return found


def _caps_of(quotas: Iterable[Mapping[str, Any]], capped_by: CappedBy) -> Mapping[UnitKey, Ratio]:
    """Return by unit what a ResourceQuota has of each quota of a queue that has a number."""
    found: dict[UnitKey, Ratio] = {}
    for quota in quotas:
        guaranteed = quota.get("guaranteed")
        cap = guaranteed if capped_by is CappedBy.GUARANTEED else quota.get("limit", guaranteed)
        if isinstance(cap, int | float):
            found[str(quota.get("pool", "")), str(quota.get("unit", ""))] = Ratio(str(cap))
    return found


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

    It goes where its work has to run, and the rest where most is left, so that the guarantees fit if they can. With
    ``keeps_uncapped`` a namespace may use without a bound what none of its quotas caps.
    """

    def __init__(
        self, offers: Offers, queued: Mapping[str, Mapping[UnitKey, Ratio]], placing: Placing, *, keeps_uncapped: bool
    ) -> None:
        self.offers, self.keeps_uncapped, self._placing = offers, keeps_uncapped, placing
        self._queued = queued
        self._left = {offer.key: offer.unit.capacity for found in offers.values() for offer in found}
        self._given: dict[tuple[str, UnitKey], int] = {}

    def divide(self, team: Team, space: str, amount: int, offers: Sequence[Offer]) -> Mapping[UnitKey, int]:
        """Divide an amount, with at least one for each unit: a unit without any could not be used."""
        parts = self._by_queues(team.name, amount, offers) or self._by_work(space, amount, offers)
        for key, part in parts.items():
            self._left[key] -= part
        return parts

    def _by_queues(self, team: str, amount: int, offers: Sequence[Offer]) -> Mapping[UnitKey, int]:
        """Divide as the team's queues do: their numbers if these add up to the amount, else by what remains of them."""
        queued = self._queued.get(team, {})
        caps = {offer.key: queued[offer.key] for offer in offers if offer.key in queued}
        if len(caps) < len(offers):
            return {}
        rest = {key: cap - self._given.get((team, key), 0) for key, cap in caps.items()}
        whole = sum(caps.values(), Ratio(0))
        weights = rest if amount != whole and amount <= sum(rest.values()) else caps
        parts = portion_of(amount, weights, sum(weights.values(), Ratio(0))) if any(weights.values()) else {}
        for key, part in parts.items():
            self._given[team, key] = self._given.get((team, key), 0) + part
        return parts

    def needed(self, space: str, offers: Sequence[Offer]) -> Mapping[UnitKey, int]:
        """Return the units that work of a namespace asks for in one pool alone."""
        found: dict[UnitKey, int] = {}
        for offer in offers:
            units = self._placing.units_by_pool(space, offer.unit.resource or "").get(offer.pool.name, 0)
            found |= {offer.key: units} if units else {}
        return found

    def _by_work(self, space: str, amount: int, offers: Sequence[Offer]) -> Mapping[UnitKey, int]:
        needed = self.needed(space, offers) if len(offers) > 1 else {}
        rest = amount - sum(needed.values())
        if rest < 0 or (needed and not rest):
            parts = {key: max(part, 1) for key, part in _spread(amount, needed).items()}  # else its work stops
            return {**dict.fromkeys((offer.key for offer in offers), 0), **parts}
        room = {offer.key: max(self._left[offer.key] - needed.get(offer.key, 0), 0) for offer in offers}
        return {key: needed.get(key, 0) + part for key, part in _spread(rest, room).items()}


def _spread(amount: int, weights: Mapping[UnitKey, int]) -> Mapping[UnitKey, int]:
    """Divide an amount by weights, with at least one for each as far as it lasts, the largest first."""
    by_weight = sorted(weights, key=lambda key: -weights[key])
    parts = {key: 1 if index < amount else 0 for index, key in enumerate(by_weight)}
    room = {key: Ratio(max(weights[key] - part, 0)) for key, part in parts.items()}
    whole = sum(room.values(), Ratio(0))
    if not whole:
        room, whole = dict.fromkeys(parts, Ratio(1)), Ratio(len(parts))
    more = portion_of(amount - sum(parts.values()), room, whole)
    return {key: part + more[key] for key, part in parts.items()}


def shares_of(team: Team, divider: Divider, reports: Reports) -> tuple[Share, ...]:
    """Return the shares that ResourceQuotas give a team, and findings on what they do not tell.

    A team that is no tenant yet has none of a unit of which it gets nothing.
    """
    caps: dict[UnitKey, dict[str, int | None]] = {}
    classes: dict[UnitKey, dict[str, dict[str, int]]] = {}
    offers: dict[UnitKey, Offer] = {}
    places: dict[UnitKey, Origin | None] = {}
    for space in team.spaces:
        found = read_caps(space.quotas)
        for key, candidates in _candidates(space, found, divider.offers).items():
            cap = found.plain.get(key)
            divided = divider.divide(team, space.name, int(cap.amount), candidates) if cap else {}
            parts: Mapping[UnitKey, int | None] = (
                {**divided} if cap else dict.fromkeys((offer.key for offer in candidates), None)
            )
            for offer in candidates:
                offers[offer.key], places[offer.key] = offer, cap.at if cap else None
                caps.setdefault(offer.key, {})[space.name] = parts[offer.key]
            weights = {offer_key: Ratio(1 if part is None else part) for offer_key, part in parts.items()}
            whole = sum(weights.values(), Ratio(0))
            for name, capped in found.by_class.items():
                if whole and (limit := capped.get(key)):
                    for offer_key, part in portion_of(int(limit.amount), weights, whole).items():
                        classes.setdefault(offer_key, {}).setdefault(name, {})[space.name] = part
            if cap and not space.parameters and len(candidates) > 1:
                _tell_divided(team, cap, key, divided, divider.needed(space.name, candidates), reports)
    for offer in offers_in(team.labelled, divider.offers) if not team.spaces else ():
        offers[offer.key], places[offer.key] = offer, None
        caps[offer.key] = {"": None}  # nothing caps namespaces that are the tenant's by label
    shares = (
        Share(team.name, offers[key], places[key], dict.fromkeys(team.namespaces, 0) | caps[key], classes.get(key, {}))
        for key in caps
    )
    kept = [share for share in shares if team.is_own or share.total != 0]
    return tuple(sorted((*kept, *_uncapped(team, divider, caps, reports)), key=lambda share: share.offer.key))


def _uncapped(team: Team, divider: Divider, caps: Collection[UnitKey], reports: Reports) -> Iterator[Share]:
    """Yield shares without a bound of what a team may use since none of its quotas caps it."""
    for space in team.spaces if divider.keeps_uncapped and not team.is_own and not team.queue else ():
        capped = read_caps(space.quotas).plain
        free = {
            key.removeprefix("requests."): offers
            for key, offers in divider.offers.items()
            if key not in capped and not any(offer.key in caps for offer in offers)
        }
        if free:
            reports.gather(
                "uncapped", space.quotas[0].at / "spec" / "hard", space.name, resources=listing(sorted(free))
            )
        for offer in chain.from_iterable(free.values()):
            yield Share(team.name, offer, None, {space.name: None}, {})


def _candidates(space: Space, caps: Caps, offers: Offers) -> Mapping[str, tuple[Offer, ...]]:
    """Return the units that a namespace may use, by what a quota counts them by.

    gpuplan's parameters say it, else its quotas do.
    """
    if space.parameters:
        return grouped((offer.counted_as, offer) for offer in offers_in(space.parameters, offers))
    counted = {key for caps_of in (caps.plain, *caps.by_class.values()) for key in caps_of if key in offers}
    return {key: offers[key] for key in sorted(counted) if key not in caps.plain or caps.plain[key].amount >= 1}


def _tell_divided(
    team: Team, cap: Cap, counted_as: str, parts: Mapping[UnitKey, int], needed: Mapping[UnitKey, int], reports: Reports
) -> None:
    resource, at = counted_as.removeprefix("requests."), cap.at.key
    pools = listing([pool for pool, _ in sorted(parts)])
    reports.gather("several-pools-hand-out", at, team.name, resource=resource, number=str(len(parts)), pools=pools)
    for offer_key in parts:
        if not parts[offer_key]:
            reports.gather("pool-without-part", at, team.name, resource=resource, pool=offer_key[0])
    if (whole := sum(parts.values())) > cap.amount:
        reports.say("parts-beyond-cap", at, team.name, resource=resource, whole=whole, cap=int(cap.amount), team=team)
    shares = [f"{part} in `{key[0]}`{_BY_WORK if key in needed else ''}" for key, part in sorted(parts.items())]
    reports.remark(team.name, f"of {int(cap.amount)} `{resource}`: {joined(shares)}")


_BY_WORK: Final = " (its work selects it)"


# --- One quota ---------------------------------------------------------------------------------------------------


def guarantees(shares: Iterable[Share], reports: Reports) -> Mapping[tuple[str, UnitKey], int]:
    """Return each team's guarantee by team and unit: its cap, or its part of the capacity if caps are too many.

    A ResourceQuota promises nothing: with caps beyond the capacity, the first to come has it.
    """
    found: dict[tuple[str, UnitKey], int] = {}
    for key, whose in grouped((share.offer.key, share) for share in shares).items():
        caps = {share.team: share.total or 0 for share in whose}
        promised, capacity = sum(caps.values()), whose[0].offer.unit.capacity
        if promised > capacity:
            weights = {team: Ratio(cap) for team, cap in caps.items()}
            places = [(share.team, share.at) for share in whose if share.total and share.at]
            if places:
                related = tuple(Label(place, f"and `{team}` so many") for team, place in places[1:])
                teams, offer = [share.team for share in whose if share.total], whose[0].offer
                say, at, first = reports.say, places[0][1], teams[0]
                say("caps-beyond-capacity", at, related=related, offer=offer, promised=promised, team=first)
            caps, capped = dict(portion_of(capacity, weights, Ratio(promised))), caps
            for team, part in caps.items():
                pool = f"pool `{key[0]}` has {capacity} `{key[1]}` for caps of {promised}"
                told = f"`limit` is the cap of today, {capped[team]}, and {part} of it are guaranteed"
                reports.remark(team, f"{pool}: {told}")
        found |= {(team, key): cap for team, cap in caps.items()}
    return found


def quota_of(team: Team, share: Share, guaranteed: int, capped_by: CappedBy) -> dict[str, Any]:
    """Return an entry of `spec.quotas`."""
    total, (pool, unit) = share.total, share.offer.key
    guaranteed = (total or 0) if capped_by is CappedBy.GUARANTEED else guaranteed
    entry: dict[str, Any] = {"pool": pool, "unit": unit, "guaranteed": guaranteed}
    if total != guaranteed:
        entry["limit"] = "none" if total is None else total
    if total is not None and (len(team.namespaces) > 1 or is_withheld(team, share.offer)):
        entry["split"] = {name: cap for name, cap in share.caps.items() if cap is not None}
    return {**entry, **_class_limits(share)}


# --- CPU, memory and pods ----------------------------------------------------------------------------------------


def compute_of(
    team: Team, quotas: Sequence[Mapping[str, Any]], shares: Sequence[Share], reports: Reports
) -> Mapping[int, dict[str, Any]]:
    """Return what quotas say of CPU, memory and pods, by the index of each.

    A ResourceQuota counts them in all pools at once, and what gpuplan writes has the sum of what is said: the first
    quota that grants anything in each pool gets a part of it. Others are not counted (`compute_cap`). What cannot be
    divided stays with the quota that says it now.
    """
    found: dict[int, dict[str, Any]] = {}
    granted = [index for index, share in enumerate(shares) if share.total != 0]
    firsts = {quotas[index]["pool"]: index for index in reversed(granted)}
    caps = {space.name: read_caps(space.quotas).plain for space in team.spaces}
    for key, counted in COMPUTE_KEYS.items():
        stated = {name: plain[key] for name, plain in caps.items() if key in plain}
        if not stated or not firsts:
            continue
        one = 1000 if counted is Counted.CPU else 1
        amounts = {name: ceil(cap.amount * one) for name, cap in stated.items()}
        whole = _whole(amounts, quotas[min(firsts.values())].get("split"), team.namespaces)
        if whole is None:
            at, *others = (cap.at.key for cap in stated.values())
            related = tuple(
                Label(*pair) for pair in zip(others, [f"namespace `{name}`" for name in stated][1:], strict=True)
            )
            reports.say("other-parts-than-gpus", at, team.name, related=related, key=key, team=team)
            whole = sum(amounts.values())
        least = {Counted.PODS: len(firsts), Counted.MEMORY: LEAST_BYTES * len(firsts)}.get(counted, 0)
        if whole < least:
            for space in team.spaces:
                reports.gather("caps-beside-gpus", caps[space.name][key].at.key, space.name, keys=f"`{key}`")
            continue
        weights = dict.fromkeys(sorted(firsts), Ratio(1))
        for pool, part in portion_of(whole, weights, Ratio(len(weights))).items():
            entry = found.setdefault(firsts[pool], {})
            entry[counted.value] = part if counted is Counted.PODS else amount_text(counted, part)
    return found


def _whole(amounts: Mapping[str, int], split: Mapping[str, int] | None, namespaces: Sequence[str]) -> int | None:
    """Return the amount that ``split`` divides among namespaces into these amounts, or None if there is none."""
    if split is None:
        return next(iter(amounts.values())) if len(set(amounts.values())) == 1 else None
    all_parts = sum(split.values())
    parts = {name: Ratio(split.get(name, 0), all_parts) if all_parts else Ratio(0) for name in namespaces}
    whole = max((ceil(amounts[name] / part) for name, part in parts.items() if part and name in amounts), default=None)
    is_exact = whole is not None and all(
        floor(whole * part) == amounts.get(name) for name, part in parts.items() if part
    )
    return whole if is_exact else None
