"""Labels and resources that other programs write on nodes are named in one module."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import gpuplan
from gpuplan.compiler.planning import discovered

SOURCES: Final = Path(gpuplan.__file__).parent
NAMED: Final = {
    value for name, value in vars(discovered).items() if name.isupper() and isinstance(value, str) and "/" in value
}
ELSEWHERE: Final = {
    ("compiler/catalog/operators.py", "nvidia.com/gpu"),  # the key of a taint
    ("compiler/backends/gpu_operator/drivers.py", "nvidia.com/gpu"),  # the key of a taint
    ("compiler/backends/guard/script.py", "nvidia.com/mig.config.state"),  # it runs in the cluster, without gpuplan
}


def test_no_other_module_spells_what_other_programs_write() -> None:
    spelt = {
        (path.relative_to(SOURCES).as_posix(), node.value)
        for path in SOURCES.rglob("*.py")
        if path != Path(discovered.__file__)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in NAMED
    }

    assert spelt == ELSEWHERE, "import them from `gpuplan/compiler/planning/discovered.py`"
