"""The work of `gpuplan validate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from gpuplan.compiler import pipeline
from gpuplan.compiler.base.diagnostics import GpuplanError
from gpuplan.terminal.formats import is_acceptable, write_findings
from gpuplan.terminal.options import Output
from gpuplan.terminal.session import Terminal
from gpuplan.terminal.verbs import late

_check = late("gpuplan.features.files.commands.checking:check")
_command_for = late("gpuplan.compiler.policy.fields:command_for")
_contents = late("gpuplan.terminal.lists:contents")
_read_node_list = late("gpuplan.terminal.lists:read_node_list")

_PLATFORM: Final = "a platform, and FILE has none: type `gpuplan validate FILE` or `gpuplan validate -c NAME`"
_command_for = late("gpuplan.compiler.policy.fields:command_for")
_FILES: Final = "files without a platform: type `gpuplan validate FILE`"


def validate(
    terminal: Terminal,
    files: Sequence[str],
    clusters: Sequence[str],
    against: str,
    nodes: Sequence[str],
    outputs: Sequence[Output],
    crds: Path | None,
    kustomize: str,
    gpus: Sequence[str],
    kubernetes: str,
    operator: str,
    *,
    warnings_as_errors: bool,
    exit_zero: bool,
) -> int:
    of_platform = {"--cluster": clusters, "--against": against, "--nodes": nodes}
    of_files = {"--gpu": gpus, "--kubernetes": kubernetes, "--operator": operator}
    if misplaced := [name for name, value in (of_platform if files else of_files).items() if value]:
        own = " A platform's version is `kubernetes` of each Cluster." if "--kubernetes" in misplaced else ""
        raise click.UsageError(f"{misplaced[0]} is for {_PLATFORM if files else _FILES}.{own}")
    if files:
        _refuse_policies(files)
        code = _check(terminal, files, gpus, kubernetes, operator, crds, outputs, warnings_as_errors=warnings_as_errors)
        return 0 if exit_zero else int(code)
    if nodes and not against:
        raise click.UsageError("--nodes is what a step is judged by: add --against.")
    listed = _read_node_list(nodes) if nodes else None
    report = pipeline.validate(terminal.root, clusters, crds=crds, kustomize=kustomize, against=against, nodes=listed)
    write_findings(terminal, report, outputs)
    return 0 if exit_zero or is_acceptable(report, warnings_as_errors=warnings_as_errors) else 1


def _refuse_policies(files: Sequence[str]) -> None:
    """Raise `GpuplanError` if a file, or a file of a folder, holds policies; stdin is read only once."""
    for name, content in _contents([file for file in files if file != "-"]):
        if b"apiVersion: gpuplan.dev/" in content:
            message = f"`{name}` is a policy, and gpuplan checks policies with their platform"
            kinds = (
                line.removeprefix(b"kind:").strip().decode()
                for line in content.splitlines()
                if line.startswith(b"kind:")
            )
            if command := next(filter(None, map(_command_for, kinds)), None):
                raise GpuplanError(message, f"type `gpuplan {command} {name}`")
            raise GpuplanError(message, "type `gpuplan validate` where overlays/ is, or `gpuplan -C DIR validate`")
