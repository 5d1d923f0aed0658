"""Checks on what a cluster's own admission rules refuse of the work that is written for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpuplan.compiler.base.diagnostics import Finding, Label
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.checks.generated.work import Generated, RefusedWork
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import name_of
from gpuplan.compiler.planning.grants import has_admission_policies, refuses_more_than_one
from gpuplan.compiler.planning.plan import Plan

_UNITS: Final = ("units-per-container", "claims-per-container")
_CLASSES: Final = (
    "gpu-pods-name-priority-class",
    "priority-class-is-granted",
    "own-workload-priority",
    "own-priority-class",
)

ASKED: Final = frozenset(("no-device-variables", *_UNITS, *_CLASSES))
"""The rules whose verdict fields of a Workload decide. The others are asked once the whole platform is written."""


def _first_of_each(generated: Generated, rules: tuple[str, ...]) -> Iterator[RefusedWork]:
    """What some of the rules refuse, once for a workload."""
    found = {item.work.workload.name: item for item in reversed(generated.refusals) if item.rule in rules}
    yield from (found[name] for name in sorted(found))


def _label(plan: Plan) -> str:
    return "refused by admission" if has_admission_policies(plan.cluster) else "refused here alone"


@check("GPU423", "workload-refused-by-admission")
def workload_refused_by_admission(generated: Generated) -> Iterator[Finding]:
    """What is written for a Workload is refused by an admission rule that is written for the same cluster.

    ## Why
    The Deployment or Job of the workload is applied without an error, and the refusal of its pods stands in the events
    of a ReplicaSet or a Job. The rule is evaluated as the API server does it: on the pods as they arrive there, with
    defaults and with what controllers and webhooks add. NVIDIA's container toolkit, for instance, gives a container the
    GPUs that `NVIDIA_VISIBLE_DEVICES` and a few other variables name, whatever its pod asked for, so that no rule lets
    tenants set them.

    ## Instead
    Write what the rule asks for. A rule that is optional can be left out of the cluster with
    `admission: {without: [...]}`. A cluster before Kubernetes 1.30 refuses none of it; gpuplan does all the same.
    """
    for item in generated.refusals:
        workload, rule = item.work.workload, item.refused.refusal.rule
        if item.rule in (*_UNITS, *_CLASSES) or workload.name in generated.faulty:
            continue
        at = item.find_place() or name_of(workload.at)
        yield Finding(
            at,
            f"admission refuses {'pods of ' if item.refused.is_made else ''}workload `{workload.name}`: "
            f"{item.refused.refusal.message}",
            label=_label(generated.plan),
            related=() if at.source == workload.at.source else (Label(name_of(workload.at), "the workload"),),
            notes=(f"rule `{rule.name}` of the ValidatingAdmissionPolicy `{item.refused.refusal.policy.name}`",),
            help=f"change it as the rule says, or write `without: [{rule.name}]` in the Cluster's `admission`"
            if rule.optional
            else "change it as the rule says",
        )


@check("GPU579", "count-over-container-limit")
def count_over_container_limit(generated: Generated) -> Iterator[Finding]:
    """A workload's pods ask for more units than one container of its tenant may have.

    ## Why
    `allow.unitsPerContainer` is what admission holds every container of the tenant to, those of its workloads included.

    ## Instead
    Ask for fewer units, or raise the tenant's `unitsPerContainer`.
    """
    for item in _first_of_each(generated, _UNITS):
        workload = item.work.workload
        most = workload.tenant.spec.allow.units_per_container
        if most is not None and not refuses_more_than_one(workload.pool, workload.unit):
            yield Finding(
                workload.at / "count",
                f"a pod of `{workload.name}` asks for {workload.spec.count} `{workload.unit.name}`, and containers "
                f"of tenant `{workload.tenant.name}` may have {most}",
                label=_label(generated.plan),
                related=(Label(workload.tenant.at / "allow" / "unitsPerContainer", f"{most} at most"),),
                help=f"write `count: {most}`",
            )


@check("GPU582", "class-not-of-tenant")
def class_not_of_tenant(generated: Generated) -> Iterator[Finding]:
    """A workload's priority class is not one that its tenant may name, or it has to choose one.

    ## Why
    Priorities decide who evicts whom, so admission lets pods name their tenant's classes alone. Pods that use GPUs must
    name one of them where there are any.

    ## Instead
    Write one of the tenant's `priorityClasses`.
    """
    for item in _first_of_each(generated, _CLASSES):
        workload = item.work.workload
        if workload.name in generated.faulty and _is_by_patch(item):
            continue  # GPU441 says so
        tenant, priority = workload.tenant, workload.priority_class
        names = [found.name for found in tenant.priority_classes]
        at = (tenant.at / "priorityClasses").key
        if priority is not None:
            yield Finding(
                workload.at / "priorityClass",
                f"tenant `{tenant.name}` of workload `{workload.name}` may not name priority class `{priority.name}`",
                label=_label(generated.plan),
                related=(Label(at, f"it may name {listing(names) or 'none'}"),),
                help=f"write `priorityClass: {names[0]}`" if names else "leave `priorityClass` out",
            )
        else:
            yield Finding(
                name_of(workload.at),
                f"workload `{workload.name}` names no priority class, and tenant `{tenant.name}` has {len(names)}",
                label=_label(generated.plan),
                related=(Label(at, listing(names)),),
                help=f"add `priorityClass: {names[0]}`" if names else "grant the tenant the default class",
            )


def _is_by_patch(item: RefusedWork) -> bool:
    """Whether what a workload lays over its pods is to blame."""
    workload, at = item.work.workload, item.find_place()
    patch, is_granted = workload.patch_at, workload.priority_class in workload.tenant.priority_classes
    return is_granted or (at is not None and at.source is patch.source and at.path[: len(patch.path)] == patch.path)
