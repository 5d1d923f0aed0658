"""Judge a step from one state of a platform to another, cluster by cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gpuplan.changes import checks
from gpuplan.changes.step import Step
from gpuplan.checks.wording import name_of
from gpuplan.diagnostics import Diagnostic, Finding, Origin, Severity, SourceFile, WholeFile, has_errors
from gpuplan.pipeline.loading import OVERLAYS
from gpuplan.pipeline.rules import CLUSTER_REMOVED, NOT_JUDGED
from gpuplan.planning.plan import Plan

if TYPE_CHECKING:
    from gpuplan.changes.pods import Pod
    from gpuplan.pipeline import Report


def judge_step(earlier: Report, later: Report, name: str, pods: Sequence[Pod] | None = None) -> Iterator[Diagnostic]:
    """What is wrong with the step; ``name`` is what the earlier side is called.

    Clusters with errors are left out: what could not be read looks as if it were removed.
    """
    before = {plan.cluster.name: plan for plan in earlier.plans}
    after = {plan.cluster.name: plan for plan in later.plans}
    for cluster, plan in after.items():
        if _has_errors(later, cluster):
            continue
        if _has_errors(earlier, cluster):
            yield _not_judged(plan, name)
        elif cluster in before:
            yield from checks.run(Step(before[cluster], plan, pods))
    yield from (_removed(cluster) for cluster in earlier.clusters if cluster not in later.clusters)


def _has_errors(report: Report, cluster: str) -> bool:
    """Whether a cluster has errors; those that name none are in files, and may be everybody's."""
    found: Iterable[Diagnostic] = (item for item in report.diagnostics if not item.clusters or cluster in item.clusters)
    return has_errors(found)


def _not_judged(plan: Plan, name: str) -> Diagnostic:
    finding = Finding(
        name_of(plan.cluster.at),
        f"nobody knows what changes in cluster `{plan.cluster.name}`: its policies at `{name}` have errors",
        label="not judged as a step",
        help="compare with the last revision that was built",
    )
    return Diagnostic(NOT_JUDGED, finding, clusters=(plan.cluster.name,))


def is_new(plan: Plan, name: str) -> Diagnostic:
    """Said where all is new: a platform that has moved to another folder looks like that, too."""
    finding = Finding(
        name_of(plan.cluster.at),
        f"cluster `{plan.cluster.name}` is new: `{name}` does not have it",
        label="not judged as a step",
        help="if the platform has moved, compare with a folder: `--against DIR`",
        severity=Severity.NOTE,
    )
    return Diagnostic(NOT_JUDGED, finding, clusters=(plan.cluster.name,))


def _removed(cluster: str) -> Diagnostic:
    finding = Finding(
        Origin(WholeFile(SourceFile(f"{OVERLAYS}/{cluster}", ""))),
        f"cluster `{cluster}` is removed",
        help=f"drain its nodes first, or bring {OVERLAYS}/{cluster}/ back",
    )
    return Diagnostic(CLUSTER_REMOVED, finding, clusters=(cluster,))
