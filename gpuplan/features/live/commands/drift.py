"""`gpuplan drift`."""

from __future__ import annotations

from functools import partial

import click

from gpuplan.terminal.files import contents
from gpuplan.terminal.options import (
    Output,
    is_acceptable,
    kustomize_option,
    outputs_option,
    strictness_option,
    write_findings,
    write_outputs,
)
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import option, verb

FORMATS = ("table", "markdown", "json")


@verb("drift")
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
def command(
    terminal: Terminal,
    dumps: tuple[str, ...],
    cluster: str,
    kustomize: str,
    outputs: tuple[Output, ...],
    *,
    warnings_as_errors: bool,
) -> int:
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
    from gpuplan.features.live.drifting import drift
    from gpuplan.features.live.views.drift import notes, shown_drift, verdict
    from gpuplan.terminal.text import printable

    found = drift(dict(contents(dumps)), terminal.root, cluster, kustomize=kustomize)
    if not found.is_comparable:
        write_findings(terminal, found.report, (), to_stderr=True)
        return 2
    write_outputs(terminal.root, outputs, FORMATS[0], terminal.out_theme, terminal.print, partial(shown_drift, found))
    if found.report.diagnostics:
        write_findings(terminal, found.report, (), to_stderr=True)
    for note in notes(found):
        terminal.say(f"{printable(note)}\n")
    terminal.say(f"{printable(verdict(found))}\n")
    return 0 if not found.drifts and is_acceptable(found.report, warnings_as_errors=warnings_as_errors) else 1
