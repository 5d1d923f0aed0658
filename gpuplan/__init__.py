"""gpuplan: GPU sharing for Kubernetes, described in Git, proven, and compiled into kustomize overlays.

From Python, `validate`, `build` and `trace` do what the commands of these names do, but print and write nothing;
`check_files` is `check`, and `adopt` makes policies of dumps as `import` does, for `write_import` to write;
`pack` computes how GPUs are best cut for a demand, for `write_packing` to write;
`drift` compares dumps with what the policies build.
`read_nodes` reads what `kubectl get nodes -o json` prints, for `validate` to judge a step by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuplan.compiler.base.faces import face
from gpuplan.compiler.base.version import __version__

if TYPE_CHECKING:
    from gpuplan.compiler.base.diagnostics import Diagnostic, GpuplanError, Severity
    from gpuplan.compiler.pipeline import Build, Report, build, validate
    from gpuplan.compiler.planning.node_list import Node, read_nodes
    from gpuplan.compiler.planning.plan import Plan
    from gpuplan.features.files import check_files
    from gpuplan.features.live import Drifting, Import, adopt, drift, write_import
    from gpuplan.features.packing import Packing, pack, write_packing
    from gpuplan.features.tracing import Tracing, trace

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

__getattr__ = face(
    __name__,
    {
        "compiler.base.diagnostics": ("Diagnostic", "GpuplanError", "Severity"),
        "compiler.pipeline": ("Build", "Report", "build", "validate"),
        "compiler.planning.node_list": ("Node", "read_nodes"),
        "compiler.planning.plan": ("Plan",),
        "features.files": ("check_files",),
        "features.live": ("Drifting", "Import", "adopt", "drift", "write_import"),
        "features.packing": ("Packing", "pack", "write_packing"),
        "features.tracing": ("Tracing", "trace"),
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)
