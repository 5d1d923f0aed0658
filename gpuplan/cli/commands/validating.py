"""The work of `gpuplan validate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from gpuplan.compiler import pipeline
from gpuplan.terminal.formats import is_acceptable, write_findings
from gpuplan.terminal.options import Output
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import late

_read_node_list = late("gpuplan.terminal.lists:read_node_list")


def validate(
    terminal: Terminal,
    clusters: Sequence[str],
    against: str,
    nodes: Sequence[str],
    outputs: Sequence[Output],
    crds: Path | None,
    kustomize: str,
    *,
    warnings_as_errors: bool,
    exit_zero: bool,
) -> int:
    if nodes and not against:
        raise click.UsageError("--nodes is what a step is judged by: add --against.")
    listed = _read_node_list(nodes) if nodes else None
    report = pipeline.validate(terminal.root, clusters, crds=crds, kustomize=kustomize, against=against, nodes=listed)
    write_findings(terminal, report, outputs)
    return 0 if exit_zero or is_acceptable(report, warnings_as_errors=warnings_as_errors) else 1
