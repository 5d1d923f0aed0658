"""`gpuplan import`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from gpuplan.terminal.files import contents
from gpuplan.terminal.options import Output, findings_option, write_findings
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import option, verb


@verb("import")
@click.argument("dumps", nargs=-1, metavar="DUMP...")
@option(
    "-c",
    "--cluster",
    default="",
    metavar="NAME",
    section="Input",
    help="What the cluster is called [default: as gpuplan's own objects in the dump say].",
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
def command(
    terminal: Terminal,
    dumps: tuple[str, ...],
    cluster: str,
    outputs: tuple[Output, ...],
    *,
    commands: bool,
    dry_run: bool,
    merge: bool,
) -> int:
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
    from gpuplan.features.live.views import importing as view

    if commands:
        terminal.print(view.commands())
        return 0
    if not dumps:
        raise click.UsageError("Missing argument 'DUMP...': `gpuplan import --commands` says how to make one.")
    from gpuplan.features.live.importing import adopt, write_import

    imported = adopt(dict(contents(dumps)), terminal.root, cluster, merges=merge)
    if dry_run:
        terminal.print(view.files(imported))
    elif imported.files:
        write_import(imported, terminal.root, _beside(terminal.root))
    if imported.report.diagnostics or outputs:
        write_findings(terminal, imported.report, outputs, to_stderr=dry_run)
    terminal.say(view.summary(imported, dry=dry_run))
    return 0 if imported.report.is_valid else 1


def _beside(root: Path) -> dict[str, str]:
    """Return the files for Git and editors that a new platform lacks; none if there are policies."""
    if any(os.path.lexists(root / name) for name in ("policies", "overlays")):
        return {}
    from gpuplan.terminal.schemas import beside_policies

    return {path: text for path, text in beside_policies().items() if not os.path.lexists(root / path)}
