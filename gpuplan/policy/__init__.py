"""The policy language: documents become typed policies, and what is not a policy becomes a finding."""

from gpuplan.policy.models import KINDS
from gpuplan.policy.parse import Parsed, parse
from gpuplan.policy.rules import MISSING_FIELD, NOT_EXACTLY_ONE, RULES

__all__ = ["KINDS", "MISSING_FIELD", "NOT_EXACTLY_ONE", "RULES", "Parsed", "parse"]
