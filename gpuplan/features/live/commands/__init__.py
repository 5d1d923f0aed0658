"""Commands about what runs in a cluster, with their options and their help; the modules beside do their work."""

from __future__ import annotations

import click

from gpuplan.terminal import options
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
    help="The cluster of the dump [default: the only cluster, or the name in gpuplan's own objects of the dump].",
)
@options.kustomize_option
@options.outputs_option(
    FORMATS,
    f"The format: {', '.join(FORMATS)} (`gpuplan schema drift`). With =FILE it goes to a file, and the "
    "terminal still shows the default format",
)
@options.strictness_option
def drift() -> None:
    """List where the cluster differs from the policies.

    DUMP is the output of `kubectl get -o yaml`: a file, a folder, or - for stdin. gpuplan connects to no cluster. It
    compares each field that it writes, by the rules of server-side apply. A difference shows the line of the policy,
    the effect of the next sync, and who changed the field, if the dump was made with `--show-managed-fields`. If the
    dump has a list of a kind, objects that are not in the list count as missing. Fields and objects of others are
    ignored, unless they act against the policies: fields that stop one of gpuplan's objects differ, and objects are
    findings (GPU816). A finding is an error if the object stops work or takes away what policies give.

    \b
    Exit codes: 0  nothing differs, and nothing of others stops work or takes something away
                1  something differs, or stops work or takes something away
                2  trouble; the policies cannot be planned, or the dump shows another cluster, or nothing of this one

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
    help="The cluster's name [default: the name in gpuplan's own objects of the dump].",
)
@option("--commands", is_flag=True, section="Mode", help="Print the commands of kubectl that collect a dump, and end.")
@option("--dry-run", is_flag=True, section="Mode", help="Print the policies, and write nothing.")
@option(
    "--merge",
    is_flag=True,
    section="Mode",
    help="Add missing policies of the cluster; existing policies do not change.",
)
@options.findings_option
def import_() -> None:
    """Write policies from what a cluster runs.

    DUMP is the output of `kubectl get -o yaml`, or files from Git: a file, a folder, or - for stdin. It has nodes, the
    objects and files of the GPU Operator, quotas, queues, members and work. gpuplan connects to no cluster, and ignores
    Secrets. If a policy cannot express a value, gpuplan reports the value at its line, and writes a comment into the
    policy. JSON has the effects of the first sync as well (`gpuplan schema import`).

    \b
    Exit codes: 0  no finding is an error, and nothing refuses a part of the first sync
                1  a finding is an error, or the API server refuses a part of the first sync
                2  trouble; nothing was written

    \b
      gpuplan import --commands                 # what to collect
      gpuplan import dump/ -c prod --dry-run
      gpuplan import dump/ -c prod
      helm get values -n gpu-operator gpu-operator | gpuplan import dump/ - -c prod
    """
