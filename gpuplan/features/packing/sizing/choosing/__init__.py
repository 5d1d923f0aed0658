"""From needs and nodes to an answer: what GPUs are cut into, and who gets what of them."""

from __future__ import annotations

from gpuplan.features.packing.sizing.choosing.choice import choose
from gpuplan.features.packing.sizing.choosing.parts import smallest_profiles

__all__ = ["choose", "smallest_profiles"]
