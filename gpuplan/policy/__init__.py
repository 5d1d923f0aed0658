"""The policy language: documents become typed policies, and what is not a policy becomes a finding."""

from gpuplan.policy.parse import Parsed, parse
from gpuplan.policy.rules import RULES

__all__ = ["RULES", "Parsed", "parse"]
