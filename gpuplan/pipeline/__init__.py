"""The order of the stages: read, merge, parse, resolve, check, render. It returns values and prints nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from posixpath import normpath

from gpuplan.diagnostics import Diagnostic, Finding, GpuplanError, Rule, has_errors
from gpuplan.pipeline.findings import tidy
from gpuplan.pipeline.loading import Repository, load
from gpuplan.pipeline.printing import print_stream
from gpuplan.planning.plan import Plan

__all__ = ["Build", "Report", "build", "print_stream", "rules", "validate"]


@dataclass(frozen=True, slots=True)
class Report:
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


@dataclass(frozen=True, slots=True)
class Build:
    """A report and, unless it has errors, every file below `out/`.

    ``objects`` are the paths of Kubernetes objects; ``unchecked_kinds`` are the custom resources that no CRD was given
    for. ``scope`` are the folders that ``tree`` speaks for, empty where it is all of the output.
    """

    report: Report
    tree: Mapping[str, bytes]
    objects: tuple[str, ...] = ()
    unchecked_kinds: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()


def validate(root: Path, clusters: Sequence[str] = ()) -> Report:
    """Judge the clusters named, or all: everything that one run can find."""
    return _report(load(root, clusters))


def build(root: Path, clusters: Sequence[str] = (), *, out: str = "out", crds: Path | None = None) -> Build:
    """Judge the clusters named, or all, and render them; nothing is rendered beside an error.

    ``out`` is the output folder relative to the root, from which paths to hand-written Components are counted;
    ``crds`` is a folder of CustomResourceDefinitions to check custom resources against.
    """
    from gpuplan.pipeline.rendering import render, scope

    repository = load(root, clusters)
    _keep_apart(repository, out)
    report = _report(repository)
    if not report.is_valid:
        return Build(report, {})
    rendered = render(report.plans, root.resolve(), out, crds, is_whole=not clusters)
    if rendered.diagnostics:
        found = tidy((*report.diagnostics, *rendered.diagnostics), ())
        report = Report(found, report.plans, report.clusters, report.file_count)
    tree = rendered.tree if report.is_valid else {}
    unchecked = tuple(sorted(rendered.unchecked_kinds))
    return Build(report, tree, tuple(rendered.objects), unchecked, scope(clusters))


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
    """Every rule of every stage, by code."""
    from gpuplan import checks, documents, manifests, outtree, planning, policy
    from gpuplan.pipeline.rules import RULES

    found: Iterable[Rule] = (
        *documents.RULES,
        *policy.RULES,
        *planning.RULES,
        *RULES,
        *(check.rule for check in checks.CHECKS),
        *manifests.RULES,
        *outtree.RULES,
    )
    return tuple(sorted(found, key=lambda rule: rule.code))


def _report(repository: Repository) -> Report:
    from gpuplan import checks

    found = [*repository.diagnostics]
    for plan in repository.plans:
        found += (*_unknown_kubernetes(plan), *checks.run(plan))
    ignores = repository.ignores if repository.is_whole else None
    diagnostics = tidy(found, repository.ignores, report_unused=ignores is not None)
    return Report(diagnostics, repository.plans, repository.clusters, repository.file_count)


def _unknown_kubernetes(plan: Plan) -> Iterator[Diagnostic]:
    from gpuplan.manifests import has_schemas, kubernetes_versions
    from gpuplan.pipeline.rules import UNKNOWN_KUBERNETES

    if not has_schemas(plan.cluster.kubernetes):
        oldest, newest = kubernetes_versions()
        at, message = plan.cluster.at / "kubernetes", f"there are no schemas for Kubernetes {plan.cluster.kubernetes}"
        help_ = f'write one from "{oldest}" to "{newest}"'
        finding = Finding(at, message, label=f"{oldest} to {newest} are known", help=help_)
        yield Diagnostic(UNKNOWN_KUBERNETES, finding, (plan.cluster.name,))
