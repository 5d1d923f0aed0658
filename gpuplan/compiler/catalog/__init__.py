"""The catalog of GPU models: exact facts on memory and MIG profiles, with their sources."""

from __future__ import annotations

from gpuplan.compiler.catalog.loading import Catalog, find_board, load
from gpuplan.compiler.catalog.models import Engines, Gpu, LegacyName, PciDevice, Placement, Product, Profile, Source
from gpuplan.compiler.catalog.names import ProfileName, parse_profile, resource_suffix

__all__ = [
    "Catalog",
    "Engines",
    "Gpu",
    "LegacyName",
    "PciDevice",
    "Placement",
    "Product",
    "Profile",
    "ProfileName",
    "Source",
    "find_board",
    "load",
    "parse_profile",
    "resource_suffix",
]
