"""A tenant as its queues describe it: its quotas, its name and its place in trees, and the pools that queues are on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.checks.registry import run_all
from gpuplan.compiler.planning.amounts import amount_text, as_number, share_of_units
from gpuplan.compiler.planning.discovered import HOST_LABEL, PRODUCT_LABEL
from gpuplan.compiler.planning.hand_files import HandFiles, Object
from gpuplan.compiler.planning.kueue import ROOT_COHORT
from gpuplan.compiler.planning.node_patterns import find_pattern
from gpuplan.compiler.planning.plan import POOL_LABEL, Amount, Counted, Plan, Pool, Unit
from gpuplan.compiler.planning.tree import circles
from gpuplan.compiler.policy.names import TENANT
from gpuplan.features.components import QUEUE_CHECKS
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import Reports


class Queue(Value):
    """A tenant as its queues describe it, in the words of the policy language.

    ``parent`` is empty if the tenant is part of none. ``quotas`` are entries of `spec.quotas`. ``spec`` are further
    fields of the tenant, such as `surplus` and `names`. ``sources`` and ``remarks`` are those of the tenant's `Draft`.
    """

    tenant: str
    parent: str = ""
    namespaces: tuple[str, ...] = ()
    quotas: tuple[Mapping[str, Any], ...] = ()
    spec: Mapping[str, Any] = {}
    sources: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


_OTHERS = regex(r"[^a-z0-9]+")


class Names:
    """The names that were given."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def give(self, wish: str) -> str:
        """Return the wish, if it can be a tenant's name and is no other's; else one that is like it."""
        name = wish if TENANT.is_spelt(wish) else _OTHERS.sub("-", wish.lower()).strip("-") or "team"
        name = name[: TENANT.longest].rstrip("-")
        found, number = name, 2
        while found in self._given:
            end = f"-{number}"
            found, number = f"{name[: TENANT.longest - len(end)].rstrip('-')}{end}", number + 1
        self._given.add(found)
        return found


def without_circles(above: Mapping[str, str]) -> Mapping[str, str]:
    """Return the same mapping, with nothing above the name of each circle that stands last in it."""
    places = {name: place for place, name in enumerate(above)}
    last = {max(circle, key=places.__getitem__) for circle in circles(above)}
    return {name: "" if name in last else parent for name, parent in above.items()}


KUEUE_GROUP: Final = "kueue.x-k8s.io"
COUNTED: Final[Mapping[str, Counted]] = {item.value: item for item in Counted}


def root_cohort(dump: Dump) -> str:
    """Return the cohort that all others are in, as gpuplan writes one; gpuplan's own name where there is no single
    one."""
    above = parents(dump)
    used = [cohort_of(item) for item in dump.of_kind(KUEUE_GROUP, "ClusterQueue")]
    tops = dict.fromkeys(name for name in (*above, *used) if name and not above.get(name))
    return next(iter(tops)) if len(tops) == 1 else ROOT_COHORT


def parents(dump: Dump) -> Mapping[str, str]:
    """Return the cohort above each, empty where there is none; of a circle one is taken to have none."""
    written: dict[str, str] = {}
    for item in dump.of_kind(KUEUE_GROUP, "Cohort"):
        spec = inside(item.body, "spec")
        written[item.name] = text(spec.get("parentName")) or text(spec.get("parent"))
    found = without_circles(written)
    return {**dict.fromkeys((parent for parent in found.values() if parent), ""), **found}


def cohort_of(queue: Item) -> str:
    """Return the cohort that a ClusterQueue is in, in either version of the API; empty for what is in none."""
    spec = inside(queue.body, "spec")
    return (text(spec.get("cohortName")) or text(spec.get("cohort"))) if queue.kind == "ClusterQueue" else ""


class Read(NamedTuple):
    """A tenant that was read, and its queue; None for a cohort that is nowhere written."""

    queue: Queue
    holder: Item | None


class Share(NamedTuple):
    """The numbers of a tenant on a unit or a resource: ``limit`` is None if unbounded."""

    guaranteed: Amount
    limit: Amount | None
    lendable: Amount


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
        pool, limit = item.pool, item.share.limit
        first = next(other for other in units if other.pool is pool)
        beside = compute.get(pool.name, {}) if item is first else {}
        found.append(
            {
                "pool": pool.name,
                **({"unit": item.unit.name} if len(pool.units) > 1 else {}),
                "guaranteed": as_number(item.share.guaranteed),
                **({} if limit == item.share.guaranteed else {"limit": "none" if limit is None else as_number(limit)}),
                **({"lendable": as_number(lent)} if (lent := item.share.lendable) < item.share.guaranteed else {}),
                **_beside(pool, [other for other in units if other.pool is pool], beside),
            }
        )
    return tuple(found)


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


class Matching(Value, eq=False):
    """The nodes of a dump by the pools of the plan that was made of them."""

    dump: Dump
    plan: Plan

    def pools_of(self, labels: Mapping[str, str]) -> Sequence[Pool]:
        """Return the pools that have nodes with these labels, in their order."""
        return [pool for pool in self.plan.pools if self._has(pool, labels)]

    def nodes_of(self, pool: Pool) -> Sequence[Item]:
        """Return the nodes of a pool that the dump has."""
        return self._nodes.get(pool.name, ())

    def _has(self, pool: Pool, labels: Mapping[str, str]) -> bool:
        if labels.items() <= {**pool.nodes.selector, **pool.labels}.items():
            return True
        if nodes := self.nodes_of(pool):
            return any(labels.items() <= node.labels.items() for node in nodes)
        known = {**pool.nodes.selector, **pool.labels}
        products = [product.label for product in pool.gpu.products]
        of_some = {PRODUCT_LABEL: products, HOST_LABEL: pool.nodes.names}
        return all(known.get(key) == value or value in of_some.get(key, ()) for key, value in labels.items())

    @cached_property
    def _nodes(self) -> Mapping[str, Sequence[Item]]:
        found: dict[str, list[Item]] = {}
        for node in self.dump.of_kind("", "Node"):
            pools = self.plan.pools
            named = (pool for pool in pools if node.name in pool.nodes.names)
            labelled = (pool for pool in pools if node.labels.get(POOL_LABEL) == pool.name)
            if pool := next(chain(named, labelled, (pool for pool in pools if _chooses(pool, node))), None):
                found.setdefault(pool.name, []).append(node)
        return found


def _chooses(pool: Pool, node: Item) -> bool:
    nodes, pattern = pool.nodes, find_pattern(pool.nodes.name_pattern)
    is_called_so = pattern is not None and pattern.matches(node.name)
    is_meant = bool(nodes.selector) if nodes.name_pattern is None else is_called_so
    return is_meant and nodes.selector.items() <= node.labels.items()


_GROUPS: Final = frozenset(("kueue.x-k8s.io", "scheduling.run.ai"))


def tell_faults(dump: Dump, plan: Plan, reports: Reports) -> None:
    """Report queues that admit nothing, are refused, or refer to nothing."""
    items = [item for item in dump.objects if item.group in _GROUPS]
    files = HandFiles(objects=tuple(Object(item.at, item.body, item.file, "") for item in items), plan=plan)
    for diagnostic in run_all(QUEUE_CHECKS, files):
        at = diagnostic.finding.at
        for item in items:
            if at.source is item.at.source and at.path[: len(item.at.path)] == item.at.path:
                reports.add(diagnostic, item.identity)
                break
