"""Where each value that is written comes from, and for each line of a policy what depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuplan.compiler.base.faces import face

if TYPE_CHECKING:
    from gpuplan.features.tracing.asking import trace as trace
    from gpuplan.features.tracing.engine import (
        Leaf as Leaf,
        Traced as Traced,
        trace_artifact as trace_artifact,
        written_for as written_for,
    )
    from gpuplan.features.tracing.forward import Places as Places, values_of as values_of
    from gpuplan.features.tracing.lines import spelled as spelled
    from gpuplan.features.tracing.model import Source as Source, Tracing as Tracing

__getattr__ = face(
    __name__,
    {
        "asking": ("trace",),
        "engine": ("Leaf", "Traced", "trace_artifact", "written_for"),
        "forward": ("Places", "values_of"),
        "lines": ("spelled",),
        "model": ("Source", "Tracing"),
    },
)
