"""Teams as a dump shows them, the caps of their ResourceQuotas, and what work asks for that none of these caps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction as Ratio
from typing import Final

from gpuplan.compiler.base.diagnostics import Origin
from gpuplan.compiler.base.plain import grouped, inside, mapping, sequence, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import listing, misspelling
from gpuplan.compiler.manifests import exact_quantity
from gpuplan.compiler.planning.dra import quota_key, uses_claims
from gpuplan.compiler.planning.grants import FRACTION
from gpuplan.compiler.planning.hand_files import HandFiles, Object
from gpuplan.compiler.planning.plan import Counted, Plan, Pool, Unit, UnitKey
from gpuplan.features.components import inert_quota_key
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import Reports
from gpuplan.features.live.queues.model import Queue
from gpuplan.features.live.rules import QUOTA_CAPS_NOTHING


class Space(Value):
    """A namespace: its own object and gpuplan's parameters for it, where the dump has them, and what is in it.

    ``owner`` is the tenant that gpuplan wrote it for; empty where nothing says so.
    """

    name: str
    owner: str = ""
    namespace: Item | None = None
    parameters: Item | None = None
    quotas: tuple[Item, ...] = ()
    limits: tuple[Item, ...] = ()
    bindings: tuple[Item, ...] = ()

    @property
    def items(self) -> tuple[Item, ...]:
        """All that is read of it."""
        single = (self.namespace, self.parameters)
        return (*(item for item in single if item), *self.quotas, *self.limits, *self.bindings)


class Team(Value):
    """A tenant to be. ``labelled`` are gpuplan's parameters for namespaces that have the tenant's label."""

    name: str
    spaces: tuple[Space, ...] = ()
    labelled: Item | None = None
    queue: Queue | None = None

    @property
    def is_own(self) -> bool:
        """Whether it is a tenant already: gpuplan wrote the objects of its namespaces."""
        return self.labelled is not None or any(space.owner for space in self.spaces)

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(space.name for space in self.spaces)

    @property
    def sources(self) -> tuple[str, ...]:
        items = (*((self.labelled,) if self.labelled else ()), *(item for space in self.spaces for item in space.items))
        return (*(item.source for item in items), *(self.queue.sources if self.queue else ()))


# --- What pools hand out -----------------------------------------------------------------------------------------


class Offer(NamedTuple):
    """A unit of a pool."""

    pool: Pool
    unit: Unit

    @property
    def key(self) -> UnitKey:
        return self.pool.name, self.unit.name

    @property
    def counted_as(self) -> str:
        """The key by which a ResourceQuota counts the unit; no key is called as the one for fractions."""
        if self.unit.device_class:
            return quota_key(self.unit.device_class)
        return f"requests.{self.unit.resource}" if self.unit.resource else FRACTION

    @property
    def title(self) -> str:
        return f"`{self.unit.name}` of pool `{self.pool.name}`"


Offers = Mapping[str, tuple[Offer, ...]]
"""Units of pools by what a ResourceQuota counts them by."""


def offers_of(plan: Plan) -> Offers:
    offers = (Offer(pool, unit) for pool in plan.pools for unit in pool.units)
    return grouped((offer.counted_as, offer) for offer in offers)


def grants_in(parameters: Item | None) -> Iterator[tuple[str, str, str]]:
    """Yield the grants of gpuplan's parameters: a pool, a resource, and how many a container may ask for."""
    lines = text(mapping(parameters.body.get("data")).get("grants")).splitlines() if parameters else ()
    for line in lines:
        if len(words := line.split()) == _WORDS_OF_A_GRANT:
            yield words[0], words[1], words[2]


_WORDS_OF_A_GRANT: Final = 3


def offers_in(parameters: Item | None, offers: Offers) -> Iterator[Offer]:
    """Yield the units that gpuplan's parameters grant, in their order."""
    by_grant = {
        (offer.pool.name, offer.unit.asked_as or FRACTION): offer for known in offers.values() for offer in known
    }
    for pool, resource, _ in grants_in(parameters):
        if offer := by_grant.get((pool, resource)):
            yield offer


# --- What quotas say ---------------------------------------------------------------------------------------------


class Cap(NamedTuple):
    at: Origin
    amount: Ratio


class Caps(Value):
    """The caps of a namespace's ResourceQuotas by key: on all pods, and on those of a priority class."""

    plain: Mapping[str, Cap] = {}
    by_class: Mapping[str, Mapping[str, Cap]] = {}


def read_caps(quotas: Iterable[Item]) -> Caps:
    """Return the lowest cap of a namespace's quotas by key, since each of them holds."""
    plain: dict[str, Cap] = {}
    by_class: dict[str, dict[str, Cap]] = {}
    for item in quotas:
        scope = _scope(item)
        caps = plain if scope == "" else by_class.setdefault(scope, {}) if scope else {}
        for key, cap in _caps(item):
            caps[key] = min(caps.get(key, cap), cap, key=lambda found: found.amount)
    return Caps(plain, by_class)


def _scope(quota: Item) -> str | None:
    """Empty where it counts all pods, the priority class whose pods it counts, or None where it counts others."""
    scopes = sequence(value_of(quota, "scopes"))
    terms = [mapping(term) for term in sequence(inside(quota.body, "spec", "scopeSelector").get("matchExpressions"))]
    if not scopes and not terms:
        return ""
    values = [text(value) for value in sequence(terms[0].get("values"))] if len(terms) == 1 and not scopes else []
    is_class = len(values) == 1 and (terms[0].get("scopeName"), terms[0].get("operator")) == ("PriorityClass", "In")
    return values[0] or None if is_class else None


