"""Work that gpuplan did not write: whether it goes on under the policies that were made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from gpuplan.adoption.dump import Dump, Item
from gpuplan.adoption.rules import WORK_LEFT_ALONE
from gpuplan.adoption.work.groups import JOB, KINDS, is_owned, kind_of
from gpuplan.backends import kai as kai_objects
from gpuplan.backends import kueue as kueue_objects
from gpuplan.backends.workloads.terms import FRACTION, GPU_MEMORY
from gpuplan.checks import handwritten
from gpuplan.checks.handwritten.reading import HandFiles, Object, inside, mapping, parts_with, sequence, text
from gpuplan.checks.registry import run_all
from gpuplan.diagnostics import Diagnostic, Finding, Severity
from gpuplan.manifests import Manifest
from gpuplan.patterns import regex
from gpuplan.planning.plan import WORKLOAD_LABEL, Plan
from gpuplan.planning.schedulers import kai, kueue
from gpuplan.wording import listing


def others(dump: Dump, plan: Plan) -> Iterator[Diagnostic]:
    """One finding for each object whose pods ask for GPUs, but for what controllers own and what has ended."""
    found = [item for item in dump.objects if _is_work(item) and _asked(item)]
    judged = _judged(plan, found)
    queues = _queues(plan)
    classes = {item.name for item in plan.priority_classes}
    for item in found:
        lost = (*judged.get(item.at, ()), *_lost_names(item, queues, classes))
        yield WORK_LEFT_ALONE.report(_told(plan, item, lost))


_NO_WORK: Final = ("Runtime", "Template", "Policy", "Definition", "Driver", "Revision")
"""Ends of kinds that say what pods may be, and have none."""

_OWN: Final = frozenset(KINDS)


def _is_work(item: Item) -> bool:
    is_ours = WORKLOAD_LABEL in item.labels and kind_of(item) in _OWN
    return bool(item.namespace) and not (is_ours or item.kind.endswith(_NO_WORK) or is_owned(item) or _has_ended(item))


def _has_ended(item: Item) -> bool:
    status = inside(item.body, "status")
    if (item.group, item.kind) == ("", "Pod"):
        return status.get("phase") in ("Succeeded", "Failed")
    conditions = [mapping(found) for found in sequence(status.get("conditions"))]
    ended = {text(found.get("type")) for found in conditions if found.get("status") == "True"}
    return kind_of(item) == JOB and not ended.isdisjoint(("Complete", "Failed"))


# --- What it asks for ------------------------------------------------------------------------------------------------

_GPU: Final = regex(r"nvidia\.com/(gpu|mig-).*|.*[/.]gpu(\..*)?")


def _asked(item: Item) -> dict[str, None]:
    """What the pods of an object ask for by name, wherever their containers say it."""
    found: dict[str, None] = {}
    for _, part in parts_with(item.body, "resources"):
        for field in ("limits", "requests"):
            found |= {key: None for key in inside(part, "resources", field) if _GPU.fullmatch(key)}
    for _, part in parts_with(item.body, "annotations"):
        found |= {key: None for key in mapping(part.get("annotations")) if key in (FRACTION, GPU_MEMORY)}
    for _, part in parts_with(item.body, "resourceClaims"):
        names = [text(mapping(claim).get("resourceClaimTemplateName")) for claim in sequence(part["resourceClaims"])]
        found |= dict.fromkeys(filter(None, names))
    return found


# --- What it names ---------------------------------------------------------------------------------------------------


def _judged(plan: Plan, items: list[Item]) -> dict[object, list[str]]:
    """What the rules on hand-written objects find in them: labels that no node has, what admission refuses."""
    objects = tuple(Object(item.at, item.body, item.file, "") for item in items)
    found: dict[object, list[str]] = {}
    for diagnostic in run_all(handwritten.OBJECT_CHECKS, HandFiles(objects=objects, plan=plan)):
        at = diagnostic.finding.at
        for item in items:
            own = item.at.path
            if at.source is item.at.source and at.path[: len(own)] == own:
                found.setdefault(item.at, []).append(f"{diagnostic.finding.headline} ({diagnostic.code})")
                break
    return found


def _queues(plan: Plan) -> Mapping[str, frozenset[str]]:
    """The queues that work may name, by the label that names them: those that are written."""
    made = [item for item in (*kueue_objects.render(plan), *kai_objects.render(plan)) if isinstance(item, Manifest)]
    local, leaves = ([item for item in made if item.kind == kind] for kind in ("LocalQueue", "Queue"))
    found = {
        kueue.QUEUE_LABEL: frozenset(f"{item.identity.namespace}/{item.name}" for item in local),
        kai.QUEUE_LABEL: frozenset(item.name for item in leaves),
    }
    return {label: names for label, names in found.items() if names}


def _lost_names(item: Item, queues: Mapping[str, frozenset[str]], classes: set[str]) -> Iterator[str]:
    for label, known in queues.items():
        named = {text(mapping(part["labels"]).get(label)) for _, part in parts_with(item.body, "labels")} - {""}
        for name in sorted(named):
            if name not in known and f"{item.namespace}/{name}" not in known:
                yield f"it names the queue `{name}`, which no policy makes"
    for _, part in parts_with(item.body, "priorityClassName"):
        name = text(part["priorityClassName"])
        if name and name not in classes and not name.startswith("system-"):
            yield f"it names the priority class `{name}`, which no policy makes"


# --- What is told ----------------------------------------------------------------------------------------------------

_IN_PLACE: Final = {
    "Deployment": "gpuplan's Deployments select pods by a label of their own, and a selector cannot be changed",
    "Job": "gpuplan's Jobs have other names, so that it would run once more",
    "CronJob": "no policy says when work is to run",
    "StatefulSet": "gpuplan writes no StatefulSets",
    "DaemonSet": "gpuplan writes no DaemonSets",
    "Pod": "gpuplan writes no Pods, but what makes them",
}


def _told(plan: Plan, item: Item, lost: tuple[str, ...]) -> Finding:
    pools = [pool.name for pool in plan.pools if any(unit.asked_as in _asked(item) for unit in pool.units)]
    reason = _IN_PLACE.get(item.kind, "gpuplan's own would replace its pods")
    asked = listing([*_asked(item)])
    where = (f"it asks for {asked}: {listing(pools)} {'hands' if len(pools) == 1 else 'hand'} it out",) if pools else ()
    tenants = [tenant.name for tenant in plan.tenants if item.namespace in tenant.spec.namespaces]
    homeless = () if tenants else (f"no tenant has the namespace `{item.namespace}`",)
    if lost:
        return Finding(
            item.at,
            f"{item.title} will not start again as it is",
            label=lost[0],
            notes=(*lost[1:], *where, *homeless, reason),
            help="change it before the first sync, or let the policies keep the name that it has",
        )
    return Finding(
        item.at,
        f"{item.title} stays as it is, and is no Workload",
        label=reason,
        notes=(*where, *homeless),
        help="write a Workload of another name beside it, and delete it, to have gpuplan write it",
        severity=Severity.NOTE,
    )
