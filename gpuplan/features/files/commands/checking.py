"""The work of `gpuplan check`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuplan.features.files.checking import check_files
from gpuplan.terminal.formats import is_acceptable, write_findings
from gpuplan.terminal.lists import contents
from gpuplan.terminal.options import Output
from gpuplan.terminal.session import Terminal


def check(
    terminal: Terminal,
    files: Sequence[str],
    gpus: Sequence[str],
    kubernetes: str,
    operator: str,
    crds: Path | None,
    outputs: Sequence[Output],
    *,
    warnings_as_errors: bool,
) -> int:
    read = dict(contents(files))
    report = check_files(read, gpus=gpus, kubernetes=kubernetes, operator=operator, crds=crds)
    write_findings(terminal.naming(read), report, outputs)
    return 0 if is_acceptable(report, warnings_as_errors=warnings_as_errors) else 1
