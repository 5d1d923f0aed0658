"""Evaluate CEL, in which admission policies and definitions of custom kinds state their rules.

`expressions` reads a rule and evaluates it, `functions` are what its operators and functions do. They know plain data
alone, no kinds and no GPUs. ADR 43 says which libraries were tried.
"""

from __future__ import annotations

from gpuplan.compiler.manifests.cel.expressions import Scope, Term, evaluate, holds, names_in, read_rule
from gpuplan.compiler.manifests.cel.functions import Authorizer, CelError, UnjudgedError

__all__ = ["Authorizer", "CelError", "Scope", "Term", "UnjudgedError", "evaluate", "holds", "names_in", "read_rule"]
