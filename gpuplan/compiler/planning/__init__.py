"""Planning: policies and the catalog make the plan of a cluster."""

from gpuplan.compiler.planning.resolve import HandWork, resolve
from gpuplan.compiler.planning.rules import RULES

__all__ = ["RULES", "HandWork", "resolve"]
