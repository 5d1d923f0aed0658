"""The policy language: documents become typed policies, and what is not a policy becomes a finding."""

from gpuplan.compiler.policy.models import KINDS
from gpuplan.compiler.policy.parse import Parsed, parse
from gpuplan.compiler.policy.rules import MISSING_FIELD, NOT_EXACTLY_ONE, RULES, UNKNOWN_FIELD

__all__ = ["KINDS", "MISSING_FIELD", "NOT_EXACTLY_ONE", "RULES", "UNKNOWN_FIELD", "Parsed", "parse"]
