"""Parts of Kubernetes objects, which may be anything that people wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Body = Mapping[str, Any]


def section(body: Body, key: str) -> Body:
    """The mapping of this key; an empty one where there is none."""
    found = body.get(key)
    return found if isinstance(found, Mapping) else {}


def without(body: Body, *keys: str) -> Body:
    return {key: value for key, value in body.items() if key not in keys}


def items(found: object) -> list[Any]:
    """The items of a list; none of what is no list."""
    return list(found) if isinstance(found, list | tuple) else []
