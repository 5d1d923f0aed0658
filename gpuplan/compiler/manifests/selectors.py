"""Selectors of labels, as the API server and the scheduler read them.

They are `LabelSelector` of meta/v1 and `NodeSelectorTerm` of core/v1 (`Requirement.Matches` of
`apimachinery/pkg/labels/selector.go`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from gpuplan.compiler.base.patterns import regex
from gpuplan.compiler.base.plain import mapping, sequence, text


def matches(
    selector: Mapping[str, object], labels: Mapping[str, object], known: Container[str] | None = None
) -> bool | None:
    """Return whether labels meet a selector, or None if that cannot be known.

    An empty selector matches everything. An absent label is in no list, so `NotIn` matches it. ``known`` holds the keys
    whose labels are known, which are all keys by default. A requirement cannot be judged if its key is not known, if
    its operator is unknown, or if `Gt` or `Lt` has not one integer. A caller gets None if such a requirement decides,
    and asks ``is True`` or ``is not False`` as its question needs.
    """
    by_label = mapping(selector.get("matchLabels")).items()
    requirements: list[Mapping[str, object]] = [
        {"key": key, "operator": "In", "values": [value]} for key, value in by_label
    ]
    requirements += map(mapping, sequence(selector.get("matchExpressions")))
    verdicts = [
        _meets(requirement, labels) if known is None or text(requirement.get("key")) in known else None
        for requirement in requirements
    ]
    return False if False in verdicts else None if None in verdicts else True


def _meets(requirement: Mapping[str, object], labels: Mapping[str, object]) -> bool | None:
    value, values = labels.get(text(requirement.get("key"))), sequence(requirement.get("values"))
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator if len(values) == 1 and (bound := _integer(values[0])) is not None:
            number = _integer(value)
            return number is not None and (number > bound if operator == "Gt" else number < bound)
        case _:
            return None


def _integer(value: object) -> int | None:
    """Return the number of a text as `strconv.ParseInt` reads it, or None."""
    number = int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


_INTEGER = regex(r"[+-]?[0-9]{1,30}")
