"""The order of the stages: read, merge, parse, resolve, check, render. It returns values and prints nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from os import PathLike
from pathlib import Path
from posixpath import normpath
from typing import TYPE_CHECKING

from gpuplan.compiler.base.diagnostics import Diagnostic, Family, Finding, GpuplanError, Rule, has_errors
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.documents import DiskTree, find_embedded
from gpuplan.compiler.pipeline import judges
from gpuplan.compiler.pipeline.findings import tidy
from gpuplan.compiler.pipeline.judges import Judged
from gpuplan.compiler.pipeline.loading import OUT, Repository, load, own_gpus
from gpuplan.compiler.planning.plan import Plan

if TYPE_CHECKING:
    from gpuplan.compiler.pipeline.rendering import Rendered
    from gpuplan.compiler.planning.node_list import Node

__all__ = ["Build", "Report", "build", "judge_plan", "own_gpus", "report_on", "rules", "validate"]


class Report(Value):
    """What is wrong with a repository, and the plans of those clusters that could be planned.

    ``diagnostics`` are sorted by place; what several clusters share is said once. ``clusters`` are those asked for.
    """

    diagnostics: tuple[Diagnostic, ...]
    plans: tuple[Plan, ...]
    clusters: tuple[str, ...]
    file_count: int

    @property
    def is_valid(self) -> bool:
        return not has_errors(self.diagnostics)


class Build(Value):
    """A report and, unless it has errors, every file below `out/`.

    ``objects`` are the paths of Kubernetes objects. ``scope`` are the folders that ``tree`` speaks for, empty where it
    is all of the output. ``policies`` are digests of the documents that it was made of.
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
    root = Path(root)
    repository = load(root, clusters)
    found = _check(repository)
    report = _report(repository, found)
    if against:
        for judge_step in judges.step_judges():
            found += judge_step(root, against, clusters, report, nodes)
        report = _report(repository, found, is_step=True)
    patched = [plan for plan in report.plans if plan.components]
    if not patched or not report.is_valid:
        return _with_output(report, repository, root)
    from gpuplan.compiler.manifests import unusable_definitions
    from gpuplan.compiler.pipeline.generated import judge_rest
    from gpuplan.compiler.pipeline.rendering import render

    folder = None if crds is None else Path(crds)
    rendered = render(patched, root.resolve(), OUT, folder, is_whole=False)
    judged = _judge_results(rendered, found, root.resolve(), OUT, folder, kustomize)
    found += (diagnostic for plan in patched for diagnostic in judge_rest(plan))
    found += (*rendered.diagnostics, *judged.diagnostics, *unusable_definitions(folder, root.resolve()))
    report = _report(repository, found, is_final=judged.is_complete, is_step=bool(against))
    return _with_output(report, repository, root)


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
    from gpuplan.compiler.manifests import unusable_definitions
    from gpuplan.compiler.pipeline.generated import judge_rest
    from gpuplan.compiler.pipeline.output import policy_digests
    from gpuplan.compiler.pipeline.rendering import render, scope

    root, crds = Path(root), None if crds is None else Path(crds)
    repository = load(root, clusters)
    _keep_apart(repository, out)
    found = _check(repository)
    if out != OUT:
        found += find_embedded(DiskTree(root), (out,))
    report = _report(repository, found)
    if not report.is_valid:
        return Build(report, {})
    rendered = render(report.plans, root.resolve(), out, crds, is_whole=not clusters, keeps_all=False)
    work = (diagnostic for plan in report.plans for diagnostic in judge_rest(plan))
    more = [*work, *rendered.diagnostics, *unusable_definitions(crds, root.resolve())]
    is_final = False
    if any(cluster.own.components for cluster in rendered.clusters) and not has_errors(rendered.diagnostics):
        judged = _judge_results(rendered, found, root.resolve(), out, crds, kustomize)
        more += judged.diagnostics
        is_final = judged.is_complete
    if more or is_final:
        report = _report(repository, (*found, *more), is_final=is_final)
    tree, policies = (rendered.tree, policy_digests(repository)) if report.is_valid else ({}, {})
    return Build(report, tree, tuple(rendered.objects), scope(clusters), policies)


def report_on(repository: Repository) -> Report:
    """What is wrong with a repository that was read, but for what kustomize would make of it."""
    return _report(repository, _check(repository))


