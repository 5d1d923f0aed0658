"""gpuplan: GPU sharing for Kubernetes, described in Git, proven, and compiled into kustomize overlays.

From Python, `validate`, `build` and `trace` do what the commands of these names do, but print and write nothing;
`check_files` is `check`, and `adopt` makes policies of dumps as `import` does, for `write_import` to write;
`pack` computes how GPUs are best cut for a demand, for `write_packing` to write;
`drift` compares dumps with what the policies build.
`read_nodes` reads what `kubectl get nodes -o json` prints, for `validate` to judge a step by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuplan.changes.node_list import Node, read_nodes
    from gpuplan.diagnostics import Diagnostic, GpuplanError, Severity
    from gpuplan.pipeline import Build, Report, build, validate
    from gpuplan.pipeline.checking import check_files
    from gpuplan.pipeline.drifting import Drifting, drift
    from gpuplan.pipeline.importing import Import, adopt, write_import
    from gpuplan.pipeline.packing import Packing, pack, write_packing
    from gpuplan.pipeline.tracing import Tracing, trace
    from gpuplan.planning.plan import Plan

__all__ = [
    "Build",
    "Diagnostic",
    "Drifting",
    "GpuplanError",
    "Import",
    "Node",
    "Packing",
    "Plan",
    "Report",
    "Severity",
    "Tracing",
    "__version__",
    "adopt",
    "build",
    "check_files",
    "drift",
    "pack",
    "read_nodes",
    "trace",
    "validate",
    "write_import",
    "write_packing",
]

__version__ = "0.1.0"

_HOMES = {
    "gpuplan.changes.node_list": ("Node", "read_nodes"),
    "gpuplan.diagnostics": ("Diagnostic", "GpuplanError", "Severity"),
    "gpuplan.pipeline": ("Build", "Report", "build", "validate"),
    "gpuplan.pipeline.checking": ("check_files",),
    "gpuplan.pipeline.drifting": ("Drifting", "drift"),
    "gpuplan.pipeline.importing": ("Import", "adopt", "write_import"),
    "gpuplan.pipeline.packing": ("Packing", "pack", "write_packing"),
    "gpuplan.pipeline.tracing": ("Tracing", "trace"),
    "gpuplan.planning.plan": ("Plan",),
}


def __getattr__(name: str) -> object:
    """Import what is asked for when it is asked for (PEP 562): a command's start shows every module."""
    from importlib import import_module

    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
