"""Compare what runs with what the policies build: where each difference comes from, and what the next sync does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path

from gpuplan.compiler.base.diagnostics import GpuplanError, has_errors
from gpuplan.compiler.base.trees import ABSENT
from gpuplan.compiler.delivery.charts import chart_of
from gpuplan.compiler.documents import find_folders
from gpuplan.compiler.pipeline import Report, report_on
from gpuplan.compiler.pipeline.findings import tidy
from gpuplan.compiler.pipeline.loading import OVERLAYS, load
from gpuplan.compiler.planning.plan import Plan
from gpuplan.features.live.clusters import name_of
from gpuplan.features.live.drifting.added import added_fields
from gpuplan.features.live.drifting.foreign import opponents
from gpuplan.features.live.drifting.model import Comparison, Differs, Drift, Drifting, NextSync, planned
from gpuplan.features.live.drifting.nodes import compare_nodes, count_nodes, doubt_of
from gpuplan.features.live.drifting.objects import compare, leftovers, unread_annotations
from gpuplan.features.live.drifting.operator import compare_operator
from gpuplan.features.live.drifting.telling import Telling
from gpuplan.features.live.dump import Dump, read_dump
from gpuplan.features.live.work import warned

__all__ = ["Comparison", "Differs", "Drift", "Drifting", "NextSync", "compare_with", "drift"]


def drift(
    dumps: Mapping[str, bytes], root: str | PathLike[str] = ".", cluster: str = "", *, kustomize: str = ""
) -> Drifting:
    """Compare what runs, as dumps by name show it, with what the policies at ``root`` build for a cluster.

    Without a ``cluster`` it is the only one, or the one that the dumps name. Trouble if they name another cluster, or
    show nothing of it. ``kustomize`` is as in `validate`: without it, objects that hand-written Components change are
    not compared.
    """
    root = Path(root)
    dump, found = read_dump(dumps)
    if not dump.objects and not has_errors(found):
        raise GpuplanError(
            "there is no object in the dump", "`gpuplan import --commands` prints what to type for kubectl"
        )
    known, told = find_folders(root, OVERLAYS), name_of(dump)
    name = cluster or (known[0] if len(known) == 1 else told)
    if not name:
        which = " or ".join(f"`-c {each}`" for each in known) or "`-c NAME`"
        raise GpuplanError("the dump does not say which cluster it is of", f"name it, with the same files: {which}")
    if not cluster and told not in ("", name):
        raise GpuplanError(
            f"the dump is of cluster `{told}`, as gpuplan's own objects in it say, and the policies are of `{name}`",
            f"go to the repository of `{told}`, or compare all the same: `gpuplan drift -c {name}`",
        )
    repository = load(root, (name,))
    report = report_on(repository)
    if not report.is_valid or not report.plans:
        return Drifting(report, name)
    [plan] = report.plans
    doubt = doubt_of(plan, dump)
    if doubt and not cluster:
        raise GpuplanError(
            f"the dump is of another cluster than `{name}`, as it seems: {doubt}",
            f"name a dump of `{name}`, or compare all the same: `gpuplan drift -c {name}`",
        )
    compared = compare_with(plan, dump, root, kustomize=kustomize)
    if not compared.shows_anything:
        if has_errors(found):
            return Drifting(Report(tidy(found, (), needed=()), (), (name,), len(dumps)), name)
        raise GpuplanError(
            f"the dump shows nothing of cluster `{name}`: no object in it is one that the policies write",
            "`gpuplan import --commands` prints what to collect",
        )
    report = Report(
        tidy((*found, *compared.opponents, *warned(dump, plan)), (), needed=()), report.plans, (name,), len(dumps)
    )
    return Drifting(
        report,
        name,
        compared.drifts,
        compared.left_alone,
        compared.unjudged,
        compared.number,
        told,
        is_comparable=not has_errors(found),
        doubt=doubt,
    )


def compare_with(plan: Plan, dump: Dump, root: Path = Path(), *, kustomize: str = "") -> Comparison:
    """Compare a dump with a plan, which may be made in memory; ``root`` is the folder of its Components."""
    platform = planned(plan, root, kustomize)
    telling = Telling(platform)
    shown = platform.shown_by(dump)
    compared = compare(shown, dump, plan.cluster.spec.kubernetes)
    synced = [drift for item in compared.differing for drift in telling.differing(item)]
    synced += (telling.missing(identity, file) for identity, file in compared.missing.items())
    charts = [applier for applier, folder in telling.folders.items() if chart_of(plan, folder)]
    synced += map(telling.leftover, leftovers(dump, platform.known, telling.folders, platform.kinds, charts))
    beside = [
        telling.observed(Differs.FIELD if item.subject else Differs.MISSING, item)
        for item in compare_operator(plan, dump, shown)
    ]
    beside += (telling.observed(Differs.FIELD, item, identity) for identity, item in added_fields(shown, dump))
    for item in compare_nodes(plan, dump):
        is_beside = item.written is ABSENT and not item.is_labelled
        (beside if is_beside else synced).append(telling.observed(Differs.NODE, item))
    is_unread = unread_annotations(plan, dump, shown)
    left = [drift for drift in synced if drift.next_sync is NextSync.LEAVES or is_unread(drift.path, drift.written)]
    synced = [drift for drift in synced if drift not in left]
    unjudged = (*compared.unjudged, *platform.unjudged)
    number = len(compared.compared) + count_nodes(plan, dump)
    against = tuple(opponents(plan, dump, platform.known, shown))
    return Comparison(_sorted([*synced, *beside]), _sorted(synced), _sorted(left), unjudged, against, number)


def _sorted(drifts: Iterable[Drift]) -> tuple[Drift, ...]:
    return tuple(sorted(drifts, key=lambda drift: (-drift.change_class.rank, drift.title, drift.path)))
