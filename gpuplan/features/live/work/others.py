"""Work that gpuplan did not write: whether it goes on under the policies that were made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from gpuplan.compiler.backends.workloads.bodies import FRACTION, GPU_MEMORY
from gpuplan.compiler.base.diagnostics import Diagnostic, Origin
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, mapping, parts_with, sequence, text
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.checks.registry import run_all
from gpuplan.compiler.manifests import is_object
from gpuplan.compiler.planning.dra import CLASS_PREFIX
from gpuplan.compiler.planning.grants import FRACTION as PARTS
from gpuplan.compiler.planning.hand_files import HandFiles, Object
from gpuplan.compiler.planning.plan import WORKLOAD_LABEL, Plan
from gpuplan.features.components import OBJECT_CHECKS
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import report
from gpuplan.features.live.work.pods import JOB, KINDS, is_owned, kind_of


def others(dump: Dump, plan: Plan) -> Iterator[Diagnostic]:
    """One finding for each object whose pods ask for GPUs, but for what controllers own and what has ended."""
    found = [(item, asked) for item in dump.objects if _is_work(item) and (asked := tuple(_asked(plan, item)))]
    items = [item for item, _ in found]
    losses_by_place: dict[tuple[int, tuple[str | int, ...]], list[_Loss]] = {_key(item.at): [] for item in items}
    objects = tuple(Object(item.at, item.body, item.file, "") for item in items)
    for diagnostic in run_all(OBJECT_CHECKS, HandFiles(objects=objects, plan=plan)):
        finding = diagnostic.finding
        source, route = _key(finding.at)
        around = (losses_by_place.get((source, route[:length])) for length in range(len(route), -1, -1))
        losses = next((item for item in around if item is not None), None)
        if losses is not None:
            losses.append(_Loss(f"{finding.message} ({diagnostic.code})", finding.help))
    lost = losses_by_place
    for item, asked in found:
        yield _finding(plan, item, asked, [*lost[_key(item.at)], *_lost_classes(plan, item)])


_NO_WORK: Final = ("Runtime", "Template", "Policy", "Definition", "Driver", "Revision", "Workload")
"""Ends of kinds that say what pods may be, or that stand for work of other kinds."""


def _is_work(work: Item) -> bool:
    if not is_object(work.body):
        return False
    is_ours = WORKLOAD_LABEL in work.labels and kind_of(work) in KINDS
    passed = is_ours or work.kind.endswith(_NO_WORK) or is_owned(work) or _has_ended(work)
    return bool(work.namespace) and not passed


def _has_ended(work: Item) -> bool:
    status = inside(work.body, "status")
    if (work.group, work.kind) == ("", "Pod"):
        return status.get("phase") in ("Succeeded", "Failed")
    conditions = [mapping(found) for found in sequence(status.get("conditions"))]
    ended = {text(found.get("type")) for found in conditions if found.get("status") == "True"}
    return kind_of(work) == JOB and not ended.isdisjoint(("Complete", "Failed"))


# --- What it asks for ------------------------------------------------------------------------------------------------

_GPU: Final = regex(r"nvidia\.com/(gpu|mig-).*")


def _asked(plan: Plan, work: Item) -> dict[str, None]:
    """Return what the pods of an object ask for, by the names that quotas use."""
    units = {unit.asked_as for pool in plan.pools for unit in pool.units}
    found: dict[str, None] = {}
    for _, part in parts_with(work.body, "resources"):
        for field in ("limits", "requests"):
            found |= {key: None for key in inside(part, "resources", field) if _GPU.fullmatch(key) or key in units}
    for _, part in parts_with(work.body, "annotations"):
        if not {FRACTION, GPU_MEMORY}.isdisjoint(mapping(part.get("annotations"))):
            found[PARTS] = None
    for _, part in parts_with(work.body, "resourceClaims"):
        names = [text(mapping(claim).get("resourceClaimTemplateName")) for claim in sequence(part["resourceClaims"])]
        found |= {name: None for name in names if name.startswith(CLASS_PREFIX)}
    return found


# --- What does not go on ---------------------------------------------------------------------------------------------


class _Loss(NamedTuple):
    """Why pods will not start again, and what to do about it."""

    reason: str
    help: str


def _key(at: Origin) -> tuple[int, tuple[str | int, ...]]:
    return id(at.source), at.path


def _lost_classes(plan: Plan, work: Item) -> Iterator[_Loss]:
    known = {found.name for found in plan.priority_classes}
    for _, part in parts_with(work.body, "priorityClassName"):
        name = text(part["priorityClassName"])
        if name and name not in known and not name.startswith("system-"):
            reason = f"it names the priority class `{name}`, which is in no policy"
            yield _Loss(reason, f"add a PriorityClass `{name}`, or name another one")


# --- What is told ----------------------------------------------------------------------------------------------------

_IN_PLACE: Final = {
    "Deployment": "gpuplan's Deployments select pods by a label of their own, and a selector cannot be changed",
    "Job": "gpuplan's Jobs have other names, so that it would run once more",
}
"""Why work is not made a Workload that could be one, by its kind."""

_NEVER: Final = {
    "CronJob": "no policy says when work is to run",
    "DaemonSet": "gpuplan writes no DaemonSets",
    "Pod": "gpuplan writes no Pods, but what makes them",
    "StatefulSet": "gpuplan writes no StatefulSets",
}
"""Why work cannot be a Workload."""

_LEAVE: Final = "leave it to whoever applies it"
_MOVE: Final = "to have gpuplan write it, add a Workload of another name, and delete it when that runs"
_REPLACED: Final = "gpuplan writes it in another way, and its pods would start again"


def _finding(plan: Plan, work: Item, asked: Sequence[str], lost: Sequence[_Loss]) -> Diagnostic:
    notes = (*_pools(plan, asked), *_tenant(plan, work))
    if lost:
        reasons, help_ = count(len(lost), "reason"), lost[0].help or "change it before the first sync"
        notes = (*(loss.reason for loss in lost), *notes)
        return report("work-stops", work.at, notes=notes, work=work, reasons=reasons, help=help_)
    label = _NEVER.get(work.kind, _IN_PLACE.get(work.kind, _REPLACED))
    help_ = _LEAVE if work.kind in _NEVER else _MOVE
    return report("work-stays", work.at, notes=notes, work=work, label=label, help=help_)


def _pools(plan: Plan, asked: Sequence[str]) -> Iterator[str]:
    pools = [pool for pool in plan.pools if any((unit.asked_as or PARTS) in asked for unit in pool.units)]
    names = listing([pool.name for pool in pools])
    if len(pools) == 1:
        yield f"it asks for {listing(asked)}, which pool {names} hands out"
    elif pools:
        yield f"it asks for {listing(asked)}, which pools {names} hand out: it may run in any of them"


def _tenant(plan: Plan, work: Item) -> Iterator[str]:
    if not any(work.namespace in tenant.spec.namespaces for tenant in plan.tenants):
        yield f"no tenant has the namespace `{work.namespace}`"
