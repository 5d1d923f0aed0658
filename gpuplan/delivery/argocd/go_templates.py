"""Text within the templates of ApplicationSets, which Argo CD reads as Go's `text/template`."""

from __future__ import annotations

from typing import Any

_OPEN = "{{"
_LITERAL_OPEN = '{{"{{"}}'


def literal(value: Any) -> Any:  # noqa: ANN401 - plain data of an object
    """Plain data that comes out of the template as it is, whatever it says: only two braces begin an action.

    Argo CD renders each text of the template by itself, keys too (`deeplyReplace` in its `applicationset/utils`).
    """
    if isinstance(value, str):
        return value.replace(_OPEN, _LITERAL_OPEN)
    if isinstance(value, dict):
        return {literal(key): literal(part) for key, part in value.items()}
    if isinstance(value, list):
        return [literal(part) for part in value]
    return value
