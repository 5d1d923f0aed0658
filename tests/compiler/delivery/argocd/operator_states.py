"""Objects of the GPU Operator, with the status that it writes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

A_DAY = 24 * 60 * 60
"""In seconds, as all times here: before the moment that somebody asks."""


def ready(reason: str = "Reconciled", message: str = "", *, since: int = A_DAY) -> dict[str, Any]:
    """The status that `SetConditionsReady` makes (`internal/conditions` of NVIDIA/gpu-operator, v24.6.2 to v26.7.0)."""
    return {
        "state": "ready",
        "conditions": [
            condition("Ready", "True", reason, message, since),
            condition("Error", "False", "Ready", "", since),
        ],
    }


def failed(reason: str, message: str, *, state: str = "notReady", since: int = A_DAY) -> dict[str, Any]:
    """The status that `SetConditionsError` makes."""
    return {
        "state": state,
        "conditions": [
            condition("Ready", "False", "Error", "", since),
            condition("Error", "True", reason, message, since),
        ],
    }


def condition(kind: str, status: str, reason: str, message: str, since: int) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": utc(since)}


def an_object(status: Mapping[str, Any] | None, *, changed: int = A_DAY) -> dict[str, Any]:
    """One whose spec was last changed so long ago, as the API server notes it beside the operator's own writes."""
    managed = [
        {"manager": "argocd-controller", "operation": "Apply", "time": utc(changed)},
        {"manager": "gpu-operator", "operation": "Update", "subresource": "status", "time": utc(0)},
    ]
    return {"metadata": {"name": "a", "managedFields": managed}, **({} if status is None else {"status": status})}


def utc(ago: int) -> str:
    return f"{datetime.now(UTC) - timedelta(seconds=ago):%Y-%m-%dT%H:%M:%SZ}"
