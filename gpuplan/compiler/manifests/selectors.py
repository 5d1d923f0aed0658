"""Selectors of labels, as the API server reads them (`LabelSelector` of meta/v1, `NodeSelectorTerm` of core/v1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.compiler.base.plain import mapping, sequence, text


def terms_of(selector: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """Yield what a selector asks for, that by labels as expressions, too; an empty one asks for nothing."""
    for key, value in mapping(selector.get("matchLabels")).items():
        yield {"key": key, "operator": "In", "values": [value]}
    yield from map(mapping, sequence(selector.get("matchExpressions")))


def holds(term: Mapping[str, object], labels: Mapping[str, str]) -> bool | None:
    """Return whether labels meet an expression; None where its operator is none for labels, so that nobody can say."""
    value, values = labels.get(text(term.get("key"))), sequence(term.get("values"))
    match term.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return None
