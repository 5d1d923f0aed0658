"""What is asked for, as `Need`s: what a platform grants, and what files say."""

from __future__ import annotations

from gpuplan.features.packing.sizing.demand.basis import Basis
from gpuplan.features.packing.sizing.demand.files import from_files, tables_beside
from gpuplan.features.packing.sizing.demand.measured import queries
from gpuplan.features.packing.sizing.demand.plans import from_plan

__all__ = ["Basis", "from_files", "from_plan", "queries", "tables_beside"]
