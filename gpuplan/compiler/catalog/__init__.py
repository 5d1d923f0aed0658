"""The catalog of GPU models: exact facts on memory and MIG profiles, with their sources."""

from __future__ import annotations

from gpuplan.compiler.catalog.loading import Catalog as Catalog, find_board as find_board, load as load
from gpuplan.compiler.catalog.models import (
    Engines as Engines,
    Gpu as Gpu,
    PciDevice as PciDevice,
    Placement as Placement,
    Product as Product,
    Profile as Profile,
    Source as Source,
)
from gpuplan.compiler.catalog.names import parse_profile as parse_profile, resource_suffix as resource_suffix
