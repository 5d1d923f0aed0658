"""Evaluates health checks as Flux does (`StatusEvaluator` in fluxcd/pkg's `runtime/cel/status_evaluator.go`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from celpy import celtypes
from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError

from tests.compiler.backends.scheduling.cel import evaluate

WAITING = "InProgress"


def health(check: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """The first expression that is true decides; after one that cannot be evaluated Flux waits, as after none."""
    context = {name: json_to_cel(value) for name, value in body.items()}
    for field, status in (("inProgress", WAITING), ("failed", "Failed"), ("current", "Current")):
        if field in check:
            try:
                found = evaluate(check[field], context)
            except CELEvalError:
                return WAITING
            assert isinstance(found, bool | celtypes.BoolType), found
            if found:
                return status
    return WAITING
