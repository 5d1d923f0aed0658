"""Checks on priority classes (GPU500-509), and on whom they evict all the same (GPU590)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.compiler.base.diagnostics import Finding, Label, Severity
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.checks.losses import Ladder, evicting_all_the_same
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.checks.wording import name_of, repeats, severity_of_loss
from gpuplan.compiler.planning.plan import Plan, PriorityClass
from gpuplan.compiler.planning.preemption import misread, preemptibility

HIGHEST = 1_000_000_000
LOWEST = -(2**31)
SYSTEM_PREFIX = "system-"


@check("GPU500", "priority-out-of-range")
def priority_out_of_range(plan: Plan) -> Iterator[Finding]:
    """A priority class has a value that Kubernetes refuses.

    ## Why
    A value is a 32-bit number, and those above 1000000000 are kept for the system's own classes. The API server refuses
    anything else.

    ## Instead
    Only the order of the values counts: small numbers do as well.
    """
    for found in plan.priority_classes:
        is_high = found.spec.value > HIGHEST
        if is_high or found.spec.value < LOWEST:
            nearest = HIGHEST if is_high else LOWEST
            yield Finding(
                found.at / "value",
                f"priority class `{found.name}` has the value {found.spec.value}",
                label=f"the {'highest' if is_high else 'lowest'} is {nearest}",
                notes=(f"values run from {LOWEST} to {HIGHEST}; those above are the system's own",),
                help=f"write `value: {nearest}`{', or a smaller number' if is_high else ''}",
            )


@check("GPU501", "reserved-priority-class-name")
def reserved_priority_class_name(plan: Plan) -> Iterator[Finding]:
    """A priority class has a name that Kubernetes keeps for itself.

    ## Why
    Names that start with `system-` belong to `system-cluster-critical` and `system-node-critical`, which every cluster
    has. The API server refuses to create another one.

    ## Instead
    Leave the prefix out.
    """
    for found in plan.priority_classes:
        if found.name.startswith(SYSTEM_PREFIX):
            yield Finding(
                name_of(found.at),
                f"priority class name `{found.name}` is kept for Kubernetes itself",
                label=f"`{SYSTEM_PREFIX}` is reserved",
                notes=("only `system-cluster-critical` and `system-node-critical` have that prefix, and they exist",),
                help=f"write `{found.name.removeprefix(SYSTEM_PREFIX) or 'critical'}`",
            )


@check("GPU502", "equal-priorities", Severity.WARNING)
def equal_priorities(plan: Plan) -> Iterator[Finding]:
    """Two priority classes have the same value.

    ## Why
    Nothing orders two classes of one value: neither goes first and neither may evict the other, whatever their names
    promise.

    ## Instead
    Give each class its own value. Where both mean the same, one class will do.
    """
    for found, first in repeats(plan.priority_classes, lambda each: each.spec.value):
        yield Finding(
            found.at / "value",
            f"priority classes `{first.name}` and `{found.name}` have the same value",
            label=f"{found.spec.value}, too",
            related=(Label(first.at / "value", f"`{first.name}`"),),
            notes=("neither goes before the other, and neither may evict the other",),
            help="give one of them a higher value, or keep one class",
        )


@check("GPU503", "several-default-classes")
def several_default_classes(plan: Plan) -> Iterator[Finding]:
    """More than one priority class is the default.

    ## Why
    The API server admits one class with `globalDefault`; the second one is refused. If two get in at the same time,
    pods get the one with the lowest value.

    ## Instead
    Keep `default: true` on one class, or on none.
    """
    defaults = [found for found in plan.priority_classes if found.spec.default]
    for found in defaults[1:]:
        yield Finding(
            found.at / "default",
            f"priority class `{found.name}` is a second default",
            label="only one can be",
            related=(Label(defaults[0].at / "default", f"`{defaults[0].name}` is the default"),),
            notes=("the API server refuses a second PriorityClass with `globalDefault`",),
            help="remove `default: true` here or there",
        )


@check("GPU504", "default-class-outranks", Severity.WARNING)
def default_class_outranks(plan: Plan) -> Iterator[Finding]:
    """Pods that name no class outrank pods that do.

    ## Why
    The default holds for every pod of the cluster that names no class, in all namespaces and with or without GPUs. A
    default above other classes puts a careless pod before a careful one, and lets it evict that one.

    ## Instead
    Make the class with the lowest value the default, or leave the default out: pods without a class then have the
    value 0.
    """
    ladder = Ladder(plan.priority_classes)
    for found in plan.priority_classes:
        lower = ladder.names_below(found.spec.value) if found.spec.default else ()
        if lower:
            effect = "go before and may evict" if found.spec.preempts else "go before"
            yield Finding(
                found.at / "default",
                f"pods that name no class {effect} pods of {listing(lower)}",
                label=f"everything without a class gets {found.spec.value}",
                notes=("the default holds for all pods of the cluster, those without GPUs included",),
                help="remove `default: true`, or give it to the class with the lowest value",
            )


@check("GPU505", "preemptible-against-value", Severity.WARNING)
def preemptible_against_value(plan: Plan) -> Iterator[Finding]:
    """On a cluster with KAI-Scheduler or Run:ai, a class's value says the opposite of its `preemptible`.

    ## Why
    Where nothing else is said, KAI-Scheduler reads the number: pods of a class below 100 are preemptible and may run
    over quota, those of 100 and more are not and may not (`CalculatePreemptibility` in
    `pkg/common/podgroup/preemptible.go`). Since v0.10 the label `kai.scheduler/preemptibility` on pods, or on what owns
    them, comes first. Workloads have it, so that with values such as 1000, 500 and 100 theirs are what `preemptible`
    says; pods that teams make without the label are not. Run:ai is said to read the number, too, of pods that it did
    not make itself; its source is not open.

    ## Instead
    Give preemptible classes values below 100 and the others 100 or more; only the order counts elsewhere. With
    KAI-Scheduler the label says it as well: ignore this where your teams' pods have it.
    """
    scheduler, bound = plan.scheduler, plan.scheduler.preemptible_below
    for found in misread(plan):
        is_preemptible, is_low = found.spec.preemptible, not found.spec.preemptible
        side = "below" if is_low else "not below"
        label = scheduler.preemptibility_label
        without = f" without the label `{label}`" if label else ""
        said = f"label them `{label}: {preemptibility(found)}`, " if label else ""
        yield Finding(
            found.at / "value",
            f"pods of class `{found.name}`{without} are {'not ' if is_preemptible else ''}preemptible to "
            f"{scheduler.title}",
            label=f"{found.spec.value} is {side} {bound}",
            related=(Label(found.at / "preemptible", f"`preemptible: {str(is_preemptible).lower()}`"),),
            notes=(
                f"{scheduler.title} takes pods of a class below {bound} for preemptible, and no others",
                *(("Workloads have the label: their pods are what `preemptible` says",) if label else ()),
            ),
            help=f"{said}write a value of {bound} or more, or `preemptible: true`"
            if is_low
            else f"{said}write a value below {bound}, or `preemptible: false`",
        )


@check("GPU506", "evictable-class", Severity.WARNING)
def evictable_class(plan: Plan) -> Iterator[Finding]:
    """On plain Kubernetes, a class says that it is not preemptible, but a higher one may evict its pods.

    ## Why
    kube-scheduler evicts pods of any lower value to make room. A PriorityClass can say that its own pods evict nobody;
    no field says that they are safe. Only the highest value is, and a class above it that does not preempt.

    ## Instead
    Give the class the highest value, or write `preempts: false` on those above it.
    """
    ladder = Ladder(found for found in plan.priority_classes if found.spec.preempts)
    for found in plan.priority_classes if plan.scheduler.evicts_by_priority_alone else ():
        evictors = () if found.spec.preemptible else ladder.above(found.spec.value)
        if evictors:
            names = listing(ladder.names_above(found.spec.value))
            yield Finding(
                found.at / "preemptible",
                f"pods of class `{found.name}` can be evicted by pods of {names}",
                label=f"nothing protects the value {found.spec.value}",
                related=_values(evictors, "preempts"),
                notes=("kube-scheduler evicts any lower value; no field of a PriorityClass protects a pod",),
                help=f"raise `{found.name}` above {evictors[-1].spec.value}, or write `preempts: false` on {names}",
                severity=severity_of_loss(plan, Severity.WARNING),
            )


@check("GPU507", "never-evicted", Severity.NOTE)
def never_evicted(plan: Plan) -> Iterator[Finding]:
    """On plain Kubernetes, a class says that it is preemptible, but no class above it preempts.

    ## Why
    kube-scheduler evicts a pod only for one of a higher value whose class preempts. With `preempts: false` on all the
    higher classes, pods of this class keep their GPUs until they end, and urgent pods wait. Where no class at all
    preempts, that is taken to be meant.

    ## Instead
    Leave `preempts` out on a higher class, or write `preemptible: false` here to say what happens.
    """
    highest = max((found.spec.value for found in plan.priority_classes if found.spec.preempts), default=None)
    ladder = Ladder(plan.priority_classes if highest is not None else ())
    for found in plan.priority_classes if plan.scheduler.evicts_by_priority_alone else ():
        higher = ladder.above(found.spec.value) if found.spec.preemptible else ()
        if higher and highest is not None and highest <= found.spec.value:
            yield Finding(
                found.at / "preemptible",
                f"no class evicts pods of `{found.name}`",
                label="preemptible, but by nobody",
                related=_values(higher, "does not preempt"),
                notes=(f"above {found.spec.value}, every class has `preempts: false`",),
                help=f"leave `preempts` out on `{higher[-1].name}`, or write `preemptible: false` here",
            )


@check("GPU508", "class-of-scheduler", Severity.ERROR)
def class_of_scheduler(plan: Plan) -> Iterator[Finding]:
    """A priority class has the name of one that the scheduler brings along.

    ## Why
    KAI-Scheduler's chart creates `train`, `build-preemptible`, `build` and `inference`. Two owners of one object undo
    each other's work, and the value of a PriorityClass cannot be changed: the second one to apply fails.

    ## Instead
    Use another name. With the value that the chart gives, this is a warning.
    """
    for found in plan.priority_classes:
        value = plan.scheduler.own_classes.get(found.name)
        if value is not None:
            yield Finding(
                name_of(found.at),
                f"priority class `{found.name}` is one of {plan.scheduler.title}'s own",
                label=f"its chart creates it with {value}",
                related=(
                    Label(found.at / "value", "the same value" if value == found.spec.value else "another value"),
                ),
                notes=("the value of a PriorityClass cannot be changed once it exists",),
                help=f"rename it, for example to `gpu-{found.name}`",
                severity=Severity.WARNING if value == found.spec.value else None,
            )


def _values(classes: Sequence[PriorityClass], fact: str) -> tuple[Label, ...]:
    return tuple(Label(each.at / "value", f"`{each.name}` {fact}") for each in classes[:4])


@check("GPU590", "preempts-all-the-same", Severity.NOTE)
def preempts_all_the_same(plan: Plan) -> Iterator[Finding]:
    """On a cluster with KAI-Scheduler or Run:ai, a class that says `preempts: false` evicts others all the same.

    ## Why
    `preemptionPolicy: Never` is a word to kube-scheduler. KAI-Scheduler compares values alone: within a queue, work of
    a higher class takes the place of preemptible work of a lower one (`pkg/scheduler/actions/preempt`). Run:ai's
    scheduler is the one that it was made from.

    ## Instead
    Give such classes the same value as those that they must not evict, or accept it. With `onLoss: refuse` this is an
    error.
    """
    for found, below in evicting_all_the_same(plan) if plan.scheduler.evicts_preemptible_alone else ():
        yield Finding(
            found.at / "preempts",
            f"pods of class `{found.name}` evict pods of {listing(below)} with {plan.scheduler.title}",
            label="looked at by kube-scheduler alone",
            notes=(f"`{found.name}` has the value {found.spec.value}, and within a tenant the higher value wins",),
            help="see `gpuplan show --preemption` for who can evict whom",
            severity=severity_of_loss(plan, Severity.NOTE),
        )
