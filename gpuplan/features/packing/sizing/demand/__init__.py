"""The demand as `Need`s: from what a platform grants, and from files."""

from __future__ import annotations

from gpuplan.features.packing.sizing.demand.files import from_files, tables_beside
from gpuplan.features.packing.sizing.demand.measured import queries
from gpuplan.features.packing.sizing.demand.plans import from_plan

__all__ = ["from_files", "from_plan", "queries", "tables_beside"]
