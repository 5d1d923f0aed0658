"""How pods ask for a fraction of a GPU."""

from __future__ import annotations

# As `RequestsGPUFraction` of KAI-Scheduler reads them (`pkg/common/resources/gpu_sharing.go`): in newer releases also
# `nvidia.com/container.<name>.gpu-memory.request`.
ASKS_FRACTION = """
has(object.metadata.annotations) && object.metadata.annotations.exists(a,
  a in ['gpu-fraction', 'gpu-memory'] || a.startsWith('nvidia.com/container.'))
"""
