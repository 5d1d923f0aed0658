"""Back ends: each turns a plan into the objects and files of its stage."""

from __future__ import annotations

from gpuplan.backends.base import Artifact, Backend

__all__ = ["Artifact", "Backend"]
