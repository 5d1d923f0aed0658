"""Read work: what gpuplan wrote becomes Workloads again, and of other work it is told whether it goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gpuplan.compiler.backends.workloads.bodies import FRACTION, GPU_MEMORY
from gpuplan.compiler.base.diagnostics import Diagnostic, Origin, Path, Severity, field_path
from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import inside, mapping, parts_with, sequence, text
from gpuplan.compiler.base.values import NamedTuple
from gpuplan.compiler.base.wording import count, listing
from gpuplan.compiler.checks.registry import run_all
from gpuplan.compiler.checks.workloads import secret_in_a_policy
from gpuplan.compiler.manifests import is_object
from gpuplan.compiler.planning.dra import CLASS_PREFIX
from gpuplan.compiler.planning.grants import FRACTION as PARTS, is_warned
from gpuplan.compiler.planning.hand_files import HandFiles, Object
from gpuplan.compiler.planning.plan import POOL_LABEL, WORKLOAD_LABEL, Plan, Stage, Tenant
from gpuplan.features.components import OBJECT_CHECKS, refused_by_admission
from gpuplan.features.live.drafts import Draft, Found
from gpuplan.features.live.dump import Dump, Item
from gpuplan.features.live.findings import report
from gpuplan.features.live.queues.model import Matching
from gpuplan.features.live.work.ending import ending
from gpuplan.features.live.work.judging import Judged, Spec, judge
from gpuplan.features.live.work.pods import (
    JOB,
    JOB_SET,
    KINDS,
    TRAINING_RUNTIME,
    Group,
    common,
    groups_of,
    is_owned,
    kind_of,
    respelled,
    template_of,
)
from gpuplan.features.live.work.serving import serving

_MOST_GUESSES = 32
"""The number of readings of one workload that are tried."""


def read(dump: Dump, plan: Plan) -> Found:
    """Return the Workloads of what gpuplan wrote, and a finding for each other object whose pods ask for GPUs."""
    groups = groups_of(dump)
    times = Counter(group.name for group in groups)
    drafts = Found()
    for group in groups:
        if times[group.name] > 1:
            drafts += Found(diagnostics=(report("work-called-alike", group.items[0].at, group=group),))
        else:
            drafts += _read(plan, group)
    return drafts + Found(diagnostics=tuple(others(dump, plan)))


def _read(plan: Plan, group: Group) -> Found:
    named = (tenant for tenant in plan.tenants if tenant.name == group.tenant)
    owning = (tenant for tenant in plan.tenants if group.namespace in tenant.spec.namespaces)
    tenant = next(named, None) or next(owning, None)
    if tenant is None:
        return _left_alone(group, group.items[0].at.path, f"no tenant has the namespace `{group.namespace}`")
    best: Judged | None = None
    for maker, guess in _guesses(plan, group, tenant):
        found = judge(plan, group, maker, guess)
        if found.is_right:
            judged = replace(plan, workloads=(found.workload,) if found.workload else ())
            if secret := next((one.message for one in secret_in_a_policy.find(judged)), ""):  # without the value
                instead = "revoke it, put the new one into a Secret, and write the Workload with a `secretKeyRef`"
                return _left_alone(group, (), secret, instead)
            sources = tuple(item.source for item in group.items if item.identity in found.written)
            stale = [item for item in group.items if item.identity not in found.written]
            remarks = tuple(f"{item.title}, which has the workload's labels." for item in stale)
            draft = Draft("Workload", group.name, found.spec, sources, remarks)
            return Found((draft,), tuple(report("stale-object", item.at, group=group, item=item) for item in stale))
        if best is None or found.rank > best.rank:
            best = found
    if best is None:
        return _left_alone(group, (), "its pods name no pool and no unit of the policies")
    if best.problem:
        return _left_alone(group, (), best.problem)
    if best.obj is None or best.route is None:
        return _left_alone(group, (), f"{best.lacking} is not in the dump, and gpuplan writes it")
    if best.lacking:
        return _left_alone(group, best.route, f"gpuplan would call it `{best.lacking.name}`", obj=best.obj)
    return _left_alone(
        group, best.route, f"gpuplan would write `{field_path(best.route)}` in another way", obj=best.obj
    )


def _guesses(plan: Plan, group: Group, tenant: Tenant) -> Iterator[tuple[Item, Spec]]:
    left = _MOST_GUESSES
    for maker in group.makers:
        is_ending = kind_of(maker) in (JOB, JOB_SET, TRAINING_RUNTIME)
        for shared in respelled(common(plan, group, tenant, template_of(maker)), is_named_by_content=is_ending):
            services = ({"inference": spec} for spec in serving(group, maker))
            for work in ending(plan, group, tenant, maker) if is_ending else services:
                if not left:
                    return
                left -= 1
                yield maker, {**shared, **work}


# --- What comes of it ------------------------------------------------------------------------------------------------


def _left_alone(group: Group, route: Path, reason: str, instead: str = "", obj: Item | None = None) -> Found:
    at = (obj or group.items[0]).at / route
    help_ = instead or "write its Workload by hand, and compare what it builds with what is there"
    return Found(diagnostics=(report("work-left-alone", at, group=group, help=help_, label=reason),))


# --- Work that gpuplan did not write ---------------------------------------------------------------------------------


def others(dump: Dump, plan: Plan) -> Iterator[Diagnostic]:
    """One finding for each object whose pods ask for GPUs, but for what controllers own and what has ended."""
    return (diagnostic for _, diagnostic in _judged(dump, plan))


def warned(dump: Dump, plan: Plan) -> Iterator[Diagnostic]:
    """Yield a finding for each object whose pods start again until admission refuses what it only warns of."""
    return (diagnostic for is_later, diagnostic in _judged(dump, plan) if is_later)


def _judged(dump: Dump, plan: Plan) -> Iterator[tuple[bool, Diagnostic]]:
    """Yield the finding on each object, and whether it is that admission refuses its pods later."""
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
            is_later = diagnostic.rule is refused_by_admission.rule and finding.severity is Severity.WARNING
            losses.append(_Loss(f"{finding.message} ({diagnostic.code})", finding.help, is_later))
    known = {*(found.name for found in plan.priority_classes), *plan.scheduler.own_classes}
    matching = Matching(dump, plan)
    for item, asked in found:
        lost = losses_by_place[_key(item.at)]
        for _, part in parts_with(item.body, "priorityClassName"):
            name = text(part["priorityClassName"])
            if name and name not in known and not name.startswith("system-"):
                reason = f"it names the priority class `{name}`, which is in no policy"
                owners = (tenant for tenant in plan.tenants if item.namespace in tenant.spec.namespaces)
                is_later = any(is_warned(plan.cluster, tenant, item.namespace) for tenant in owners)
                lost = [*lost, _Loss(reason, f"add a PriorityClass `{name}`, or name another one", is_later)]
        pools = [pool for pool in plan.pools if any((unit.asked_as or PARTS) in asked for unit in pool.units)]
        notes = [loss.reason for loss in lost]
        if pools:
            names = listing([pool.name for pool in pools])
            which = f"pool {names} hands" if len(pools) == 1 else f"pools {names} hand"
            choice = "" if len(pools) == 1 else ": it may run in any of them"
            notes.append(f"it asks for {listing(asked)}, which {which} out{choice}")
        if not any(item.namespace in tenant.spec.namespaces for tenant in plan.tenants):
            notes.append(f"no tenant has the namespace `{item.namespace}`")
        bare = [one for one in pools if any(POOL_LABEL not in node.labels for node in matching.nodes_of(one))]
        if bare and any(POOL_LABEL in loss.reason for loss in lost):
            folders = listing([f"{Stage.PARTITIONS.value}/{one.name}" for one in bare])
            notes.append(f"nodes get `{POOL_LABEL}` with the sync of {folders}: before that, select no such label")
        if lost:
            reasons, help_ = count(len(lost), "reason"), lost[0].help or "change it before the first sync"
            if all(loss.is_later for loss in lost):
                yield True, report("work-warned", item.at, notes=notes, work=item, reasons=reasons, help=help_)
            else:
                yield False, report("work-stops", item.at, notes=notes, work=item, reasons=reasons, help=help_)
        else:
            label = _NEVER.get(item.kind, _IN_PLACE.get(item.kind, _REPLACED))
            help_ = _LEAVE if item.kind in _NEVER else _MOVE
            yield False, report("work-stays", item.at, notes=notes, work=item, label=label, help=help_)


_NO_WORK: Final = ("Runtime", "Template", "Policy", "Definition", "Driver", "Revision", "Workload")
"""Ends of kinds that say what pods may be, or that stand for work of other kinds."""


def _is_work(work: Item) -> bool:
    if not is_object(work.body):
        return False
    is_ours = WORKLOAD_LABEL in work.labels and kind_of(work) in KINDS
    status = inside(work.body, "status")
    conditions = [mapping(found) for found in sequence(status.get("conditions"))]
    ended = {text(found.get("type")) for found in conditions if found.get("status") == "True"}
    has_ended = kind_of(work) == JOB and not ended.isdisjoint(("Complete", "Failed"))
    has_ended |= kind_of(work) == ("", "Pod") and status.get("phase") in ("Succeeded", "Failed")
    passed = is_ours or work.kind.endswith(_NO_WORK) or is_owned(work) or has_ended
    return bool(work.namespace) and not passed


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
    is_later: bool
    """Whether they start again until admission refuses them."""


def _key(at: Origin) -> tuple[int, tuple[str | int, ...]]:
    return id(at.source), at.path


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
