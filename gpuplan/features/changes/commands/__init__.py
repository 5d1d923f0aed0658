"""Commands about changes, with their options and their help; the modules beside do their work."""

from __future__ import annotations

import click

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.patterns import regex
from gpuplan.terminal.options import (
    against_option,
    cluster_option,
    nodes_option,
    outputs_option,
    pool_names,
    refuse_clusters,
)
from gpuplan.terminal.verbs import completing, format_option, option, verb

FORMATS = ("table", "name", "markdown", "json", "yaml")
CLASSES = tuple(change.value for change in ChangeClass if change is not ChangeClass.NONE)
_SHARE = regex(r"[1-9][0-9]{0,5}|(100|[1-9]?[0-9])%")


def _check_share(_: click.Context, parameter: click.Parameter, share: str) -> str:
    if share and not _SHARE.fullmatch(share):
        raise click.BadParameter("use a number of nodes, or a part of them such as 25%.", param=parameter)
    return share


@verb("diffing")
@click.argument("span", metavar="[REV..REV]", default="", callback=refuse_clusters)
@against_option(
    "Compare the working tree with this revision, or with the platform or the `out/` in this folder [default: HEAD]"
)
@cluster_option
@option(
    "--pods",
    multiple=True,
    metavar="FILE",
    section="Input",
    help=(
        "The cluster's pods, from `kubectl get pods -A -o json` (or yaml): a file, a folder of files, or - for "
        "stdin; may be repeated. gpuplan names pods that hold removed units, or that do not tolerate a new taint."
    ),
)
@nodes_option
@outputs_option(
    FORMATS,
    f"The format: {', '.join(FORMATS)} (`gpuplan schema diff`). With =FILE it goes to a file, and the "
    "terminal still shows the default format",
)
@option(
    "--fail-on",
    type=click.Choice(CLASSES),
    metavar="CLASS",
    section="Output",
    help="End with 1 only if a change is of this class or a more severe class.",
)
def diff() -> None:
    """Show what a change disturbs, and how to undo it.

    Each change has a class, from mild to severe: none, metadata, quota, plugin-restart, admission, taint,
    preemption-order, repartition, recreate, two-step, destructive. gpuplan reads revisions from Git, and does not
    change your files.

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


@verb("retaining")
@cluster_option
@against_option("The state of the cluster: a Git revision, or a folder with a platform", "HEAD")
@nodes_option
@option("--write", is_flag=True, section="Mode", help="Write the documents to `overlays/<cluster>/retained/`.")
@option(
    "--prune",
    is_flag=True,
    section="Mode",
    help="Delete documents that nothing at REV names, no node needs and nobody edited; without --write, list them, "
    "and what to check in the cluster first.",
)
@option(
    "--without-evidence",
    is_flag=True,
    section="Mode",
    help="Let --prune --write delete queues, and documents that nodes may still name, without --nodes.",
)
def retain() -> None:
    """Keep definitions that nodes or queues still use after a change.

    `gpuplan build --retain` and `gpuplan rollout` do this for you. You need this command to see what a change would
    drop, to write it without a build, and to delete old documents with --prune.

    Nodes name a MIG layout, or a configuration of the device plugin, until a person syncs the change, and Kueue keeps
    queues in use. gpuplan keeps definitions that the working tree has removed, as documents of the kind Retained. Each
    document says until when. The exit code is 1 if documents are missing and you do not use --write.

    Policies do not list the names on nodes. Therefore --prune --write needs --nodes, and deletes documents that no node
    needs. It deletes queues of Kueue only if the same files list the queues as unused; otherwise it says what to check.
    With --without-evidence it deletes all of them.

    \b
      gpuplan retain                   # what would be missing after this change?
      gpuplan retain --write
      gpuplan retain --prune           # which may go, and what to look at first?
      kubectl get nodes -o json | gpuplan retain -c prod --prune --write --nodes -
      kubectl get nodes,clusterqueues,localqueues,resourceflavors -A -o json | gpuplan retain -c prod --prune --nodes -
    """


@verb("retaining")
@click.argument("pool", shell_complete=completing(pool_names))
@option(
    "--to",
    default="",
    metavar="SHARING",
    section="Input",
    help="A MIG layout, exclusive, time-slicing=N or mps=N [default: the sharing of the current rollout].",
)
@option("--back", is_flag=True, section="Input", help="Take nodes back to the pool's own sharing.")
@option(
    "--nodes",
    multiple=True,
    metavar="FILE",
    section="Input",
    help="Nodes, from `kubectl get nodes -o json` (or yaml), or one name a line: a file, a folder of files, or - "
    "for stdin; may be repeated [default: the pool's names].",
)
@option("--batch", type=click.IntRange(min=1), metavar="N", section="Input", help="The most nodes of a step.")
@option(
    "--max-unavailable",
    default="",
    metavar="N|P%",
    callback=_check_share,
    section="Input",
    help="The most nodes that are away at once, instead of the pool's `disruption.maxUnavailable`.",
)
@cluster_option
@option(
    "--write",
    is_flag=True,
    section="Mode",
    help="Write the next step into the overlay; run it again for the step after it.",
)
@format_option("table", "markdown", "json", help="For people, for a merge request, or for programs")
def rollout() -> None:
    """Plan how a pool changes its sharing, node by node.

    Each step is a small commit: its nodes, the preparation, the overlay to write, and the wait after it. While the
    nodes of a step are away, the other nodes can serve all guarantees. If no order can do this, gpuplan shows the
    reason instead.

    --write ends with 0 if it wrote a step, or if the rollout is finished. Otherwise it writes nothing. It ends with 1
    if no order is safe, the policies have errors, the last step is not committed, or nodes of --nodes still name an
    entry that the step would remove. It ends with 2 if you have to change a file of your own by hand.

    A rollout keeps the old layout defined by itself. You need `gpuplan retain` only if you change the sharing of all
    nodes at once in the policies.

    \b
      gpuplan rollout a100-shared --cluster prod --to seven-small            all steps
      kubectl get nodes -o json | gpuplan rollout a100-shared --cluster prod --to seven-small --nodes -
      gpuplan rollout a100-shared --cluster prod --write --nodes nodes.txt   the next step
      gpuplan rollout a100-shared --cluster prod --back --nodes nodes.txt    from the middle, back again
    """
