"""ConfigMaps whose name changes with their content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def config_map(prefix: str, namespace: str, data: Mapping[str, str]) -> dict[str, Any]:
    """A ConfigMap named ``<prefix>-<8 hex digits of its data>``.

    Its content never changes, so it is immutable.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"{prefix}-{digest(data)}",
            "namespace": namespace,
        },
        "immutable": True,
        "data": dict(data),
    }


def digest(data: Mapping[str, str]) -> str:
    """Eight hex digits that change when the data does, and only then."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]
