"""The work that is written for Workloads, and checks on what a cluster's own admission rules refuse of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from gpuplan.compiler.admission.policies import rules_of
from gpuplan.compiler.admission.verdicts import Refused, refused
from gpuplan.compiler.base.diagnostics import Finding, Label, Origin
from gpuplan.compiler.base.values import NamedTuple, Value
from gpuplan.compiler.base.wording import joined, listing
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import name_of, refused_in, refuses_in
from gpuplan.compiler.manifests import Manifest
from gpuplan.compiler.planning.grants import has_admission_policies, refuses_more_than_one
from gpuplan.compiler.planning.hand_files import further_parameters, read, written_classes
from gpuplan.compiler.planning.linking import Linked, written
from gpuplan.compiler.planning.plan import Plan, PriorityClass, Workload
from gpuplan.compiler.policy.models import Inference


class GeneratedWork(NamedTuple):
    """An object that is written for a workload. ``unpatched`` is the object without the patch of its pods, if any."""

    workload: Workload
    manifest: Manifest
    unpatched: Manifest | None = None


class RefusedWork(NamedTuple):
    """A part of what is written for a workload that the cluster's own rules refuse."""

    work: GeneratedWork
    refused: Refused

    @property
    def rule(self) -> str:
        return self.refused.refusal.rule.name

    def find_place(self) -> Origin | None:
        """Return where the policy says the part that is to blame, in the workload's own document first, or None."""
        links = Linked(self.work.manifest.trace).about(self.refused.route) if self.refused.route else ()
        source = self.work.workload.at.source
        return min((link.at for link in written(links)), key=lambda at: at.source is not source, default=None)


class Generated(Value):
    """The work of a cluster. Of the workloads named ``faulty`` something wrong is known already.

    It is judged by those ``rules`` of the cluster that are named, also where it is too old for policies that hold them.
    """

    plan: Plan
    work: tuple[GeneratedWork, ...]
    rules: frozenset[str]
    faulty: frozenset[str] = frozenset()

    @property
    def cluster_names(self) -> tuple[str, ...]:
        return self.plan.cluster_names

    @cached_property
    def refusals(self) -> tuple[RefusedWork, ...]:
        plan, files, refusals = self.plan, read(self.plan), list[RefusedWork]()
        rules = [policy.only(self.rules) for policy in rules_of(plan)]
        classes = written_classes(files)
        for work in self.work:
            tenant, namespace = work.workload.tenant, work.workload.namespace
            if namespace in tenant.spec.namespaces and tenant.name not in plan.broken.incomplete_tenants:
                further = further_parameters(files, namespace)
                parts = refused(plan, rules, work.manifest.body, tenant, namespace, classes=classes, further=further)
                refusals += (RefusedWork(work, part) for part in parts)
        return tuple(refusals)


_UNITS: Final = ("units-per-container", "claims-per-container")
_CLASSES: Final = (
    "gpu-pods-name-priority-class",
    "priority-class-is-granted",
    "own-workload-priority",
    "own-priority-class",
)

ASKED: Final = frozenset(("no-device-variables", *_UNITS, *_CLASSES))
"""The rules that fields of a Workload decide. Others are asked when the whole platform is written."""


def _first_of_each(generated: Generated, rules: tuple[str, ...]) -> Iterator[RefusedWork]:
    """Yield what some of the rules refuse, once for a workload."""
    first = {each.work.workload.name: each for each in reversed(generated.refusals) if each.rule in rules}
    yield from (first[name] for name in sorted(first))


def _label(plan: Plan) -> str:
    return "refused by admission" if has_admission_policies(plan.cluster) else "refused here alone"


@check("GPU423", "workload-refused-by-admission")
def workload_refused_by_admission(generated: Generated) -> Iterator[Finding]:
    """gpuplan's own admission rules of the cluster would refuse the objects of a Workload.

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
        refuses = refuses_in(generated.plan, workload.tenant, workload.namespace)
        finding = Finding(
            at,
            f"admission {refuses} {'pods of ' if item.refused.is_made else ''}workload `{workload.name}`: "
            f"{item.refused.refusal.message}",
            label=_label(generated.plan),
            related=() if at.source == workload.at.source else (Label(name_of(workload.at), "the workload"),),
            notes=(f"rule `{rule.name}` of the ValidatingAdmissionPolicy `{item.refused.refusal.policy.name}`",),
            help=f"change it as the rule says, or write `without: [{rule.name}]` in the Cluster's `admission`"
            if rule.optional
            else "change it as the rule says",
        )
        yield refused_in(generated.plan, workload.tenant, workload.namespace, finding)


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
            finding = Finding(
                workload.at / "count",
                f"a pod of `{workload.name}` asks for {workload.spec.count} `{workload.unit.name}`, and containers "
                f"of tenant `{workload.tenant.name}` may have {most}",
                label=_label(generated.plan),
                related=(Label(workload.tenant.at / "allow" / "unitsPerContainer", f"{most} at most"),),
                help=f"write `count: {most}`",
            )
            yield refused_in(generated.plan, workload.tenant, workload.namespace, finding)


@check("GPU582", "class-not-of-tenant")
def class_not_of_tenant(generated: Generated) -> Iterator[Finding]:
    """A workload names a priority class that its tenant may not use, or names none and has to.

    ## Why
    Priorities decide who evicts whom, so admission lets pods name their tenant's classes alone. Pods that use GPUs must
    name one of them where there are any.

    ## Instead
    Write one of the tenant's `priorityClasses`.
    """
    for item in _first_of_each(generated, _CLASSES):
        workload = item.work.workload
        tenant, priority = workload.tenant, workload.priority_class
        place, patch = item.find_place(), workload.patch_at
        is_in_patch = place is not None and place.source is patch.source and place.path[: len(patch.path)] == patch.path
        if workload.name in generated.faulty and (priority in tenant.priority_classes or is_in_patch):
            continue  # GPU441 says that what the workload lays over its pods is to blame
        names = [granted.name for granted in _by_fitness(workload)]
        either = joined([f"`{name}`" for name in names[1:]], "or")
        choice = (
            f"`priorityClass: {names[0]}`, or {either}" if either else f"`priorityClass: {names[0]}`" if names else ""
        )
        at = (tenant.at / "priorityClasses").key
        if priority is not None:
            finding = Finding(
                workload.at / "priorityClass",
                f"tenant `{tenant.name}` of workload `{workload.name}` may not name priority class `{priority.name}`",
                label=_label(generated.plan),
                related=(Label(at, f"it may name {listing(names) or 'none'}"),),
                help=f"write {choice}" if names else "leave `priorityClass` out",
            )
        else:
            finding = Finding(
                name_of(workload.at),
                f"workload `{workload.name}` names no priority class, and tenant `{tenant.name}` has {len(names)}",
                label=_label(generated.plan),
                related=(Label(at, listing(names)),),
                help=f"add {choice}" if names else "grant the tenant the default class",
            )
        yield refused_in(generated.plan, tenant, workload.namespace, finding)


def _by_fitness(workload: Workload) -> Sequence[PriorityClass]:
    """Return the classes of a workload's tenant: those that are not evicted first if it is a service."""
    classes = workload.tenant.priority_classes
    return (
        sorted(classes, key=lambda granted: granted.spec.preemptible)
        if isinstance(workload.work, Inference)
        else classes
    )
