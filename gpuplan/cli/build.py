"""`gpuplan build`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuplan.cli.commands import option, verb
from gpuplan.cli.options import (
    Output,
    cluster_option,
    findings_option,
    is_acceptable,
    kustomize_option,
    stage_option,
    strictness_option,
    write_findings,
)
from gpuplan.cli.terminal import Terminal, way_to
from gpuplan.values import Value

if TYPE_CHECKING:
    from gpuplan.diagnostics import Diagnostic
    from gpuplan.outtree import ChangeSet
    from gpuplan.pipeline import Build, Report


class _Wishes(Value):
    """The options of one build; ``out`` is relative to the repository's root."""

    clusters: tuple[str, ...]
    stages: tuple[str, ...]
    outputs: tuple[Output, ...]
    out: str
    kustomize: str
    check: bool
    diff: bool
    stdout: bool
    force: bool
    prune_clusters: bool


@verb("build")
@cluster_option
@stage_option
@option("--check", is_flag=True, section="Mode", help="Write nothing; end with 1 when `out/` is stale, and say where.")
@option("--diff", is_flag=True, section="Mode", help="Write nothing; print what would change, end with 1 if anything.")
@option("--stdout", is_flag=True, section="Mode", help="Write nothing; print the objects of one cluster.")
@option("--force", is_flag=True, section="Mode", help="Overwrite files that were edited by hand, or are not gpuplan's.")
@option(
    "--prune-clusters",
    is_flag=True,
    section="Mode",
    help="Delete what was written for clusters that are gone, or most of the files of one; a terminal is asked.",
)
@option(
    "--crds",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="GPUPLAN_CRDS",
    show_envvar=True,
    metavar="DIR",
    section="Input",
    help="Check custom resources against the CustomResourceDefinitions in this folder.",
)
@kustomize_option
@option(
    "--out", default="out", metavar="DIR", section="Output", help="The folder to write, from the root [default: out]."
)
@findings_option
@strictness_option
def command(
    terminal: Terminal,
    /,
    crds: Path | None,
    out: str,
    kustomize: str,
    *,
    warnings_as_errors: bool,
    **options: Any,  # noqa: ANN401 - click passes what the options above say
) -> int:
    """Compile the policies into kustomize folders below out/.

    Nothing is written when the policies have errors. Files that gpuplan did not write are left alone, and no cluster's
    files are all deleted unasked.

    \b
      gpuplan build
      gpuplan build --check    # in CI: is out/ committed with the policies?
      gpuplan build --cluster dev --stdout | kubectl diff -f -
    """
    from gpuplan import pipeline

    wishes = _Wishes(out=_from_root(terminal.root, out), kustomize=kustomize, **options)
    _refuse_contradictions(wishes)
    build = pipeline.build(terminal.root, wishes.clusters, out=wishes.out, crds=crds, kustomize=kustomize)
    if not is_acceptable(build.report, warnings_as_errors=warnings_as_errors):
        _write_findings(terminal, build.report, wishes)
        terminal.say("nothing was written\n")
        return 1
    act = _print_objects if wishes.stdout else _compare if wishes.check or wishes.diff else _write
    return act(terminal, build, wishes)


def _from_root(root: Path, out: str) -> str:
    """The way from the root to the output, as the file system sees both: kustomize follows links, too."""
    if not out:
        raise click.UsageError("--out names no folder.")
    return os.path.relpath(os.path.realpath(root / out), os.path.realpath(root))


def _refuse_contradictions(wishes: _Wishes) -> None:
    reading = [name for name in ("check", "diff", "stdout") if getattr(wishes, name)]
    if wishes.stdout and len(reading) > 1:
        raise click.UsageError(f"--{reading[0]} and --stdout exclude each other.")
    if wishes.stages and not wishes.stdout:
        raise click.UsageError("--stage chooses what --stdout prints.")
    for name in ("force", "prune_clusters"):
        if getattr(wishes, name) and reading:
            raise click.UsageError(f"--{name.replace('_', '-')} means to write, --{reading[0]} not to.")


def _print_objects(terminal: Terminal, build: Build, wishes: _Wishes) -> int:
    """Print one cluster's objects, and never nothing as if that were all."""
    from gpuplan import pipeline
    from gpuplan.wording import listing

    names = build.report.clusters
    if len(names) != 1:
        raise click.UsageError(f"--stdout prints one cluster: choose with --cluster among {', '.join(names)}.")
    stream = pipeline.print_stream(build, wishes.stages, root=terminal.root, out=wishes.out, kustomize=wishes.kustomize)
    _write_findings(terminal, build.report, wishes)
    if not stream:
        where = f" in {listing(wishes.stages)}" if wishes.stages else ""
        terminal.insist(f"cluster `{names[0]}` has no objects to print{where}\n")
        return 1
    terminal.print(stream)
    return 0


