"""The order of the stages: read, merge, parse, resolve, check, render. It returns values and prints nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from os import PathLike
from pathlib import Path
from posixpath import normpath
from typing import TYPE_CHECKING, Final

from gpuplan.compiler import documents, manifests, outtree, planning, policy
from gpuplan.compiler.base.diagnostics import Diagnostic, Family, GpuplanError, Rule, has_errors
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.documents import DiskTree, find_embedded
from gpuplan.compiler.manifests import unusable_definitions
from gpuplan.compiler.pipeline import judges, stages
from gpuplan.compiler.pipeline.findings import tidy
from gpuplan.compiler.pipeline.judges import Judged
from gpuplan.compiler.pipeline.loading import OUT, Repository, load, own_gpus
from gpuplan.compiler.pipeline.rules import RULES
from gpuplan.compiler.planning.plan import Plan

if TYPE_CHECKING:
    from gpuplan.compiler.pipeline.rendering import Rendered
    from gpuplan.compiler.planning.node_list import Node

__all__ = ["Build", "Report", "build", "own_gpus", "report_on", "rules", "validate"]


class Report(Value):
    """The findings on a repository, and the plans of those clusters that could be planned.

    ``diagnostics`` are sorted by place; what several clusters share is said once. ``clusters`` are those asked for.
    ``scope`` says which objects were judged, where files are judged without a platform.
    """

    diagnostics: tuple[Diagnostic, ...]
    plans: tuple[Plan, ...]
    clusters: tuple[str, ...]
    file_count: int
    scope: str = ""

    @property
    def is_valid(self) -> bool:
        return not has_errors(self.diagnostics)


class Build(Value):
    """A report and, unless it has errors, every file below `out/`.

    ``objects`` are the paths of Kubernetes objects. ``scope`` are the folders that ``tree`` speaks for; it is empty if
    that is all of the output. ``policies`` are digests of the documents that it was made of.
    """

    report: Report
    tree: Mapping[str, bytes]
    objects: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    policies: Mapping[str, str] = field(default_factory=dict)


def validate(
    root: str | PathLike[str],
    clusters: Sequence[str] = (),
    *,
    crds: str | PathLike[str] | None = None,
    kustomize: str = "",
    against: str = "",
    nodes: Sequence[Node] | None = None,
) -> Report:
    """Judge the clusters named, or all: everything that one run can find.

    Where there are hand-written Components, what kustomize makes of them is judged, too. ``kustomize`` is the program,
    `off`, or empty for whichever is on the path; ``crds`` is as in `build`. ``against`` is a revision, or a folder with
    a platform: the step from there is judged as well, by the ``nodes`` of the one cluster where they are known.
    """
    root, crds = Path(root), None if crds is None else Path(crds)
    repository = load(root, clusters)
    diagnostics = [*_check(repository), *stages.judging.judge_place(repository.plans, root)]
    report = _report(repository, diagnostics)
    if against:
        for judge_step in judges.step_judges():
            diagnostics += judge_step(root, against, clusters, report, nodes)
        report = _report(repository, diagnostics, is_step=True)
    patched = [plan for plan in report.plans if plan.components]
    if patched and report.is_valid:
        rendered = stages.rendering.render(patched, root.resolve(), OUT, crds, is_whole=False)
        judged = _judge_results(rendered, diagnostics, root.resolve(), OUT, crds, kustomize)
        diagnostics += (diagnostic for plan in patched for diagnostic in stages.generated.judge_rest(plan))
        diagnostics += (*rendered.diagnostics, *judged.diagnostics, *unusable_definitions(crds, root.resolve()))
        report = _report(repository, diagnostics, is_final=judged.is_complete, is_step=bool(against))
    if not report.is_valid or not os.path.lexists(root / OUT):
        return report
    return replace(report, diagnostics=(*report.diagnostics, *stages.output.judge_output(repository, root, OUT)))


def build(
    root: str | PathLike[str],
    clusters: Sequence[str] = (),
    *,
    out: str = OUT,
    crds: str | PathLike[str] | None = None,
    kustomize: str = "",
) -> Build:
    """Judge the clusters named, or all, and render them; nothing is rendered beside an error.

    ``out`` is the output folder relative to the root, from which paths to hand-written Components are counted;
    ``crds`` is a folder of CustomResourceDefinitions to check custom resources against; ``kustomize`` is as in
    `validate`, and nothing that is rendered depends on it.
    """
    root, crds = Path(root), None if crds is None else Path(crds)
    repository = load(root, clusters)
    # The next run would take the output for policies.
    for cluster in repository.clusters:
        target = normpath(f"{out}/{cluster}")
        for folder in repository.folders:
            if f"{target}/".startswith(f"{folder}/"):
                raise GpuplanError(
                    f"`{target}/` would be written into `{folder}/`, from where policies are read",
                    "name a folder that holds nothing else, such as `--out out`",
                )
    diagnostics = [*_check(repository), *stages.judging.judge_place(repository.plans, root)]
    if out != OUT:
        diagnostics += find_embedded(DiskTree(root), (out,))
    report = _report(repository, diagnostics)
    if not report.is_valid:
        return Build(report, {})
    rendered = stages.rendering.render(report.plans, root.resolve(), out, crds, is_whole=not clusters, keeps_all=False)
    work = (diagnostic for plan in report.plans for diagnostic in stages.generated.judge_rest(plan))
    more = [*work, *rendered.diagnostics, *unusable_definitions(crds, root.resolve())]
    is_final = False
    if any(cluster.own.components for cluster in rendered.clusters) and not has_errors(rendered.diagnostics):
        judged = _judge_results(rendered, diagnostics, root.resolve(), out, crds, kustomize)
        more += judged.diagnostics
        is_final = judged.is_complete
    if more or is_final:
        report = _report(repository, (*diagnostics, *more), is_final=is_final)
    tree, policies = (rendered.tree, stages.output.policy_digests(repository)) if report.is_valid else ({}, {})
    return Build(report, tree, tuple(rendered.objects), stages.rendering.scope(clusters), policies)


def report_on(repository: Repository) -> Report:
    """Judge a repository that was read, but for what kustomize would make of it."""
    return _report(repository, _check(repository))


def _check(repository: Repository) -> list[Diagnostic]:
    """Judge each plan, then all together, and what is retained if nothing else is wrong."""
    diagnostics = [*repository.diagnostics]
    for plan in repository.plans:
        judged = stages.judging.judge_plan(plan)
        diagnostics += judged
        if plan.workloads:
            diagnostics += stages.generated.judge_asked(plan, judged)
    diagnostics += stages.judging.check_together(repository.plans)
    retaining = [plan for plan in repository.plans if plan.retained]
    if retaining and not has_errors(diagnostics):
        judgements = (judge(plan) for judge in judges.sound_plan_judges() for plan in retaining)
        diagnostics += [diagnostic for judgement in judgements for diagnostic in judgement]
    return diagnostics


def _judge_results(
    rendered: Rendered, earlier: Sequence[Diagnostic], root: Path, out: str, crds: Path | None, program: str
) -> Judged:
    whole = Judged()
    for judge in judges.result_judges():
        judged = judge(rendered, earlier, root=root, out=out, crds=crds, program=program)
        whole.diagnostics += judged.diagnostics
        whole.is_complete &= judged.is_complete
    return whole


_BEFORE_PLANS: Final = (Family.READING, Family.REPOSITORY, Family.POLICY, Family.PLANNING)
"""The rules without whose errors every document is in a plan; with errors other rules may have judged less."""


def _report(
    repository: Repository, diagnostics: Iterable[Diagnostic], *, is_final: bool = False, is_step: bool = False
) -> Report:
    """``is_final`` says that the results of hand-written Components were judged, too: their comments are for those.

    ``is_step`` says that a step was judged, so that comments on steps should be needed.
    """
    ignores = (*repository.ignores, *repository.hand_ignores)
    needed = (ignores if is_final else repository.ignores) if repository.is_whole else ()

    diagnostics = tuple(diagnostics)
    is_planned = not any(item.is_error and item.rule.family in _BEFORE_PLANS for item in diagnostics)

    def is_judged(code: str) -> bool:
        family = next((rule.family for rule in rules() if rule.code == code), None)
        return (is_step or family is not Family.STEP) and (is_planned or family in (None, *_BEFORE_PLANS))

    tidied = tidy(diagnostics, ignores, needed=needed, is_judged=is_judged)
    return Report(tidied, repository.plans, repository.clusters, repository.file_count)


@cache
def rules() -> tuple[Rule, ...]:
    """Return every rule of every stage and every feature, by code."""
    listed: tuple[Rule, ...] = (
        *(*documents.RULES, *policy.RULES, *planning.RULES, *RULES, *manifests.RULES, *outtree.RULES),
        *(check.rule for check in stages.checks.CHECKS),
        *(check.rule for check in (*stages.work_checks.GENERATED_CHECKS, *stages.work_checks.PATCH_CHECKS)),
        *judges.feature_rules(),
    )
    once = {id(rule): rule for rule in listed}  # one rule may be found by reading and in the result
    return tuple(sorted(once.values(), key=lambda rule: rule.code))
