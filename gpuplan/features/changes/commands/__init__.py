"""Commands about changes, with their options and their help; the modules beside do their work."""

from __future__ import annotations

import click

from gpuplan.compiler.base.disturbance import ChangeClass
from gpuplan.compiler.base.patterns import regex
from gpuplan.terminal.options import against_option, cluster_option, nodes_option, outputs_option, pool_names
from gpuplan.terminal.verbs import completing, format_option, option, verb

FORMATS = ("table", "name", "markdown", "json", "yaml")
CLASSES = tuple(change.value for change in ChangeClass if change is not ChangeClass.NONE)
_SHARE = regex(r"[1-9][0-9]{0,5}|(100|[1-9]?[0-9])%")


def _check_share(_: click.Context, parameter: click.Parameter, share: str) -> str:
    if share and not _SHARE.fullmatch(share):
        raise click.BadParameter("use a number of nodes, or a part of them such as 25%.", param=parameter)
    return share


@verb("diffing")
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
def diff() -> None:
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


@verb("retaining")
@cluster_option
@against_option("The state of the cluster: a Git revision, or a folder with a platform", "HEAD")
@nodes_option
@option("--write", is_flag=True, section="Mode", help="Write the documents to `overlays/<cluster>/retained/`.")
@option(
    "--prune",
    is_flag=True,
    section="Mode",
    help="Delete documents that nothing at REV names, no node needs and nobody edited; without --write, say which, and"
    " what to look at in the cluster first.",
)
@option(
    "--without-evidence",
    is_flag=True,
    section="Mode",
    help="Let --prune --write delete what nodes may still name, as far as --nodes would show it, and queues.",
)
def retain() -> None:
    """Write what must outlive a change of the policies.

    Nodes go on naming a MIG layout, or a configuration of the device plugin, until a person lets the change reach them,
    and Kueue holds on to queues in use. What the working tree does not define any more is kept as documents of the kind
    Retained, each saying until when. Ends with 1 when documents are missing and --write is not given.

    Policies do not say what nodes still name. So --prune --write wants --nodes, and deletes what none of them needs.
    Queues of Kueue go where the same files list them and show that nothing uses them; else they stay, with what to look
    at. With --without-evidence all go.

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
    help="A MIG layout, exclusive, time-slicing=N or mps=N [default: that of the rollout under way].",
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
@option("--batch", type=click.IntRange(min=1), metavar="N", section="Input", help="How many nodes go together at most.")
@option(
    "--max-unavailable",
    default="",
    metavar="N|P%",
    callback=_check_share,
    section="Input",
    help="How many nodes may be away at once, in place of the pool's own `disruption.maxUnavailable`.",
)
@cluster_option
@option("--write", is_flag=True, section="Mode", help="Write the next step into the overlay; the one after it later.")
@format_option("table", "markdown", "json", help="For people, for a merge request, or for programs")
def rollout() -> None:
    """Plan how a pool gets another sharing, node by node.

    Each step is a small commit: which nodes, what to do before, the overlay to write, what to wait for. While its nodes
    are away, the others have what tenants are guaranteed. Where no order keeps that, none is shown, and the reason is.

    --write ends with 0 when a step was written, or when nothing is left to do. Otherwise nothing was written: 1 where
    no order is safe, the policies have errors, the step before is not committed yet, or nodes of --nodes still name
    what the step would drop; 2 where a file of your own has to be changed by hand.

    \b
      kubectl get nodes -o json | gpuplan rollout a100-shared --cluster prod --to seven-small --nodes -
      gpuplan rollout a100-shared --cluster prod --write --nodes nodes.txt   the next step
      gpuplan rollout a100-shared --cluster prod --back --nodes nodes.txt    from the middle, back again
    """
