"""Back ends: each turns a plan into the objects and files of its stage."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from gpuplan.compiler.backends.base import Artifact, Backend

__all__ = ["Artifact", "Backend", "backends"]


@cache
def backends() -> tuple[Backend, ...]:
    """Return all modules and packages here, by name; they are loaded when somebody asks for all."""
    return tuple(
        import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__) if module.name != "base"
    )
