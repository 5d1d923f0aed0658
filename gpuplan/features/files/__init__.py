"""Files of others as they are, judged without a platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuplan.compiler.base.faces import face

if TYPE_CHECKING:
    from gpuplan.features.files.checking import check_files as check_files

__getattr__ = face(__name__, {"checking": ("check_files",)})
