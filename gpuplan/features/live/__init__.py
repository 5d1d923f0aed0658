"""The policies of a cluster that runs, and its differences from what the policies build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuplan.compiler.base.faces import face

if TYPE_CHECKING:
    from gpuplan.features.live.drifting import Drifting as Drifting, drift as drift
    from gpuplan.features.live.importing import Import as Import, adopt as adopt, write_import as write_import

__getattr__ = face(__name__, {"drifting": ("Drifting", "drift"), "importing": ("Import", "adopt", "write_import")})
