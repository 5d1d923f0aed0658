"""The work of `gpuplan diff`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import click

from gpuplan.compiler.base.diagnostics import has_errors
from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.documents.listed import find_objects
from gpuplan.compiler.planning.node_list import LIST_NODES
from gpuplan.features.changes.commands import FORMATS
from gpuplan.features.changes.comparing import Platform, compare
from gpuplan.features.changes.pods import LIST_PODS, PODS, pods_in
from gpuplan.features.changes.views.diff import seen_from, shown_diff, side_name
from gpuplan.terminal.formats import write_outputs
from gpuplan.terminal.full import full, verdict
from gpuplan.terminal.lists import in_one, nodes_of, read_texts
from gpuplan.terminal.options import Output
from gpuplan.terminal.session import Terminal


def diff(
    terminal: Terminal,
    span: str,
    against: str,
    clusters: Sequence[str],
    pods: Sequence[str],
    nodes: Sequence[str],
    outputs: Sequence[Output],
    fail_on: str | None,
) -> int:
    if span and against:
        raise click.UsageError(f"{span!r} names both sides: leave --against out.")
    of_pods = read_texts(pods, LIST_PODS)  # nodes may be in the same files
    listed_nodes = nodes_of(read_texts(nodes, LIST_NODES, of_pods))
    listed_pods = pods_in(find_objects(in_one(of_pods), PODS)) if pods else None
    changes = compare(terminal.root, clusters, span=span, against=against, pods=listed_pods, nodes=listed_nodes)
    write_outputs(terminal.root, outputs, FORMATS[0], terminal.out_theme, terminal.print, partial(shown_diff, changes))
    for platform in (changes.earlier, changes.later):
        _write_errors(terminal, platform)
    if not changes.is_comparable:
        return 2
    least = ChangeClass(fail_on) if fail_on else ChangeClass.METADATA
    is_too_much = changes.worst.rank >= least.rank
    # What a commit applies is its `out/`: one that its policies do not make may change anything.
    is_unknown = bool(fail_on and changes.later.side.revision and changes.later.staleness)
    return 1 if is_too_much or is_unknown or changes.later.errors or has_errors(changes.findings) else 0


def _write_errors(terminal: Terminal, platform: Platform) -> None:
    if platform.report is None or not platform.errors:
        return
    theme = seen_from(platform.side, terminal.err_theme)
    report = replace(platform.report, diagnostics=platform.errors)
    terminal.insist(f"\nerrors in {side_name(platform.side)}:\n\n{full(report, theme)}")
    terminal.say(verdict(report, theme))
