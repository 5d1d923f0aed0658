"""Back ends: each turns a plan into the objects and files of its stage."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from gpuplan.backends.base import Artifact, Backend

__all__ = ["BACKENDS", "Artifact", "Backend"]

BACKENDS: Final[tuple[Backend, ...]] = tuple(
    import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__) if found.name != "base"
)
"""All modules and packages here, by name."""
