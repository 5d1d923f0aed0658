"""`gpuplan validate`."""

from __future__ import annotations

from pathlib import Path

import click

from gpuplan.terminal.lists import nodes_option, read_node_list
from gpuplan.terminal.options import (
    Output,
    against_option,
    cluster_option,
    crds_option,
    findings_option,
    is_acceptable,
    kustomize_option,
    strictness_option,
    write_findings,
)
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import option, verb


@verb("validate")
@cluster_option
@against_option(
    "Judge the step from this revision, or from the platform in this folder, as well: what it would break on the"
    " way, though both ends are right"
)
@nodes_option
@crds_option
@kustomize_option
@findings_option
@strictness_option
@option("--exit-zero", is_flag=True, section="Output", help="End with 0 whatever is found.")
def command(
    terminal: Terminal,
    clusters: tuple[str, ...],
    against: str,
    nodes: tuple[str, ...],
    outputs: tuple[Output, ...],
    crds: Path | None,
    kustomize: str,
    *,
    warnings_as_errors: bool,
    exit_zero: bool,
) -> int:
    """Prove the policies against the hardware and the controllers.

    One run reports everything that it can find. Nothing is written and no cluster is asked.

    \b
      gpuplan validate
      gpuplan validate --against origin/main    # for a branch that is to be merged
      kubectl get nodes -o json | gpuplan validate -c prod --against HEAD~1 --nodes -
      gpuplan validate --output-format sarif=gpuplan.sarif
    """
    from gpuplan.compiler import pipeline

    if nodes and not against:
        raise click.UsageError("--nodes is what a step is judged by: add --against.")
    known = read_node_list(nodes)
    report = pipeline.validate(terminal.root, clusters, crds=crds, kustomize=kustomize, against=against, nodes=known)
    write_findings(terminal, report, outputs)
    return 0 if exit_zero or is_acceptable(report, warnings_as_errors=warnings_as_errors) else 1
