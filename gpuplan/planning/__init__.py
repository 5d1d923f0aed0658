"""Planning: policies and the catalog make the plan of a cluster."""

from gpuplan.planning.resolve import HandWork, resolve
from gpuplan.planning.rules import RULES

__all__ = ["RULES", "HandWork", "resolve"]
