"""The modules of stages that not every command gets to: each is loaded when it is first asked for.

A command's start shows every module. Modules of the pipeline that are not listed here are loaded with it.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpuplan.compiler import checks
    from gpuplan.compiler.checks import generated as work_checks
    from gpuplan.compiler.pipeline import generated, judging, output, rendering

__all__ = ["checks", "generated", "judging", "output", "rendering", "work_checks"]

_ELSEWHERE: Final = {"checks": "gpuplan.compiler.checks", "work_checks": "gpuplan.compiler.checks.generated"}


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(_ELSEWHERE.get(name, f"gpuplan.compiler.pipeline.{name}"))
