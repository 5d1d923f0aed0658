"""Checks on the kinds of work that Kueue knows (GPU460-462)."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from gpuplan.compiler.base.diagnostics import Finding, Severity
from gpuplan.compiler.catalog.frameworks import frameworks
from gpuplan.compiler.catalog.operators import parse_version
from gpuplan.compiler.checks.registry import check
from gpuplan.compiler.planning.hand_files import read
from gpuplan.compiler.planning.kueue import frameworks as known_to_kueue
from gpuplan.compiler.planning.plan import Plan


@check("GPU460", "kind-unknown-to-kueue", Severity.WARNING)
def kind_unknown_to_kueue(plan: Plan) -> Iterator[Finding]:
    """A hand-written object is of a kind that Kueue could admit as a whole, and it is not told so.

    ## Why
    Kueue takes the pods of a kind that it does not know one by one, or the Jobs that are made of it: some wait while
    others hold GPUs, and admission refuses those that come without waiting.

    ## Instead
    Add the kind to `scheduler.kueue.frameworks`, and merge the Configuration that gpuplan writes into Kueue's own.
    """
    known = {found.kind for found in known_to_kueue(plan.cluster)}
    unknown = [found for found in frameworks().values() if found.kind not in known]
    for found in read(plan).of_kind(*map(attrgetter("kind"), unknown)) if plan.scheduler.suspends_jobs else ():
        framework = frameworks()[found.kind]
        if found.group == framework.group and not found.is_patch:
            yield Finding(
                found.place("kind"),
                f"{found.title} is queued in parts",
                label="Kueue is not told of this kind",
                notes=(f"Kueue calls it `{framework.integration}`",),
                help=f"write `kueue: {{frameworks: [{found.kind}]}}` in the cluster's `scheduler`",
            )


@check("GPU461", "kinds-without-kueue", Severity.WARNING)
def kinds_without_kueue(plan: Plan) -> Iterator[Finding]:
    """The policy says what Kueue knows, and the cluster has another scheduler.

    ## Why
    `scheduler.kueue` goes into Kueue's Configuration and into the admission policies beside it. Nothing else reads it:
    KAI-Scheduler and Run:ai know such kinds by themselves.

    ## Instead
    Remove `kueue`, or write `kind: kueue`.
    """
    settings = plan.cluster.scheduler.spec.kueue
    if settings is not None and not plan.scheduler.suspends_jobs:
        yield Finding(
            (plan.cluster.scheduler.at / "kueue").key,
            f"{plan.scheduler.title} does not read what Kueue knows",
            label="has no effect",
            help="remove `kueue`, or write `kind: kueue`",
        )


@check("GPU462", "kind-too-new-for-kueue")
def kind_too_new_for_kueue(plan: Plan) -> Iterator[Finding]:
    """Kueue is told of a kind that its release does not know.

    ## Why
    Kueue reads its Configuration when it starts, and does not start with the name of an integration that it does not
    have.

    ## Instead
    Raise `scheduler.version`, or leave the kind out.
    """
    scheduler = plan.cluster.scheduler
    release = parse_version(scheduler.spec.version or "")
    if not plan.scheduler.suspends_jobs or scheduler.spec.kueue is None or release is None:
        return
    for index, kind in enumerate(scheduler.spec.kueue.frameworks):
        framework = frameworks()[kind.value]
        if release < (parse_version(framework.since) or ()):
            yield Finding(
                scheduler.at / "kueue" / "frameworks" / index,
                f"Kueue {scheduler.spec.version} does not know the kind {framework.kind}",
                label=f"came with {framework.since}",
                help=f"write `version: {framework.since}` or later, or leave `{framework.kind}` out",
            )