def value_of(quota: Item, field: str) -> object:
    return inside(quota.body, "spec").get(field)


def _hard(quota: Item) -> Mapping[str, object]:
    return inside(quota.body, "spec", "hard")


def _caps(quota: Item) -> Iterator[tuple[str, Cap]]:
    for key, value in _hard(quota).items():
        amount = _amount(value)
        if amount is not None:
            yield _NAMES.get(key, key), Cap(quota.at / "spec" / "hard" / key, amount)


_NAMES: Final = {"cpu": "requests.cpu", "memory": "requests.memory", "count/pods": "pods"}
"""Keys that mean the same as another one (`pkg/quota/v1/evaluator/core/pods.go` of kubernetes/kubernetes)."""

COMPUTE_KEYS: Final = {"requests.cpu": Counted.CPU, "requests.memory": Counted.MEMORY, "pods": Counted.PODS}


def _amount(value: object) -> Ratio | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    amount = exact_quantity(str(value))
    return None if amount is None or amount < 0 else amount


def counts_gpus(quota: Item, offers: Offers) -> bool:
    """Whether it lets pods have GPUs, and says how many."""
    return _scope(quota) is not None and any(key in offers and cap.amount >= 1 for key, cap in _caps(quota))


def bans_gpus(quota: Item, offers: Offers) -> bool:
    """Whether it lets no pod have any of what pools hand out."""
    return _scope(quota) == "" and any(key in offers and cap.amount == 0 for key, cap in _caps(quota))


# --- What they do not cap, or a policy cannot say ----------------------------------------------------------------


def judge_quotas(dump: Dump, plan: Plan, teams: Iterable[Team], offers: Offers, reports: Reports) -> None:
    """Report what quotas do not cap, and what they say that no policy does; gpuplan's own say nothing else."""
    owners = {space.name: (team, space.owner) for team in teams for space in team.spaces}
    for item in dump.of_kind("", "ResourceQuota"):
        team, owner = owners.get(item.namespace, (None, ""))
        name = team.name if team else ""
        if team and team.queue and not owner and counts_gpus(item, offers):
            reports.say("cap-beside-queue", item.at / "spec" / "hard", name, item=item, team=name)
        _capping_nothing(name, item, offers, reports)
        if not owner and any(_is_of_gpus(key, offers) for key in _hard(item)):
            spec = item.at / "spec"
            if _scope(item) is None:
                field = "scopes" if value_of(item, "scopes") else "scopeSelector"
                reports.say("quota-of-some-pods", spec / field, name, item=item)
                continue
            claims = [key for key in _hard(item) if key not in offers and key.endswith(_CLAIMS)]
            others = [key for key in _hard(item) if not _is_of_gpus(_NAMES.get(key, key), offers) and key not in _SAID]
            if claims and team and uses_claims(plan):
                at = (spec / "hard" / claims[0]).key
                reports.gather("claims-banned", at, item.namespace, keys=listing(claims))
            elif others := [*claims, *others]:
                place = (spec / "hard" / others[0]).key
                reports.gather("caps-beside-gpus", place, item.namespace, keys=listing(others))
    for item in dump.of_kind("quota.openshift.io", "ClusterResourceQuota"):
        for key in inside(item.body, "spec", "quota", "hard"):
            if _is_of_gpus(key, offers):
                at = item.at / "spec" / "quota" / "hard" / key
                reports.say("cap-of-several-namespaces", at.key, "", item=item, key=key)


def _is_of_gpus(key: str, offers: Offers) -> bool:
    return key in offers or "nvidia" in key


def _capping_nothing(team: str, item: Item, offers: Offers, reports: Reports) -> None:
    hard, at = _hard(item), item.at / "spec" / "hard"
    unknown = [
        key for key in hard if key not in offers and not key.startswith("limits.") and f"requests.{key}" not in offers
    ]
    mistyped = {key: meant for key in unknown if "nvidia" in key and (meant := misspelling(key, offers))}
    for key, meant in mistyped.items():
        resource, offer = key.removeprefix("requests."), offers[meant][0]
        amount = int(_amount(hard[key]) or 0)
        quota = f"`{{pool: {offer.pool.name}, unit: {offer.unit.name}, guaranteed: {amount}}}`"
        at_key = (at / key).key
        reports.say("mistyped-cap", at_key, team, item=item, key=key, meant=meant, resource=resource, quota=quota)
    body = {**item.body, "spec": {"hard": {key: value for key, value in hard.items() if key not in mistyped}}}
    for finding in inert_quota_key.find(HandFiles(objects=(Object(item.at, body, item.file, ""),))):
        reports.add(QUOTA_CAPS_NOTHING.report(finding), team)
    known = [f"pools hand out {listing([name.removeprefix('requests.') for name in offers])}"] if offers else []
    for key, value in hard.items():
        cap = _amount(value)
        if key in mistyped or not key.startswith("requests.nvidia.com/") or cap == 0:
            continue
        if cap is None:
            reports.say("cap-is-no-number", at / key, team, item=item, key=key)
        elif key not in offers:
            reports.say("cap-of-nothing", (at / key).key, team, notes=known, item=item, key=key)
        elif cap < 1:
            reports.say("cap-below-one", at / key, team, item=item, key=key)


_SAID: Final = frozenset((*COMPUTE_KEYS, *_NAMES))
_CLAIMS: Final = ".deviceclass.resource.k8s.io/devices"