def _with_output(report: Report, repository: Repository, root: Path) -> Report:
    """Findings on the output come after findings on the policies, and not beside an error."""
    if not report.is_valid or not os.path.lexists(root / OUT):
        return report
    from gpuplan.compiler.pipeline.output import judge_output

    return replace(report, diagnostics=(*report.diagnostics, *judge_output(repository, root, OUT)))


def _keep_apart(repository: Repository, out: str) -> None:
    """Refuse to write where policies are read from: the next run would take the output for policies."""
    for cluster in repository.clusters:
        target = normpath(f"{out}/{cluster}")
        for folder in repository.folders:
            if f"{target}/".startswith(f"{folder}/"):
                raise GpuplanError(
                    f"`{target}/` would be written into `{folder}/`, from where policies are read",
                    "name a folder that holds nothing else, such as `--out out`",
                )


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule of every stage and every feature, by code."""
    from gpuplan.compiler import checks, documents, manifests, outtree, planning, policy
    from gpuplan.compiler.checks.generated import GENERATED_CHECKS, PATCH_CHECKS
    from gpuplan.compiler.pipeline.rules import RULES

    found = (
        *(*documents.RULES, *policy.RULES, *planning.RULES, *RULES, *manifests.RULES, *outtree.RULES),
        *(check.rule for check in checks.CHECKS),
        *(check.rule for check in (*GENERATED_CHECKS, *PATCH_CHECKS)),
        *judges.feature_rules(),
    )
    once = {id(rule): rule for rule in found}  # one rule may be found by reading and in the result
    return tuple(sorted(once.values(), key=lambda rule: rule.code))


def judge_plan(plan: Plan) -> tuple[Diagnostic, ...]:
    """All that reading one cluster's plan can find, and the files that are written by hand for it."""
    from gpuplan.compiler import checks

    return (*checks.run(plan), *(item for judge in judges.plan_judges() for item in judge(plan)))


def _check(repository: Repository) -> list[Diagnostic]:
    from gpuplan.compiler.pipeline.between_clusters import check_together

    found = [*repository.diagnostics]
    for plan in repository.plans:
        judged = (*_unknown_kubernetes(plan), *judge_plan(plan))
        found += (*judged, *_judge_work(plan, judged))
    found += check_together(repository.plans)
    if any(plan.retained for plan in repository.plans) and not has_errors(found):
        found += (
            item
            for judge in judges.sound_plan_judges()
            for plan in repository.plans
            if plan.retained
            for item in judge(plan)
        )
    return found


def _judge_results(
    rendered: Rendered, found: Sequence[Diagnostic], root: Path, out: str, crds: Path | None, program: str
) -> Judged:
    every = [judge(rendered, found, root=root, out=out, crds=crds, program=program) for judge in judges.result_judges()]
    diagnostics = [item for judged in every for item in judged.diagnostics]
    return Judged(diagnostics, all(judged.is_complete for judged in every))


def _judge_work(plan: Plan, found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    if plan.workloads:
        from gpuplan.compiler.pipeline.generated import judge_asked

        yield from judge_asked(plan, found)


def _report(
    repository: Repository, found: Iterable[Diagnostic], *, is_final: bool = False, is_step: bool = False
) -> Report:
    """``is_final`` says that the results of hand-written Components were judged, too: their comments are for those.

    ``is_step`` says that a step was judged, so that comments on steps should be needed.
    """
    ignores = (*repository.ignores, *repository.hand_ignores)
    needed = (ignores if is_final else repository.ignores) if repository.is_whole else ()
    diagnostics = tidy(found, ignores, needed=needed, is_judged=lambda code: is_step or not _is_about_step(code))
    return Report(diagnostics, repository.plans, repository.clusters, repository.file_count)


def _is_about_step(code: str) -> bool:
    return any(rule.code == code and rule.family is Family.STEP for rule in rules())


def _unknown_kubernetes(plan: Plan) -> Iterator[Diagnostic]:
    from gpuplan.compiler.manifests import has_schemas, kubernetes_versions
    from gpuplan.compiler.pipeline.rules import UNKNOWN_KUBERNETES

    version = plan.cluster.spec.kubernetes
    if not has_schemas(version):
        oldest, newest = kubernetes_versions()
        finding = Finding(
            plan.cluster.at / "kubernetes",
            f"there are no schemas for Kubernetes {version}",
            label=f"{oldest} to {newest} are known",
            help=f'write one from "{oldest}" to "{newest}"',
        )
        yield Diagnostic(UNKNOWN_KUBERNETES, finding, (plan.cluster.name,))
