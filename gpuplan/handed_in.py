"""What features hand in to the compiler and to each other's lists: the one place that joins them.

Each entry is ``module:name``, and is imported when somebody asks for it. The compiler knows these kinds of things, and
no feature: `gpuplan.compiler.pipeline.judges` says what each of them is given, and gives back.
"""

from __future__ import annotations

from typing import Final

PLAN_JUDGES: Final = ("gpuplan.features.components.checks:judge_files",)
"""What else is wrong with a plan, beside what the compiler's own checks find."""
SOUND_PLAN_JUDGES: Final = ("gpuplan.features.changes.retaining:judge_retained",)
"""What is wrong with a plan that has no errors, and can be rendered."""
RESULT_JUDGES: Final = ("gpuplan.features.components.final:judge",)
"""What is wrong with what is made of rendered folders."""
STEP_JUDGES: Final = ("gpuplan.features.changes.comparing:judge_step_from",)
"""What is wrong with the step from an earlier platform."""

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
    "pack": ("gpuplan.features.packing.views", "pack"),
    "rollout": ("gpuplan.features.changes.views", "rollout"),
    "trace": ("gpuplan.features.tracing.views", "trace"),
}
"""JSON that is written: the package that has its schema, as ``NAME.schema.json``, and the command that writes it."""
