"""A tenant as its queues describe it, and the trees that tenants and cohorts make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, text
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.planning.kueue import ROOT_COHORT
from gpuplan.compiler.policy.names import TENANT
from gpuplan.features.live.dump import Dump, Item


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
        """The wish, if it can be a tenant's name and is no other's; else one that is like it."""
        name = wish if TENANT.is_spelt(wish) else _OTHERS.sub("-", wish.lower()).strip("-") or "team"
        name = name[: TENANT.longest].rstrip("-")
        found, number = name, 2
        while found in self._given:
            end = f"-{number}"
            found, number = f"{name[: TENANT.longest - len(end)].rstrip('-')}{end}", number + 1
        self._given.add(found)
        return found


def without_circles(above: Mapping[str, str]) -> Mapping[str, str]:
    """The same, with nothing above the first of each circle."""
    found: dict[str, str] = {}
    for name, parent in above.items():
        seen, way = {name}, parent
        while way and way not in seen:
            seen.add(way)
            way = found.get(way, "")
        found[name] = "" if way == name else parent
    return found


KUEUE_GROUP: Final = "kueue.x-k8s.io"


def root_cohort(dump: Dump) -> str:
    """The cohort that all others are in, as gpuplan writes one; gpuplan's own name where there is no single one."""
    above = parents(dump)
    used = [cohort_of(item) for item in dump.of_kind(KUEUE_GROUP, "ClusterQueue")]
    tops = dict.fromkeys(name for name in (*above, *used) if name and not above.get(name))
    return next(iter(tops)) if len(tops) == 1 else ROOT_COHORT


def parents(dump: Dump) -> Mapping[str, str]:
    """The cohort above each, empty where there is none; of a circle one is taken to have none."""
    written: dict[str, str] = {}
    for item in dump.of_kind(KUEUE_GROUP, "Cohort"):
        spec = inside(item.body, "spec")
        written[item.name] = text(spec.get("parentName")) or text(spec.get("parent"))
    found = without_circles(written)
    return {**dict.fromkeys((parent for parent in found.values() if parent), ""), **found}


def cohort_of(queue: Item) -> str:
    """The cohort that a ClusterQueue is in, in either version of the API; empty for what is in none."""
    spec = inside(queue.body, "spec")
    return (text(spec.get("cohortName")) or text(spec.get("cohort"))) if queue.kind == "ClusterQueue" else ""


class Read(NamedTuple):
    """A tenant that was read, and its queue; None for a cohort that is nowhere written."""

    queue: Queue
    holder: Item | None
