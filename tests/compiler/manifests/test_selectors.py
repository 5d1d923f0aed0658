"""Selectors of labels choose what the API server would choose, and say nothing of operators that it would refuse."""

from __future__ import annotations

import pytest

from gpuplan.compiler.manifests.selectors import holds, terms_of

LABELS = {"team": "vision", "tier": ""}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("team", "In", ["speech", "vision"], True),
        ("team", "In", ["speech"], False),
        ("other", "In", ["vision"], False),
        ("team", "NotIn", ["speech"], True),
        ("team", "NotIn", ["vision"], False),
        ("other", "NotIn", ["vision"], True),  # what has no such label is in no list
        ("tier", "Exists", None, True),
        ("other", "Exists", None, False),
        ("other", "DoesNotExist", None, True),
        ("tier", "DoesNotExist", None, False),
        ("team", "Gt", ["1"], None),
        ("team", "in", ["vision"], None),
        ("team", None, ["vision"], None),
    ],
)
def test_an_expression(key: str, operator: str | None, values: list[str] | None, expected: bool | None) -> None:
    assert holds({"key": key, "operator": operator, "values": values}, LABELS) is expected


def test_labels_are_expressions_too_and_an_empty_selector_has_none() -> None:
    selector = {"matchLabels": {"team": "vision"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}, "?"]}

    assert [holds(term, LABELS) for term in terms_of(selector)] == [True, True, None]
    assert [*terms_of({})] == [*terms_of({"matchLabels": None, "matchExpressions": "x"})] == []
