"""Commands about what runs in a cluster, with their options and their help; the modules beside do their work."""

from __future__ import annotations

import click

from gpuplan.terminal.options import findings_option, kustomize_option, outputs_option, strictness_option
from gpuplan.terminal.verbs import option, verb

FORMATS = ("table", "markdown", "json")


@verb("drifting")
@click.argument("dumps", nargs=-1, required=True, metavar="DUMP...")
@option(
    "-c",
    "--cluster",
    default="",
    metavar="NAME",
    section="Selection",
    help="The cluster that the dump is of [default: the only one, or as gpuplan's own objects in the dump say].",
)
@kustomize_option
@outputs_option(
    FORMATS,
    f"How it is written: {', '.join(FORMATS)} (`gpuplan schema drift`). With =FILE it goes to a file, and the terminal"
    " keeps its own",
)
@strictness_option
def drift() -> None:
    """Show what runs otherwise than the policies say.

    DUMP is what `kubectl get -o yaml` printed; folders are read whole, and - is stdin. gpuplan never talks to a
    cluster. Each field that gpuplan writes is compared, as server-side apply would: with who changed it (where the dump
    was made with `--show-managed-fields`), the line of the policy that it comes from, and what the next sync does about
    it. A kind of which the dump has a list is there as a whole; of other kinds nothing is missing. Objects of others
    are theirs; those that act against the policies are findings (GPU816).

    \b
    Exit codes: 0  nothing differs
                1  something differs
                2  trouble; the policies cannot be planned, or the dump shows nothing of the cluster

    \b
      kubectl get nodes,resourcequotas,rolebindings -A -o yaml --show-managed-fields > live.yaml
      gpuplan drift live.yaml -c prod
      gpuplan import --commands                 # all that there is to collect
    """


@verb("importing")
@click.argument("dumps", nargs=-1, metavar="DUMP...")
@option(
    "-c",
    "--cluster",
    default="",
    metavar="NAME",
    section="Input",
    help="The cluster's name [default: as gpuplan's own objects in the dump say].",
)
@option("--commands", is_flag=True, section="Mode", help="Print the commands of kubectl that collect a dump, and end.")
@option("--dry-run", is_flag=True, section="Mode", help="Print the policies, and write nothing.")
@option(
    "--merge",
    is_flag=True,
    section="Mode",
    help="Add what the cluster's policies lack; none that are there are changed.",
)
@findings_option
def import_() -> None:
    """Make policies of a cluster that runs.

    DUMP is what `kubectl get -o yaml` printed, or files from Git: nodes, the objects and files of the GPU Operator,
    quotas, queues, members and work; folders are read whole, and - is stdin. gpuplan never talks to a cluster, and
    drops Secrets as it reads. What no policy can say is a finding at its place, and a comment in the policy beside.

    \b
      gpuplan import --commands                 # what to collect
      gpuplan import dump/ -c prod --dry-run
      gpuplan import dump/ -c prod
      helm get values -n gpu-operator gpu-operator | gpuplan import dump/ - -c prod
    """
