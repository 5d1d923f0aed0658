"""Tell for each value that is written where it comes from, and for each line of a policy what depends on it."""

from __future__ import annotations

from gpuplan.pipeline.tracing.asking import trace
from gpuplan.pipeline.tracing.engine import Leaf, Traced, trace_artifact, trace_plan
from gpuplan.pipeline.tracing.model import Elsewhere, Source, TracedPlace, TracedValue, Tracing, Unwritten, Use

__all__ = [
    "Elsewhere",
    "Leaf",
    "Source",
    "Traced",
    "TracedPlace",
    "TracedValue",
    "Tracing",
    "Unwritten",
    "Use",
    "trace",
    "trace_artifact",
    "trace_plan",
]
