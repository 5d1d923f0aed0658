"""`gpuplan build`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuplan.compiler.base.values import Value
from gpuplan.terminal.options import (
    Output,
    cluster_option,
    crds_option,
    findings_option,
    is_acceptable,
    kustomize_option,
    stage_option,
    strictness_option,
    write_findings,
)
from gpuplan.terminal.session import Terminal, way_to
from gpuplan.terminal.verbs import option, verb

if TYPE_CHECKING:
    from gpuplan.compiler.base.diagnostics import Diagnostic
    from gpuplan.compiler.outtree.comparing import ChangeSet
    from gpuplan.compiler.pipeline import Build


class _Wishes(Value):
    """The options of one build; ``out`` is relative to the repository's root."""

    clusters: tuple[str, ...]
    retain: bool
    stages: tuple[str, ...]
    outputs: tuple[Output, ...]
    out: str
    crds: Path | None
    kustomize: str
    check: bool
    diff: bool
    stdout: bool
    force: bool
    prune_clusters: bool
    warnings_as_errors: bool


@verb("build")
@cluster_option
@stage_option
@option("--check", is_flag=True, section="Mode", help="Write nothing; end with 1 when `out/` is stale, and say where.")
@option("--diff", is_flag=True, section="Mode", help="Write nothing; print what would change, end with 1 if anything.")
@option("--stdout", is_flag=True, section="Mode", help="Write nothing; print the objects of one cluster.")
@option(
    "--retain",
    is_flag=True,
    section="Mode",
    help="First write what must outlive the change since HEAD, as `gpuplan retain --write` does.",
)
@option("--force", is_flag=True, section="Mode", help="Overwrite files that were edited by hand, or are not gpuplan's.")
@option(
    "--prune-clusters",
    is_flag=True,
    section="Mode",
    help="Delete what was written for clusters that are gone, or most of the files of one; a terminal is asked.",
)
@crds_option
@kustomize_option
@option(
    "--out", default="out", metavar="DIR", section="Output", help="The folder to write, from the root [default: out]."
)
@findings_option
@strictness_option
def command(terminal: Terminal, /, out: str, **options: Any) -> int:  # noqa: ANN401 - what the options above say
    """Compile the policies into kustomize folders below out/.

    Nothing is written when the policies have errors. Files that gpuplan did not write are left alone, and no cluster's
    files are all deleted unasked.

    \b
      gpuplan build
      gpuplan build --retain   # and what nodes and queues still name stays defined
      gpuplan build --check    # in CI: is out/ committed with the policies?
      gpuplan build --cluster dev --stdout | kubectl diff -f -
    """
    from gpuplan.compiler import pipeline

    wishes = _Wishes(out=_from_root(terminal.root, out), **options)
    _refuse_contradictions(wishes)
    if wishes.retain:
        from gpuplan.features.changes.commands.retain import write_missing

        write_missing(terminal, wishes.clusters)
    build = pipeline.build(terminal.root, wishes.clusters, out=wishes.out, crds=wishes.crds, kustomize=wishes.kustomize)
    run = _Run(terminal, wishes, build)
    if not is_acceptable(build.report, warnings_as_errors=wishes.warnings_as_errors):
        return run.refuse()
    return run.print_objects() if wishes.stdout else run.compare() if wishes.check or wishes.diff else run.write()


def _from_root(root: Path, out: str) -> str:
    """The way from the root to the output, as the file system sees both: kustomize follows links, too."""
    if not out:
        raise click.UsageError("--out names no folder.")
    from gpuplan.terminal.named import refuse_links

    real = os.path.realpath(root)  # a link that is named as the platform's folder leads to one of its repository
    leads = os.path.relpath(os.path.realpath(root / out), real)
    refuse_links(root, os.path.join(real, out), f"make it a folder, or name where it leads: `--out {leads}`")  # noqa: PTH118
    return leads


def _refuse_contradictions(wishes: _Wishes) -> None:
    reading = [name for name in ("check", "diff", "stdout") if getattr(wishes, name)]
    if wishes.stdout and len(reading) > 1:
        raise click.UsageError(f"--{reading[0]} and --stdout exclude each other.")
    if wishes.stages and not wishes.stdout:
        raise click.UsageError("--stage chooses what --stdout prints.")
    for name in ("force", "prune_clusters", "retain"):
        if getattr(wishes, name) and reading:
            raise click.UsageError(f"--{name.replace('_', '-')} means to write, --{reading[0]} not to.")


