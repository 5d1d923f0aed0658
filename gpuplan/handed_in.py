"""The additions of features to the compiler and to each other's lists, in the one place that joins them.

Each entry is ``module:name``, and is imported when somebody asks for it. The compiler knows these kinds of additions,
and no feature: `gpuplan.compiler.pipeline.judges` says what each of them is given, and returns.
"""

from __future__ import annotations

from typing import Final

PLAN_JUDGES: Final = ("gpuplan.features.components.judging:judge_files",)
"""The judges of every plan, beside the compiler's own checks."""
SOUND_PLAN_JUDGES: Final = ("gpuplan.features.changes.retaining:judge_retained",)
"""The judges of a plan that has no errors, and can be rendered."""
RESULT_JUDGES: Final = ("gpuplan.features.components.final:judge",)
"""The judges of the objects that kustomize makes of rendered folders."""
STEP_JUDGES: Final = ("gpuplan.features.changes.comparing:judge_step_from",)
"""The judges of the step from an earlier platform."""

RULES: Final = (
    "gpuplan.features.changes.rules:RULES",
    "gpuplan.features.components.rules:RULES",
    "gpuplan.features.files.rules:RULES",
    "gpuplan.features.live.rules:RULES",
    "gpuplan.features.packing.rules:RULES",
)
CHECKS: Final = (
    "gpuplan.features.changes.checks:CHECKS",
    "gpuplan.features.components.checks:FILE_CHECKS",
    "gpuplan.features.components.checks:OBJECT_CHECKS",
    "gpuplan.features.components.checks:PATCHED_CHECKS",
)
"""Each is a rule as well."""

DOCUMENTS: Final = {"gpuplan.features.packing.document:Demand": "pack"}
"""Kinds of documents that lie in no platform, each with the command that it is given to."""
OUTPUTS: Final = {
    "diff": ("gpuplan.features.changes.views", "diff"),
    "drift": ("gpuplan.features.live.views", "drift"),
    "import": ("gpuplan.features.live.views", "import"),
    "pack": ("gpuplan.features.packing.views", "pack"),
    "rollout": ("gpuplan.features.changes.views", "rollout"),
    "trace": ("gpuplan.features.tracing.views", "trace"),
}
"""JSON that is written: the package that has its schema, as ``NAME.schema.json``, and the command that writes it."""
