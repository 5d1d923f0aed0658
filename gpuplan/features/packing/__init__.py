"""From demand to policies: how GPUs are best cut, proven, and written as a patch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuplan.compiler.base.faces import face

if TYPE_CHECKING:
    from gpuplan.features.packing.computing import pack as pack, write_packing as write_packing
    from gpuplan.features.packing.model import Packing as Packing

__getattr__ = face(__name__, {"computing": ("pack", "write_packing"), "model": ("Packing",)})
