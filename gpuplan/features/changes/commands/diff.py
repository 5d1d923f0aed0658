"""`gpuplan diff`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.terminal.lists import in_one, nodes_of, nodes_option, read_texts
from gpuplan.terminal.options import Output, against_option, cluster_option, outputs_option, write_outputs
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import option, verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuplan.compiler.planning.node_list import Node
    from gpuplan.features.changes.comparing import Platform
    from gpuplan.features.changes.pods import Pod

FORMATS = ("table", "name", "markdown", "json", "yaml")
CLASSES = tuple(item.value for item in ChangeClass if item is not ChangeClass.NONE)


@verb("diff")
@click.argument("span", metavar="[REV..REV]", default="")
@against_option(
    "Compare the files as they lie there with this revision, or with the platform or the `out/` in this folder"
    " [default: HEAD]"
)
@cluster_option
@option(
    "--pods",
    multiple=True,
    metavar="FILE",
    section="Input",
    help=(
        "The cluster's pods, from `kubectl get pods -A -o json` (or yaml): a file, a folder of them, or - for stdin, "
        "whatever else is in it; may be repeated. Those that hold what goes, or do not tolerate a new taint, are named."
    ),
)
@nodes_option
@outputs_option(
    FORMATS,
    f"How it is written: {', '.join(FORMATS)} (`gpuplan schema diff`). With =FILE it goes to a file, and the terminal"
    " keeps its own",
)
@option(
    "--fail-on",
    type=click.Choice(CLASSES),
    metavar="CLASS",
    section="Output",
    help="End with 1 only when something changes that is of this class or worse.",
)
def command(
    terminal: Terminal,
    span: str,
    against: str,
    clusters: tuple[str, ...],
    pods: tuple[str, ...],
    nodes: tuple[str, ...],
    outputs: tuple[Output, ...],
    fail_on: str | None,
) -> int:
    """Show what a change disturbs: nodes, pods, quotas, and how to undo it.

    Each change has a class, least first: none, metadata, quota, plugin-restart, admission, taint, preemption-order,
    repartition, recreate, two-step, destructive. Revisions are read from Git; the files stay as they are.

    \b
    Exit codes: 0  nothing differs, or nothing as bad as --fail-on
                1  something differs, or the later policies, or the step, have errors
                2  trouble; the earlier policies cannot be planned

    \b
      gpuplan diff                              # the files against the last commit
      gpuplan diff main...HEAD                  # a branch, from where it left main
      gpuplan diff --against ./out              # against what was built, object by object
      gpuplan diff --fail-on repartition        # in CI
      kubectl get pods,nodes -A -o json | gpuplan diff -c prod --pods - --nodes -
    """
    from gpuplan.compiler.base.diagnostics import has_errors
    from gpuplan.features.changes.comparing import compare
    from gpuplan.features.changes.views.diff import shown_diff

    if span and against:
        raise click.UsageError(f"{span!r} names both sides: leave --against out.")
    found, listed = _read_lists(pods, nodes)
    diff = compare(terminal.root, clusters, span=span, against=against, pods=found, nodes=listed)
    write_outputs(terminal.root, outputs, FORMATS[0], terminal.out_theme, terminal.print, partial(shown_diff, diff))
    for platform in (diff.earlier, diff.later):
        _write_errors(terminal, platform)
    if not diff.is_comparable:
        return 2
    least = ChangeClass(fail_on) if fail_on else ChangeClass.METADATA
    is_too_much = diff.worst.rank >= least.rank
    # What a commit applies is its `out/`: one that its policies do not make may change anything.
    is_unknown = bool(fail_on and diff.later.side.revision and diff.later.staleness)
    return 1 if is_too_much or is_unknown or diff.later.errors or has_errors(diff.findings) else 0


def _read_lists(pods: Sequence[str], nodes: Sequence[str]) -> tuple[tuple[Pod, ...] | None, tuple[Node, ...] | None]:
    """The pods and the nodes, which may be in the same files; None of what no file was named for."""
    from gpuplan.compiler.documents.listed import find_objects
    from gpuplan.compiler.planning.node_list import LIST_NODES
    from gpuplan.features.changes.pods import LIST_PODS, PODS, pods_in

    of_pods = read_texts(pods, LIST_PODS)
    listed = nodes_of(read_texts(nodes, LIST_NODES, of_pods))
    return pods_in(find_objects(in_one(of_pods), PODS)) if pods else None, listed


def _write_errors(terminal: Terminal, platform: Platform) -> None:
    if platform.report is None or not platform.errors:
        return
    from gpuplan.features.changes.views.diff import seen_from, side_name
    from gpuplan.terminal.full import full, verdict

    theme = seen_from(platform.side, terminal.err_theme)
    report = replace(platform.report, diagnostics=platform.errors)
    terminal.insist(f"\nerrors in {side_name(platform.side)}:\n\n{full(report, theme)}")
    terminal.say(verdict(report, theme))