class _Run(Value):
    """What is done with a build; each way of it says how the command ends."""

    terminal: Terminal
    wishes: _Wishes
    build: Build

    def refuse(self, *found: Diagnostic) -> int:
        """Say what keeps the build from being written."""
        self._write_findings(*found)
        self.terminal.say("nothing was written\n")
        return 1

    def print_objects(self) -> int:
        """Print one cluster's objects, and never nothing as if that were all."""
        from gpuplan.compiler.base.wording import listing
        from gpuplan.features.components.printing import print_stream

        names, wishes, root = self.build.report.clusters, self.wishes, self.terminal.root
        if len(names) != 1:
            raise click.UsageError(f"--stdout prints one cluster: choose with --cluster among {', '.join(names)}.")
        stream = print_stream(self.build, wishes.stages, root=root, out=wishes.out, kustomize=wishes.kustomize)
        self._write_findings()
        if not stream:
            where = f" in {listing(wishes.stages)}" if wishes.stages else ""
            self.terminal.insist(f"cluster `{names[0]}` has no objects to print{where}\n")
            return 1
        self.terminal.print(stream)
        return 0

    def compare(self) -> int:
        """Say how the disk differs from the build; the exit code says whether it does."""
        from gpuplan.compiler.outtree.reporting import diff, findings

        changes, out, is_check = self._changes(), self.wishes.out, self.wishes.check
        self._write_findings(
            *(self._losses(changes) if is_check else ()),
            *(findings(changes, out=out, check=True) if is_check else ()),
        )
        if self.wishes.diff:
            from gpuplan.cli.views.changes import colored_diff

            self.terminal.print(colored_diff(diff(changes, out=out), self.terminal.out_theme))
        if is_check and changes.is_current:
            self.terminal.say(self._summary(changes))
        return 0 if (changes.is_current if is_check else not changes.changes) else 1

    def write(self) -> int:
        """Bring the disk to the build, unless that would undo what somebody else did, or delete more than is meant."""
        from gpuplan.compiler.base.diagnostics import has_errors
        from gpuplan.compiler.outtree.reporting import findings
        from gpuplan.compiler.outtree.writing import Lock, apply

        terminal, wishes, folder = self.terminal, self.wishes, self.terminal.root / self.wishes.out
        with Lock(folder):
            changes = self._changes()
            found = () if wishes.force else tuple(findings(changes, out=wishes.out))
            lost = () if wishes.prune_clusters else self._losses(changes)
            if lost and not has_errors(found) and _is_meant(lost):
                lost = ()
            if is_written := not lost and not has_errors(found):
                apply(folder, changes, force=wishes.force)
        if not is_written:
            return self.refuse(*lost, *found)
        self._write_findings(*found)
        if terminal.verbose:
            from gpuplan.cli.views.changes import every_change

            terminal.say(every_change(changes, wishes.out))
        if not terminal.quiet:
            terminal.say(self._summary(changes))
            terminal.say(self._not_in_git(changes))
        return 0

    def _changes(self) -> ChangeSet:
        """What differs on the disk; of the clusters named only, if some are."""
        from gpuplan.compiler.outtree.comparing import compare

        build, folder = self.build, self.terminal.root / self.wishes.out
        return compare(folder, build.tree, scope=build.scope or None, policies=build.policies)

    def _losses(self, changes: ChangeSet) -> tuple[Diagnostic, ...]:
        from gpuplan.compiler.pipeline.output import judge_pruning

        return tuple(judge_pruning(changes, self.build.report.clusters, out=self.wishes.out))

    def _write_findings(self, *found: Diagnostic) -> None:
        report = replace(self.build.report, diagnostics=(*self.build.report.diagnostics, *found))
        write_findings(self.terminal, report, self.wishes.outputs, to_stderr=self.wishes.diff or self.wishes.stdout)

    def _summary(self, changes: ChangeSet) -> str:
        from gpuplan.cli.views.changes import summary

        return summary(changes, self.wishes.out)

    def _not_in_git(self, changes: ChangeSet) -> str:
        """What to add to the next commit, which `git commit -a` would leave out."""
        from gpuplan.cli.views.changes import unadded
        from gpuplan.compiler.outtree.disk import IGNORE
        from gpuplan.compiler.outtree.inventory import INVENTORY
        from gpuplan.features.changes.revisions import find_unadded

        root, out = self.terminal.root, self.wishes.out
        return unadded(find_unadded(root / out, (*changes.planned.files, INVENTORY, IGNORE)), f"{way_to(root)}{out}")


def _is_meant(lost: Iterable[Diagnostic]) -> bool:
    """Ask whoever sits at the terminal; nobody is asked in CI."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        return False
    for diagnostic in lost:
        for line in (diagnostic.shown.message, *diagnostic.shown.notes):
            click.echo(line, err=True)
    return click.confirm("delete them?", err=True)
