"""Parts of Kubernetes objects, which may be anything that people wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Body = Mapping[str, Any]


def value_of(body: Body | None, route: Iterable[str], default: object = None) -> object:
    """What is at the end of a route; the default where nothing is."""
    found: object = body
    for key in route:
        found = found.get(key) if isinstance(found, Mapping) else None
    return default if found is None else found


def section(body: Body | None, *route: str) -> Body:
    """The mapping at the end of a route; an empty one where there is none."""
    found = value_of(body, route)
    return found if isinstance(found, Mapping) else {}


def without(body: Body, *keys: str) -> Body:
    return {key: value for key, value in body.items() if key not in keys}


def items(found: object) -> list[Any]:
    """The items of a list; none of what is no list."""
    return list(found) if isinstance(found, list | tuple) else []


def mappings(found: object) -> list[Body]:
    """The items of a list that are mappings."""
    return [item for item in items(found) if isinstance(item, Mapping)]
