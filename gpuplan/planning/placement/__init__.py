"""MIG placement: which GPU instances fit on one GPU together, where they go, and what fits instead."""

from __future__ import annotations

from gpuplan.planning.placement.arrangement import Arrangement, Instance, InstanceCounts, arrangements
from gpuplan.planning.placement.layouts import maximal_layouts, nearest_layouts, room_left, valid_layouts
from gpuplan.planning.placement.placing import Placed, fits, place
from gpuplan.planning.placement.refusal import Refusal, RefusedBy

__all__ = [
    "Arrangement",
    "Instance",
    "InstanceCounts",
    "Placed",
    "Refusal",
    "RefusedBy",
    "arrangements",
    "fits",
    "maximal_layouts",
    "nearest_layouts",
    "place",
    "room_left",
    "valid_layouts",
]
