"""Hand-written kustomize: what it is, how it joins what is generated, and what comes of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuplan.compiler.base.faces import face

if TYPE_CHECKING:
    from gpuplan.features.components.checks import OBJECT_CHECKS as OBJECT_CHECKS, QUEUE_CHECKS as QUEUE_CHECKS
    from gpuplan.features.components.checks.admitted import refused_by_admission as refused_by_admission
    from gpuplan.features.components.checks.asking import PLACEHOLDER as PLACEHOLDER
    from gpuplan.features.components.checks.configs import device_plugin_config_refused as device_plugin_config_refused
    from gpuplan.features.components.checks.objects import (
        inert_quota_key as inert_quota_key,
        label_selects_nothing as label_selects_nothing,
        limited_gpus as limited_gpus,
    )
    from gpuplan.features.components.checks.patched import Folder as Folder, Patched as Patched
    from gpuplan.features.components.checks.selectors import askers as askers
    from gpuplan.features.components.final import built as built
    from gpuplan.features.components.rules import PATCHED_OBJECT_INVALID as PATCHED_OBJECT_INVALID

__getattr__ = face(
    __name__,
    {
        "checks": ("OBJECT_CHECKS", "QUEUE_CHECKS"),
        "checks.admitted": ("refused_by_admission",),
        "checks.asking": ("PLACEHOLDER",),
        "checks.configs": ("device_plugin_config_refused",),
        "checks.objects": ("inert_quota_key", "label_selects_nothing", "limited_gpus"),
        "checks.patched": ("Folder", "Patched"),
        "checks.selectors": ("askers",),
        "final": ("built",),
        "rules": ("PATCHED_OBJECT_INVALID",),
    },
)
