"""The work of `gpuplan build`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from gpuplan.cli.views.changes import colored_diff, every_change, summary, unadded
from gpuplan.compiler import pipeline
from gpuplan.compiler.base.diagnostics import Diagnostic, has_errors
from gpuplan.compiler.base.values import Value
from gpuplan.compiler.base.wording import listing
from gpuplan.compiler.outtree.comparing import ChangeSet, compare
from gpuplan.compiler.outtree.disk import IGNORE, find_files
from gpuplan.compiler.outtree.inventory import INVENTORY
from gpuplan.compiler.outtree.reporting import diff, findings
from gpuplan.compiler.outtree.writing import Lock, apply
from gpuplan.compiler.pipeline import Build
from gpuplan.compiler.pipeline.loading import OUT
from gpuplan.compiler.pipeline.output import judge_others, judge_pruning
from gpuplan.terminal.formats import is_acceptable, write_findings
from gpuplan.terminal.options import Output
from gpuplan.terminal.session import Terminal, refuse_links, way_to
from gpuplan.terminal.verbs import late

_find_unadded = late("gpuplan.features.changes.revisions:find_unadded")
_sources_of = late("gpuplan.features.tracing.asking:sources_of")
_print_stream = late("gpuplan.features.components.printing:print_stream")
_write_missing = late("gpuplan.features.changes.commands.retaining:write_missing")


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


def build(terminal: Terminal, out: str, **options: Any) -> int:  # noqa: ANN401 - what the command's options say
    wishes = _Wishes(out=_from_root(terminal.root, out), **options)
    reading = [name for name in ("check", "diff", "stdout") if getattr(wishes, name)]
    if wishes.stdout and len(reading) > 1:
        raise click.UsageError(f"--{reading[0]} and --stdout exclude each other: give one of them.")
    if wishes.stages and not wishes.stdout:
        raise click.UsageError("--stage chooses what --stdout prints: add --stdout.")
    for name in ("force", "prune_clusters", "retain"):
        if getattr(wishes, name) and reading:
            raise click.UsageError(f"--{name.replace('_', '-')} means to write, --{reading[0]} not to: give one.")
    if wishes.retain:
        _write_missing(terminal, wishes.clusters)
    built = pipeline.build(terminal.root, wishes.clusters, out=wishes.out, crds=wishes.crds, kustomize=wishes.kustomize)
    run = _Run(terminal, wishes, built)
    if not is_acceptable(built.report, warnings_as_errors=wishes.warnings_as_errors):
        return run.refuse()
    return run.print_objects() if wishes.stdout else run.compare() if reading else run.write()


def _from_root(root: Path, out: str) -> str:
    """Return the way from the root to the output, as the file system sees both: kustomize follows links, too."""
    if not out:
        raise click.UsageError("--out names no folder: type `--out DIR`.")
    real = os.path.realpath(root)  # a link that is named as the platform's folder leads to one of its repository
    target = os.path.relpath(os.path.realpath(root / out), real)
    refuse_links(root, os.path.join(real, out), f"make it a folder, or name where it leads: `--out {target}`")  # noqa: PTH118
    return target


class _Run(Value):
    """A build with its wishes; each method finishes the command in one mode, and returns the exit code."""

    terminal: Terminal
    wishes: _Wishes
    build: Build

    def refuse(self, *reasons: Diagnostic) -> int:
        """Report why the build is not written."""
        self._write_findings(*reasons)
        self.terminal.say("nothing was written\n")
        return 1

    def print_objects(self) -> int:
        """Print the objects of one cluster, or say that there are none."""
        names, wishes, root = self.build.report.clusters, self.wishes, self.terminal.root
        if len(names) != 1:
            raise click.UsageError(f"--stdout prints one cluster: choose with --cluster among {', '.join(names)}.")
        stream = _print_stream(self.build, wishes.stages, root=root, out=wishes.out, kustomize=wishes.kustomize)
        self._write_findings()
        if not stream:
            where = f" in {listing(wishes.stages)}" if wishes.stages else ""
            self.terminal.insist(f"cluster `{names[0]}` has no objects to print{where}\n")
            return 1
        self.terminal.print(stream)
        return 0

    def compare(self) -> int:
        """Report how the disk differs from the build, and return 1 if it does."""
        changes, out, is_check = self._changes(), self.wishes.out, self.wishes.check
        stale = (*self._losses(changes), *self._findings(changes, check=True)) if is_check else ()
        stale += self._others(changes)
        self._write_findings(*stale)
        if self.wishes.diff:
            self.terminal.print(colored_diff(diff(changes, out=out), self.terminal.out_theme))
        if is_check and changes.is_current:
            self.terminal.say(summary(changes, out))
            self.terminal.say(self._unadded(changes))
        return 0 if (changes.is_current if is_check else not changes.changes) else 1

    def write(self) -> int:
        """Write the build, unless that would undo edits of others, or delete more than is meant."""
        terminal, wishes, folder = self.terminal, self.wishes, self.terminal.root / self.wishes.out
        with Lock(folder):
            changes = self._changes()
            conflicts = () if wishes.force else tuple(self._findings(changes))
            lost = () if wishes.prune_clusters else self._losses(changes)
            if lost and not has_errors(conflicts) and _is_meant(lost):
                lost = ()
            if is_written := not lost and not has_errors(conflicts):
                apply(folder, changes, force=wishes.force)
        if not is_written:
            return self.refuse(*lost, *conflicts)
        self._write_findings(*conflicts, *self._others(changes))
        if terminal.verbose:
            terminal.say(every_change(changes, wishes.out))
        if not terminal.quiet:
            terminal.say(summary(changes, wishes.out))
            terminal.say(self._unadded(changes))
        return 0

    def _unadded(self, changes: ChangeSet) -> str:
        """Return the files that Git does not have, in words: `git commit -a` leaves new ones out."""
        root, out = self.terminal.root, self.wishes.out
        written = (*changes.planned.files, INVENTORY, IGNORE)
        return unadded(_find_unadded(root / out, written), f"{way_to(root)}{out}")

    def _changes(self) -> ChangeSet:
        """Return the differences between the disk and the build; if clusters are named, of these only."""
        build, folder = self.build, self.terminal.root / self.wishes.out
        return compare(folder, build.tree, scope=build.scope or None, policies=build.policies)

    def _others(self, changes: ChangeSet) -> tuple[Diagnostic, ...]:
        found = find_files(self.terminal.root / self.wishes.out)
        return tuple(judge_others(found, changes.planned.files, self.wishes.out, self.wishes.clusters))

    def _findings(self, changes: ChangeSet, *, check: bool = False) -> Iterator[Diagnostic]:
        """Yield what stands in the way; only the usual output is traced."""
        out = self.wishes.out
        policies = partial(_sources_of, self.terminal.root) if out == OUT else None
        return findings(changes, out=out, check=check, policies=policies)

    def _losses(self, changes: ChangeSet) -> tuple[Diagnostic, ...]:
        return tuple(judge_pruning(changes, self.build.report.clusters, out=self.wishes.out))

    def _write_findings(self, *diagnostics: Diagnostic) -> None:
        report = replace(self.build.report, diagnostics=(*self.build.report.diagnostics, *diagnostics))
        write_findings(self.terminal, report, self.wishes.outputs, to_stderr=self.wishes.diff or self.wishes.stdout)


def _is_meant(lost: Iterable[Diagnostic]) -> bool:
    """Ask whoever sits at the terminal whether to delete; the answer is no if nobody does, as in CI."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        return False
    for diagnostic in lost:
        for line in (diagnostic.shown.message, *diagnostic.shown.notes):
            click.echo(line, err=True)
    return click.confirm("delete them?", err=True)