def _compare(terminal: Terminal, build: Build, wishes: _Wishes) -> int:
    """Say how the disk differs from the build; the exit code says whether it does."""
    from gpuplan import outtree

    changes = _changes(terminal, build, wishes)
    found = outtree.findings(changes, out=wishes.out, check=True) if wishes.check else ()
    lost = _losses(changes, build, wishes) if wishes.check else ()
    _write_findings(terminal, _with(build.report, (*lost, *found)), wishes)
    if wishes.diff:
        from gpuplan.views.changes import colored_diff

        terminal.print(colored_diff(outtree.diff(changes, out=wishes.out), terminal.out_theme))
    if wishes.check and changes.is_current:
        terminal.say(_summary(terminal, changes, build, wishes))
    is_same = changes.is_current if wishes.check else not changes.changes
    return 0 if is_same else 1


def _write(terminal: Terminal, build: Build, wishes: _Wishes) -> int:
    """Bring the disk to the build, unless that would undo what somebody else did, or delete more than is meant."""
    from gpuplan import outtree
    from gpuplan.diagnostics import has_errors

    folder = terminal.root / wishes.out
    with outtree.Lock(folder):
        changes = _changes(terminal, build, wishes)
        found = () if wishes.force else tuple(outtree.findings(changes, out=wishes.out))
        lost = () if wishes.prune_clusters else _losses(changes, build, wishes)
        if lost and not has_errors(found) and _is_meant(lost):
            lost = ()
        if is_refused := bool(lost) or has_errors(found):
            found = (*lost, *found)
        else:
            outtree.apply(folder, changes, force=wishes.force)
    _write_findings(terminal, _with(build.report, found), wishes)
    if is_refused:
        terminal.say("nothing was written\n")
        return 1
    if terminal.verbose:
        from gpuplan.views.changes import every_change

        terminal.say(every_change(changes, wishes.out))
    if not terminal.quiet:
        terminal.say(_summary(terminal, changes, build, wishes))
        terminal.say(_not_in_git(terminal, changes, wishes))
    return 0


def _losses(changes: ChangeSet, build: Build, wishes: _Wishes) -> tuple[Diagnostic, ...]:
    from gpuplan.pipeline.output import judge_pruning

    return tuple(judge_pruning(changes, build.report.clusters, out=wishes.out))


def _is_meant(lost: Iterable[Diagnostic]) -> bool:
    """Ask whoever sits at the terminal; nobody is asked in CI."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        return False
    for diagnostic in lost:
        for line in (diagnostic.finding.message, *diagnostic.finding.notes):
            click.echo(line, err=True)
    return click.confirm("delete them?", err=True)


def _not_in_git(terminal: Terminal, changes: ChangeSet, wishes: _Wishes) -> str:
    """What to add to the next commit, which `git commit -a` would leave out."""
    from gpuplan.outtree import IGNORE, INVENTORY
    from gpuplan.pipeline.revisions import find_unadded
    from gpuplan.views.changes import unadded

    written = (*changes.planned.files, INVENTORY, IGNORE)
    return unadded(find_unadded(terminal.root / wishes.out, written), f"{way_to(terminal.root)}{wishes.out}")


def _changes(terminal: Terminal, build: Build, wishes: _Wishes) -> ChangeSet:
    """What differs on the disk; of the clusters named only, if some are."""
    from gpuplan import outtree

    folder = terminal.root / wishes.out
    return outtree.compare(folder, build.tree, scope=build.scope or None, policies=build.policies)


def _with(report: Report, found: Iterable[Diagnostic]) -> Report:
    return replace(report, diagnostics=(*report.diagnostics, *found))


def _write_findings(terminal: Terminal, report: Report, wishes: _Wishes) -> None:
    write_findings(terminal, report, wishes.outputs, to_stderr=wishes.diff or wishes.stdout)


def _summary(terminal: Terminal, changes: ChangeSet, build: Build, wishes: _Wishes) -> str:
    from gpuplan.views.changes import summary, unchecked

    not_checked = unchecked(build.unchecked_kinds, terminal.err_theme, named=terminal.verbose > 0)
    return not_checked + summary(changes, wishes.out)
