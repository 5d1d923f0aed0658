"""Who hands out fractions of GPUs, and how pods ask for one."""

from __future__ import annotations

from gpuplan.planning.plan import SchedulerKind

FRACTION_SCHEDULERS = frozenset((SchedulerKind.KAI, SchedulerKind.RUNAI))
"""Who hands out fractions of GPUs, to pods with an annotation."""

# As `RequestsGPUFraction` of KAI-Scheduler reads them (`pkg/common/resources/gpu_sharing.go`): in newer releases also
# `nvidia.com/container.<name>.gpu-memory.request`.
ASKS_FRACTION = """
has(object.metadata.annotations) && object.metadata.annotations.exists(a,
  a in ['gpu-fraction', 'gpu-memory'] || a.startsWith('nvidia.com/container.'))
"""
